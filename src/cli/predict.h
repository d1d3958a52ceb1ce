/* Shared declarations of weft predict. */
#ifndef WEFT_CLI_PREDICT_H
#define WEFT_CLI_PREDICT_H

#include "private.h"
#include "train.h"

typedef struct PredictOptions {
    const char *checkpoint, *schema;
    int64_t top;
    bool json, no_ema;
} PredictOptions;

typedef struct Predict {
    const PredictOptions *options;
    Trainer *trainer;
    /* description of the samples */
    DataSet set;
    ClassNames names;
    /* number of samples per forward pass */
    int batch;
    /* probabilities, double[batch][train_probability_count]; owned */
    double *probability;
    /* fingerprint of the training set; "": not known */
    char data_train[DATA_FINGERPRINT];
    /* ranges of the training set's values; all 0: not known; owned */
    DataRanges ranges;
    /* name of the training set in messages; owned */
    char *training;
} Predict;

/* Print the likeliest classes of a sample, as " rose 97.31 %, camellia 1.20 %", or as a JSON array.
 * probability: double[train_probability_count] */
void predict_print_classes(const Predict *p, const double *probability);
void predict_put_classes(const Predict *p, Json *json, const double *probability);

/* Classifies picture files. Reports a file that cannot be read and continues with the others. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Adapts p->set to files of table rows. Called before the trainer is made. */
Status predict_prepare_rows(Predict *p, const Config *config, int count, char *const *paths);
/* Classifies rows of tables. */
Status predict_rows(Predict *p, int count, char *const *paths);

#endif
