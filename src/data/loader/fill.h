/* Fills micro-batches. All threads of a loader share a Fill; each has its own FillScratch. */
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
    /* needs_picture_work: images need PictureWork (data_needs_picture_work). mixes_images: images
     * are mixed in pairs (data_mixes_images), only in training. */
    bool needs_picture_work, mixes_images;
    /* sets of boxes: labels of the whole set, with the classes of this run, owned; largest number
     * of boxes of a sample */
    DataBoxes boxes;
    int64_t box_most;
    /* matches of the step that was planned last, int64[levels + 1] as BoxTargets.normaliser, owned,
     * and epoch and number of that step; in an evaluation the matches of the whole set. matches
     * NULL: matches are not counted */
    int64_t *matches, matches_epoch, matches_step;
    /* owned: boxes of one sample, for counting its matches */
    float *box_row;
    /* owned: weights of a sample's targets in the loss, [target_width], if all samples have the
     * same; NULL: they vary between samples, or targets have no weights */
    float *weights;
    /* true: weights of targets vary between samples */
    bool weights_vary;
    /* factors of the weights, set if the loss has weights; released by fill_weights_fini */
    FieldWeights pixel_weights;
    /* number of floats of a sample's x; number of labels of a sample */
    int64_t sample_floats, sample_labels;
} Fill;

/* Scratch memory of one thread. */
typedef struct FillScratch {
    /* owned: raw samples, which one read fills; NULL: not needed */
    uint8_t *raw;
    /* number of samples in raw: several in evaluation, one in training; tokens: T + 1 */
    int64_t raw_samples;
    /* owned; NULL: images need no PictureWork */
    PictureWork *work;
    /* owned: index of the first id of each field of one sample; NULL: the set has no ids */
    int32_t *first;
    /* owned: one sample, for mixing; NULL: images are not mixed */
    float *spare;
} FillScratch;
void fill_scratch_init(FillScratch *scratch, const Fill *fill);
void fill_scratch_fini(FillScratch *scratch);

/* Prepares the weights of targets. Does nothing on a rank without targets, or if the loss has no
 * weights for them. */
Status fill_weights_init(Fill *fill);
void fill_weights_fini(Fill *fill);
/* Reads the labels of a set of boxes and prepares the counting of matches. Does nothing on a rank
 * that needs neither pictures nor labels. */
Status fill_boxes_init(Fill *fill);
void fill_boxes_fini(Fill *fill);
/* Sets batch->matches: in training to the matches of the step's samples over all replicas, which
 * are counted once per step; in an evaluation to the matches of the whole set. */
void fill_matches(Fill *fill, Batch *batch);
/* Writes the boxes of row r to its own part of box_row, and their number to box_start[r + 1]. When
 * all rows are written, fill_join_boxes makes the boxes contiguous, and the numbers indices. */
void fill_boxes(const Fill *fill, Batch *batch, int64_t r);
void fill_join_boxes(const Fill *fill, Batch *batch);
/* Returns the sample at this position of an epoch. */
int64_t fill_sample_at(const Fill *fill, int64_t epoch, int64_t position);

/* Returns the position in its epoch of a step's first sample. */
int64_t fill_first_position(const Fill *fill, int64_t epoch, int64_t step);
/* Chooses the samples of micro-batch `micro` of a step, zeroes the padding rows, and sets the
 * matches of a set of boxes. */
void fill_begin(Fill *fill, Batch *batch, int64_t epoch, int64_t step, int micro);
/* Fills rows first .. first + count - 1. On failure *bad is the row, or, if several rows are read
 * at once and this read fails, a row of the range that is not after the first of them. */
Status fill_rows(const Fill *fill, FillScratch *scratch, Batch *batch, int first, int count,
                 int *bad);
/* Completes a micro-batch after all rows are filled: makes the ids and the boxes of all rows
 * contiguous, and mixes images. */
void fill_end(const Fill *fill, FillScratch *scratch, Batch *batch);

#endif
