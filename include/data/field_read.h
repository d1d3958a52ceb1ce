/* Reading of sets of fields for forecasts: samples in the variables' units, fields of single
 * frames, names of channels, weights of pixels, and forecasts that need no model: the climatology,
 * which is the mean of each pixel, and persistence, which is the last input. */
#ifndef WEFT_DATA_FIELD_READ_H
#define WEFT_DATA_FIELD_READ_H

#include "data.h"

/* Reads fields of a set. Several threads may read with one reader. */
typedef struct FieldReader FieldReader;
Status field_reader_new(FieldReader **reader, const DataSet *set);
void field_reader_free(FieldReader **reader);
/* Makes a reader keep unpacked chunks in `memory`, which is copied. Call it before the first
 * sample is read. Without it a reader that needs such memory makes its own. */
void field_reader_share(FieldReader *reader, const FieldMemory *memory);
/* Returns the number of chunks that have been unpacked into the reader's memory, by all readers
 * that share it. */
int64_t field_reader_unpacked(const FieldReader *reader);
/* Reads one sample: x (C,H,W) and targets (C',H',W'); either may be NULL. normalised: values are
 * normalised by the set's means and deviations, missing inputs become 0 (the mean), and missing
 * targets NaN; with data.predict: change, targets are changes. normalised false: inputs and targets
 * are values in the variables' units, never changes, and missing values are NaN. NaN in a file
 * means missing, too. Of a tile, targets that the tile before it also has are NaN. ERR_IO;
 * ERR_DATA: a value is infinite. */
Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target);
/* Does the same for an epoch: epoch and sample determine where a patch is cut out. field_read reads
 * for epoch 0. */
Status field_read_at(FieldReader *reader, int64_t epoch, int64_t sample, bool normalised, float *x,
                     float *target);
/* Reads all selected levels of a variable at a frame of the set, (levels, rows, columns), in double
 * precision, missing values as NaN. A static variable has one frame. ERR_IO, ERR_DATA. */
Status field_read_variable(FieldReader *reader, int variable, int64_t frame, double *plane);
/* Read the classes of pixels of a set of label fields, int32[rows][columns]: field_read_labels all
 * pixels of a frame, field_read_sample_labels the pixels of a sample, or of its patch in an epoch.
 * -1: the pixel has no label, or the tile before also has it. ERR_IO; ERR_DATA, with file, time,
 * row and column: a value is no class. */
Status field_read_labels(FieldReader *reader, const DataSet *set, int64_t frame, int32_t *label);
Status field_read_sample_labels(FieldReader *reader, const DataSet *set, int64_t epoch,
                                int64_t sample, int32_t *label);
/* Reads all levels of a variable that is an input, `ahead` frames after a frame, as planes of the
 * inputs' size, (levels, H, W): a scalar fills its plane, and extra channels, which weft makes, are
 * computed for any time. ERR_IO, ERR_DATA. */
Status field_read_planes(FieldReader *reader, int variable, int64_t frame, int64_t ahead,
                         double *plane);
/* Returns the frame of a sample at its own time. sample: a number of whole fields; if samples are
 * tiles, data_sample_place takes their numbers. */
int64_t field_sample_frame(const FieldSet *f, int64_t sample);

/* Returns the index of a frame's segment. */
int field_find_segment(const FieldSet *f, int64_t frame);
/* Returns the time of a frame, in seconds since 1970-01-01 00:00 in the set's calendar; the number
 * of the frame if frames have no times. */
double field_frame_time(const FieldSet *f, int64_t frame);
/* field_time_text writes a time that field_frame_time returned, as "2001-01-31 06:00:00".
 * field_offset_text writes the time that `frames` frames span, as "-6h", or their number if frames
 * have no times. Both return text. */
