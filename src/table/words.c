/* Lists the values of the configuration key grid.mode. */
#include "table.h"

const ConfigWords table_words[TABLE_WORDS] = {
    {"grid.mode", .text = LIST_TEXT(UPDATE_MODE_WORDS)},
};

const char *const update_mode_names[] = {UPDATE_MODE_WORDS(LIST_NAME)};
