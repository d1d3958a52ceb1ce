/* Computes the sums of token_sums.h: copies and sums the rows of each slice, then adds the sums of
 * slices and of ranks. */
#include "token_sums.h"

/* Returns the first token of this rank's slice `slice`, counted from the first token of this
 * rank. */
static int64_t first_token(const OpSpec *s, int slice)
{
    const SumSlices *cut = &s->token_slices;
    return slice_first(cut->units, cut->total, cut->first + slice) -
           slice_first(cut->units, cut->total, cut->first);
}

int64_t cuda_token_rows_most(const OpSpec *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->token_slices.count; ++i) {
        const int64_t tokens = first_token(s, i + 1) - first_token(s, i);
        if (tokens > most) most = tokens;
    }
    return most * s->y.shape.dim[0];
}

/* Addresses of the arrays in the workspace. */
typedef struct Places {
    /* sums of each slice of this rank */
    float *sum;
    /* sums of each rank of the group */
    float *all;
    /* scratch of TokenSum */
    float *partial;
    /* copy of the numbers that forward saved for one slice's rows */
    float *saved;
    /* x, dy: copies of one slice's rows of x and of dy */
    char *x, *dy;
    /* bytes of the workspace */
    size_t bytes;
} Places;

static Places places_of(const Op *op, const TokenSums *t, void *workspace)
{
    const OpSpec *s = &op->spec;
    const int64_t rows = cuda_token_rows_most(s);
    const size_t floats = cuda_aligned((size_t)(t->sums * t->width) * sizeof(float));
    const size_t matrix = cuda_aligned((size_t)(rows * t->width) * dtype_bytes(s->y.dtype));
    char *at = workspace;
    Places p = {.sum = (float *)(void *)at};
    at += (size_t)s->token_slices.count * floats;
    p.all = (float *)(void *)at;
    at += (size_t)(s->token_slices.total / s->token_slices.count) * floats;
    p.partial = (float *)(void *)at;
    at += cuda_aligned((size_t)t->partial * sizeof(float));
    p.saved = (float *)(void *)at;
    at += cuda_aligned((size_t)(rows * t->saved) * sizeof(float));
    p.dy = at;
    p.x = at + matrix;
    p.bytes = (size_t)(at - (char *)workspace) + matrix * (t->reads_x ? 2 : 1);
    return p;
}

size_t cuda_token_sums_bytes(const Op *op, const TokenSums *t)
{
    return places_of(op, t, NULL).bytes;
}

/* Copies the rows of tokens first .. first + count - 1 of each sample to `to`, without gaps. */
static void copy_tokens(const Op *op, void *to, const void *from, int64_t first, int64_t count,
                        size_t row_bytes)
{
    const Shape y = op->spec.y.shape;
    const size_t run = (size_t)count * row_bytes, sample = (size_t)y.dim[1] * row_bytes;
    const CudaRows target = {to, run};
    const CudaRows source = {(char *)(uintptr_t)from + (size_t)first * row_bytes, sample};
    cuda_copy_rows(cuda_stream(op), target, source, run, (size_t)y.dim[0]);
}

/* Adds `count` sums of n floats, `stride` floats apart, by the binary tree of neighbours. The
 * result replaces the first sum. */
static void join(const Op *op, float *sum, int count, int64_t stride, int64_t n)
{
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i < count; i += 2 * step) {
            float *to = sum + i * stride;
            cuda_check(launch_add(cuda_stream(op), to, to, to + step * stride, n), "kernel add");
        }
}

void cuda_token_sums_run(const Op *op, const OpRun *run, const TokenSums *t, int first)
{
    const OpSpec *s = &op->spec;
    const Places p = places_of(op, t, run->workspace);
    const size_t row = (size_t)t->width * dtype_bytes(s->y.dtype);
    const int64_t floats = t->sums * t->width, stride = p.all - p.sum;
    const int64_t slice = stride / s->token_slices.count;
    for (int i = 0; i < s->token_slices.count; ++i) {
        const int64_t token = first_token(s, i), count = first_token(s, i + 1) - token;
        const TokenRows rows = {.x = p.x,
                                .dy = p.dy,
                                .saved = p.saved,
                                .rows = s->y.shape.dim[0] * count,
                                .real = run->sample_count * count};
        copy_tokens(op, p.dy, run->dy, token, count, row);
        if (t->reads_x) copy_tokens(op, p.x, run->x[0], token, count, row);
        if (t->saved)
            copy_tokens(op, p.saved, run->saved, token, count, (size_t)t->saved * sizeof(float));
        t->sum(op, &rows, p.sum + i * slice, p.partial);
    }
    join(op, p.sum, s->token_slices.count, slice, floats);
    float *sum = p.sum;
    const int ranks = s->token_slices.total / s->token_slices.count;
    if (ranks > 1) {
        const Slices each = {
            .ranges = 1, .items = ranks, .item_elements = floats, .type = DTYPE_F32};
        run->exchange->all_gather(run->exchange, each, sum, p.all);
        sum = p.all;
        join(op, sum, ranks, floats, floats);
    }
    for (int i = 0; i < t->sums; ++i)
        CUDA_CALL(cudaMemcpyAsync(run->dw[first + i], sum + i * t->width,
                                  (size_t)t->width * sizeof(float), cudaMemcpyDeviceToDevice,
                                  cuda_stream(op)));
}

static void sum_bias(const Op *op, const TokenRows *rows, float *out, float *partial)
{
    const int64_t width = op->spec.y.shape.dim[2];
    cuda_check(launch_column_sum(cuda_stream(op), op->spec.y.dtype, out, partial, rows->dy,
                                 rows->rows, width, width),
               "kernel column_sum");
}

TokenSums cuda_token_bias(const Op *op)
{
    const OpSpec *s = &op->spec;
    int64_t width = s->y.shape.dim[s->y.shape.ndim - 1], most = 0;
    for (int i = 0; i < s->token_slices.count; ++i) {
        const int64_t rows = (first_token(s, i + 1) - first_token(s, i)) * s->y.shape.dim[0];
        const int64_t parts = cuda_sum_parts(s->y.dtype, rows, width);
        if (parts > most) most = parts;
    }
    return (TokenSums){.sums = 1, .width = width, .partial = most * width, .sum = sum_bias};
}
