/* Declarations for the two files that divide a graph among the ranks of a tensor-parallel group:
 * split_roles.c decides how each node is divided, split.c makes the new graph. */
#ifndef WEFT_MODEL_SPLIT_H
#define WEFT_MODEL_SPLIT_H

#include "build.h"

/* How a node is divided among the ranks. */
typedef enum SplitRole {
    /* the node is not divided, but may work on a slice of the sequence */
    ROLE_REST,
    /* dense layer divided by its outputs */
    ROLE_COLUMN,
    /* layer between a column layer and its row layer: works on a slice of the last dimension */
    ROLE_BETWEEN,
    /* dense layer divided by its inputs; its result is the sum of all ranks' outputs */
    ROLE_ROW,
    /* embedding divided by rows; its result is the sum of all ranks' outputs */
    ROLE_EMBED,
    /* dense layer divided by its outputs; the loss reads the slices */
    ROLE_HEAD,
    /* loss on a slice of the classes */
    ROLE_LOSS,
} SplitRole;

typedef struct Splitter {
    /* the undivided graph; borrowed */
    const Graph *from;
    /* borrowed */
    const Config *config;
    /* the new graph; the caller owns it once it is complete */
    Graph *to;
    /* this rank's number in the tensor-parallel group */
    int rank;
    /* number of ranks of the group */
    int ranks;
    /* number of slices, over all ranks, into which each sum over a divided dimension is cut
     * (train.sum_slices); 0: sums are not cut, and each rank adds up all its terms */
    int slices;
    /* true: the sequence is divided, and undivided layers work on slices of it */
    bool divides_sequence;
    /* The arrays below have an entry for each node of `from`, and are owned. */
    /* role of the node */
    SplitRole *role;
    /* number of the node's units, which are divided among the ranks: key heads, query heads, single
     * values, or tokens of the vocabulary */
    int64_t *units;
    /* number of inputs that read the node's output */
    int *uses;
    /* the last node that reads the node's output */
    int *reader;
    /* index in `to` of the node that gives the node's output */
    int *new_index;
    /* index in `to` of the newest exchange that gives the node's output to layers divided by their
     * outputs; -1: there is none yet. If slices is 0, all such layers read this exchange; else each
     * layer has an exchange of its own. */
    int *exchange_of;
} Splitter;

static inline bool splits_by(const Node *node, OpSplit split)
{
    return node_info(node)->split == split;
}

/* Returns the number of columns of one head. */
static inline int64_t head_width(const OpSpec *attention)
{
    return attention->y.shape.dim[2] / attention->heads;
}

/* Returns ERR_CONFIG if sums are cut into slices and the number of ranks is no power of two, or
 * exceeds the number of slices. */
Status split_check_slices(const Splitter *s);
/* Returns whether node i is attention that is divided by query heads instead of key heads. This is
 * so if there are fewer key heads than slices of a sum (or than ranks, if sums are not cut). Keys
 * and values are then divided by columns. If there are also fewer key heads than ranks, each key
 * head belongs to a block of neighbouring ranks. Call it after s->role and s->units are set. */
bool split_cuts_keys(const Splitter *s, int i);
/* Sets role, units, uses, reader and divides_sequence; may lower slices. ERR_CONFIG if nothing can
 * be divided, or a layer has too few units for the ranks. */
Status split_assign_roles(Splitter *s);

#endif
