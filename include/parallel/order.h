/* The order of sums: gradient buckets, and the tree of micro-batches and ranks. No MPI. */
#ifndef WEFT_PARALLEL_ORDER_H
#define WEFT_PARALLEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Gradient buckets: the array of all gradients of a rank, cut at tensor boundaries into contiguous
 * ranges of about bucket_bytes bytes (buckets_init). Bucket 0 has the last tensors, because
 * backward finishes their gradients first. */
typedef struct Buckets {
    int count;
    /* first element of each bucket, [count]; owned */
    int64_t *offset;
    /* number of elements of each bucket, [count]; owned */
    int64_t *elements;
    /* lowest index of a tensor in each bucket, [count]; owned. The bucket is complete once the
     * gradient of this tensor is complete. */
    int *first_tensor;
} Buckets;
/* Makes the buckets. elements: number of gradients; tensor_offset: first element of each tensor,
 * ascending, [tensors]. Elements before the first tensor belong to the last bucket, elements after
 * the last tensor to the first bucket. */
void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes);
void buckets_fini(Buckets *buckets);

/* A range cut into one shard for each rank, in the order of the ranks. Empty shards are not stored,
 * so memory grows with the number of shards and not with the number of ranks. */
typedef struct Bounds {
    int ranks, count;
    /* rank of each stored shard, ascending, [count]; owned */
    int *rank;
    /* first element of each stored shard, then the end of the last one, [count + 1]; owned */
    int64_t *begin;
} Bounds;
/* Makes the bounds of shards: rank r's shard is bound[r] .. bound[r + 1] - 1, and is empty if the
 * two bounds are equal. bound: [ranks + 1], ascending; neighbours may be equal. */
void bounds_init(Bounds *bounds, const int64_t *bound, int ranks);
void bounds_fini(Bounds *bounds);
/* Returns the index of the first stored shard whose rank is at least `rank`; count if there is
 * none. */
int bounds_find(const Bounds *bounds, int rank);
/* Returns true if the stored shard with index `shard` belongs to `rank`. shard: result of
 * bounds_find for this rank, so false means that the rank's shard is empty. */
bool bounds_has(const Bounds *bounds, int shard, int rank);
/* Returns the first element of the rank's shard; if rank is bounds->ranks, the end of the whole
 * range. */
int64_t bounds_at(const Bounds *bounds, int rank);
/* bounds_length returns the number of elements of a rank's shard, bounds_longest the number of
 * elements of the longest shard. */
int64_t bounds_length(const Bounds *bounds, int rank);
int64_t bounds_longest(const Bounds *bounds);
/* Cuts the range offset .. offset + elements - 1 evenly into `ranks` shards, at multiples of 64
 * bytes from its beginning. */
void bounds_init_even(Bounds *bounds, int64_t offset, int64_t elements, int ranks);

/* The sum over the micro-batches of a rank is made in a stack of arenas of the same size, which is
 * used like a binary counter. After the last micro-batch arena 0 has the sum, in the order of the
 * fixed tree. tree_levels returns the number of arenas that `micro_batches` micro-batches need: 1
 * for one micro-batch, else ceil(log2(micro_batches)) + 1. */
int tree_levels(int micro_batches);
/* The work of a rank with the gradient of one micro-batch. */
typedef struct TreeStep {
    /* index of the arena into which this micro-batch's gradient is written */
    int write;
    /* number of additions after that; addition j is arena[to[j]] += arena[to[j] + 1], in the order
     * of j */
    int join_count;
    int to[32];
} TreeStep;
/* Returns the step for micro-batch `micro` of this rank, counted from 0; the rank has
 * `micro_batches` of them. */
TreeStep tree_step(int micro, int micro_batches);
/* Returns the number of micro-batches of each replica if dp replicas share micro_batches_global
 * micro-batches. If dp does not divide micro_batches_global, micro-batches with numbers from
 * micro_batches_global on are padding: they have no samples and add -0, which does not change the
 * sum. */
int micro_batches_a_replica(int micro_batches_global, int dp);

/* How the micro-batches of a step are dealt to the replicas. All replicas have the same number of
 * micro-batches. */
typedef enum Deal {
    /* One block of consecutive micro-batches for each replica. The sums of the blocks are the
     * leaves of a tree over the replicas. */
    DEAL_BLOCKS,
    /* Subtrees: for each power of two in the binary form of a replica's number of micro-batches,
     * the largest first, each replica gets that number of consecutive micro-batches. Example: three
     * micro-batches per replica. Each replica first gets two; after the pairs of all replicas, each
     * gets one more. */
    DEAL_SUBTREES,
    /* one micro-batch for each replica in turn */
    DEAL_TURNS
} Deal;
/* A run of micro-batches: consecutive micro-batches of one replica, first .. first + count - 1,
 * whose gradients the replica adds before the sums of other replicas are added to them. */
typedef struct MicroRun {
    int first, count;
} MicroRun;
/* deal_micro_run returns the run that contains micro-batch `micro` (counted from 0) of a replica
 * with `micro_batches` micro-batches. deal_runs returns the number of runs of a replica. Each run
 * begins where the one before it ends. */
MicroRun deal_micro_run(Deal deal, int micro, int micro_batches);
int deal_runs(Deal deal, int micro_batches);
/* Returns the index in the global batch of micro-batch `micro` of replica `rank`. `micro_batches`
 * micro-batches belong to each of the dp replicas. */
int deal_number(Deal deal, int micro, int micro_batches, int rank, int dp);
/* Returns the largest number of partial sums that the stack of tree_step has between two runs, if
 * the leaves of the tree are all micro-batches of dp replicas; at least 1. */
int deal_levels(Deal deal, int micro_batches, int dp);

#endif
