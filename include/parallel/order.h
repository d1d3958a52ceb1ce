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

/* How a range is cut among ranks, a shard each, in their order. Shards without elements are not
 * kept, so that where ranks are many the memory is that of the shards and not of the ranks. */
typedef struct Bounds {
    int ranks, count;
    /* owned: whose the shards are, ascending */
    int *rank;
    /* owned, [count + 1]: where they begin, and where the last one ends */
    int64_t *begin;
} Bounds;
/* bound: ranks + 1 entries, which never fall; rank r's shard is from bound[r] to bound[r + 1]. */
void bounds_init(Bounds *bounds, const int64_t *bound, int ranks);
void bounds_fini(Bounds *bounds);
/* The number of the first shard that is kept whose rank is no lower. */
int bounds_find(const Bounds *bounds, int rank);
/* Is that the rank's? If not, the rank's is empty. */
bool bounds_has(const Bounds *bounds, int shard, int rank);
/* Where the rank's shard begins; rank = ranks: where all end. */
int64_t bounds_at(const Bounds *bounds, int rank);
int64_t bounds_length(const Bounds *bounds, int rank);
int64_t bounds_longest(const Bounds *bounds);

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
