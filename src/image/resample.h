/* Declares the weights of resampling, and the functions of the two passes with AVX2. */
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

/* The weights of one pass. Output i is the weighted sum of taps[i] inputs, from input first[i]
 * on. */
typedef struct Weights {
    /* number of outputs */
    int outputs;
    /* number of weights that are stored for each output: a multiple of TAP_GROUP, at least the
     * largest of taps[] */
    int stride;
    /* index of the first input of each output, [outputs] */
    int32_t *first;
    /* number of inputs of each output, [outputs] */
    int32_t *taps;
    /* weights, [outputs][stride] */
    int32_t *weight;
    /* low parts of the weights, [outputs][stride / 2]; an entry has those of two neighbours, 16
     * bits each */
    uint32_t *low;
    /* high parts of the weights, stored in the same way */
    uint32_t *high;
    /* owned: memory of all arrays above */
    char *memory;
    /* size of `memory` */
    int64_t memory_bytes;
} Weights;

/* The rows of RGB pixels of a pass along the rows. */
typedef struct RowPass {
    /* first input row */
    const uint8_t *from;
    /* first output row */
    uint8_t *to;
    /* bytes from one input row to the next, and from one output row to the next */
    size_t from_step, to_step;
    /* number of input rows, and of output rows */
    int rows;
} RowPass;
/* Resamples each input row to an output row of w->outputs pixels. May read up to IMAGE_SLACK bytes
 * beyond the end of an input row. */
typedef void RowsResample(const Weights *w, const RowPass *pass);
RowsResample rows_resample_avx2;
/* Computes output row `output` of the pass down the columns, and writes it to `to`. from: first
 * input row of the pass; from_step: bytes from one input row to the next; bytes: length of a row.
 * May read up to 15 bytes beyond the end of an input row. */
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
