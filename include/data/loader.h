/* The order of samples, and the loader, whose threads prepare micro-batches in the background. */
#ifndef WEFT_DATA_LOADER_H
#define WEFT_DATA_LOADER_H

#include "data/set.h"

/* Returns the sample at a position of an epoch of n samples, by a keyed permutation of 0 .. n - 1
 * (Feistel network with cycle walking). O(1). */
int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position);
/* Does what sampler_at does, for files in chunks of `chunk` samples: shuffles the chunks, then the
 * samples within each window of `window` samples, so that a reader needs only the chunks of one
 * window at a time. O(1). */
int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position);
/* How the epochs of a set are shuffled: two arguments of sampler_in_chunks. If chunk is 0,
 * sampler_at is used. */
typedef struct ShufflePlan {
    int64_t chunk, window;
} ShufflePlan;
/* Returns how the training epochs of a set are shuffled (data.shuffle). */
ShufflePlan data_shuffle_plan(const DataSet *set, const Config *config);
/* Returns the sample that training reads at a position of an epoch. */
int64_t data_sample_at(const DataSet *set, const Config *config, int64_t epoch, int64_t position);

/* One micro-batch, of N rows; owned by the loader, valid until it is released. Rows from `rows` on
 * are padding. F: number of fields of ids; T: number of tokens of a sample. */
typedef struct MicroBatch {
    /* inputs (N,C,H,W); padding rows are zero; NULL: tokens */
    float *x;
    /* tokens (N,T); NULL: other sets */
    int32_t *tokens;
    /* labels: classes (N), next tokens (N,T), or classes of pixels (N,H,W), where -1 is a pixel
     * without a label. NULL: there are no labels. */
    int32_t *labels;
    /* mixed images: labels of the other image of each pair; else NULL */
    int32_t *labels_other;
    /* weight of `labels` in the loss; labels_other have the weight 1 - label_share */
    float label_share;
    /* targets (N, target_width), NaN for a missing target; NULL: there are no targets */
    float *targets;
    /* weights of targets in the loss; NULL: all are 1. If weights_stride is 0, all samples have the
     * same weights, float[target_width], one borrowed array for all batches. Otherwise the weights
     * are (N, target_width), and weights_stride is target_width. */
    float *target_weights;
    int64_t weights_stride;
    /* sets of boxes, else NULL: row i has the boxes box_start[i] .. box_start[i + 1] - 1 of
     * box_row, each with BOX_NUMBERS numbers */
    int32_t *box_start;
    float *box_row;
    /* sets of boxes, else NULL: BoxTargets.match_counts, counted over the global batch, or in an
     * evaluation over the whole set */
    int64_t *matches;
    /* sets with ids, else NULL: field f of row r has ids[id_first[r * F + f]] .. ids[id_first[r * F
     * + f + 1] - 1]; padding rows have no ids. id_first has N * F + 1 entries. */
    uint64_t *ids;
    int32_t *id_first;
    /* rows of sparse tables that belong to the ids, one entry for each bag (OpSpec.bag); borrowed.
     * NULL: they have not been looked up yet; the loader does not set this member */
    const BagInput *bag;
    /* number of each row's sample in the set, (N); -1 for padding rows */
    int64_t *sample;
    /* number of rows with a sample; may be 0 */
    int rows;
    /* step: number of the step within the epoch; epoch: number of the epoch */
    int64_t step, epoch;
    /* index of the micro-batch in the step, over all replicas; micro-batches from batch /
     * micro_batch on have no rows */
    int micro;
} MicroBatch;

