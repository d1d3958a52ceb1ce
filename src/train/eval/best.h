/* The metric by which a run judges its evaluations, and early stopping when it has not improved for
 * too long. */
#ifndef WEFT_TRAIN_BEST_H
#define WEFT_TRAIN_BEST_H

#include "train.h"

/* Which values of a metric are better. */
typedef enum Better { BETTER_UNSET, BETTER_LARGE, BETTER_SMALL } Better;
/* Requirement of a metric on the loss. */
typedef enum MetricNeeds {
    NEEDS_UNSET,
    NEEDS_NOTHING,
    /* loss_top_k of at least 1, or of 5 */
    NEEDS_TOP1,
    NEEDS_TOP5,
    /* LOSS_COLUMNS_LOGIT */
    NEEDS_LOGIT,
    /* LOSS_READS_BOXES */
    NEEDS_BOXES,
    /* data.variables with targets that are numbers, or labels */
    NEEDS_FIELDS,
    NEEDS_LABELS,
} MetricNeeds;
/* A metric: one value of checkpoint.best_metric. */
typedef struct BestMetric {
    ConfigWord word;
    Better better;
    MetricNeeds needs;
    /* NULL: the first row only, auto, which stands for another metric */
    double (*value)(const EvalLine *line);
} BestMetric;
ConfigWord best_metric_word(int i);
/* Returns ERR_BUG, naming the row, if a metric's row lacks something. */
Status best_metric_check(const BestMetric *metric);
/* Checks all rows. */
Status best_metrics_check(void);
/* Returns the configured metric; auto is resolved by the loss and the kind of labels. */
const BestMetric *best_metric(const Config *config, bool tokens);
/* Returns ERR_CONFIG if the metric does not suit the loss, or if train.early_stop or the learning
 * rate's curve needs evaluations and there is no test set. */
Status best_check(const Config *config, bool tokens, bool tested);

/* State of early stopping. Plain bytes, so that it can be stored and broadcast. */
typedef struct EarlyStop {
    /* NaN: no evaluation yet */
    double best;
    /* consecutive evaluations that were not better */
    int64_t bad;
} EarlyStop;
EarlyStop early_stop(void);
void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises);
/* Returns true if the metric has not improved for train.early_stop evaluations, so the run must
 * end. */
bool early_stop_over(const Config *config, const EarlyStop *stop);

#endif
