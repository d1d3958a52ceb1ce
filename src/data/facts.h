/* What an HDF5 file holds, as far as it can be a data set, found in a process of its own: HDF5
 * parses the file there, and here only what it found is looked at. */
#ifndef WEFT_DATA_FACTS_H
#define WEFT_DATA_FACTS_H

#include "data.h"

/* plain bytes; y is not looked for where x is tokens */
typedef struct FactsAsk {
    char path[DATA_PATH], x[256], y[256];
} FactsAsk;

/* in this order, and a failure ends it */
typedef enum FactsPart {
    FACTS_FORMAT,
    FACTS_X,
    FACTS_Y,
    FACTS_CLASSES,
    FACTS_STATS,
    FACTS_PARTS
} FactsPart;

/* plain bytes */
typedef struct SetFacts {
    /* how many could be read; and why not the next */
    int parts;
    Status status;
    char why[4096];
    /* a data set of weft's own, and its kind */
    bool weft;
    DataKind kind;
    /* images as files, and turned */
    bool encoded, oriented;
    /* DataSet's */
    bool turned, bicubic;
    DataArray x, y, index, orient;
    /* root attributes; 0: not there */
    int64_t classes, vocab;
    /* names of classes that can be read */
    int64_t names;
    char tokenizer[DATA_TOKENIZER], tokenizer_hash[32];
    int means, stds;
    float mean[DATA_CHANNELS], std[DATA_CHANNELS];
    /* tables: ids and where those of each field begin; attributes, 0: not there */
    DataArray ids, id_first;
    int64_t id_most, id_rows;
    /* DataSet's */
    uint64_t id_begins, id_words;
} SetFacts;

/* What to ask. ERR_NOINPUT, ERR_CONFIG: too long. */
Status facts_names(FactsAsk *ask, const char *path, const char *x, const char *y);
Status facts_path_fail(const char *path);
/* ERR_DATA where HDF5 crashed, hung or wanted too much, or what it found cannot be; ERR_IO where no
 * process can be made. What is wrong with the contents is said in facts. */
Status facts_ask(const FactsAsk *ask, SetFacts *facts);
/* The same in this process: for facts_ask, and where there is nothing to lose. */
void facts_read(const FactsAsk *ask, SetFacts *facts);
/* Can they be? ERR_DATA. */
Status facts_check(const FactsAsk *ask, SetFacts *facts);

#endif
