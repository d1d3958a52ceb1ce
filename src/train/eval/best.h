/* The metric by which a run compares its evaluations (checkpoint.best_metric), and early stopping
 * when this metric does not improve. */
#ifndef WEFT_TRAIN_BEST_H
#define WEFT_TRAIN_BEST_H

#include "train.h"

/* BETTER_LARGE: larger values of a metric are better; BETTER_SMALL: smaller ones. */
typedef enum Better { BETTER_UNSET, BETTER_LARGE, BETTER_SMALL } Better;
/* Requirement of a metric on the loss or the data. */
typedef enum MetricNeeds {
    NEEDS_UNSET,
    NEEDS_NOTHING,
    /* a loss with loss_top_k of at least 1, and no label fields */
    NEEDS_TOP1,
    /* a loss with loss_top_k of at least 5, and no label fields */
    NEEDS_TOP5,
    /* a loss with LOSS_RESULTS_LOGIT */
    NEEDS_LOGIT,
    /* a loss with LOSS_READS_BOXES */
    NEEDS_BOXES,
    /* data.variables with targets that are numbers */
    NEEDS_FIELDS,
    /* data.variables with a target that has labels */
    NEEDS_LABELS,
} MetricNeeds;
/* A metric: one value of checkpoint.best_metric. */
typedef struct BestMetric {
    ConfigWord word;
    Better better;
    MetricNeeds needs;
    /* Returns the metric's value in an evaluation; NaN: it is not defined there. The member is NULL
     * only for auto, which is replaced by another metric. */
    double (*value)(const EvalLine *line);
} BestMetric;
/* Returns the word of metric number i; after the last metric, an empty ConfigWord. */
ConfigWord best_metric_word(int i);
/* Returns ERR_BUG, with the metric's name, if a field of the metric is missing. */
Status best_metric_check(const BestMetric *metric);
/* Checks all metrics except auto. */
Status best_metrics_check(void);
/* Returns the configured metric; for auto, the metric that suits the loss and the kind of labels.
 * tokens: true if the data are tokens. */
const BestMetric *best_metric(const Config *config, bool tokens);
/* Returns ERR_CONFIG in three cases: the metric does not suit the loss or the kind of data;
 * lr_check fails; train.early_stop or the learning rate's curve needs evaluations, but there is no
 * test set (tested = false). tokens: true if the data are tokens. */
Status best_check(const Config *config, bool tokens, bool tested);

/* State of early stopping, which checkpoints contain. */
typedef struct EarlyStop {
    /* value of the last evaluation that was better than earlier ones by more than
     * train.early_stop_delta; NaN: no evaluation has given a number yet */
    double best;
    /* number of evaluations since then, none of which was better */
    int64_t bad_evaluations;
} EarlyStop;
/* Returns the state before the first evaluation. */
EarlyStop early_stop(void);
/* Counts an evaluation in *stop. value: its metric. rises = true: larger values are better; false:
 * smaller ones. A value counts as better if it is better than the best value so far by more than
 * train.early_stop_delta. NaN never counts as better; the first number always does. */
void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises);
/* Returns true if the run must end, because the metric has not improved for train.early_stop
 * evaluations. */
bool early_stop_over(const Config *config, const EarlyStop *stop);

#endif
