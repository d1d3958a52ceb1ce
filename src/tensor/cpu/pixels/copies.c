/* Images whose pixels are copies of pixels of another image, and their gradients. An item of
 * work_run is one row of one channel group of one sample: a row of y in forward, a row of x in
 * backward. */
#include "copies.h"

#include <string.h>

/* The copies in one dimension. A place is a row or a column. */
typedef struct CopyMap {
    /* number of places of x */
    int64_t x;
    /* number of places of y */
    int64_t y;
    /* for each place of y, the place of x that it copies; -1: none */
    int64_t *source;
    /* for each place i of y, the number of places from i on whose sources are consecutive places of
     * x, or all of which have no source */
    int64_t *follow_count;
    /* the places of y that copy place i of x, in ascending order, are copy[first[i]] to
     * copy[first[i + 1] - 1] */
    int64_t *first, *copy;
    /* for each place i of x, the number of places from i on for which copies_follow holds from each
     * place to the next */
    int64_t *run_count;
} CopyMap;

/* map[0]: rows; map[1]: columns. memory: the arrays of both; owned */
struct Copies {
    CopyMap map[2];
    int64_t *memory;
};

/* Returns whether places i and i + 1 of x have the same number of copies, and copy k of place i + 1
 * comes directly after copy k of place i, for every k. */
static bool copies_follow(const CopyMap *m, int64_t i)
{
    const int64_t count = m->first[i + 1] - m->first[i];
    if (m->first[i + 2] - m->first[i + 1] != count) return false;
    for (int64_t k = 0; k < count; ++k)
        if (m->copy[m->first[i + 1] + k] != m->copy[m->first[i] + k] + 1) return false;
    return true;
}

/* Fills *m for dimension d, with its arrays in `memory`. Returns the memory after them. source: see
 * CopySource. */
static int64_t *map_fill(CopyMap *m, const OpSpec *s, CopySource source, int d, int64_t *memory)
{
    m->x = s->x[0].shape.dim[2 + d];
    m->y = s->y.shape.dim[2 + d];
    m->source = memory;
    m->follow_count = m->source + m->y;
    m->copy = m->follow_count + m->y;
    m->first = m->copy + m->y;
    m->run_count = m->first + m->x + 1;
    for (int64_t at = 0; at < m->y; ++at) m->source[at] = source(s, d, at);
    for (int64_t at = m->y - 1; at >= 0; --at) {
        const int64_t next = m->source[at] < 0 ? -1 : m->source[at] + 1;
        const bool follows = at + 1 < m->y && m->source[at + 1] == next;
        m->follow_count[at] = follows ? m->follow_count[at + 1] + 1 : 1;
    }
    for (int64_t at = 0; at < m->y; ++at)
        if (m->source[at] >= 0) ++m->first[m->source[at] + 1];
    for (int64_t i = 0; i < m->x; ++i) m->first[i + 1] += m->first[i];
    /* until the copies are filled, run_count[i] is the index of the next free entry of place i in
     * `copy` */
    memcpy(m->run_count, m->first, (size_t)m->x * sizeof *m->run_count);
    for (int64_t at = 0; at < m->y; ++at)
        if (m->source[at] >= 0) m->copy[m->run_count[m->source[at]]++] = at;
    for (int64_t i = m->x - 1; i >= 0; --i)
        m->run_count[i] = i + 1 < m->x && copies_follow(m, i) ? m->run_count[i + 1] + 1 : 1;
    return m->run_count + m->x;
}

Copies *copies_new(const OpSpec *spec, CopySource source)
{
    Copies *c = mem_new(sizeof *c);
    const int64_t *x = spec->x[0].shape.dim, *y = spec->y.shape.dim;
    const int64_t numbers = 2 * (x[2] + x[3] + 1) + 3 * (y[2] + y[3]);
    int64_t *next = c->memory = mem_new((size_t)numbers * sizeof *next);
    for (int d = 0; d < 2; ++d) next = map_fill(&c->map[d], spec, source, d, next);
    return c;
}

