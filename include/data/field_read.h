/* Reads sets of fields for forecasts: samples in the variables' units, fields of single frames,
 * names of channels, weights of pixels, and two forecasts that need no model: the climatology,
 * which is the mean of each pixel over the set, and persistence, which is the last input. Not
 * collective. */
#ifndef WEFT_DATA_FIELD_READ_H
#define WEFT_DATA_FIELD_READ_H

#include "data.h"

/* A reader of the fields of a set. Several threads may use one reader at the same time. */
typedef struct FieldReader FieldReader;
Status field_reader_new(FieldReader **reader, const DataSet *set);
void field_reader_free(FieldReader **reader);
/* Makes a reader keep unpacked chunks in `memory`, a struct that is copied. Call it before the
 * first sample is read. Without this call, a reader that needs such memory makes its own. */
void field_reader_share(FieldReader *reader, const FieldMemory *memory);
/* Returns the number of chunks that have been unpacked into the reader's memory, by all readers
 * that share it. */
int64_t field_reader_unpacked(const FieldReader *reader);
/* Reads one sample: inputs x (C,H,W) and targets (C',H',W'); either may be NULL. normalised = true:
 * values are normalised by the set's means and deviations; missing inputs become 0 (the mean) and
 * missing targets NaN; with data.predict: change, targets are changes. normalised = false: inputs
 * and targets are values in the variables' units, never changes, and missing values are NaN. A NaN
 * in a file also means that the value is missing. In a tile, targets that the tile before it also
 * has are NaN. ERR_IO. ERR_DATA: a value is infinite. */
Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target);
/* Does what field_read does, for a sample of an epoch: epoch and sample determine the place at
 * which a patch is cut out. field_read reads for epoch 0. */
Status field_read_at(FieldReader *reader, int64_t epoch, int64_t sample, bool normalised, float *x,
                     float *target);
/* Reads all selected levels of a variable at a frame of the set, (levels, rows, columns), in double
 * precision; missing values are NaN. A static variable has only one frame. ERR_IO, ERR_DATA. */
Status field_read_variable(FieldReader *reader, int variable, int64_t frame, double *plane);
/* Both read the classes of pixels of a set of label fields, int32[rows][columns]: field_read_labels
 * those of a frame, field_read_sample_labels those of a sample, or of its patch in an epoch. -1:
 * the pixel has no label or, in a tile, the tile before also has it. ERR_IO: reading failed.
 * ERR_DATA: a value is no class; the message has file, time, row and column. */
Status field_read_labels(FieldReader *reader, const DataSet *set, int64_t frame, int32_t *label);
Status field_read_sample_labels(FieldReader *reader, const DataSet *set, int64_t epoch,
                                int64_t sample, int32_t *label);
/* Reads all levels of an input variable, `ahead` frames after a frame, as planes of the inputs'
 * size, (levels, H, W). A scalar fills its plane; extra channels are computed for any time. ERR_IO,
 * ERR_DATA. */
Status field_read_planes(FieldReader *reader, int variable, int64_t frame, int64_t ahead,
                         double *plane);
/* Returns the frame at a sample's own time. sample: number of a sample that is a whole field; for
 * tiles use data_sample_place. */
int64_t field_sample_frame(const FieldSet *f, int64_t sample);

/* Returns the index of a frame's segment. */
int field_find_segment(const FieldSet *f, int64_t frame);
/* Returns the time of a frame, in seconds since 1970-01-01 00:00 in the set's calendar; the number
 * of the frame if frames have no times. */
double field_frame_time(const FieldSet *f, int64_t frame);
/* field_time_text writes a time that field_frame_time has returned, as "2001-01-31 06:00:00".
 * field_offset_text writes the length of time from a frame to the frame `frames` later, as "-6h";
 * if frames have no times, it writes the number `frames`. Both return text. */
