/* Declarations shared by the files of weft predict on sets of fields. */
#ifndef WEFT_CLI_PREDICT_FIELDS_H
#define WEFT_CLI_PREDICT_FIELDS_H

#include "predict.h"

#include "data/field_output.h"
#include "data/field_picture.h"
#include "train/rollout.h"

/* Sums over samples and pixels of a channel (a variable at a level) at a lead, the time from a
 * sample to a forecast. */
typedef struct ErrorSums {
    /* sum of weight * error^2, and sum of weights */
    double squares, weight;
} ErrorSums;

typedef struct Fields {
    const Predict *predict;
    const DataSet *set;
    /* owned, as all pointers below; output NULL: there is no -o */
    Rollout *rollout;
    FieldOutput *output;
    /* number of leads, and of predicted channels at each lead */
    int leads, channels;
    /* pixels of a field */
    int64_t pixels;
    /* reader and weights are used to compute `pixel` */
    FieldReader *reader;
    FieldWeights weights;
    /* weights of the pixels at a lead, [pixels] */
    double *pixel;
    /* indices of the samples from which forecasts start, [starts] */
    int64_t *start;
    int64_t starts;
    /* predicted: (batch, leads, channels, pixels); of one sample: truth (leads, channels, pixels),
     * persistence (channels, pixels), for label fields the input that pictures show */
    float *predicted, *truth, *persistence;
    /* errors of the model and of persistence, [leads][channels]; not used for label fields */
    ErrorSums *model, *last;
    /* label fields: number of pixels of each pair [label][predicted class]; NULL if the targets are
     * numbers */
    int64_t *confusion;
} Fields;

/* Writes the time of a sample; returns text. */
const char *predict_time_text(const FieldSet *f, int64_t sample, char text[FIELD_TIME_TEXT]);
/* Writes a picture to DIR/NAME-SAMPLE.png, with DIR from --png; a slash in NAME becomes "_".
 * ERR_USAGE: the file exists, and --force is not given; ERR_IO. */
Status predict_write_image(const Fields *f, const Image *image, const char *name, int64_t sample);

/* ---- label fields: predict_labels.c ---- */
/* Adds the pixels of a sample that have a label to f->confusion. Predicted classes are in
 * `predicted`, labels in f->truth. */
void predict_labels_add(const Fields *f, const float *predicted);
/* Draws input, truth, prediction and errors of a sample to a file in the folder of --png. */
Status predict_labels_draw(const Fields *f, int64_t sample, const float *predicted);
/* Prints the metrics of all samples. */
void predict_labels_print(const Fields *f);

#endif
