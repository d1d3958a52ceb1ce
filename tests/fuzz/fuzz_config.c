/* Target: a configuration file. A resolved configuration must be accepted again. */
#include "fuzz.h"
#include "config.h"
#include "train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Config *config = NULL;
    static bool ready;
    if (!ready) train_use_words();
    ready = true;
    if (config_load(&config, fuzz_file(data, size), 0, NULL) == OK) {
        char *text = config_text(config);
        Config *again = NULL;
        if (config_parse(&again, "again", text, 0, NULL) != OK)
            die("what a configuration resolves to is refused: %s\n%s", fail_message(), text);
        fuzz_took(OK);
        config_free(&again);
        mem_free(&text);
    }
    config_free(&config);
    return 0;
}
