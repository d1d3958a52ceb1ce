/* The words of the modules below config: their lists, and rules and curves such as they have. */
#ifndef WEFT_TESTS_CONFIG_WORDS_H
#define WEFT_TESTS_CONFIG_WORDS_H

enum { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_LARS, OPTIM_LAMB };
enum { LR_CONSTANT, LR_MULTISTEP, LR_COSINE, LR_LINEAR, LR_POLYNOMIAL };

/* Without them only defaults are known. */
void use_test_words(void);

#endif