void copies_free(Copies **copies)
{
    if (*copies) mem_free(&(*copies)->memory);
    mem_free(copies);
}

typedef struct CopyTask {
    const CopyMap *rows, *columns;
    DType type;
    /* elements of a pixel */
    int64_t block;
    /* x, or in backward dy */
    const void *from;
    /* y, or in backward dx */
    void *to;
} CopyTask;

/* Writes a row of y from its source, a row of x. */
static void copy_row(const CopyTask *t, const char *x, char *y)
{
    const CopyMap *columns = t->columns;
    const size_t pixel = (size_t)t->block * dtype_bytes(t->type);
    for (int64_t j = 0; j < columns->y; j += columns->follow_count[j]) {
        const size_t bytes = (size_t)columns->follow_count[j] * pixel;
        if (columns->source[j] < 0)
            memset(y + (size_t)j * pixel, 0, bytes);
        else
            memcpy(y + (size_t)j * pixel, x + (size_t)columns->source[j] * pixel, bytes);
    }
}

/* An item of work_run is a row of y. If a row has the same source as the row above it, it is copied
 * from that row. */
static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const CopyTask *t = task;
    const CopyMap *rows = t->rows;
    const size_t pixel = (size_t)t->block * dtype_bytes(t->type);
    const size_t x_row = (size_t)t->columns->x * pixel, y_row = (size_t)t->columns->y * pixel;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t at = item % rows->y, row = rows->source[at];
        char *y = (char *)t->to + (size_t)item * y_row;
        if (row < 0)
            memset(y, 0, y_row);
        else if (item > begin && at > 0 && rows->source[at - 1] == row)
            memcpy(y, y - y_row, y_row);
        else
            copy_row(t, (const char *)t->from + (size_t)(item / rows->y * rows->x + row) * x_row,
                     y);
    }
}

/* Writes n elements of dx, from pixel (i, j) on: for each pixel, the sum of dy over all its copies.
 * The pixels must be consecutive in the sense of copies_follow. dy: the plane that has the
 * copies. */
static void sum_copies(const CopyTask *t, const void *dy, int64_t i, int64_t j, void *dx, int64_t n)
{
    enum { LANES = 256 };
    const SimdTable *simd = simd_table(t->type);
    const CopyMap *rows = t->rows, *columns = t->columns;
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

/* An item of work_run is a row of dx. */
static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const CopyTask *t = task;
    const CopyMap *rows = t->rows, *columns = t->columns;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t plane = item / rows->x * rows->y * columns->y * t->block;
        const void *dy = element_at(t->from, plane, t->type);
        for (int64_t j = 0; j < columns->x; j += columns->run_count[j])
            sum_copies(t, dy, item % rows->x, j,
                       element_out(t->to, (item * columns->x + j) * t->block, t->type),
                       columns->run_count[j] * t->block);
    }
}

static CopyTask task_of(const Copies *c, const OpSpec *s, const void *from, void *to)
{
    return (CopyTask){.rows = &c->map[0],
                      .columns = &c->map[1],
                      .type = s->y.dtype,
                      .block = s->y.block,
                      .from = from,
                      .to = to};
}

void copies_forward(const Copies *c, const Op *op, const OpRun *run)
{
    const View v = view_of(op->spec.y);
    const CopyTask t = task_of(c, &op->spec, run->x[0], run->y);
    work_run(forward_body, &t, v.n * v.groups * t.rows->y, v.n * v.sample);
}

void copies_backward(const Copies *c, const Op *op, const OpRun *run)
{
    if (!run->dx[0]) return;
    const View v = view_of(op->spec.x[0]);
    const CopyTask t = task_of(c, &op->spec, run->dy, run->dx[0]);
    work_run(grad_body, &t, v.n * v.groups * t.rows->x, v.n * v.sample);
}
