/* Shared declarations of weft predict. */
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
    /* description of the samples */
    DataSet set;
    ClassNames names;
    /* number of samples per forward pass */
    int together;
    /* probabilities, double[together][train_shares]; owned */
    double *share;
    /* fingerprint of the training set; "": not known */
    char data_train[DATA_FINGERPRINT];
    /* ranges of the training set, values 0: not known, and words for it; both owned */
    DataRanges ranges;
    char *training;
} Predict;

/* Prints the likeliest classes of a sample, as " rose 97.31 %, camellia 1.20 %", or as a JSON
 * array. */
void predict_text(const Predict *p, const double *share);
void predict_json(const Predict *p, Json *json, const double *share);

/* Classifies picture files. Reports a file that cannot be read and goes on with the others. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Classifies rows of tables. predict_rows_check adapts p->set to the files before the trainer is
 * made. */
Status predict_rows_check(Predict *p, const Config *config, int count, char *const *paths);
Status predict_rows(Predict *p, int count, char *const *paths);

#endif
