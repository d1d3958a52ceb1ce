/* Has the words that are values of this module's configuration keys. Registers the words of all
 * modules, and checks the constant tables of all modules. */
#include "eval/best.h"

#include "mode/step_mode.h"
#include "observe/binary.h"

const char *hook_event_word(int event)
{
    static const char *const word[] = {HOOK_WORDS(LIST_NAME)};
    return word[event];
}

const ConfigWords train_words[TRAIN_WORDS] = {
    {"checkpoint.resume", .text = LIST_TEXT(RESUME_WORDS)},
    {"checkpoint.best_metric", .word = best_metric_word},
    {"train.auc", .text = LIST_TEXT(AUC_WORDS)},
    {"run.hook_on", .text = LIST_TEXT(HOOK_WORDS)},
    {"train.on_bad", .text = LIST_TEXT(ON_BAD_WORDS)},
};

void train_use_words(void)
{
    config_use_words(tensor_words, TENSOR_WORDS);
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(optim_words, OPTIM_WORDS);
    config_use_words(data_words, DATA_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    config_use_words(parallel_words, PARALLEL_WORDS);
    config_use_words(pipeline_words, PIPELINE_WORDS);
    config_use_words(table_words, TABLE_WORDS);
    config_use_words(train_words, TRAIN_WORDS);
    config_use_check(zoo_check);
}

Status train_rows_check(void)
{
    TRY(image_codecs_check());
    TRY(tensor_check());
    TRY(layers_check());
    TRY(optim_check());
    TRY(data_tables_check());
    TRY(model_check());
    TRY(schedule_rows_check());
    TRY(parallel_rows_check());
    TRY(checkpoint_rows_check());
    TRY(step_modes_check());
    return best_metrics_check();
}
