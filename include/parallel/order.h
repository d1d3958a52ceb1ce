/* The order of sums: gradient buckets, and the tree of micro-batches and ranks. No MPI. */
#ifndef WEFT_PARALLEL_ORDER_H
#define WEFT_PARALLEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cuts [0, elements) into ranges of about bucket_bytes whose bounds are tensor bounds, last tensor
 * first (the order in which backward finishes them). */
typedef struct Buckets {
    int count;
    /* owned */
    int64_t *offset, *elements;
    /* owned; bucket b is whole once this tensor's gradient is */
    int *first_tensor;
} Buckets;
void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes);
void buckets_fini(Buckets *buckets);

/* Partial sums of micro-batches inside a rank: a stack of equal arenas (a binary counter), so that
 * k micro-batches end as the fixed tree's sum of k, in arena 0. tree_levels(k) arenas serve: 1 for
 * k = 1, else ceil(log2(k)) + 1. */
int tree_levels(int micros);
typedef struct TreeStep {
    /* the arena that this micro-batch's gradient goes to */
    int write;
    /* then, in order: arena[to] = arena[to] + arena[to + 1] */
    int join_count;
    int to[32];
} TreeStep;
/* What micro-batch `micro` (0-based, local) of `micros` does. After the last one the whole sum is
 * in arena 0. */
TreeStep tree_step(int micro, int micros);
/* Arenas that the tree of pushes * each leaves needs between pushes, where each push brings `each`
 * of them at once. */
int tree_levels_between(int pushes, int each);
/* Of `micros_global` micro-batches, as many as each of dp replicas takes: where they do not come
 * out even, those from number micros_global on are padding. They have no samples and add -0, so a
 * tree whose last leaves they are is the tree without. */
int micros_a_replica(int micros_global, int dp);
/* True where the sum over dp such blocks is the same tree for every such grid. */
bool tree_is_canonical(int micros_global, int dp);

#endif
