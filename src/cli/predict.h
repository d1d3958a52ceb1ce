/* Shared declarations of weft predict. */
#ifndef WEFT_CLI_PREDICT_H
#define WEFT_CLI_PREDICT_H

#include "private.h"

#include "detect.h"
#include "train.h"

typedef struct PredictOptions {
    const char *checkpoint, *schema, *draw, *samples, *out, *png;
    /* 0: not given */
    int64_t top, zoom, rollout;
    /* NaN: not given */
    double score;
    bool json, no_ema, force, truth;
} PredictOptions;

typedef struct Predict {
    const PredictOptions *options;
    Trainer *trainer;
    /* description of the samples; owned */
    DataSet set;
    /* names of the model's classes; owned */
    ClassNames names;
    /* for each file its data set, DataSet *[files]; NULL: the file is not a data set; owned */
    DataSet **set_of;
    int files;
    /* true: at least one file is a data set */
    bool has_sets;
    /* indices of the first and of the last sample that are read from each set; `last` is INT64_MAX
     * if all samples are read */
    int64_t first, last;
    /* number of samples per forward pass */
    int batch;
    /* probabilities, double[batch][train_probability_count]; owned */
    double *probability;
    /* finds boxes in the outputs of a detector; NULL: the model is not a detector; owned */
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

/* Checks the options, and makes the folder for drawings. paths: the files of the command line.
 * ERR_USAGE: an option does not fit the model, or a drawing would replace a file without
 * --force. */
Status predict_check_options(const Predict *p, int count, char *const *paths);
/* A picture in which boxes are searched; all pointers are borrowed. */
typedef struct PredictedPicture {
    /* path of the picture's file, or of its data set */
    const char *path;
    /* index of the sample in the data set; -1 if the picture is a file */
    int64_t sample;
    /* size in pixels; boxes are in these pixels */
    int width, height;
    /* the whole picture, perhaps in another size; NULL only without --draw */
    const Image *pixels;
    /* true boxes, [truths], and the names of their classes; NULL if the picture is a file */
    const TruthBox *truth;
    int64_t truths;
    const ClassNames *names;
} PredictedPicture;
/* Finds, prints and, with --draw, draws the boxes of the picture for which train_detect has just
 * computed the outputs. */
Status predict_boxes(const Predict *p, const PredictedPicture *picture);
/* Prints the likeliest classes of a picture. sample: index of the picture in its data set; -1 if
 * the picture is a file. */
void predict_print_picture(const Predict *p, const char *path, int64_t sample,
                           const double *probability);
/* Classifies the pictures of files and of data sets, or finds their boxes. Reports a picture file
 * that cannot be read, continues with the others, and fails at the end: ERR_DATA, or ERR_NOINPUT if
 * files are missing and nothing else is wrong. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Parses --samples, opens the data sets among the files, and raises p->set.id_most to the largest
 * of them. Called before the trainer is made. ERR_USAGE: --samples does not fit them. */
Status predict_open_sets(Predict *p, const Config *config, int count, char *const *paths);
/* Parses --samples, "7" or "0-7", to p->first and p->last. ERR_USAGE. */
Status predict_parse_samples(Predict *p);
/* Returns the index of the last sample that is read from a set. */
int64_t predict_last(const Predict *p, const DataSet *set);
/* Reads samples p->first to predict_last of a set, and calls take for each batch. The first and the
 * last batch may contain other samples, too. Returns the first error of reading or of take. */
typedef Status PredictTake(void *user, const Batch *batch);
Status predict_set(const Predict *p, const DataSet *set, PredictTake *take, void *user);
/* Classifies the pictures of a set, or finds their boxes. */
Status predict_set_pictures(const Predict *predict, const char *path, const DataSet *set);
/* Classifies the rows of data sets and of text files. */
Status predict_rows(Predict *p, int count, char *const *paths);
/* Forecasts the fields of the files; without files those of data.test. */
Status predict_fields(Predict *p, const Job *job, const char *checkpoint, int count,
                      char *const *paths);

#endif
