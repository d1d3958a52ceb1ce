/* Metrics of evaluations (checkpoint.best_metric), and early stopping. */
#include "best.h"

#include <math.h>

static double loss_of(const EvalLine *line)
{
    return line->loss;
}

static double top1_of(const EvalLine *line)
{
    return line->top1;
}

static double top5_of(const EvalLine *line)
{
    return line->top5;
}

static double auc_of(const EvalLine *line)
{
    return line->auc_kind ? line->auc : NAN;
}

enum { METRIC_AUTO, METRIC_EVAL_LOSS, METRIC_SHARE, METRIC_BEST5, METRIC_AUC };
/* The first one is the default. */
static const BestMetric metrics[] = {
    [METRIC_AUTO] = {.word = {.word = "auto", .help = "top1, auc or eval_loss"}},
    [METRIC_EVAL_LOSS] = {.word = {.word = "eval_loss", .help = "falls"}, .value = loss_of},
    [METRIC_SHARE] = {.word = {.word = "top1", .help = "rises"},
                      .rises = true,
                      .top = 1,
                      .value = top1_of},
    [METRIC_BEST5] = {.word = {.word = "top5", .help = "rises"},
                      .rises = true,
                      .top = 5,
                      .value = top5_of},
    [METRIC_AUC] = {.word = {.word = "auc", .help = "rises"},
                    .rises = true,
                    .logit = true,
                    .value = auc_of},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

ConfigWord best_metric_word(int i)
{
    return i < METRICS ? metrics[i].word : (ConfigWord){0};
}

const BestMetric *best_metric(const Config *config, bool tokens)
{
    const BestMetric *m = &metrics[config->checkpoint.best_metric];
    const LossInfo *loss = loss_info(config);
    if (m->value) return m;
    if (loss->logit) return &metrics[METRIC_AUC];
    return &metrics[loss->best_class && !tokens ? METRIC_SHARE : METRIC_EVAL_LOSS];
}

Status best_check(const Config *config, bool tokens, bool tested)
{
    const BestMetric *m = best_metric(config, tokens);
    TRY(lr_check(config));
    if (m->top > loss_info(config)->top)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs class labels (train.loss: softmax): set eval_loss",
                               m->word.word);
    if (m->logit && !loss_info(config)->logit)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs a logit (train.loss: sigmoid): set auto", m->word.word);
    if (tested) return OK;
    if (config->train.early_stop > 0)
        return config_fail_key(config, "train.early_stop", "needs evaluations: set data.test");
    if (lr_by_evaluations(config))
        return config_fail_key(config, "optim.lr_schedule",
                               "plateau goes by evaluations: set data.test");
    return OK;
}

EarlyStop early_stop(void)
{
    return (EarlyStop){.best = NAN};
}

/* NaN is never better. */
void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises)
{
    double delta = config->train.early_stop_delta;
    bool better = isnan(stop->best) ? !isnan(value)
                  : rises           ? value > stop->best + delta
                                    : value < stop->best - delta;
    if (better) stop->best = value;
    stop->bad = better ? 0 : stop->bad + 1;
}

bool early_stop_over(const Config *config, const EarlyStop *stop)
{
    return config->train.early_stop > 0 && stop->bad >= config->train.early_stop;
}
