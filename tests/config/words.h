/* Values of keys from the modules below config: their lists of words, and some rules and curves. */
#ifndef WEFT_TESTS_CONFIG_WORDS_H
#define WEFT_TESTS_CONFIG_WORDS_H

enum { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LARS, OPTIM_LAMB };
enum { LR_CONSTANT, LR_MULTISTEP, LR_COSINE, LR_LINEAR, LR_POLYNOMIAL };

/* Registers them; without this only defaults are known. */
void use_test_words(void);

#endif
