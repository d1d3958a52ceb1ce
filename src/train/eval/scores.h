/* Metrics computed from the logits of an evaluation: AUC, normalised entropy, calibration. */
#ifndef WEFT_TRAIN_SCORES_H
#define WEFT_TRAIN_SCORES_H

#include "../trainer.h"

#include "observe/binary.h"

/* Logits, labels and counters of this rank's rows. The pointers are owned. They are NULL if the
 * loss is not one of a single logit, or if this rank does not collect outputs. */
typedef struct Scores {
    /* true: the arrays contain all rows, for an exact AUC; false: only those of the last
     * micro-batch */
    bool exact;
    /* logit of each row */
    float *logit;
    /* label of each row */
    int32_t *label;
    /* number of rows in the arrays */
    int64_t count;
    /* counters of all rows */
    BinarySums *sums;
} Scores;
/* Returns whether this rank collects outputs and losses of the model. It does if it is on the stage
 * that has them, and is the first rank of its tensor-parallel group; all ranks of the group have
 * the same outputs and losses. */
bool train_collects_outputs(const Trainer *t);
/* Prepares a pass over a set. steps: number of steps in the pass, for the size of the arrays. */
void scores_init(Scores *scores, const Trainer *t, int64_t steps);
void scores_fini(Scores *scores);
/* Adds a micro-batch; does nothing on a rank that does not collect. results: (rows, LOSS_COLUMNS),
 * results of the loss. label: [rows]. */
void scores_add(Scores *scores, const float *results, const int32_t *label, int64_t rows);
/* Gathers the ranks' arrays on rank 0, in the order of ranks. *bytes: on entry the bytes of this
 * rank's array; on return, on every rank, the bytes of all arrays together. The result is empty on
 * other ranks than 0. Owner: the caller. Collective. */
void *gather_arrays(const World *world, const void *mine, size_t *bytes);
/* Sets line->auc_kind and, for a loss of one logit, the metrics over all ranks' rows, on every
 * rank. Collective on the trainer's world. */
void scores_line(const Scores *scores, const Trainer *t, EvalLine *line);

#endif
