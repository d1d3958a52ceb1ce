/* Pruning: finds the channels of a model that can only be removed together, and chooses the
 * channels to remove. All decisions depend on LayerChannels, never on a layer's kind. The graph is
 * that of graph_build, neither sliced nor fused. Not collective. */
#ifndef WEFT_MODEL_UNITS_H
#define WEFT_MODEL_UNITS_H

#include "model.h"

/* A unit is a set of channels that can only be removed together, for example channels that are
 * added to each other, or a gate's channel and the channel that it scales. A group is all units of
 * layers that share units; the units of a group are in the order of its first layer's channels. */
typedef struct UnitGroup {
    /* the group is units first .. first + count - 1 */
    int first, count;
    /* number of equal parts into which the group's units are divided in order. All parts must lose
     * the same number of units (grouped convolutions, group norms). 1: no layer demands parts. */
    int parts;
    /* index of the node of a layer that demands parts; valid only if parts > 1 */
    int divided_by;
    /* true: no unit of the group can be removed */
    bool is_kept;
    /* if is_kept is true: index of the node of the layer that needs all units, or -1 if a pattern
     * of the caller keeps them */
    int kept_by;
    int layer_count;
    /* indexes of the nodes of layers that introduce channels of this group, ascending,
     * [layer_count]; owned */
    int *layer;
} UnitGroup;

/* The units and groups of a graph. */
typedef struct Units {
    /* borrowed */
    const Graph *graph;
    int unit_count, group_count;
    /* [group_count]; owned */
    UnitGroup *group;
    /* unit[i + 1][c]: unit of channel c of node i's output; unit[0][c]: unit of channel c of the
     * data. Owned. Read it with units_of_channels. */
    int **unit;
    /* index of each unit's group, [unit_count]; owned */
    int *group_of;
} Units;

/* Finds units and groups. keep: `keep_count` patterns (fnmatch); all channels of layers whose names
 * match one of them are kept. ERR_USAGE: a pattern matches no layer. The graph is borrowed until
 * units_free. The caller owns *units. */
Status units_new(Units **units, const Graph *graph, const char *const *keep, int keep_count);
void units_free(Units **units);
/* Returns an array with the unit of each output channel of the node, or of each channel of the data
 * if node is NODE_INPUT. */
static inline const int *units_of_channels(const Units *units, int node)
{
    return units->unit[node + 1];
}

/* Returns the number of output channels of a node that remain. removed[u], [unit_count], is true if
 * unit u is removed. */
int64_t units_channels_left(const Units *units, int node, const bool *removed);

/* Returns the shape of a parameter after pruning. */
Shape units_param_shape(const Units *units, int param, const bool *removed);
/* Copies the remaining values of a parameter from `before` to `out`, both in plain order. `before`
 * may be any array of the parameter's shape, for example a slot of optimizer state. */
void units_param_gather(const Units *units, int param, const bool *removed, const float *before,
                        float *out);

/* Methods to score a channel's importance, with their words on the command line; src/model/prune.c
 * has the row of each. */
#define PRUNE_WORDS(W)                                                                             \
    W(PRUNE_L1, "l1") W(PRUNE_L2, "l2") W(PRUNE_FPGM, "fpgm") W(PRUNE_SLIM, "slim")
enum { PRUNE_WORDS(LIST_CONSTANT) PRUNE_METHODS };
/* A method of pruning. */
typedef struct PruneMethod {
    const char *name;
    /* Adds the score of each row of a layer's weight w, (rows, columns), to out[row], which is 0
     * before. The member is NULL if a unit's score is instead the mean of the absolute values of
     * the unit's channel scales (LayerParam.channel_scale); units are then compared across all
     * groups. */
    void (*score)(const float *w, int64_t rows, int64_t columns, double *out);
} PruneMethod;
extern const PruneMethod prune_methods[PRUNE_METHODS];

/* Arguments of prune_choose. */
typedef struct PruneOptions {
    const PruneMethod *method;
    /* fraction of the units to remove, from 0 to below 1 */
    double sparsity;
    /* the number of units that a group keeps is rounded up to a multiple of this number, but not
     * above the group's number of units */
    int64_t round_to;
    /* Copies a parameter's values, in plain order, to `plain`. user: PruneOptions.user. */
    Status (*get)(void *user, int param, float *plain);
    void *user;
} PruneOptions;

/* Chooses the units to remove. In each group they are the int(sparsity x units) units with the
 * lowest scores; if scores are channel scales, they are the units with the lowest scores of all
 * groups together. UnitGroup.parts and PruneOptions.round_to may reduce the number of units that
 * are removed from a group. A unit's score is the sum over its rows in all layers that have a
 * weight for it (for channel scales see PruneMethod); of equal scores the first unit is removed.
 * Every layer keeps at least one channel. Sets removed[u], [unit_count], to true if unit u is
 * removed. ERR_CONFIG: the method needs channel scales and there are none, or sparsity is above 0
 * and no channel can be removed. */
Status prune_choose(const Units *units, const PruneOptions *options, bool *removed);
/* Sets model.widths to the numbers of channels that remain. */
void prune_set_widths(const Units *units, const bool *removed, Config *config);

#endif
