/* Lists the values of the configuration key grid.mode. */
#include "table.h"

const ConfigWords table_words[TABLE_WORDS] = {
    {"grid.mode", .text = LIST_TEXT(TABLE_MODE_WORDS)},
};

const char *const table_mode_names[] = {TABLE_MODE_WORDS(LIST_NAME)};