enum { FIELD_TIME_TEXT = 40 };
const char *field_time_text(const FieldSet *f, double time, char text[FIELD_TIME_TEXT]);
const char *field_offset_text(const FieldSet *f, int64_t frames, char text[FIELD_TIME_TEXT]);
/* The names of a channel: variable, units, level, lead. */
typedef struct FieldChannelName {
    char variable[FIELD_NAME], units[80];
    /* coordinate of the level, or its index if that is unknown; NaN: the variable has only one
     * level */
    double level;
    /* offset from the sample's time as "6h", or as a number of frames; "" for a static variable */
    char lead[FIELD_TIME_TEXT];
    /* variable, level and lead in one name, for keys and files: "z_500_6h" */
    char name[FIELD_NAME + 64];
} FieldChannelName;
/* Returns the names of a channel of f->input (role FIELD_INPUT) or f->target (FIELD_TARGET). */
FieldChannelName field_channel_name(const FieldSet *f, FieldRole role, const FieldChannel *channel);
/* Returns true if two channels are the same variable at the same level, at any offset; false for
 * static variables. */
bool field_is_same(const FieldSet *f, const FieldChannel *a, const FieldChannel *b);
/* Returns the input channel with a target's variable and level at the last offset; -1: there is
 * none. */
int field_last_input(const FieldSet *f, int target);
/* Sets *mean and *deviation to those of a target's values, not of their changes, if the set has
 * them; else to 0 and 1. */
void field_target_scale(const DataSet *set, int target, double *mean, double *deviation);
/* Converts the outputs of a model, or normalised targets, of one sample, (C',H',W'), to values in
 * the variables' units, in place. x: the inputs of the sample in the variables' units, which are
 * used if targets are changes. */
void field_denormalise(const DataSet *set, const float *x, float *target);

/* Returns true if the coordinate of the rows of targets is a latitude. */
bool field_rows_have_latitudes(const FieldSet *f);
/* Returns the weight of each row of whole fields of targets: the cosine of its latitude, or 1 if
 * rows have no latitudes or `latitude` is false. The caller owns the array. */
double *field_row_weights(const DataSet *set, bool latitude);
/* Weights of the pixels of a set's targets: the weight of the row times the mask (data.mask). */
typedef struct FieldWeights {
    /* size of whole fields of targets */
    int64_t rows, columns;
    /* weights, (rows, columns), which do not include a mask that varies in time; owned */
    double *pixel;
    /* true: the mask varies in time, so each frame has its own weights */
    bool vary;
} FieldWeights;
/* Computes the weights. latitude: as in field_row_weights. ERR_IO. ERR_DATA: the weights of rows
 * add up to no positive number; or a mask that does not vary has a value that is not between 0 and
 * 1, or no value above 0. After an error nothing needs to be released. */
Status field_weights_init(FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          bool latitude);
void field_weights_fini(FieldWeights *weights);
/* Writes the weights at a frame, (rows, columns). ERR_IO. ERR_DATA: a mask that varies is invalid,
 * as in field_weights_init. */
Status field_weights_at(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                        int64_t frame, double *pixel);
/* field_loss_has_weights returns true if losses weight the set's targets, by variable and level, by
 * latitude or by the mask. field_loss_weights_vary returns true if these weights differ between
 * samples. */
bool field_loss_has_weights(const FieldSet *f);
bool field_loss_weights_vary(const FieldSet *f);
/* Writes the weights of a sample's targets in losses, (C',H',W'). They are the same for all samples
 * unless the mask varies or samples are patches. ERR_IO, ERR_DATA. */
Status field_loss_weights(const FieldWeights *weights, const DataSet *set, FieldReader *reader,
                          int64_t epoch, int64_t sample, float *weight);

/* Sums over samples for targets first .. first + targets - 1, from which the climatology and the
 * errors of persistence are computed. All arrays are owned. */
typedef struct FieldBaselines {
    int first, targets;
    /* number of pixels of a target */
    int64_t pixels;
    /* sum: sum of the values that are not missing; count: their number; (targets, pixels) */
    double *sum, *count;
    /* error: weighted sum of squared errors of persistence; weight: sum of the weights;
     * [targets] */
    double *error, *weight;
} FieldBaselines;
void field_baselines_init(FieldBaselines *baselines, const DataSet *set, int first, int targets);
void field_baselines_fini(FieldBaselines *baselines);
/* Adds samples first .. end - 1, in order; several threads read them ahead. The set's samples must
 * be whole fields. ERR_IO, ERR_DATA. */
Status field_baselines_add(FieldBaselines *baselines, FieldReader *reader, const DataSet *set,
                           const FieldWeights *weights, int64_t first, int64_t end);

#endif
