/* Metrics of the label fields that a model predicts in an evaluation. */
#ifndef WEFT_TRAIN_LABEL_SCORES_H
#define WEFT_TRAIN_LABEL_SCORES_H

#include "../trainer.h"

/* Counts of one evaluation. */
typedef struct LabelScores {
    /* borrowed; NULL: the set has no label fields */
    Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    /* true: this rank has the model's outputs and counts their classes */
    bool collects;
    /* number of this rank's pixels with each (label, predicted class), [classes][classes]; owned */
    int64_t *confusion;
    /* predicted classes of one sample's pixels; owned */
    int32_t *predicted;
    /* memory to which label_scores_line copies this rank's counts, [classes][classes]; NULL: none;
     * borrowed */
    int64_t *copy;
} LabelScores;
/* Prepares an evaluation. copy: see LabelScores.copy. Not collective. */
void label_scores_init(LabelScores *scores, Trainer *t, const DataSet *set, int64_t *copy);
void label_scores_fini(LabelScores *scores);
/* Counts the pixels of the micro-batch that the executor has just evaluated. */
void label_scores_add(LabelScores *scores, const MicroBatch *batch);
/* If the set has label fields, sets line->labels to the metrics over the pixels of all ranks, on
 * every rank, and sets line->top1 and line->top5 to NaN. Otherwise sets line->labels to NULL.
 * Collective. */
void label_scores_line(LabelScores *scores, EvalLine *line);
/* Sets predicted[i] to the class with the largest output at pixel i; of equal outputs, to the
 * lowest class. output: (classes, pixels). */
void label_fields_choose(const float *output, int64_t classes, int64_t pixels, int threads,
                         int32_t *predicted);

#endif
