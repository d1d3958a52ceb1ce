/* Measures one memory-bound operation, and a copy of the same number of bytes. */
#ifndef WEFT_CLI_BENCH_OP_H
#define WEFT_CLI_BENCH_OP_H

#include "bench.h"

/* size of BenchLine.label in bytes */
enum { BENCH_LABEL = 64 };

/* The results of one measurement. */
typedef struct BenchLine {
    /* name of the operation, and of operations fused into it, such as "batch_norm+relu" */
    char label[BENCH_LABEL];
    /* shape of the operation's first input */
    char shape[64];
    /* number of times that the operation occurs in the model */
    int occurrences;
    /* name of the instruction set; NULL in lines about a model, for which the planner chooses it */
    const char *cpu_set;
    /* name of the memory layout of the first input; NULL if cpu_set is NULL */
    const char *layout;
    /* part of the operation that was measured: "forward", "backward", "both", "update", ... */
    const char *direction;
    /* bytes that a call reads and writes */
    double bytes;
    /* time of a call */
    double seconds;
    /* rate, in bytes/s, of a copy that reads and writes the same number of bytes */
    double copy_rate;
} BenchLine;

/* Measures op, which op_new has planned, in memory that is allocated for the measurement. name:
 * name of the operation, for labels. Returns the number of entries of `line` that were filled.
 * There are two, for forward and backward. There is only one if backward has nothing to do, or if
 * forward and backward are measured together because the gradient overwrites the input
 * (Op.dx_over_x). */
int bench_op(BenchLine line[2], Op *op, const char *name);
/* Returns the name of a kernel that works on flat arrays, such as the update of an optimizer.
 * kernel: number of the kernel, from 0. Returns NULL if there is no such kernel. */
const char *bench_flat_name(int kernel);
/* Measures the kernel with this number on fp32 arrays of `elements` elements. */
void bench_flat(BenchLine *line, Backend *backend, int kernel, int64_t elements);
/* Prints the column titles of the lines to stdout. layouts: true: there are columns for instruction
 * set and memory layout; false: there is a column for BenchLine.occurrences. */
void bench_line_head(bool layouts);
/* Prints a line to stdout, as text or as a JSON object. */
void bench_line_print(const BenchLine *line, bool json);

#endif
