/* The weights of resampling, and the interface of the two passes with AVX2. */
#ifndef WEFT_IMAGE_RESAMPLE_H
#define WEFT_IMAGE_RESAMPLE_H

#include "image.h"

enum {
    /* fixed point: a weight of 1 is 1 << WEIGHT_BITS */
    WEIGHT_BITS = 22,
    /* A weight is split into a low part of SPLIT_BITS bits and a signed high part, so that each
     * fits 16 bits: weight = (high << SPLIT_BITS) + low. */
    SPLIT_BITS = 11,
    /* the weights of one output are padded with zeros to a multiple of this */
    TAP_GROUP = 4
};

/* The weights of one pass: output i is the weighted sum of taps[i] inputs, from first[i] on. */
typedef struct Weights {
    int outputs;
    /* number of weights stored for each output: a multiple of TAP_GROUP, at least the largest of
     * taps[] */
    int stride;
    int32_t *first, *taps;
    /* int32_t[outputs][stride] */
    int32_t *weight;
    /* each entry has the low (high) parts of two neighbouring weights, 16 bits each;
     * uint32_t[outputs][stride / 2] */
    uint32_t *low, *high;
    /* owned: memory of all arrays above, and its bytes */
    char *memory;
    int64_t memory_bytes;
} Weights;

/* Rows of RGB pixels: `rows` input rows, from_step bytes apart, and as many output rows, to_step
 * bytes apart. */
typedef struct RowPass {
    const uint8_t *from;
    uint8_t *to;
    size_t from_step, to_step;
    int rows;
} RowPass;
/* Resamples each input row to an output row of w->outputs pixels. May read up to IMAGE_SLACK bytes
 * beyond the end of an input row. */
typedef void RowsResample(const Weights *w, const RowPass *pass);
RowsResample rows_resample_avx2;
/* Computes one output row of the pass down the columns: row `output`, of `bytes` bytes. from: the
 * first input row of the pass. May read up to 15 bytes beyond the end of an input row. */
typedef void ColumnResample(const Weights *w, int output, const uint8_t *from, size_t from_step,
                            uint8_t *to, int bytes);
ColumnResample column_resample_avx2;

/* Converts a sum in fixed point, which includes 0.5 for rounding, to a byte. */
static inline uint8_t weights_clip(int32_t sum)
{
    sum >>= WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

#endif
