/* Measures one memory-bound operation, and a copy of the same number of bytes. */
#ifndef WEFT_CLI_BENCH_OP_H
#define WEFT_CLI_BENCH_OP_H

#include "bench.h"

enum { BENCH_LABEL = 64 };

/* The results of one measurement. */
typedef struct BenchLine {
    /* name of the operation and of operations fused into it, "batch_norm+relu"; shape of its first
     * input */
    char label[BENCH_LABEL], shape[64];
    /* number of times that the operation occurs in the model */
    int times;
    /* instruction set, and memory layout of the first input. Both are NULL in lines about a model:
     * the planner chooses them, and they are not printed. */
    const char *cpu_set, *layout;
    /* "forward", "backward", "both", "update", ... */
    const char *direction;
    /* bytes that a call reads and writes, and seconds of a call */
    double bytes, seconds;
    /* bytes/s of a copy that reads and writes the same number of bytes */
    double copy_rate;
} BenchLine;

/* Measures op, which op_new has planned, in memory that is allocated for the measurement. name:
 * name of the operation, for labels. Returns the number of lines filled: two, for forward and
 * backward; one if backward has nothing to do, or if forward and backward are measured together
 * because the gradient overwrites the input (Op.dx_over_x). */
int bench_op(BenchLine line[2], Op *op, const char *name);
/* Returns the name of kernel 0, 1, ... of those that work on flat arrays (updates of the
 * optimizers, and others); NULL after the last. */
const char *bench_flat_name(int kernel);
/* Measures this kernel on fp32 arrays of `elements` elements. */
void bench_flat(BenchLine *line, Backend *backend, int kernel, int64_t elements);
/* Prints the heading of the lines to stdout. layouts true: it has columns for instruction set and
 * memory layout; false: a column for BenchLine.times. */
void bench_line_head(bool layouts);
/* Prints a line to stdout, as text or as a JSON object. */
void bench_line_print(const BenchLine *line, bool json);

#endif
