/* Metrics computed from the logits of an evaluation: AUC, normalised entropy, calibration. */
#ifndef WEFT_TRAIN_SCORES_H
#define WEFT_TRAIN_SCORES_H

#include "../trainer.h"

#include "observe/binary.h"

/* Logits, labels and counters of this rank's rows; NULL if the loss has no logits or another rank
 * collects them. Owned. */
typedef struct Scores {
    /* the arrays contain all rows, for an exact AUC; otherwise those of the last micro-batch */
    bool exact;
    float *logit;
    int32_t *label;
    int64_t count;
    BinarySums *sums;
} Scores;
/* Does this rank collect outputs or losses of the model: is it on the stage that has them, and the
 * first of its tensor group, whose ranks have the same ones? */
bool train_collects_outputs(const Trainer *t);
/* steps: number of steps in the pass, for the size of the arrays. */
void scores_init(Scores *scores, const Trainer *t, int64_t steps);
void scores_fini(Scores *scores);
/* Adds a micro-batch. columns: (rows, LOSS_COLUMNS), results of the loss. */
void scores_add(Scores *scores, const float *columns, const int32_t *label, int64_t rows);
/* Gathers the ranks' arrays on rank 0, in the order of ranks. *bytes: size of this rank's array,
 * replaced by the size of all. Owner: the caller. Collective. */
void *gather_arrays(const World *world, const void *mine, size_t *bytes);
/* Fills in the metrics over all ranks' rows, on every rank. Collective on the trainer's world. */
void scores_line(const Scores *scores, const Trainer *t, EvalLine *line);

#endif