enum { FIELD_TIME_TEXT = 40 };
const char *field_time_text(const FieldSet *f, double time, char text[FIELD_TIME_TEXT]);
const char *field_offset_text(const FieldSet *f, int64_t frames, char text[FIELD_TIME_TEXT]);
/* Names of a channel: variable, units, level, lead. */
typedef struct FieldLabel {
    char variable[FIELD_NAME], units[80];
    /* value of the level's coordinate, or its index; NaN: the variable has one level */
    double level;
    /* offset from the sample's time as "6h", or as a number of frames; "" for a static variable */
    char lead[FIELD_TIME_TEXT];
    /* name for keys and files: variable, level and lead, "z_500_6h" */
    char name[FIELD_NAME + 64];
} FieldLabel;
/* Returns the names of a channel of f->input (role FIELD_INPUT) or f->target (FIELD_TARGET). */
FieldLabel field_label(const FieldSet *f, FieldRole role, const FieldChannel *channel);
/* Are two channels the same variable at the same level, at any offset? False for static
 * variables. */
bool field_is_same(const FieldSet *f, const FieldChannel *a, const FieldChannel *b);
/* Returns the input channel of a target's variable and level at the last offset; -1: there is
 * none. */
int field_last_input(const FieldSet *f, int target);
/* Returns the mean and the deviation of a target's values (not of their changes) if the set has
 * them; 0 and 1: unknown. */
void field_target_scale(const DataSet *set, int target, double *mean, double *deviation);
/* Converts a model's outputs or normalised targets of one sample, (C',H',W'), to the variables'
 * units, in place. x: the sample's inputs in the variables' units, for targets that are changes. */
void field_restore(const DataSet *set, const float *x, float *target);

/* Do the rows of targets have latitudes as coordinate? */
bool field_rows_have_latitudes(const FieldSet *f);
/* Returns the weight of each row of whole fields of targets: the cosine of its latitude, or 1 if
 * rows have no latitudes or `latitude` is false. Owner: the caller. */
double *field_row_weights(const DataSet *set, bool latitude);
/* Weights of the pixels of a set's targets: those of rows times the mask (data.mask). */
typedef struct FieldWeights {
    /* size of whole fields of targets */
    int64_t rows, columns;
    /* (rows, columns), without the mask if it varies; owned */
    double *pixel;
    /* true: the mask varies in time, so each frame has its own weights */
    bool vary;
} FieldWeights;
/* latitude: as in field_row_weights. Nothing needs to be released after an error. ERR_IO; ERR_DATA:
 * the weights of rows add up to no positive number, or a mask that does not vary has a value that
 * is not between 0 and 1, or no value above 0. */
Status field_weights_init(FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          bool latitude);
void field_weights_fini(FieldWeights *weights);
/* Writes the weights at a frame, (rows, columns). ERR_IO; ERR_DATA: as above, for a mask that
 * varies. */
Status field_weights_at(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                        int64_t frame, double *pixel);
/* Do losses weight the set's targets, by variable and level, latitude or mask? Do these weights
 * differ between samples? */
bool field_loss_has_weights(const FieldSet *f);
bool field_loss_weights_vary(const FieldSet *f);
/* Writes the weights of a sample's targets in losses, (C',H',W'), the same for all samples unless
 * the mask varies or samples are patches. ERR_IO, ERR_DATA. */
Status field_loss_weights(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          int64_t epoch, int64_t sample, float *weight);

/* Sums over samples of targets first to first + targets - 1, for the climatology and for the errors
 * of persistence. All arrays are owned. */
typedef struct FieldBaselines {
    int first, targets;
    int64_t pixels;
    /* (targets, pixels): sum and number of the values that are not missing */
    double *sum, *count;
    /* [targets]: weighted sum of squared errors of persistence, and the sum of the weights */
    double *error, *weight;
} FieldBaselines;
void field_baselines_init(FieldBaselines *baselines, const DataSet *set, int first, int targets);
void field_baselines_fini(FieldBaselines *baselines);
/* Adds samples first to end - 1, in order; several threads read them ahead. The set's samples must
 * be whole fields. ERR_IO, ERR_DATA. */
Status field_baselines_add(FieldBaselines *baselines, FieldReader *reader, const DataSet *set,
                           const FieldWeights *weights, int64_t first, int64_t end);

#endif
