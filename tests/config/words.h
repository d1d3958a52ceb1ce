/* Words such as the modules below config have them, for the keys whose words are not config's
 * own. */
#ifndef WEFT_TESTS_CONFIG_WORDS_H
#define WEFT_TESTS_CONFIG_WORDS_H

#include "config.h"

enum { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LARS, OPTIM_LAMB };
enum { LR_CONSTANT, LR_MULTISTEP, LR_COSINE, LR_LINEAR, LR_POLYNOMIAL };

static inline ConfigWord word_of_rule(int i)
{
    static const ConfigWord word[] = {{.word = "sgd", .uses = "momentum nesterov"},
                                      {.word = "adam", .uses = "beta1 beta2 eps"},
                                      {.word = "adamw", .uses = "beta1 beta2 eps"},
                                      {.word = "lars", .uses = "momentum trust"},
                                      {.word = "lamb", .uses = "beta1 beta2 eps"}};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

static inline ConfigWord word_of_curve(int i)
{
    static const ConfigWord word[] = {{.word = "constant"},
                                      {.word = "multistep", .uses = "milestones gamma"},
                                      {.word = "cosine", .uses = "lr_end"},
                                      {.word = "linear", .uses = "lr_end"},
                                      {.word = "polynomial", .uses = "lr_end power"}};
    return i < (int)(sizeof word / sizeof word[0]) ? word[i] : (ConfigWord){0};
}

/* Without them only defaults are known. */
static inline void use_test_words(void)
{
    static const ConfigWords lists[] = {{"optim.name", .word = word_of_rule},
                                        {"optim.lr_schedule", .word = word_of_curve}};
    config_use_words(lists, 2);
}

#endif
