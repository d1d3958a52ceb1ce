/* A separate file, because private headers of config and public ones of other modules use the
 * same names. */
#include "words.h"

#include "observe/binary.h"
#include "train.h"

static ConfigWord word_of_rule(int i)
{
    static const ConfigWord word[] = {{.word = "sgd", .uses = "momentum nesterov"},
                                      {.word = "adam", .uses = "beta1 beta2 eps"},
                                      {.word = "adamw", .uses = "beta1 beta2 eps"},
                                      {.word = "lars", .uses = "momentum trust"},
                                      {.word = "lamb", .uses = "beta1 beta2 eps"}};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

static ConfigWord word_of_curve(int i)
{
    static const ConfigWord word[] = {{.word = "constant"},
                                      {.word = "multistep", .uses = "milestones gamma"},
                                      {.word = "cosine", .uses = "lr_end"},
                                      {.word = "linear", .uses = "lr_end"},
                                      {.word = "polynomial", .uses = "lr_end power"},
                                      {.word = "plateau", .uses = "gamma patience threshold"}};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

static ConfigWord word_of_loss(int i)
{
    static const ConfigWord word[] = {{.word = "softmax", .uses = "label_smoothing"},
                                      {.word = "mse"},
                                      {.word = "sigmoid", .uses = "auc"},
                                      {.word = "huber", .uses = "huber_delta"},
                                      {.word = "charbonnier", .uses = "charbonnier_eps"},
                                      {.word = "focal", .uses = "focal_gamma class_weights"}};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

void use_test_words(void)
{
    static const ConfigWords lists[] = {
        {"optim.name", .word = word_of_rule},
        {"optim.lr_schedule", .word = word_of_curve},
        {"optim.lr_adjust", .text = LIST_TEXT(LR_ADJUST_WORDS)},
        {"optim.groups.roles", .text = LIST_TEXT(ROLE_WORDS)},
        {"model.stem", .text = LIST_TEXT(STEM_WORDS)},
        {"model.positions", .text = LIST_TEXT(POSITIONS_WORDS)},
        {"data.layout", .text = LIST_TEXT(LAYOUT_WORDS)},
        {"data.augment", .text = LIST_TEXT(AUGMENT_WORDS)},
        {"data.filter", .text = LIST_TEXT(FILTER_WORDS)},
        {"data.shuffle", .text = LIST_TEXT(SHUFFLE_WORDS)},
        {"train.precision", .text = LIST_TEXT(PRECISION_WORDS)},
        {"train.reproducible", .text = LIST_TEXT(REPRODUCIBLE_WORDS)},
        {"train.device", .text = LIST_TEXT(DEVICE_WORDS)},
        {"train.cuda_graphs", .text = LIST_TEXT(GRAPHS_WORDS)},
        {"train.loss", .word = word_of_loss},
        {"train.auc", .text = LIST_TEXT(AUC_WORDS)},
        {"grid.zero", .text = LIST_TEXT(ZERO_WORDS)},
        {"grid.recompute", .text = LIST_TEXT(RECOMPUTE_WORDS)},
        {"grid.transport", .text = LIST_TEXT(TRANSPORT_WORDS)},
        {"run.hook_on", .text = LIST_TEXT(HOOK_WORDS)},
        {"checkpoint.best_metric", .text = "auto|eval_loss|top1|top5|auc"},
        {"checkpoint.resume", .text = LIST_TEXT(RESUME_WORDS)},
    };
    config_use_words(lists, sizeof lists / sizeof lists[0]);
}
