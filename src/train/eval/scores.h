/* Metrics computed from the logits of an evaluation: AUC, normalised entropy, calibration. */
#ifndef WEFT_TRAIN_SCORES_H
#define WEFT_TRAIN_SCORES_H

#include "../trainer.h"

#include "observe/binary.h"

/* Logits, labels and counters of this rank's rows. The pointers are owned, and NULL if the loss is
 * not of one logit or another rank collects. */
typedef struct Scores {
    /* true: the arrays contain all rows, for an exact AUC; false: only those of the last
     * micro-batch */
    bool exact;
    float *logit;
    int32_t *label;
    /* number of rows in the arrays */
    int64_t count;
    BinarySums *sums;
} Scores;
/* True if this rank collects outputs and losses of the model: it is on the stage that has them, and
 * it is the first rank of its tensor-parallel group, whose ranks all have the same outputs and
 * losses. */
bool train_collects_outputs(const Trainer *t);
/* steps: number of steps in the pass, for the size of the arrays. */
void scores_init(Scores *scores, const Trainer *t, int64_t steps);
void scores_fini(Scores *scores);
/* Adds a micro-batch; does nothing on a rank that does not collect. columns: (rows, LOSS_COLUMNS),
 * results of the loss. label: [rows]. */
void scores_add(Scores *scores, const float *columns, const int32_t *label, int64_t rows);
/* Gathers the ranks' arrays on rank 0, in the order of ranks. *bytes: bytes of this rank's array;
 * set to the bytes of all arrays together, on every rank. The result is empty on other ranks.
 * Owner: the caller. Collective. */
void *gather_arrays(const World *world, const void *mine, size_t *bytes);
/* Sets line->auc_kind and, for a loss of one logit, the metrics over all ranks' rows, on every
 * rank. Collective on the trainer's world. */
void scores_line(const Scores *scores, const Trainer *t, EvalLine *line);

#endif
