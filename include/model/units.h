/* Which channels of a model belong together, and taking some of them out: of a graph alone. Layers
 * say what they do with channels (LayerChannels); nothing here asks for their kind. Of a graph as
 * graph_build leaves it, neither sliced nor fused. Not collective. */
#ifndef WEFT_MODEL_UNITS_H
#define WEFT_MODEL_UNITS_H

#include "model.h"

/* A unit is a set of channels that can only go together: those that meet in a sum, a gate and what
 * it lets through. A group is the units of layers that have a unit in common, in the order of the
 * first of these layers. */
typedef struct UnitGroup {
    /* units first .. first + count - 1 */
    int first, count;
    /* Number of equal parts of neighbouring channels that must lose as many each (grouped
     * convolutions, group norms); 1: there is no such rule. */
    int parts;
    /* a layer with these parts; only set where parts > 1 */
    int divider;
    /* None can go. holder: the layer that needs them as they are; -1: the caller asked for it. */
    bool whole;
    int holder;
    /* owned: layers whose channels are opened here, in the graph's order */
    int layer_count;
    int *layer;
} UnitGroup;

typedef struct Units {
    /* borrowed */
    const Graph *graph;
    int unit_count, group_count;
    /* owned */
    UnitGroup *group;
    /* owned; unit[i + 1][c]: of channel c of node i's output, [0]: of the data */
    int **unit;
    /* owned: of a unit */
    int *group_of;
} Units;

/* keep: `keep_count` patterns (fnmatch) on names of layers whose channels are to stay. ERR_USAGE:
 * one matches none. The graph is borrowed until units_free. Owner: the caller. */
Status units_new(Units **units, const Graph *graph, const char *const *keep, int keep_count);
void units_free(Units **units);
/* How many of a node's channels stay. gone: one a unit. */
int64_t units_left(const Units *units, int node, const bool *gone);

/* What of a parameter (or of what has its shape) stays: its shape, and its values, in plain
 * order. */
Shape units_shape(const Units *units, int param, const bool *gone);
void units_gather(const Units *units, int param, const bool *gone, const float *plain, float *out);

/* How it is judged what a channel is worth, with the word that asks for it. */
#define PRUNE_WORDS(W)                                                                             \
    W(PRUNE_L1, "l1") W(PRUNE_L2, "l2") W(PRUNE_FPGM, "fpgm") W(PRUNE_SLIM, "slim")
enum { PRUNE_WORDS(LIST_CONSTANT) PRUNE_METHODS };
typedef struct PruneMethod {
    const char *name;
    /* Of each row of a layer's weight (rows x columns). NULL: the mean of the unit's channel scales
     * (LayerParam.channel_scale), and units of all groups are compared with one another. */
    void (*score)(const float *w, int64_t rows, int64_t columns, double *out);
} PruneMethod;
extern const PruneMethod prune_methods[PRUNE_METHODS];

typedef struct PruneOptions {
    const PruneMethod *method;
    /* from 0 to below 1 */
    double sparsity;
    /* a group keeps a multiple of it, where it has so many */
    int64_t round;
    /* fills plain with a parameter's values */
    Status (*get)(void *user, int param, float *plain);
    void *user;
} PruneOptions;

/* gone[unit]: the int(sparsity x units) of least worth of each group; of channel scales, of all
 * groups together. A score is the sum over the unit's rows in layers that have a weight for it; of
 * equal ones the first goes. Every layer keeps at least one channel. ERR_CONFIG where the method
 * needs channel scales and there are none, or sparsity is above 0 and no channel goes. */
Status prune_choose(const Units *units, const PruneOptions *options, bool *gone);
/* Says the widths that are left in model.widths. */
void prune_set_widths(const Units *units, const bool *gone, Config *config);

#endif
