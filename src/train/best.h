/* The metric by which a run judges its evaluations, and early stopping when it has not improved for
 * too long. */
#ifndef WEFT_TRAIN_BEST_H
#define WEFT_TRAIN_BEST_H

#include "train.h"

/* A metric: one value of checkpoint.best_metric. */
typedef struct BestMetric {
    ConfigWord word;
    /* larger is better */
    bool rises;
    /* number of likeliest classes among which the right one counts, see LossInfo.top; 0: not such a
     * metric */
    int top;
    /* needs a loss of logits, see LossInfo.logit */
    bool logit;
    /* NULL: auto, which stands for another metric */
    double (*value)(const EvalLine *line);
} BestMetric;
ConfigWord best_metric_word(int i);
/* Returns the configured metric; auto is resolved by the loss and the kind of labels. */
const BestMetric *best_metric(const Config *config, bool tokens);
/* Returns ERR_CONFIG if the metric does not suit the loss, or if train.early_stop or the learning
 * rate's curve needs evaluations and there is no test set. */
Status best_check(const Config *config, bool tokens, bool tested);

/* Plain bytes, so that it can be stored and broadcast. */
typedef struct EarlyStop {
    /* NaN: no evaluation yet */
    double best;
    /* evaluations since the best one */
    int64_t bad;
} EarlyStop;
EarlyStop early_stop(void);
void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises);
/* Returns true if the run must end. */
bool early_stop_over(const Config *config, const EarlyStop *stop);

#endif
