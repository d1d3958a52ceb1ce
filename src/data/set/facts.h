/* Finds the arrays and attributes of an HDF5 file that is to be used as a data set. HDF5 parses the
 * file in a separate process; this process only checks its answer, the SetFacts. */
#ifndef WEFT_DATA_FACTS_H
#define WEFT_DATA_FACTS_H

#include "../data_private.h"

#include <sys/stat.h>

/* largest number of bytes of an unpacked chunk */
enum { CHUNK_BYTES_MAX = 1 << 30 };

/* The request to the separate process: the file's path, and the names of x and y. In weft's own
 * sets, "/x" means the array with the samples, whatever its name. y is not read if x holds tokens,
 * or if the file is a set of boxes. Plain bytes. */
typedef struct FactsRequest {
    char path[DATA_PATH], x[256], y[256];
} FactsRequest;

/* Parts of the answer, in the order in which they are read; the first failure ends the reading. */
typedef enum FactsPart {
    FACTS_FORMAT,
    FACTS_X,
    FACTS_Y,
    FACTS_CLASSES,
    FACTS_STATS,
    FACTS_PARTS
} FactsPart;

/* The answer; plain bytes. Fields without a comment mean the same as in DataSet. */
typedef struct SetFacts {
    /* number of parts that were read; status and message of the part that failed, or of opening the
     * file */
    int parts;
    Status status;
    char why[4096];
    /* true: weft wrote the file; false: another program did, and `kind` is not read from the
     * file */
    bool weft;
    DataKind kind;
    bool encoded, oriented, turned, bicubic;
    /* ndim 0: the file has no such array, or it was not read */
    DataArray x, y, index, orient;
    DataArray box[BOX_ARRAYS];
    /* number of classes by the list of names, else by the root attribute `classes`; root attribute
     * `vocab`; 0: missing */
    int64_t classes, vocab;
    /* number of readable names of classes */
    int64_t names;
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[TOKENIZER_IDENTITY];
    /* number of values in mean and in std */
    int means, stds;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    DataArray ids, id_first;
    /* root attributes; 0: missing */
    int64_t id_most, id_rows;
    uint64_t field_first_hash, vocabulary_hash;
    DataColumns columns;
} SetFacts;

/* Fills a request. ERR_NOINPUT: the path is too long; ERR_CONFIG: the name x or y is too long. */
Status facts_request_init(FactsRequest *request, const char *path, const char *x, const char *y);
/* ERR_NOINPUT: the path is too long. */
Status facts_path_fail(const char *path);
/* Runs the request in a separate process and checks its answer. ERR_DATA: HDF5 crashed, hung or
 * used too much memory, or the answer is impossible; ERR_IO: the process cannot be started. Errors
 * in the file's contents are in facts->status. */
Status facts_request_run(const FactsRequest *request, SetFacts *facts);
/* Runs the request in this process: used by facts_request_run in the separate process, and by
 * tests. */
void facts_read(const FactsRequest *request, SetFacts *facts);
/* A file while HDF5 reads its metadata. */
typedef struct FactsFile {
    /* borrowed */
    const char *path;
    /* -1: not open; closed by the caller, with H5Fclose */
    hid_t file;
    /* size of the file */
    int64_t bytes;
    /* the file's state when it was opened; zeros: unknown */
    struct stat stat;
} FactsFile;
/* Opens a file. ERR_NOINPUT, ERR_DATA. Call this and facts_read_array under hdf5_lock. */
Status facts_file_open(FactsFile *in, const char *path);
/* Reads type, shape and storage of the array `name`; key as in h5_dataset. ERR_DATA: the array is
 * missing, or readers could not read it. */
Status facts_read_array(const FactsFile *in, DataArray *a, const char *name, const char *key);
/* Is this description of an array, a part of an answer, possible? Makes its texts printable. */
bool facts_array_is_valid(DataArray *a);
/* Checks an answer, terminates its texts, and makes those of arrays and of the tokenizer printable.
 * ERR_DATA: the answer is impossible. */
Status facts_check(const FactsRequest *request, SetFacts *facts);

#endif
