/* Forecasts of weft predict on sets of fields: what its files share. */
#ifndef WEFT_CLI_PREDICT_FIELDS_H
#define WEFT_CLI_PREDICT_FIELDS_H

#include "predict.h"

#include "data/field_output.h"
#include "data/field_picture.h"
#include "train/rollout.h"

/* Weighted sums of squared errors of a variable at a lead. */
typedef struct ErrorSums {
    double squares, weight;
} ErrorSums;

typedef struct Fields {
    const Predict *predict;
    const DataSet *set;
    Rollout *rollout;
    FieldOutput *output;
    int leads, channels;
    int64_t pixels;
    /* owned, as all that follows; weights of pixels at a lead */
    FieldReader *reader;
    FieldWeights weights;
    double *pixel;
    /* samples to begin from */
    int64_t *start;
    int64_t starts;
    /* (batch, leads, channels, pixels); of one sample: (leads, channels, pixels), (channels,
     * pixels) */
    float *predicted, *truth, *persistence;
    /* [leads][channels] of the model and of persistence */
    ErrorSums *model, *last;
    /* label fields: pixels, (label, predicted class); NULL: targets are numbers */
    int64_t *confusion;
} Fields;

/* Writes the time of a sample; returns text. */
const char *predict_time_text(const FieldSet *f, int64_t sample, char text[FIELD_TIME_TEXT]);
/* Writes a picture to DIR/NAME-SAMPLE.png. ERR_USAGE: the file exists; ERR_IO. */
Status predict_write_image(const Fields *f, const Image *image, const char *name, int64_t sample);

/* predict_labels.c, of label fields: counts the pixels of a sample, whose classes are in predicted
 * and f->truth; draws input, truth, prediction and errors; prints the metrics of all samples. */
void predict_labels_add(const Fields *f, const float *predicted);
Status predict_labels_draw(const Fields *f, int64_t sample, const float *predicted);
void predict_labels_print(const Fields *f);

#endif
