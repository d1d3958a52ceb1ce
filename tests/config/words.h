/* Values of keys from the modules below config: their lists of words, and some rules and curves. */
#ifndef WEFT_TESTS_CONFIG_WORDS_H
#define WEFT_TESTS_CONFIG_WORDS_H

enum { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LARS, OPTIM_LAMB };
enum { LR_CONSTANT, LR_MULTISTEP, LR_COSINE, LR_LINEAR, LR_POLYNOMIAL };

/* Registers the lists of words. Without this call, config knows only the default values. */
void use_test_words(void);

#endif
