/* Shared by the files that divide a graph among the ranks of a tensor-parallel group: split_roles.c
 * decides how each node is divided, split.c makes the new graph. */
#ifndef WEFT_MODEL_SPLIT_H
#define WEFT_MODEL_SPLIT_H

#include "build.h"

/* How a node is divided among the ranks. */
typedef enum Role {
    /* not divided, but may work on a slice of the sequence */
    ROLE_REST,
    /* dense layer divided by its outputs */
    ROLE_COLUMN,
    /* between column and row layer: works on a slice of the last dimension */
    ROLE_BETWEEN,
    /* dense layer divided by its inputs; the sum of all ranks' outputs is the result */
    ROLE_ROW,
    /* embedding divided by rows; the sum of all ranks' outputs is the result */
    ROLE_EMBED,
    /* dense layer divided by its outputs; the loss reads the slices */
    ROLE_HEAD,
    /* loss on a slice of the classes */
    ROLE_LOSS,
} Role;

typedef struct Splitter {
    /* borrowed */
    const Graph *from;
    /* borrowed */
    const Config *config;
    /* the new graph; the caller owns it once it is complete */
    Graph *to;
    int rank, ranks;
    /* number of parts, over all ranks, into which each sum over a divided dimension is cut
     * (train.sum_slices); 0: each rank adds its terms as one part */
    int slices;
    /* true: undivided layers work on slices of the sequence */
    bool sequence;
    /* role of each node; owned, as are all arrays here */
    Role *role;
    /* number of units of node i that are divided among the ranks: key heads, query heads, single
     * values, or tokens of the vocabulary */
    int64_t *units;
    /* number of readers of node i's output */
    int *uses;
    /* the last reader of node i's output */
    int *reader;
    /* the node of `to` that gives node i's output */
    int *new_index;
    /* index in `to` of the exchange that was last added between node i and layers divided by their
     * outputs; -1: none yet. If slices is 0, all these layers read this exchange, else each has its
     * own. */
    int *exchanged;
} Splitter;

static inline bool splits_by(const Node *node, OpSplit split)
{
    return node_info(node)->split == split;
}

/* Width of one of attention's heads. */
static inline int64_t head_width(const OpSpec *attention)
{
    return attention->y.shape.dim[2] / attention->heads;
}

/* OK if sums are not cut into slices. Otherwise ERR_CONFIG if the number of ranks is no power of
 * two, or if it exceeds the number of slices. */
Status split_check_slices(const Splitter *s);
/* True if node i is attention that is divided by query heads instead of key heads, because there
 * are fewer key heads than parts of a sum (slices; with slices 0, ranks). Its keys and values are
 * then divided by columns. If there are also fewer key heads than ranks, each key head belongs to a
 * block of neighbouring ranks. */
bool split_cuts_keys(const Splitter *s, int i);
/* Sets role, units, uses, reader and sequence; may lower slices. ERR_CONFIG if nothing, or too
 * little, can be divided. */
Status split_assign_roles(Splitter *s);

#endif
