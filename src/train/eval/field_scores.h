/* Metrics of the fields that a model predicts in an evaluation. */
#ifndef WEFT_TRAIN_FIELD_SCORES_H
#define WEFT_TRAIN_FIELD_SCORES_H

#include "../trainer.h"
#include "data/field_read.h"

/* Forecasts of the test set that need no model, computed before the first evaluation; and the
 * metrics of the last evaluation. Owned by the trainer. */
struct FieldScoring {
    /* owned */
    FieldWeights weights;
    /* columns and pixels of whole fields of targets */
    int64_t columns, pixels;
    /* (targets, pixels): mean of each pixel over the set, NaN where all values are missing; only on
     * ranks that collect; owned */
    float *climatology;
    /* [targets]: RMSE of persistence, NaN: not defined */
    double persistence[FIELD_CHANNELS];
    FieldMetrics metrics;
};
typedef struct FieldScoring FieldScoring;
void field_scoring_free(FieldScoring **scoring);

/* Sums of one evaluation. */
typedef struct FieldScores {
    /* borrowed; NULL: the targets are no fields of numbers */
    FieldScoring *scoring;
    const Trainer *trainer;
    const DataSet *set;
    bool collects;
    /* error of reading the weights of a sample */
    Status status;
    /* owned: reads weights that vary, else NULL; weights of pixels at each offset of the targets */
    FieldReader *reader;
    double *pixel;
    /* number of samples that this rank has collected; records of them, [samples][record doubles],
     * which begin with the sample's number; fields of one sample; owned */
    int64_t samples, room;
    double *record;
    float *x, *predicted, *truth;
} FieldScores;
/* Prepares an evaluation; the first one reads the set. Collective; all ranks return the same
 * Status. */
Status field_scores_init(FieldScores *scores, Trainer *t, const DataSet *set);
void field_scores_fini(FieldScores *scores);
/* Does this rank collect; and does it need the inputs of samples for that? */
bool field_scores_collect(const Trainer *t, const DataSet *set);
bool field_scores_read_inputs(const Trainer *t, const DataSet *set);
/* Adds the micro-batch that the executor has just evaluated. scores->status is its error. */
void field_scores_add(FieldScores *scores, const Batch *batch);
/* Sets line->fields to the metrics over all ranks' samples, on every rank. Collective. */
void field_scores_line(FieldScores *scores, EvalLine *line);

#endif
