/* Finds out what an HDF5 file holds as a data set. HDF5 parses the file in a separate process; this
 * process only checks the answer. */
#ifndef WEFT_DATA_FACTS_H
#define WEFT_DATA_FACTS_H

#include "data.h"

/* Request; plain bytes. y is not looked for if x holds tokens. */
typedef struct FactsRequest {
    char path[DATA_PATH], x[256], y[256];
} FactsRequest;

/* parts of the answer, in this order; the first failure ends the search */
typedef enum FactsPart {
    FACTS_FORMAT,
    FACTS_X,
    FACTS_Y,
    FACTS_CLASSES,
    FACTS_STATS,
    FACTS_PARTS
} FactsPart;

/* answer; plain bytes */
typedef struct SetFacts {
    /* number of parts found; status and message of the part that failed */
    int parts;
    Status status;
    char why[4096];
    /* the file is weft's own, and its kind */
    bool weft;
    DataKind kind;
    /* images are stored as files; and need rotation */
    bool encoded, oriented;
    /* see DataSet */
    bool turned, bicubic;
    DataArray x, y, index, orient;
    /* root attributes; 0: missing */
    int64_t classes, vocab;
    /* number of readable names of classes */
    int64_t names;
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[TOKENIZER_IDENTITY];
    int means, stds;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* tables: ids, and the index of each field's first id; attributes, 0: missing */
    DataArray ids, id_first;
    int64_t id_most, id_rows;
    /* see DataSet */
    uint64_t id_begins, id_words;
    DataColumns columns;
} SetFacts;

/* Fills a request. ERR_NOINPUT, ERR_CONFIG: a name is too long. */
Status facts_names(FactsRequest *request, const char *path, const char *x, const char *y);
Status facts_path_fail(const char *path);
/* Runs the request in a separate process. ERR_DATA: HDF5 crashed, hung or used too much memory, or
 * the answer is impossible; ERR_IO: the process cannot be started. Errors of the contents are in
 * facts->status. */
Status facts_request(const FactsRequest *request, SetFacts *facts);
/* Runs the request in this process: used by facts_request in the separate process, and by tests. */
void facts_read(const FactsRequest *request, SetFacts *facts);
/* Checks an answer; ERR_DATA: it is impossible. */
Status facts_check(const FactsRequest *request, SetFacts *facts);

#endif
