/* Measures one memory-bound operation and a copy of the same size. */
#ifndef WEFT_CLI_BENCH_OP_H
#define WEFT_CLI_BENCH_OP_H

#include "bench.h"

enum { BENCH_LABEL = 64 };

typedef struct BenchLine {
    char label[BENCH_LABEL], shape[64];
    /* how often the operation occurs in the model */
    int times;
    /* set: instruction set, layout: of x in memory; NULL: chosen by the planner, and not printed */
    const char *set, *layout;
    /* "forward", "backward", "both" or "update" */
    const char *direction;
    /* bytes: moved by a call; copy: bytes/s of a copy that moves the same number of bytes */
    double bytes, seconds, copy;
} BenchLine;

/* Measures op, which op_new has planned, in separate memory, which is released again. name: in
 * the lines, followed by what is fused. Returns the number of lines filled: forward and backward,
 * or one for both if backward overwrites what forward reads. */
int bench_op(BenchLine line[2], Op *op, const char *name);
/* Measures a kernel of the optimizers on fp32 ranges of `elements` elements. bench_flat_name: name
 * of kernel 0, 1, ...; NULL after the last. */
const char *bench_flat_name(int kernel);
void bench_flat(BenchLine *line, Backend *backend, int kernel, int64_t elements);
/* Print to stdout a heading, and a line as text or as a JSON object. layouts: with a column for the
 * memory layout. */
void bench_line_head(bool layouts);
void bench_line_print(const BenchLine *line, bool json);

#endif
