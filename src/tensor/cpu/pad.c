/* pad in the layout of its input: rows and columns around an image, or fewer of them. An item is a
 * row of one channel group of one sample, of y in forward and of x in backward. The gradient of a
 * pixel is the sum over its copies, row by row, from left to right. */
#include "view.h"

#include <string.h>

static Status pad_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape y;
    if (s->x[0].shape.ndim != 4) return fail(ERR_CONFIG, "pad: the input is no image");
    TRY(padding_shape(s, "pad", &y));
    if (shape_equal(y, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "pad: output %s, expected %s", shape_text(s->y.shape, a),
                shape_text(y, b));
}

/* y[n][c][i][j] = x[n][c][source of i][source of j], 0 without a source (padding_source). */
const OpInfo info_pad = {
    .name = "pad",
    .check = pad_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .talks = TALKS_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
};

/* The copies in one dimension. */
typedef struct PadMap {
    /* sizes of x and y */
    int64_t x, y;
    /* for each place of y its source in x; -1: none */
    int64_t *source;
    /* the number of places of y from each on that are copies of neighbours, in order, or have no
     * source */
    int64_t *follow;
    /* copies of place i of x, ascending: copy[first[i]] .. copy[first[i + 1] - 1] */
    int64_t *first, *copy;
    /* the number of places of x from i on whose copies are neighbours of i's copies, in order */
    int64_t *run;
} PadMap;

/* rows, columns; owns memory */
typedef struct Pad {
    PadMap map[2];
    int64_t *memory;
} Pad;

static bool copies_follow(const PadMap *m, int64_t i)
{
    const int64_t count = m->first[i + 1] - m->first[i];
    if (m->first[i + 2] - m->first[i + 1] != count) return false;
    for (int64_t k = 0; k < count; ++k)
        if (m->copy[m->first[i + 1] + k] != m->copy[m->first[i] + k] + 1) return false;
    return true;
}

/* Fills the map of dimension d in `memory`; returns the memory after it. */
static int64_t *map_fill(PadMap *m, const OpSpec *s, int d, int64_t *memory)
{
    m->x = s->x[0].shape.dim[2 + d];
    m->y = s->y.shape.dim[2 + d];
    m->source = memory;
    m->follow = m->source + m->y;
    m->copy = m->follow + m->y;
    m->first = m->copy + m->y;
    m->run = m->first + m->x + 1;
    for (int64_t at = 0; at < m->y; ++at) m->source[at] = padding_source(s, d, at);
    for (int64_t at = m->y - 1; at >= 0; --at) {
        const int64_t next = m->source[at] < 0 ? -1 : m->source[at] + 1;
        const bool follows = at + 1 < m->y && m->source[at + 1] == next;
        m->follow[at] = follows ? m->follow[at + 1] + 1 : 1;
    }
    int64_t copies = 0;
    for (int64_t i = 0; i < m->x; ++i) {
        m->first[i] = copies;
        for (int64_t at = 0; at < m->y; ++at)
            if (m->source[at] == i) m->copy[copies++] = at;
    }
    m->first[m->x] = copies;
    for (int64_t i = m->x - 1; i >= 0; --i)
        m->run[i] = i + 1 < m->x && copies_follow(m, i) ? m->run[i + 1] + 1 : 1;
    return m->run + m->x;
}

static Status pad_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Pad *p = op->impl = mem_new(sizeof *p);
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    const int64_t numbers = 2 * (x[2] + x[3] + 1) + 3 * (y[2] + y[3]);
    int64_t *next = p->memory = mem_new((size_t)numbers * sizeof *next);
    for (int d = 0; d < 2; ++d) next = map_fill(&p->map[d], s, d, next);
    preferred[0] = in_precision(op, s->x[0]);
    s->y.block = s->x[0].block;
    s->y.dtype = preferred[0].dtype;
    return OK;
}

static void pad_free(Op *op)
{
    Pad *p = op->impl;
    if (p) mem_free(&p->memory);
    mem_free(&op->impl);
}

