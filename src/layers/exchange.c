/* exchange: between the ranks of a tensor group. graph_split puts it in and gives it its shapes. */
#include "kinds.h"

const LayerKind layer_exchange = {
    .name = "exchange",
    .op = OP_EXCHANGE,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "between the ranks of a group",
};
