/* The order of sums: gradient buckets, and the tree of micro-batches and ranks. No MPI. */
#ifndef WEFT_PARALLEL_ORDER_H
#define WEFT_PARALLEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Gradient buckets: [0, elements) cut into ranges of about bucket_bytes each at tensor boundaries,
 * the last tensors first, because backward finishes their gradients first. */
typedef struct Buckets {
    int count;
    /* first element and number of elements of each bucket, [count]; owned */
    int64_t *offset, *elements;
    /* index of the lowest tensor of each bucket, [count]: the bucket is complete once the gradient
     * of this tensor is complete; owned */
    int *first_tensor;
} Buckets;
/* tensor_offset[tensors]: first element of each tensor, ascending. Elements before the first tensor
 * belong to the last bucket, elements after the last tensor to the first bucket. */
void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes);
void buckets_fini(Buckets *buckets);

/* A range cut into one shard per rank, in rank order. Empty shards are not stored, so memory grows
 * with the number of shards and not with the number of ranks. */
typedef struct Bounds {
    int ranks, count;
    /* rank of each stored shard, ascending, [count]; owned */
    int *rank;
    /* first element of each stored shard, and the end of the last one, [count + 1]; owned */
    int64_t *begin;
} Bounds;
/* bound: [ranks + 1], ascending or equal; rank r's shard is [bound[r], bound[r + 1]). */
void bounds_init(Bounds *bounds, const int64_t *bound, int ranks);
void bounds_fini(Bounds *bounds);
/* Index of the first stored shard whose rank is not below `rank`. */
int bounds_find(const Bounds *bounds, int rank);
/* True if the stored shard with index `shard` belongs to `rank`. `shard` is bounds_find's result,
 * so false means that the rank's shard is empty. */
bool bounds_has(const Bounds *bounds, int shard, int rank);
/* First element of the rank's shard; for rank = ranks, the end of the whole range. */
int64_t bounds_at(const Bounds *bounds, int rank);
int64_t bounds_length(const Bounds *bounds, int rank);
int64_t bounds_longest(const Bounds *bounds);
/* Cuts [offset, offset + elements) evenly, at multiples of 64 bytes. */
void bounds_init_even(Bounds *bounds, int64_t offset, int64_t elements, int ranks);

/* The sum over the micro-batches of a rank: a stack of arenas of the same size, used like a binary
 * counter. After k micro-batches arena 0 has their sum in the order of the fixed tree.
 * tree_levels(k) is the number of arenas needed: 1 for k = 1, else ceil(log2(k)) + 1. */
int tree_levels(int micros);
typedef struct TreeStep {
    /* arena into which this micro-batch's gradient is written */
    int write;
    /* number of additions that follow, and the additions in order: arena[to[j]] += arena[to[j] + 1]
     * for j = 0 .. join_count - 1 */
    int join_count;
    int to[32];
} TreeStep;
/* The step for micro-batch `micro` (0-based, on this rank) of `micros`. After the last one the
 * whole sum is in arena 0. */
TreeStep tree_step(int micro, int micros);
/* Micro-batches per replica, if dp replicas share micros_global micro-batches. If dp does not
 * divide micros_global, micro-batches numbered micros_global and above are padding: they have no
 * samples and add -0, which does not change the sum. */
int micros_a_replica(int micros_global, int dp);

/* How the micro-batches of a step are dealt to the replicas. All replicas have the same number of
 * micro-batches. */
typedef enum Deal {
    /* One block of consecutive micro-batches for each replica. The sums of the blocks are the
     * leaves of a tree over the replicas. */
    DEAL_BLOCKS,
    /* Subtrees: for each power of two in the binary form of a replica's number of micro-batches,
     * the largest first, each replica gets that many consecutive micro-batches. With three
     * micro-batches each replica gets two, and after the pairs of all replicas one more; with four
     * it gets one block. */
    DEAL_SUBTREES,
    /* one micro-batch for each replica in turn */
    DEAL_TURNS
} Deal;
/* A run of micro-batches: consecutive micro-batches of one replica, first .. first + count - 1,
 * whose gradients the replica adds before the sums of other replicas are added to them. */
typedef struct MicroRun {
    int first, count;
} MicroRun;
/* The run that contains micro-batch `micro` (0-based) of a replica with `micros` micro-batches.
 * deal_runs returns the number of runs of a replica; each run begins where the previous one
 * ends. */
MicroRun deal_run(Deal deal, int micro, int micros);
int deal_runs(Deal deal, int micros);
/* Index in the global batch of micro-batch `micro` of replica `rank`. */
int deal_number(Deal deal, int micro, int micros, int rank, int dp);
/* Largest number of partial sums on the stack of tree_step between two runs, if the leaves of the
 * tree are all micro-batches of dp replicas; at least 1. */
int deal_levels(Deal deal, int micros, int dp);

#endif
