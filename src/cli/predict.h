/* Declarations shared by the files of weft predict. */
#ifndef WEFT_CLI_PREDICT_H
#define WEFT_CLI_PREDICT_H

#include "private.h"

#include "detect.h"
#include "train.h"

/* The flags of weft predict. NULL or false: the flag is not given. */
typedef struct PredictOptions {
    const char *checkpoint, *schema, *draw, *samples, *out, *png;
    /* 0: the flag is not given */
    int64_t top, zoom, rollout;
    /* NaN: the flag is not given */
    double score;
    bool json, no_ema, force, truth;
} PredictOptions;

/* The state of weft predict. */
typedef struct Predict {
    const PredictOptions *options;
    /* owned */
    Trainer *trainer;
    /* description of the samples that the model takes; owned */
    DataSet set;
    /* names of the model's classes; owned */
    ClassNames names;
    /* data set of each file of the command line, [files]; NULL: the file is not a data set;
     * owned */
    DataSet **set_of;
    int files;
    /* has_sets: true if at least one file is a data set; has_others: true if at least one file is
     * none */
    bool has_sets, has_others;
    /* index of the first sample that is read from each set */
    int64_t first_sample;
    /* index of the last sample that is read from each set; INT64_MAX: all samples are read */
    int64_t last_sample;
    /* number of samples per forward pass */
    int batch;
    /* true: the model predicts numbers, not classes (train.loss is one for numbers) */
    bool numbers;
    /* results of train_predict, double[batch][train_result_count]; owned */
    double *result;
    /* finds boxes in the outputs of a detector; NULL: the model is not a detector; owned */
    DetectorBoxes *boxes;
    /* fingerprint of the training set; "": not known */
    char training_fingerprint[DATA_FINGERPRINT];
    /* ranges of the training set's values; all 0: not known; owned */
    DataRanges ranges;
    /* name of the training set in messages; owned */
    char *training_name;
} Predict;

/* Prints the likeliest classes of a sample, as " rose 97.31 %, camellia 1.20 %", or its numbers, as
 * " 0.25, -3", and a line end. result: double[train_result_count]. */
void predict_print_result(const Predict *p, const double *result);
/* Writes the likeliest classes of a sample as the JSON array "classes", or its numbers as the array
 * "values". */
void predict_put_result(const Predict *p, Json *json, const double *result);

/* Returns the name of a class or, if it has no name, its label (counted from data.label_base) as
 * text in `number`. */
const char *predict_label(const Predict *p, int64_t class, char number[24]);

/* Checks the options, and makes the folder for drawings. paths: the files of the command line,
 * [count]. ERR_USAGE: an option does not fit the model, two pictures would be drawn to one file, or
 * a drawing would replace an input or, without --force, a file. */
Status predict_check_options(const Predict *p, int count, char *const *paths);
/* A picture in which boxes are sought. All pointers are borrowed. */
typedef struct PredictedPicture {
    /* path of the picture's file, or of its data set */
    const char *path;
    /* index of the sample in the data set; -1 if the picture is a file */
    int64_t sample;
    /* size of the picture in pixels, which are also the unit of its boxes */
    int width, height;
    /* the picture without any cropping, perhaps in another size; NULL only without --draw */
    const Image *pixels;
    /* true boxes, [truths]; NULL if the picture is a file */
    const TruthBox *truth;
    int64_t truths;
    /* names of the classes of the true boxes; NULL if the picture is a file */
    const ClassNames *names;
} PredictedPicture;
/* Finds and prints the boxes of a picture and, with --draw, draws them. train_detect must have
 * computed the model's outputs for this picture last. */
Status predict_boxes(const Predict *p, const PredictedPicture *picture);
/* Prints the result of a picture (predict_print_result). sample: index of the picture in its data
 * set; -1 if the picture is a file. */
void predict_print_picture(const Predict *p, const char *path, int64_t sample,
                           const double *result);
/* Classifies the pictures of files and of data sets, or finds their boxes. If a picture file cannot
 * be read, reports it, continues with the next file, and fails at the end: with ERR_DATA if the
 * content of any file is wrong, else with the error of the last unreadable file, such as
 * ERR_NOINPUT if it is missing. */
Status predict_pictures(Predict *p, int count, char *const *paths);
/* Parses --samples, and opens the data sets among the files. Raises p->set.ids_per_sample_max to
 * the largest number of ids that a sample of any file has. Called before the trainer is made.
 * ERR_USAGE: a set does not have the samples of --samples. */
Status predict_open_sets(Predict *p, const Config *config, int count, char *const *paths);
/* Parses --samples, "7" or "0-7", and sets p->first_sample and p->last_sample. ERR_USAGE: the text
 * has another form. */
Status predict_parse_samples(Predict *p);
/* Returns the index of the last sample that is read from a set. */
int64_t predict_last(const Predict *p, const DataSet *set);
/* Function that is called with each batch of a set. */
typedef Status PredictTake(void *user, const MicroBatch *batch);
/* Reads samples p->first_sample to predict_last of a set, and calls `take` for each batch. The
 * first and the last batch may also contain samples outside of this range. Returns the first error
 * of reading or of `take`. */
Status predict_each_batch(const Predict *p, const DataSet *set, PredictTake *take, void *user);
/* Classifies the pictures of a set, or finds their boxes. path: path of the set, for the output. */
Status predict_set_pictures(const Predict *predict, const char *path, const DataSet *set);
/* Classifies the rows of data sets and of text files. */
Status predict_rows(Predict *p, int count, char *const *paths);
/* Forecasts fields from the samples of the files or, if count is 0, of data.test. checkpoint: path
 * of the checkpoint. */
Status predict_fields(Predict *p, const Job *job, const char *checkpoint, int count,
                      char *const *paths);

#endif