/* Arguments of loader_new. */
typedef struct LoaderPlan {
    /* batch: number of samples of a step over all replicas, a multiple of micro_batch; micro_batch:
     * number of samples of a micro-batch */
    int64_t batch, micro_batch;
    /* micro_first: index in the step of this replica's first micro-batch; micro_count: number of
     * its micro-batches. Micro-batches with indexes from batch / micro_batch on have no rows. */
    int micro_first, micro_count;
    /* index in the step of each micro-batch of this replica, int[micro_count], borrowed until the
     * loader is freed; NULL: consecutive indexes from micro_first on */
    const int *micro;
    /* epoch: epoch of the first step; step: number of this step within the epoch. In training, if
     * `shift` is 0, `step` may exceed the steps of the epoch and is then in a later epoch. */
    int64_t epoch, step;
    /* true: the loader shuffles and augments samples and never ends; false: it reads one epoch in
     * order, without augmentation */
    bool training;
    /* skips_inputs: true if this rank needs no inputs; x, ids, id_first and tokens are then NULL.
     * skips_labels: true if it needs no labels, targets and boxes; these are then NULL. */
    bool skips_inputs, skips_labels;
    /* number of micro-batches in memory, at least 2 */
    int slots;
    /* backend that allocates host memory for micro-batches (backend_host_new); borrowed; NULL:
     * ordinary memory */
    Backend *backend;
    /* sets of fields: memory for unpacked chunks, borrowed until the loader is freed; if chunks.at
     * is NULL, the loader makes its own */
    FieldMemory chunks;
    /* number of threads; 0: one */
    int workers;
    /* training: number of samples that is added to the positions of the first epoch, because its
     * earlier steps had another batch size */
    int64_t shift;
    /* losses for boxes: grids of the inputs of the loss, for which matches are counted */
    BoxGrid grid[BOX_LEVELS];
    /* number of entries of `grid`; 0: other losses */
    int levels;
} LoaderPlan;
/* A loader prepares micro-batches ahead on several threads; the result does not depend on the
 * number of threads. In step s of an epoch of n samples, row r of micro-batch m has the sample at
 * position s*batch + m*micro_batch + r of the epoch; in the first epoch `shift` is added. Positions
 * from n on are padding. An epoch has ceil(n/batch) steps. */
typedef struct Loader Loader;
/* Returns the number of threads of a loader of this set on a rank with `cores` cores: data.workers,
 * or its default. */
int data_workers(const DataSet *set, const Config *config, int cores);
/* Returns the bytes of MicroBatch.ids and MicroBatch.id_first for `samples` samples; 0: the set has
 * no ids. */
size_t data_ids_bytes(const DataSet *set, int64_t samples);
/* Returns the bytes of the boxes of a training micro-batch of `samples` samples
 * (MicroBatch.box_start, box_row and matches); 0: the set has no boxes. */
size_t data_box_bytes(const DataSet *set, const Config *config, int64_t samples);
/* Returns the largest number of boxes of a sample, in training or in an evaluation; 0: the set has
 * no boxes. */
int64_t data_box_most(const DataSet *set, const Config *config, bool training);
/* Returns true if the images of a training micro-batch are mixed in pairs
 * (MicroBatch.labels_other). */
bool data_mixes_images(const Config *config);
/* Makes a loader and starts its threads; set and config are borrowed until loader_free. */
Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan);
void loader_free(Loader **loader);
/* Sets *batch to the next micro-batch, which is valid until loader_release, or to NULL at the end
 * of an evaluation. Waits if necessary, and adds the seconds of waiting to *wait_s, which may be
 * NULL. At most LoaderPlan.slots - 1 micro-batches may be in use when the next one is requested.
 * Returns errors of the loader's threads. */
Status loader_next(Loader *loader, const MicroBatch **batch, double *wait_s);
/* Returns the number of chunks of fields that have been unpacked into the loader's memory, by all
 * loaders that share it. */
int64_t loader_unpacked_chunks(const Loader *loader);
/* Releases the oldest micro-batch in use, so that a thread can fill it again. */
void loader_release(Loader *loader);

/* Returns samples / batch, rounded up. */
int64_t data_steps_per_epoch(int64_t samples, int64_t batch);

#endif
