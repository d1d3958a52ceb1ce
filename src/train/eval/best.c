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

static double iou_of(const EvalLine *line)
{
    return line->labels ? line->labels->iou : NAN;
}

static double dice_of(const EvalLine *line)
{
    return line->labels ? line->labels->dice : NAN;
}

static double ap_of(const EvalLine *line)
{
    return line->has_boxes ? line->coco[COCO_AP] : NAN;
}

static double ap50_of(const EvalLine *line)
{
    return line->has_boxes ? line->coco[COCO_AP50] : NAN;
}

static double skill_of(const EvalLine *line)
{
    return line->fields ? line->fields->skill : NAN;
}

static double rmse_of(const EvalLine *line)
{
    return line->fields ? line->fields->normalized_rmse : NAN;
}

enum {
    BEST_AUTO,
    BEST_EVAL_LOSS,
    BEST_TOP1,
    BEST_TOP5,
    BEST_AUC,
    BEST_IOU,
    BEST_DICE,
    BEST_AP,
    BEST_AP50,
    BEST_SKILL,
    BEST_RMSE
};
/* The first entry is the default. To add a metric, add an entry here, and its constant and function
 * above. */
static const BestMetric metrics[] = {
    [BEST_AUTO] = {{.word = "auto", .help = "top1, auc, ap, iou or eval_loss"}},
    [BEST_EVAL_LOSS] = {{.word = "eval_loss", .help = "falls"},
                        .better = BETTER_SMALL,
                        .needs = NEEDS_NOTHING,
                        .value = loss_of},
    [BEST_TOP1] = {{.word = "top1", .help = "rises"},
                   .better = BETTER_LARGE,
                   .needs = NEEDS_TOP1,
                   .value = top1_of},
    [BEST_TOP5] = {{.word = "top5", .help = "rises"},
                   .better = BETTER_LARGE,
                   .needs = NEEDS_TOP5,
                   .value = top5_of},
    [BEST_AUC] = {{.word = "auc", .help = "rises"},
                  .better = BETTER_LARGE,
                  .needs = NEEDS_LOGIT,
                  .value = auc_of},
    [BEST_IOU] = {{.word = "iou", .help = "rises; label fields"},
                  .better = BETTER_LARGE,
                  .needs = NEEDS_LABELS,
                  .value = iou_of},
    [BEST_DICE] = {{.word = "dice", .help = "rises; label fields"},
                   .better = BETTER_LARGE,
                   .needs = NEEDS_LABELS,
                   .value = dice_of},
    [BEST_AP] = {{.word = "ap", .help = "rises"},
                 .better = BETTER_LARGE,
                 .needs = NEEDS_BOXES,
                 .value = ap_of},
    [BEST_AP50] = {{.word = "ap50", .help = "rises"},
                   .better = BETTER_LARGE,
                   .needs = NEEDS_BOXES,
                   .value = ap50_of},
    [BEST_SKILL] = {{.word = "skill", .help = "rises; fields"},
                    .better = BETTER_LARGE,
                    .needs = NEEDS_FIELDS,
                    .value = skill_of},
    [BEST_RMSE] = {{.word = "rmse", .help = "falls; fields"},
                   .better = BETTER_SMALL,
                   .needs = NEEDS_FIELDS,
                   .value = rmse_of},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

Status best_metric_check(const BestMetric *m)
{
    const char *lacks = !m->word.help ? ".word.help is not given"
                        : !m->better  ? ".better is not given"
                        : !m->needs   ? ".needs is not given"
                        : !m->value   ? ".value is not given"
                                      : NULL;
    return row_check("metric", m->word.word, m->word.word ? lacks : ".word is not given");
}

Status best_metrics_check(void)
{
    for (int i = BEST_AUTO + 1; i < METRICS; ++i) TRY(best_metric_check(&metrics[i]));
    return OK;
}

ConfigWord best_metric_word(int i)
{
    return i < METRICS ? metrics[i].word : (ConfigWord){0};
}

const BestMetric *best_metric(const Config *config, bool tokens)
{
    const BestMetric *m = &metrics[config->checkpoint.best_metric];
    const LossInfo *loss = loss_info(config);
    if (m->value) return m;
    if (loss->results == LOSS_RESULTS_LOGIT) return &metrics[BEST_AUC];
    if (loss->reads == LOSS_READS_BOXES) return &metrics[BEST_AP];
    if (data_label_target(config)) return &metrics[BEST_IOU];
    return &metrics[loss->results == LOSS_RESULTS_RANK && !tokens ? BEST_TOP1 : BEST_EVAL_LOSS];
}

Status best_check(const Config *config, bool tokens, bool tested)
{
    const BestMetric *m = best_metric(config, tokens);
    TRY(lr_check(config));
    const bool pixels = data_label_target(config) != NULL;
    const int top = m->needs == NEEDS_TOP5 ? 5 : m->needs == NEEDS_TOP1;
    if (top > loss_top_k(loss_info(config)))
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs class labels (train.loss: softmax): set eval_loss",
                               m->word.word);
    if (m->needs == NEEDS_LOGIT && loss_info(config)->results != LOSS_RESULTS_LOGIT)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs a logit (train.loss: sigmoid): set auto", m->word.word);
    if (m->needs == NEEDS_BOXES && loss_info(config)->reads != LOSS_READS_BOXES)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs boxes (train.loss: yolo): set auto", m->word.word);
    if (m->needs == NEEDS_FIELDS && (config->data.variables.count == 0 || pixels))
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs fields of numbers (data.variables): set auto",
                               m->word.word);
    if (m->needs == NEEDS_LABELS && !pixels)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s needs a target with labels (data.variables, {name: NAME, "
                               "classes: N}): set auto",
                               m->word.word);
    if (top > 0 && pixels)
        return config_fail_key(config, "checkpoint.best_metric",
                               "%s is for one label a sample: set iou for those of pixels",
                               m->word.word);
    if (tested) return OK;
    if (config->train.early_stop > 0)
        return config_fail_key(config, "train.early_stop", "needs evaluations: set data.test");
    if (lr_depends_on_evaluations(config))
        return config_fail_key(config, "optim.lr_schedule",
                               "plateau depends on evaluations: set data.test");
    return OK;
}

EarlyStop early_stop(void)
{
    return (EarlyStop){.best = NAN};
}

void early_stop_count(const Config *config, EarlyStop *stop, double value, bool rises)
{
    double delta = config->train.early_stop_delta;
    bool better = isnan(stop->best) ? !isnan(value)
                  : rises           ? value > stop->best + delta
                                    : value < stop->best - delta;
    if (better) stop->best = value;
    stop->bad_evaluations = better ? 0 : stop->bad_evaluations + 1;
}

bool early_stop_over(const Config *config, const EarlyStop *stop)
{
    return config->train.early_stop > 0 && stop->bad_evaluations >= config->train.early_stop;
}
