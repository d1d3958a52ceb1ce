/* What fills micro-batches: the same for all threads of a loader, but for each one's scratch. */
#ifndef WEFT_DATA_FILL_H
#define WEFT_DATA_FILL_H

#include "data_private.h"

typedef struct Fill {
    DataSet set;
    /* borrowed */
    const Config *config;
    LoaderPlan plan;
    /* owned */
    Reader *reader;
    ShufflePlan shuffle;
    /* images are decoded or resampled; and mixed in pairs */
    bool resamples, mixes;
    /* of one sample */
    int64_t sample_floats, row_labels;
} Fill;

/* one thread's */
typedef struct FillScratch {
    /* owned; what one read brings: a run of samples in evaluation, else one; of tokens, T + 1 */
    uint8_t *raw;
    int64_t raw_samples;
    /* owned; NULL: nothing is resampled */
    PictureWork *work;
    /* owned; where the fields of one sample begin; NULL: it has none */
    int32_t *first;
    /* owned; a sample that is mixed with another; NULL: none is */
    float *spare;
} FillScratch;
void fill_scratch_init(FillScratch *scratch, const Fill *fill);
void fill_scratch_fini(FillScratch *scratch);

/* Position in its epoch of a step's first sample. */
int64_t fill_first(const Fill *fill, int64_t epoch, int64_t step);
/* Which samples: those of a step's micro-batch; what is beyond them is cleared. */
void fill_begin(const Fill *fill, Batch *batch, int64_t epoch, int64_t step, int micro);
/* Rows first .. first + count; on failure *bad is the row. */
Status fill_rows(const Fill *fill, FillScratch *scratch, Batch *batch, int first, int count,
                 int *bad);
/* All rows are there. */
void fill_end(const Fill *fill, FillScratch *scratch, Batch *batch);

#endif
