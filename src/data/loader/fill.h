/* Declares how micro-batches are filled. All threads of a loader share a Fill; each thread has a
 * FillScratch of its own. */
#ifndef WEFT_DATA_FILL_H
#define WEFT_DATA_FILL_H

#include "../picture/scene.h"
#include "data/field_read.h"

typedef struct Fill {
    DataSet set;
    /* borrowed */
    const Config *config;
    LoaderPlan plan;
    /* owned */
    Reader *reader;
    ShufflePlan shuffle;
    /* true: pictures must be decoded, resampled or changed in another way that needs a
     * PictureConverter (data_needs_picture_converter) */
    bool needs_picture_converter;
    /* true: images are mixed in pairs (data_mixes_images); only in training */
    bool mixes_images;
    /* sets of boxes: the boxes of all samples, with the class numbers that the model uses; owned */
    DataBoxes boxes;
    /* sets of boxes: largest number of boxes in a sample */
    int64_t box_most;
    /* numbers of matches, int64[levels + 1] as BoxTargets.match_counts: those of the step that was
     * counted last or, in an evaluation, those of the whole set; owned. NULL: matches are not
     * counted */
    int64_t *matches;
    /* training: epoch of the step that was counted last */
    int64_t matches_epoch;
    /* training: number of the step that was counted last; -1: none */
    int64_t matches_step;
    /* memory for the boxes of one sample, for counting its matches; owned */
    float *scratch_boxes;
    /* weights of a sample's targets in the loss, [target_width], which all samples share; owned.
     * NULL: the weights vary between samples, or there are none */
    float *weights;
    /* true: the weights of targets vary between samples */
    bool weights_vary;
    /* factors of the weights, set if the loss has weights; fill_weights_fini releases them */
    FieldWeights pixel_weights;
    /* number of floats in a sample's x */
    int64_t sample_floats;
    /* number of labels of a sample */
    int64_t sample_labels;
} Fill;

/* Scratch memory of one thread. */
typedef struct FillScratch {
    /* stored values of the samples that one read fetches; owned. NULL: not needed */
    uint8_t *raw;
    /* number of items for which `raw` has memory. An item is a sample: there are several in
     * evaluation, and one in training. In a set of tokens an item is a token: there are context +
     * 1 */
    int64_t raw_items;
    /* owned; NULL: pictures need no PictureConverter, or this rank needs no x */
    PictureConverter *converter;
    /* index of the first id of each field among the ids of one sample, [fields + 1], owned; NULL:
     * the set has no ids */
    int32_t *sample_id_first;
    /* memory for x of one sample, for mixing; owned. NULL: images are not mixed */
    float *spare;
} FillScratch;
/* Allocates the memory that a thread needs to fill rows of `fill`. */
void fill_scratch_init(FillScratch *scratch, const Fill *fill);
void fill_scratch_fini(FillScratch *scratch);

/* Prepares the weights of targets in a set of fields. Does nothing if the loss has no weights for
 * targets, or if this rank needs no targets. */
Status fill_weights_init(Fill *fill);
void fill_weights_fini(Fill *fill);
/* Reads the boxes of the whole set. Also prepares the counting of matches if the loss counts them
 * and this rank needs labels; for an evaluation it counts them at once. Does nothing on a rank that
 * needs neither pictures nor labels. */
Status fill_boxes_init(Fill *fill);
void fill_boxes_fini(Fill *fill);
/* Sets batch->matches: in training to the matches of the step's samples over all replicas, which
 * are counted once per step; in an evaluation to the matches of the whole set. */
void fill_matches(Fill *fill, MicroBatch *batch);
/* Writes the boxes of row r to the row's part of batch->box_row, and their number to
 * batch->box_start[r + 1]. */
void fill_boxes(const Fill *fill, MicroBatch *batch, int64_t r);
/* Moves the boxes of all rows together, after fill_boxes has written every row, and replaces the
 * numbers of boxes in batch->box_start by indices. */
void fill_join_boxes(const Fill *fill, MicroBatch *batch);
/* Returns the sample at this position of an epoch: in training by the shuffled order, in evaluation
 * the sample with this number. */
int64_t fill_sample_at(const Fill *fill, int64_t epoch, int64_t position);

/* Returns the position, in its epoch, of the first sample of a step. */
int64_t fill_first_position(const Fill *fill, int64_t epoch, int64_t step);
/* Chooses the samples of the micro-batch with index `micro` in a step, zeroes its padding rows, and
 * sets its matches if they are counted. */
void fill_begin(Fill *fill, MicroBatch *batch, int64_t epoch, int64_t step, int micro);
/* Fills rows first .. first + count - 1. On failure *bad_row is the row that failed. If a read of
 * several rows fails, *bad_row is the first row of the read, or an earlier row of the range. */
Status fill_rows(const Fill *fill, FillScratch *scratch, MicroBatch *batch, int first, int count,
                 int *bad_row);
/* Completes a micro-batch after all its rows are filled: moves the ids and the boxes of all rows
 * together, and mixes images and their labels. */
void fill_end(const Fill *fill, FillScratch *scratch, MicroBatch *batch);

#endif
