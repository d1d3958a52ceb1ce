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
    /* columns and pixels of whole fields of targets */
    int64_t columns, pixels;
    /* (targets, pixels): mean of each pixel over the set, NaN where all values are missing; NULL on
     * ranks without the model's outputs; owned */
    float *climatology;
    /* RMSE of persistence, [targets]; NaN: not defined */
    double persistence[FIELD_CHANNELS];
    FieldMetrics metrics;
};
typedef struct FieldScoring FieldScoring;
void field_scoring_free(FieldScoring **scoring);

/* Sums of one evaluation. */
typedef struct FieldScores {
    /* borrowed; NULL: the set's targets are not fields of numbers */
    FieldScoring *scoring;
    const Trainer *trainer;
    const DataSet *set;
    /* true: field_scores_collect is true for this rank */
    bool collects;
    /* first error of opening `reader` or of reading the weights of a sample */
    Status status;
    /* reader: reads weights of pixels that vary in time. pixel: these weights at each offset of the
     * targets. Both are owned, and NULL if weights do not vary. */
    FieldReader *reader;
    double *pixel;
    /* record: a record of sums for each of this rank's `samples` samples,
     * [capacity][record_doubles]; a record begins with the number of its sample. x, predicted,
     * truth: fields of one sample. Arrays are owned. */
    int64_t samples, capacity;
    double *record;
    float *x, *predicted, *truth;
} FieldScores;
/* Prepares an evaluation. The first call reads the set. Collective; all ranks return the same
 * Status. */
Status field_scores_init(FieldScores *scores, Trainer *t, const DataSet *set);
void field_scores_fini(FieldScores *scores);
/* field_scores_collect: true if this rank has the model's outputs and makes records of samples from
 * them. field_scores_read_inputs: true if it also needs the inputs of samples, because a target is
 * a change since an input. */
bool field_scores_collect(const Trainer *t, const DataSet *set);
bool field_scores_read_inputs(const Trainer *t, const DataSet *set);
/* Adds the micro-batch that the executor has just evaluated. Sets scores->status after an error. */
void field_scores_add(FieldScores *scores, const Batch *batch);
/* Sets line->fields to the metrics over all ranks' samples, on every rank. Collective. */
void field_scores_line(FieldScores *scores, EvalLine *line);

#endif
