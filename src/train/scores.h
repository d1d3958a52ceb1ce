/* The logits of an evaluation, and what they are worth: AUC, normalised entropy, calibration. */
#ifndef WEFT_TRAIN_SCORES_H
#define WEFT_TRAIN_SCORES_H

#include "trainer.h"

#include "observe/binary.h"

/* Of this rank's rows; NULL where the loss has no logits or another rank gives them. */
typedef struct Scores {
    /* all rows for an exact AUC, else the last micro-batch's */
    bool exact;
    float *logit;
    int32_t *label;
    int64_t count;
    BinarySums *sums;
} Scores;
/* steps: of the pass. */
void scores_init(Scores *scores, const Trainer *t, int64_t steps);
void scores_fini(Scores *scores);
/* A micro-batch; columns: (rows, LOSS_COLUMNS) of the loss. */
void scores_add(Scores *scores, const float *columns, const int32_t *label, int64_t rows);
/* What all ranks' rows are worth, to every rank's line. Collective on the trainer's world. */
void scores_line(const Scores *scores, const Trainer *t, EvalLine *line);

#endif
