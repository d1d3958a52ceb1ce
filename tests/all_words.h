/* The words of all modules, as the command line gives them to config: for programs that link them
 * all. */
#ifndef WEFT_TESTS_ALL_WORDS_H
#define WEFT_TESTS_ALL_WORDS_H

#include "train.h"

static inline void use_words(void)
{
    config_use_words(tensor_words, TENSOR_WORDS);
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(optim_words, OPTIM_WORDS);
    config_use_words(data_words, DATA_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    config_use_words(parallel_words, PARALLEL_WORDS);
    config_use_words(pipeline_words, PIPELINE_WORDS);
    config_use_words(train_words, TRAIN_WORDS);
}

#endif
