/* Sums of squares of the gradients of single micro-batches, from which the gradient noise scale is
 * computed. */
#ifndef WEFT_PIPELINE_MICRO_SQUARES_H
#define WEFT_PIPELINE_MICRO_SQUARES_H

#include "context.h"

typedef struct MicroSquares {
    /* sum of squares of each parameter's gradient, [micro-batches of this replica][parameters], 0
     * for parameters that are not measured; NULL: nothing is measured; owned */
    double *sum;
    /* sum of squares of each part of FLAT_CHUNK elements of one parameter; owned */
    double *part;
} MicroSquares;

void micro_squares_init(MicroSquares *squares, const Context *context);
void micro_squares_fini(MicroSquares *squares);
/* Sums the squares of a micro-batch's gradients in a bucket, before these gradients are added to
 * those of other micro-batches. place: address of the bucket in the arena to which backward
 * writes. */
void micro_squares_add(const MicroSquares *squares, const Context *context, const ChunkPlan *chunk,
                       int bucket, int micro, const float *place);

#endif
