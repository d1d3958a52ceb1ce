/* Values of the configuration keys that choose a transport, the way in which sums move, and the
 * grids on which results must have the same bits. */
#include "parallel/config_words.h"

const ConfigWords parallel_words[PARALLEL_WORDS] = {
    {"grid.transport", .text = LIST_TEXT(TRANSPORT_WORDS)},
    {"grid.sums", .text = LIST_TEXT(COMM_WAY_WORDS)},
    {"train.reproducible", .text = LIST_TEXT(REPRODUCIBLE_WORDS)},
};
