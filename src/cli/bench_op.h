/* How fast one operation is that memory bounds, beside a copy. */
#ifndef WEFT_CLI_BENCH_OP_H
#define WEFT_CLI_BENCH_OP_H

#include "bench.h"

enum { BENCH_LABEL = 64 };

typedef struct BenchLine {
    char label[BENCH_LABEL], shape[64];
    /* how often a model has it */
    int times;
    /* Instructions, and how x lies in memory; NULL: the planner's, of which nothing is said. */
    const char *set, *layout;
    /* "forward", "backward", "both" */
    const char *direction;
    /* copy: bytes a second that a copy of as many bytes reads and writes */
    double bytes, seconds, copy;
} BenchLine;

/* Measures op, planned by op_new, in memory of its own, which is released again; lines call it
 * name, with what is fused. Returns how many
 * lines it has filled: forward and backward, or both as one where the one writes over what it
 * reads. */
int bench_op(BenchLine line[2], Op *op, const char *name);
/* Work on flat ranges of fp32, of so many elements. bench_flat_name: of kernel 0, 1, ...; NULL
 * behind the last. */
const char *bench_flat_name(int kernel);
void bench_flat(BenchLine *line, Backend *backend, int kernel, int64_t elements);
/* To stdout; as one JSON object. layouts: lines have them */
void bench_line_head(bool layouts);
void bench_line_print(const BenchLine *line, bool json);

#endif
