/* By which figure of an evaluation a run goes, and when it has not become better for too long. */
#ifndef WEFT_TRAIN_BEST_H
#define WEFT_TRAIN_BEST_H

#include "train.h"

/* A figure of an evaluation: a row of checkpoint.best_metric's words. */
typedef struct BestMetric {
    ConfigWord word;
    /* more of it is better */
    bool rises;
    /* a share of right answers, among so many (LossInfo.top); 0: it is none */
    int top;
    /* of logits (LossInfo.logit) */
    bool logit;
    /* NULL: auto, which stands for another row */
    double (*value)(const EvalLine *line);
} BestMetric;
ConfigWord best_metric_word(int i);
/* The row that the configuration names; what auto stands for is known by what the labels are. */
const BestMetric *best_metric(const Config *config, bool tokens);
/* ERR_CONFIG where that row, train.early_stop or a curve that goes by evaluations has nothing to go
 * by. */
Status best_check(const Config *config, bool tokens, bool tested);

/* plain bytes */
typedef struct EarlyStop {
    /* NaN: none yet */
    double best;
    /* evaluations since */
    int64_t bad;
} EarlyStop;
EarlyStop early_stop(void);
void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises);
/* Is it time to end the run? */
bool early_stop_over(const Config *config, const EarlyStop *stop);

#endif
