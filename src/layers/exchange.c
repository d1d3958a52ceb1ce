/* exchange: sums, gathers or scatters a tensor among the ranks of a tensor-parallel group.
 * graph_split inserts this layer and sets its shapes. */
#include "kinds.h"

const LayerKind layer_exchange = {
    .name = "exchange",
    .op = OP_EXCHANGE,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "exchange between the ranks of a group",
};
