/* Computes the sums of token_sums.h in three steps: threads add up the rows of each part; the parts
 * of each slice are added; the slices of all ranks are joined by the tree. */
#include "token_sums.h"

#include <string.h>

/* Maximum number of parts into which the rows of all ranks are divided. If there are more slices
 * than this, each slice is one part. */
enum { PARTS_MAX = 32 };

/* Returns the index of a slice's first token among this rank's tokens of a sequence. */
static int64_t first_token(const TokenSums *t, int64_t slice)
{
    const SumSlices *cut = &t->cut;
    if (cut->total == 0) return slice * t->tokens;
    return slice_first(cut->units, cut->total, cut->first + (int)slice) -
           slice_first(cut->units, cut->total, cut->first);
}

/* Returns the number of parts of a slice; each part has at least one row. */
static int64_t parts_of(const TokenSums *t, int64_t slice)
{
    const int64_t rows = t->samples * (first_token(t, slice + 1) - first_token(t, slice));
    return rows < t->parts ? rows : t->parts;
}

TokenSums token_sums_plan(const SumSlices *cut, Shape y, int sums)
{
    TokenSums t = {.cut = *cut, .samples = y.dim[0], .width = y.dim[y.ndim - 1], .sums = sums};
    t.tokens = shape_count(y) / t.samples / t.width;
    t.slices = cut->total > 0 ? cut->count : 1;
    t.parts = cut->total > 0 ? PARTS_MAX / cut->total : PARTS_MAX;
    if (t.parts == 0) t.parts = 1;
    return t;
}

static int64_t floats_of_sums(const TokenSums *t)
{
    return t->sums * t->width;
}

size_t token_sums_bytes(const TokenSums *t)
{
    const int64_t ranks = t->cut.total > 0 ? t->cut.total / t->cut.count : 1;
    return (size_t)((t->slices * t->parts + ranks) * floats_of_sums(t)) * sizeof(float);
}

typedef struct PartsTask {
    const TokenSums *t;
    const OpRun *run;
    TokenRow add;
    const void *task;
    float *work;
} PartsTask;

static float *part_at(const PartsTask *p, int64_t slice, int64_t part)
{
    return p->work + (slice * p->t->parts + part) * floats_of_sums(p->t);
}

/* An item of work_run is a part of a slice. */
static void parts_body(const void *task, int64_t begin, int64_t end)
{
    const PartsTask *p = task;
    const TokenSums *t = p->t;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t slice = i / t->parts, part = i % t->parts, parts = parts_of(t, slice);
        const int64_t token = first_token(t, slice), tokens = first_token(t, slice + 1) - token;
        float *sum = part_at(p, slice, part);
        if (part >= parts) continue;
        memset(sum, 0, (size_t)floats_of_sums(t) * sizeof *sum);
        const int64_t rows = t->samples * tokens, real = p->run->sample_count * tokens;
        const int64_t last = rows * (part + 1) / parts;
        for (int64_t r = rows * part / parts; r < last && r < real; ++r)
            p->add(p->task, r / tokens * t->tokens + token + r % tokens, sum);
    }
}

/* An item of work_run is SIMD_LANES floats of the sums. Adds the parts of each slice to the first
 * part of the slice, in order. */
static void slices_body(const void *task, int64_t begin, int64_t end)
{
    const PartsTask *p = task;
    const int64_t floats = floats_of_sums(p->t), from = begin * SIMD_LANES;
    const int64_t to = end * SIMD_LANES < floats ? end * SIMD_LANES : floats;
    for (int64_t slice = 0; slice < p->t->slices; ++slice) {
        /* turns -0 into 0, so that the sum has the same bits as a sum that begins with 0 */
        float *sum = part_at(p, slice, 0) + from;
        for (int64_t i = 0; i < to - from; ++i) sum[i] += 0.0f;
        for (int64_t part = 1; part < parts_of(p->t, slice); ++part)
            simd_table(DTYPE_F32)->add_into(sum, part_at(p, slice, part) + from, to - from);
    }
}

/* Adds `count` vectors by the tree of neighbours; the sum replaces the first vector. count: a power
 * of two. Vectors have n floats and begin `stride` floats apart. */
static void join_tree(float *first, int64_t count, int64_t stride, int64_t n)
{
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i < count; i += 2 * step)
            simd_table(DTYPE_F32)->add_into(first + i * stride, first + (i + step) * stride, n);
}

void token_sums_run(const TokenSums *t, const OpRun *run, TokenRow add, const void *task,
                    float *work, int first)
{
    const PartsTask p = {.t = t, .run = run, .add = add, .task = task, .work = work};
    const int64_t floats = floats_of_sums(t), size = t->samples * t->tokens * t->width;
    float *sum = work;
    work_run(parts_body, &p, t->slices * t->parts, size);
    work_run(slices_body, &p, (floats + SIMD_LANES - 1) / SIMD_LANES,
             t->slices * t->parts * floats);
    join_tree(sum, t->slices, t->parts * floats, floats);
    if (t->cut.total > t->cut.count) {
        const Exchange *x = run->exchange;
        float *all = work + t->slices * t->parts * floats;
        x->all_gather(
            x, (Slices){.ranges = 1, .items = x->size, .item_elements = floats, .type = DTYPE_F32},
            sum, all);
        join_tree(all, x->size, floats, floats);
        sum = all;
    }
    for (int i = 0; i < t->sums; ++i)
        memcpy(run->dw[first + i], sum + i * t->width, (size_t)t->width * sizeof *sum);
}
