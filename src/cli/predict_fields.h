/* Declarations shared by the files of weft predict on sets of fields. */
#ifndef WEFT_CLI_PREDICT_FIELDS_H
#define WEFT_CLI_PREDICT_FIELDS_H

#include "predict.h"

#include "data/field_output.h"
#include "data/field_picture.h"
#include "train/rollout.h"

/* A lead is the time from a sample to a forecast. A channel is a variable at a level. Persistence
 * is the forecast that nothing changes. */

/* Sums over samples and pixels, for one channel at one lead. */
typedef struct ErrorSums {
    /* sum of weight * error^2 */
    double squares;
    /* sum of the weights */
    double weight;
} ErrorSums;

/* The state of weft predict on a set of fields. */
typedef struct Fields {
    /* borrowed */
    const Predict *predict;
    /* borrowed */
    const DataSet *set;
    /* All pointers below are owned. */
    /* makes the forecasts */
    Rollout *rollout;
    /* file of -o; NULL: the flag is not given */
    FieldOutput *output;
    /* number of leads */
    int leads;
    /* number of predicted channels at each lead */
    int channels;
    /* number of pixels of a field */
    int64_t pixels;
    /* `reader` and `weights` are used to compute the weights of pixels */
    FieldReader *reader;
    FieldWeights weights;
    /* weights of the pixels at one lead, [pixels] */
    double *pixel_weight;
    /* indices of the samples from which forecasts start, [starts] */
    int64_t *start;
    int64_t starts;
    /* forecasts from a batch of samples, (batch, leads, channels, pixels) */
    float *predicted;
    /* true fields of one sample, (leads, channels, pixels); NaN: not known */
    float *truth;
    /* persistence from one sample, (channels, pixels); for label fields the input that pictures
     * show, (1, pixels) */
    float *persistence;
    /* errors of the model, [leads][channels]; not used for label fields */
    ErrorSums *model_errors;
    /* errors of persistence, [leads][channels]; not used for label fields */
    ErrorSums *persistence_errors;
    /* label fields: number of pixels for each pair [label][predicted class]; NULL if the targets
     * are numbers */
    int64_t *confusion;
} Fields;

/* Writes the time of a sample to text, and returns text. */
const char *predict_time_text(const FieldSet *f, int64_t sample, char text[FIELD_TIME_TEXT]);
/* Writes a picture to DIR/NAME-SAMPLE.png, with DIR from --png. A slash in `name` becomes "_".
 * ERR_USAGE: the file exists, and --force is not given. */
Status predict_write_image(const Fields *f, const Image *image, const char *name, int64_t sample);

/* ---- label fields: predict_labels.c ---- */
/* Adds the pixels of a sample that have a label to the counts in f->confusion. The labels are in
 * f->truth. predicted: the predicted classes, [pixels]. */
void predict_labels_add(const Fields *f, const float *predicted);
/* Draws input, truth, prediction and errors of a sample to a file in the folder of --png. */
Status predict_labels_draw(const Fields *f, int64_t sample, const float *predicted);
/* Prints the metrics over all samples. */
void predict_labels_print(const Fields *f);

#endif
