/* weft predict: what its parts share. */
#ifndef WEFT_CLI_PREDICT_H
#define WEFT_CLI_PREDICT_H

#include "private.h"
#include "train.h"

typedef struct PredictOptions {
    const char *checkpoint, *schema;
    int64_t top;
    bool json;
} PredictOptions;

typedef struct Predict {
    const PredictOptions *options;
    Trainer *trainer;
    /* what samples are */
    DataSet set;
    ClassNames names;
    /* samples that go forward together */
    int together;
    /* owned: (together, train_shares) */
    double *share;
    /* "": not known; what the training set held */
    char data_train[DATA_FINGERPRINT];
} Predict;

/* Puts the likeliest classes of a sample, as " rose 97.31 %, camellia 1.20 %"; or as an array. */
void predict_text(const Predict *p, const double *share);
void predict_json(const Predict *p, Json *json, const double *share);

/* Pictures in files. A file that cannot be read is named, and the others get their answers. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Rows of tables. Before the trainer is made: what the files ask of it. */
Status predict_rows_check(Predict *p, const Config *config, int count, char *const *paths);
Status predict_rows(Predict *p, int count, char *const *paths);

#endif