typedef struct PadTask {
    const PadMap *rows, *columns;
    DType type;
    /* elements of a pixel */
    int64_t block;
    const void *from;
    void *to;
} PadTask;

/* Items are rows of y. */
static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const PadTask *t = task;
    const PadMap *rows = t->rows, *columns = t->columns;
    const size_t pixel = (size_t)t->block * dtype_bytes(t->type);
    for (int64_t item = begin; item < end; ++item) {
        const int64_t row = rows->source[item % rows->y];
        const int64_t line = item / rows->y * rows->x + row;
        const char *x = (const char *)t->from + (size_t)(line * columns->x) * pixel;
        char *y = (char *)t->to + (size_t)(item * columns->y) * pixel;
        if (row < 0) {
            memset(y, 0, (size_t)columns->y * pixel);
            continue;
        }
        for (int64_t j = 0; j < columns->y; j += columns->follow[j]) {
            const size_t bytes = (size_t)columns->follow[j] * pixel;
            if (columns->source[j] < 0)
                memset(y + (size_t)j * pixel, 0, bytes);
            else
                memcpy(y + (size_t)j * pixel, x + (size_t)columns->source[j] * pixel, bytes);
        }
    }
}

/* Writes n elements of dx, the sums over the copies of row i and of columns j, j + 1, ... dy: the
 * plane that has the copies. */
static void sum_copies(const PadTask *t, const void *dy, int64_t i, int64_t j, void *dx, int64_t n)
{
    enum { LANES = 256 };
    const SimdTable *simd = simd_table(t->type);
    const PadMap *rows = t->rows, *columns = t->columns;
    float sum[LANES];
    for (int64_t c = 0; c < n; c += LANES) {
        const int64_t lanes = n - c < LANES ? n - c : LANES;
        bool begun = false;
        for (int64_t r = rows->first[i]; r < rows->first[i + 1]; ++r)
            for (int64_t k = columns->first[j]; k < columns->first[j + 1]; ++k) {
                const int64_t at = rows->copy[r] * columns->y + columns->copy[k];
                const void *copy = element_at(dy, at * t->block + c, t->type);
                if (begun)
                    simd->add_into(sum, copy, lanes);
                else
                    simd->to_floats(sum, copy, lanes);
                begun = true;
            }
        if (begun)
            simd->from_floats(element_out(dx, c, t->type), sum, lanes);
        else
            elements_zero(element_out(dx, c, t->type), lanes, t->type);
    }
}

/* Items are rows of x. */
static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const PadTask *t = task;
    const PadMap *rows = t->rows, *columns = t->columns;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t plane = item / rows->x * rows->y * columns->y * t->block;
        const void *dy = element_at(t->from, plane, t->type);
        for (int64_t j = 0; j < columns->x; j += columns->run[j])
            sum_copies(t, dy, item % rows->x, j,
                       element_out(t->to, (item * columns->x + j) * t->block, t->type),
                       columns->run[j] * t->block);
    }
}

static PadTask pad_task(const Op *op, const void *from, void *to)
{
    const Pad *p = op->impl;
    return (PadTask){.rows = &p->map[0],
                     .columns = &p->map[1],
                     .type = op->spec.y.dtype,
                     .block = op->spec.y.block,
                     .from = from,
                     .to = to};
}

static void pad_forward(Op *op, const OpRun *run)
{
    const View v = view_of(op->spec.y);
    const PadTask t = pad_task(op, run->x[0], run->y);
    work_run(forward_body, &t, v.n * v.groups * t.rows->y, v.n * v.sample);
}

static void pad_backward_data(Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const View v = view_of(op->spec.x[0]);
    const PadTask t = pad_task(op, run->dy, run->dx[0]);
    work_run(grad_body, &t, v.n * v.groups * t.rows->x, v.n * v.sample);
}

const OpTable cpu_pad = {
    .name = "pad",
    .plan = pad_plan,
    .forward = pad_forward,
    .backward_data = pad_backward_data,
    .free = pad_free,
};
