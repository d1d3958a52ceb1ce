/* The order of samples, and the loader, whose threads prepare micro-batches in the background. */
#ifndef WEFT_DATA_LOADER_H
#define WEFT_DATA_LOADER_H

#include "data/set.h"

/* Returns the sample at this position of an epoch of n samples, by a keyed permutation of 0..n-1
 * (Feistel network with cycle walking). O(1). */
int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position);
/* Does the same for files in chunks of `chunk` samples: shuffles the chunks, then the samples
 * within each window of `window` samples, so that a reader needs only a window's chunks at a time.
 * O(1). */
int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position);
/* How a set's epochs are shuffled: arguments of sampler_in_chunks; chunk 0: sampler_at is used. */
typedef struct ShufflePlan {
    int64_t chunk, window;
} ShufflePlan;
ShufflePlan data_shuffle_plan(const DataSet *set, const Config *config);
/* Returns the sample that training reads at this position of an epoch. */
int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position);

/* One micro-batch, of N rows; owned by the loader, valid until it is released. */
typedef struct Batch {
    /* (N,C,H,W), contiguous; rows from `rows` on are zero */
    float *x;
    /* (N,T) for sets of tokens, whose x is NULL; NULL: other sets */
    int32_t *tokens;
    /* (N) classes; (N,T) next tokens; or (N,H,W) classes of pixels, -1 for a pixel without a label.
     * NULL: there are no labels. */
    int32_t *labels;
    /* Mixed images: labels of the other image of each pair, or NULL. In the loss, labels have the
     * weight label_share and labels_other 1 - label_share. */
    int32_t *labels_other;
    float label_share;
    /* (N, target_width), NaN for a missing target. NULL: there are no targets. */
    float *targets;
    /* Weights of targets in the loss; NULL: all 1. weights_step 0: all samples have the same
     * weights, float[target_width], one borrowed array for all batches. Else weights are (N,
     * target_width), and weights_step is target_width. */
    float *target_weights;
    int64_t weights_step;
    /* Sets of boxes, else NULL: sample i has rows box_start[i] to box_start[i + 1] - 1 of box_row,
     * which have BOX_NUMBERS numbers. matches: BoxTargets.normaliser, counted over the global
     * batch, or in an evaluation over the whole set. */
    int32_t *box_start;
    float *box_row;
    int64_t *matches;
    /* Sets with ids, else NULL: field f of row r has ids[id_first[r * F + f]] to ids[id_first[r * F
     * + f + 1] - 1]; rows from `rows` on have no ids. id_first has N * F + 1 entries. */
    uint64_t *ids;
    int32_t *id_first;
    /* bag layers' view of the ids, indexed by OpSpec.bag; NULL: not looked up yet. Borrowed; the
     * loader does not set it. */
    const BagRun *bag;
    /* (N) sample numbers; -1 for rows from `rows` on */
    int64_t *sample;
    /* number of real samples; may be 0 */
    int rows;
    /* step within the epoch */
    int64_t step, epoch;
    /* index of the micro-batch in the step, over all replicas; micro-batches from batch /
     * micro_batch on have no rows */
    int micro;
} Batch;

typedef struct LoaderPlan {
    /* samples of a step over all replicas, and of a micro-batch; batch is a multiple of
     * micro_batch */
    int64_t batch, micro_batch;
    /* index in the step of this replica's first micro-batch, and number of its micro-batches;
     * micro-batches with indices from batch / micro_batch on have no rows */
    int micro_first, micro_count;
    /* indices of this replica's micro-batches, int[micro_count], borrowed until the loader is
     * freed; NULL: consecutive indices from micro_first on */
    const int *micro;
    /* epoch of the first step, and number of this step within the epoch; in training with shift 0
     * the number may exceed the epoch's steps and then reaches into later epochs */
    int64_t epoch, step;
    /* true: shuffles, augments and repeats for ever; false: one epoch in order, not augmented */
    bool training;
    /* no_x: true if this rank needs no inputs; x, ids, id_first and tokens are then NULL. no_y:
     * true if it needs no labels, targets and boxes; these are then NULL. */
    bool no_x, no_y;
    /* micro-batches kept ready, at least 2 */
    int slots;
    /* backend that allocates host memory for micro-batches (backend_host_new); borrowed; NULL:
     * ordinary memory */
    Backend *backend;
    /* fields: memory for unpacked chunks, borrowed until the loader is freed; chunks.at NULL: the
     * loader makes its own */
    FieldMemory chunks;
    /* number of threads; 0: one */
    int workers;
    /* training: number of samples added to the positions of the first epoch, because its earlier
     * steps had another batch size */
    int64_t shift;
    /* losses for boxes: the grids of the loss's inputs, by which matches are counted, and their
     * number; levels 0: other losses */
    BoxGrid grid[BOX_LEVELS];
    int levels;
} LoaderPlan;
/* Prepares micro-batches ahead on several threads; the result does not depend on the number of
 * threads. Row r of micro-batch m in step s has position s*batch + m*micro_batch + r in its epoch
 * (+ shift in the first epoch); positions >= n are padding. An epoch has ceil(n/batch) steps. */
typedef struct Loader Loader;
/* Returns the number of threads of a loader of this set on a rank with `cores` cores: data.workers,
 * or its default. */
int data_workers(const DataSet *set, const Config *config, int cores);
/* Returns the bytes of Batch.ids and id_first for `samples` samples; 0: the set has no ids. */
size_t data_ids_bytes(const DataSet *set, int64_t samples);
/* Returns the bytes of the boxes of a training micro-batch: Batch.box_start, box_row and matches;
 * 0: the set has no boxes. */
size_t data_box_bytes(const DataSet *set, const Config *config, int64_t samples);
/* Returns the largest number of boxes of a sample; 0: the set has no boxes. */
int64_t data_box_most(const DataSet *set, const Config *config, bool training);
/* Are the images of a training micro-batch mixed in pairs (Batch.labels_other)? */
bool data_mixes_images(const Config *config);
Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan);
void loader_free(Loader **loader);
/* Sets *batch to the next micro-batch, valid until loader_release; NULL: the end of an evaluation.
 * Waits if necessary, and adds the time waited to *wait_s, which may be NULL. At most slots - 1
 * micro-batches may be in use when the next is requested. Returns errors of the loader's
 * threads. */
Status loader_next(Loader *loader, const Batch **batch, double *wait_s);
/* Returns the number of chunks of fields that have been unpacked into the loader's memory, by all
 * loaders that share it. */
int64_t loader_unpacked_chunks(const Loader *loader);
/* Releases the oldest micro-batch in use, so that a thread may fill it again. */
void loader_release(Loader *loader);

/* Returns samples / batch, rounded up. */
int64_t data_steps_per_epoch(int64_t samples, int64_t batch);

#endif
