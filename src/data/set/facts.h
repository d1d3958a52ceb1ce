/* Declares how the arrays and attributes of a data set's HDF5 file are found. HDF5 parses the file
 * in a separate process; this process only checks the answer, a SetFacts. */
#ifndef WEFT_DATA_FACTS_H
#define WEFT_DATA_FACTS_H

#include "../data_private.h"

#include <sys/stat.h>

/* largest number of bytes of an unpacked chunk */
enum { CHUNK_BYTES_MAX = 1 << 30 };

/* Request to the separate process: the file's path, and the names of x and y. Has no pointers. In
 * weft's own sets "/x" means the array of the samples, whatever its name. y is not read if x holds
 * tokens or if the file is a set of boxes. */
typedef struct FactsRequest {
    char path[DATA_PATH], x[256], y[256];
} FactsRequest;

/* Parts of the answer, in the order in which they are read. Reading ends with the first part that
 * fails. */
typedef enum FactsPart {
    FACTS_FORMAT,
    FACTS_X,
    FACTS_Y,
    FACTS_CLASSES,
    FACTS_STATS,
    FACTS_PARTS
} FactsPart;

/* Answer of the separate process. Has no pointers. Members without a comment mean the same as in
 * DataSet. */
typedef struct SetFacts {
    /* number of parts that were read */
    int parts;
    /* status of the part that failed, or of opening the file; OK: all parts were read */
    Status status;
    /* message of the failure */
    char why[4096];
    /* true: weft wrote the file; false: another program did, and `kind` is not read from the
     * file */
    bool by_weft;
    DataKind kind;
    bool encoded, rotates_on_read, orient_requested, bicubic;
    /* ndim 0: the file has no such array, or it was not read */
    DataArray x, y, index, orient;
    DataArray box[BOX_ARRAYS];
    /* number of names in the list of classes; if there is no list, the root attribute `classes`; 0:
     * both are missing */
    int64_t classes;
    /* root attribute `vocab`; 0: missing */
    int64_t vocab;
    /* number of names in the list of classes; 0: there is no list that can be read */
    int64_t names;
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[TOKENIZER_IDENTITY];
    /* means: number of values in mean; stds: number of values in std */
    int means, stds;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    DataArray ids, id_first;
    /* root attributes `id_most` and `id_rows`; 0: missing */
    int64_t ids_per_sample_max, id_limit;
    uint64_t field_first_hash, vocabulary_hash;
    DataColumns columns;
} SetFacts;

/* Fills a request. ERR_NOINPUT: the path is too long; ERR_CONFIG: the name x or y is too long. */
Status facts_request_init(FactsRequest *request, const char *path, const char *x, const char *y);
/* Returns ERR_NOINPUT, with the message that the path is too long. */
Status facts_path_fail(const char *path);
/* Runs the request in a separate process and checks its answer. ERR_DATA: HDF5 crashed, hung or
 * used too much memory, or the answer is impossible; ERR_IO: the process cannot be started. Errors
 * in the file's contents are in facts->status. */
Status facts_request_run(const FactsRequest *request, SetFacts *facts);
/* Runs the request in this process. For facts_request_run, which calls it in the separate process,
 * and for tests. */
void facts_read(const FactsRequest *request, SetFacts *facts);
/* A file while HDF5 reads its metadata. */
typedef struct FactsFile {
    /* borrowed */
    const char *path;
    /* HDF5's handle, which the caller closes with H5Fclose; -1: not open */
    hid_t file;
    /* size of the file in bytes */
    int64_t bytes;
    /* result of stat when the file was opened; zeros: unknown */
    struct stat stat;
} FactsFile;
/* Opens a file. ERR_NOINPUT, ERR_DATA, ERR_IO. Call facts_file_open and facts_read_array under
 * hdf5_lock. */
Status facts_file_open(FactsFile *in, const char *path);
/* Reads type, shape and storage of the array `name`. key: as in h5_dataset. ERR_DATA: the array is
 * missing, or readers could not read it. */
Status facts_read_array(const FactsFile *in, DataArray *a, const char *name, const char *key);
/* Returns whether the description of an array in an answer is possible. Makes its texts
 * printable. */
bool facts_array_is_valid(DataArray *a);
/* Checks an answer, terminates its texts, and makes those of arrays and of the tokenizer printable.
 * ERR_DATA: the answer is impossible. */
Status facts_check(const FactsRequest *request, SetFacts *facts);

#endif
