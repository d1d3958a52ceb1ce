/* Shared declarations of weft predict. */
#ifndef WEFT_CLI_PREDICT_H
#define WEFT_CLI_PREDICT_H

#include "private.h"

#include "detect.h"
#include "train.h"

typedef struct PredictOptions {
    const char *checkpoint, *schema, *draw;
    /* 0: not given */
    int64_t top;
    /* NaN: not given */
    double score;
    bool json, no_ema, force;
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
    /* finds boxes in the outputs of a detector; NULL: another model; owned */
    DetectorBoxes *boxes;
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

/* Returns the name of a class, or its label (counted from data.label_base) if it has no name. */
const char *predict_label(const Predict *p, int64_t class, char number[24]);

/* ERR_USAGE: options that do not fit the model, or drawings that would replace files. Makes the
 * folder of the drawings. */
Status predict_check_options(const Predict *p, int count, char *const *paths);
/* Finds, prints and draws the boxes of the picture for which train_detect has just computed the
 * outputs. picture: all its pixels; drawn into. */
Status predict_boxes(const Predict *p, const char *path, Image *picture);
/* Classifies picture files, or finds their boxes. Reports a file that cannot be read and continues
 * with the others. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Adapts p->set to files of table rows. Called before the trainer is made. */
Status predict_prepare_rows(Predict *p, const Config *config, int count, char *const *paths);
/* Classifies rows of tables. */
Status predict_rows(Predict *p, int count, char *const *paths);

#endif
