/* Tables of the values of grid.transport, grid.sums and train.reproducible, for the parser of
 * configurations. */
#include "parallel/config_words.h"

const ConfigWords parallel_words[PARALLEL_WORDS] = {
    {"grid.transport", .text = LIST_TEXT(TRANSPORT_WORDS)},
    {"grid.sums", .text = LIST_TEXT(SUM_ALGORITHM_WORDS)},
    {"train.reproducible", .text = LIST_TEXT(REPRODUCIBLE_WORDS)},
};
