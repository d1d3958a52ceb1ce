/* Metrics of the fields that a model predicts in an evaluation. */
#ifndef WEFT_TRAIN_FIELD_SCORES_H
#define WEFT_TRAIN_FIELD_SCORES_H

#include "../trainer.h"
#include "data/field_read.h"

/* Climatology (the mean field of the test set) and persistence (the prediction that repeats the
 * last input), computed at the beginning of the first evaluation, and the metrics of the last
 * evaluation. Owned by the trainer. */
struct FieldScoring {
    /* weights of pixels; owned */
    FieldWeights weights;
    /* number of columns of a target's whole field; a sample may be a patch of it */
    int64_t columns;
    /* number of pixels of this field */
    int64_t pixels;
    /* (targets, pixels): mean of each pixel over the set, NaN where all values are missing; NULL on
     * ranks without the model's outputs; owned */
    float *climatology;
    /* RMSE of persistence, [targets]; NaN: not defined */
    double persistence[FIELD_CHANNELS];
    /* metrics of the last evaluation */
    FieldMetrics metrics;
};
typedef struct FieldScoring FieldScoring;
void field_scoring_free(FieldScoring **scoring);

/* Sums of one evaluation. */
typedef struct FieldScores {
    /* borrowed; NULL: the set's targets are not fields of numbers */
    FieldScoring *scoring;
    /* borrowed */
    const Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    /* true: field_scores_collects is true for this rank */
    bool collects;
    /* error of opening `reader` or of reading the weights of a sample */
    KeptError error;
    /* reads weights of pixels that vary in time; NULL: weights do not vary; owned */
    FieldReader *reader;
    /* weights of pixels at the times of a sample's targets, (offsets of targets, pixels); NULL:
     * weights do not vary; owned */
    double *pixel_weight;
    /* number of samples that this rank has added */
    int64_t samples;
    /* number of records for which `record` has space */
    int64_t capacity;
    /* a record for each added sample, [capacity][record_doubles]: the sample's number, then its
     * sums; owned */
    double *record;
    /* inputs of one sample in the variables' units; owned */
    float *x;
    /* predicted targets of one sample in the variables' units; owned */
    float *predicted;
    /* true targets of one sample in the variables' units; owned */
    float *truth;
} FieldScores;
/* Prepares an evaluation. The first call reads the set. Collective; all ranks return the same
 * Status. */
Status field_scores_init(FieldScores *scores, Trainer *t, const DataSet *set);
void field_scores_fini(FieldScores *scores);
/* Returns whether this rank makes records of samples, because it has the model's outputs and the
 * set's targets are fields of numbers. */
bool field_scores_collects(const Trainer *t, const DataSet *set);
/* Returns whether this rank also needs the inputs of samples for its records, because a target is a
 * change since an input. */
bool field_scores_needs_inputs(const Trainer *t, const DataSet *set);
/* Adds a record for each sample of the micro-batch that the executor has just evaluated. Keeps an
 * error in scores->error. */
void field_scores_add(FieldScores *scores, const MicroBatch *batch);
/* Sets line->fields to the metrics over the samples of all ranks, on every rank; NULL: the set's
 * targets are not fields of numbers. Collective. */
void field_scores_line(FieldScores *scores, EvalLine *line);

#endif
