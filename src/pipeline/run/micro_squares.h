/* Squares of the gradients of single micro-batches, from which the gradient noise scale is made. */
#ifndef WEFT_PIPELINE_MICRO_SQUARES_H
#define WEFT_PIPELINE_MICRO_SQUARES_H

#include "context.h"

typedef struct MicroSquares {
    /* sum of squares of each parameter's gradient, [micro-batches of this replica][parameters], 0
     * where it is not measured; NULL: nothing is measured; owned */
    double *sum;
    /* sums of the chunks of one parameter; owned */
    double *chunk;
} MicroSquares;

void micro_squares_init(MicroSquares *squares, const Context *context);
void micro_squares_fini(MicroSquares *squares);
/* Measures the parameters of a bucket, which begins at `place` in the arena that backward writes
 * to, before the micro-batch is added to others. */
void micro_squares_add(const MicroSquares *squares, const Context *context, const ChunkPlan *chunk,
                       int bucket, int micro, const float *place);

#endif
