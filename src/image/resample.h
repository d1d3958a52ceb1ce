/* The two passes of resampling, and their form for AVX2. */
#ifndef WEFT_IMAGE_RESAMPLE_H
#define WEFT_IMAGE_RESAMPLE_H

#include "image.h"

enum {
    /* fixed point: a weight of 1 is 1 << WEIGHT_BITS */
    WEIGHT_BITS = 22,
    /* where a weight is cut into two halves of 16 bits: high << SPLIT_BITS | low */
    SPLIT_BITS = 11,
    /* taps of one output are filled up with weights of zero to a multiple of this */
    TAP_GROUP = 4
};

/* What each of `outputs` values of a line is made of: taps[i] neighbours, from first[i] on. */
typedef struct Weights {
    int outputs;
    /* of each output: a multiple of TAP_GROUP, no fewer than any of taps */
    int stride;
    int32_t *first, *taps;
    /* (outputs, stride) */
    int32_t *weight;
    /* (outputs, stride / 2): two neighbouring weights' low and high halves, 16 bits each */
    uint32_t *low, *high;
    /* owned: all of the above, and scratch */
    int64_t room;
    char *memory;
} Weights;

/* `rows` rows of RGB pixels, from_step bytes apart -> rows of w->outputs pixels, to_step apart. A
 * row may be read up to IMAGE_SLACK bytes beyond its end. */
typedef struct RowPass {
    const uint8_t *from;
    uint8_t *to;
    size_t from_step, to_step;
    int rows;
} RowPass;
typedef void RowsResample(const Weights *w, const RowPass *pass);
RowsResample rows_resample_avx2;
/* Row `output` of the second pass: `bytes` bytes, each out of the same column of from's rows. */
typedef void ColumnResample(const Weights *w, int output, const uint8_t *from, size_t from_step,
                            uint8_t *to, int bytes);
ColumnResample column_resample_avx2;

/* Of a sum in fixed point with a half in it. */
static inline uint8_t weights_clip(int32_t sum)
{
    sum >>= WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

#endif
