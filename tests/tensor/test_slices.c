/* Sums in slices: the ranks of a tensor group of any size compute the same bits as one rank, if
 * their parts of a sum are joined by the binary tree. Each case runs a dense layer whole, then
 * divided by its inputs or its outputs among 2, 4 and 8 ranks. */
#include "reference.h"

#include "harness.h"

#include <math.h>

enum { SLICES = 8 };

typedef struct Dense {
    int64_t rows, in, out;
    /* the divided dimension: units of its first part and of each other part, ratio of their sizes,
     * and number of parts */
    int64_t units, others, lead;
    int parts, slices;
    bool inputs, bias, relu;
    /* bf16, else fp32 */
    bool half;
} Dense;

/* Tensors of a layer, in plain order. */
typedef struct Tensors {
    int64_t rows, in, out;
    float *x, *w, *b, *y, *dx, *dw, *db, *dy;
} Tensors;

static float *floats(int64_t n)
{
    return mem_new((size_t)n * sizeof(float));
}

static Tensors tensors_new(int64_t rows, int64_t in, int64_t out)
{
    return (Tensors){.rows = rows,
                     .in = in,
                     .out = out,
                     .x = floats(rows * in),
                     .w = floats(in * out),
                     .b = floats(out),
                     .y = floats(rows * out),
                     .dx = floats(rows * in),
                     .dw = floats(in * out),
                     .db = floats(out),
                     .dy = floats(rows * out)};
}

static void tensors_free(Tensors *t)
{
    float **const all[] = {&t->x, &t->w, &t->b, &t->y, &t->dx, &t->dw, &t->db, &t->dy};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) mem_free(all[i]);
}

static float rounded(float value)
{
    return bf16_value(bf16_of(value));
}

/* Converts n floats to a tensor of the type, or back, in place. */
static void convert(float *x, int64_t n, DType type, bool back)
{
    Bf16 *half = (Bf16 *)(void *)x;
    if (type == DTYPE_F32) return;
    for (int64_t i = 0; i < n && !back; ++i) half[i] = bf16_of(x[i]);
    for (int64_t i = n - 1; i >= 0 && back; --i) x[i] = bf16_value(half[i]);
}

/* Runs the part of the layer whose tensors are t, as rank `rank` of `ranks`. */
static void run(Backend *backend, const Dense *d, Tensors *t, int rank, int ranks)
{
    const bool bias = d->bias && !(d->inputs && ranks > 1);
    OpSpec s = {.kind = OP_DENSE,
                .x_count = 1,
                .w_count = 1 + bias,
                .need_dx = {true},
                .act = d->relu && ranks == 1 ? ACT_RELU : ACT_NONE,
                .slices_inputs = d->inputs,
                .slices = {.total = d->slices,
                           .first = d->slices / ranks * rank,
                           .count = d->slices / ranks,
                           .units = d->units,
                           .other_units = d->others,
                           .first_unit_ratio = d->lead,
                           .parts = d->parts}};
    s.x[0] = desc_plain(shape_of(2, t->rows, t->in, 1, 1), DTYPE_F32);
    s.w[0] = shape_of(2, t->out, t->in, 1, 1);
    s.w[1] = shape_of(1, t->out, 1, 1, 1);
    s.y = desc_plain(shape_of(2, t->rows, t->out, 1, 1), DTYPE_F32);
    RefOp r;
    float *w[SPEC_PARAMS] = {t->w, t->b}, *dw[SPEC_PARAMS] = {t->dw, t->db};
    CHECK_OK(ref_op_new(&r, backend, &s));
    if (!r.op) return;
    const DType x = s.x[0].dtype, y = s.y.dtype;
    const int64_t x_count = t->rows * t->in, y_count = t->rows * t->out;
    /* where an exchange adds parts of sums, they are in fp32 */
    CU_ASSERT_EQUAL(x, !d->half || (ranks > 1 && !d->inputs) ? DTYPE_F32 : DTYPE_BF16);
    CU_ASSERT_EQUAL(y, !d->half || (ranks > 1 && d->inputs) ? DTYPE_F32 : DTYPE_BF16);
    convert(t->x, x_count, x, false);
    convert(t->dy, y_count, y, false);
    ref_op_forward(&r, t->x, w, t->y);
    ref_op_backward(&r, t->dy, t->dx, dw);
    convert(t->x, x_count, x, true);
    convert(t->dy, y_count, y, true);
    convert(t->y, y_count, y, true);
    convert(t->dx, x_count, x, true);
    ref_op_free(&r);
}

/* Lists the rank's indices of the divided dimension, which has `size` elements; returns how
 * many. */
static int64_t indices(const Dense *d, int64_t size, int rank, int ranks, int64_t *index)
{
    const int64_t width = size / (d->units * d->lead + d->others * (d->parts - 1));
    int64_t n = 0, begin = 0;
    for (int part = 0; part < d->parts; ++part) {
        const int64_t units = part ? d->others : d->units, unit = width * (part ? 1 : d->lead);
        const int64_t first = slice_first(units, ranks, rank);
        const int64_t end = slice_first(units, ranks, rank + 1);
        for (int64_t i = first * unit; i < end * unit; ++i) index[n++] = begin + i;
        begin += units * unit;
    }
    return n;
}

/* Copies columns index[0..n-1] of a matrix with `width` columns to `part`, or compares them.
 * Returns the number of columns' elements that differ. */
static int64_t columns(float *part, const float *whole, int64_t rows, int64_t width,
                       const int64_t *index, int64_t n, bool compare)
{
    int64_t differ = 0;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) {
            const float *from = whole + r * width + index[i];
            if (compare)
                differ += memcmp(&part[r * n + i], from, sizeof *from) != 0;
            else
                part[r * n + i] = *from;
        }
    return differ;
}

/* The same for rows. */
static int64_t matrix_rows(float *part, const float *whole, int64_t width, const int64_t *index,
                           int64_t n, bool compare)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float *from = whole + index[i] * width;
        if (compare)
            differ += memcmp(part + i * width, from, (size_t)width * sizeof *from) != 0;
        else
            memcpy(part + i * width, from, (size_t)width * sizeof *from);
    }
    return differ;
}

/* Joins the ranks' parts of n sums by the binary tree; the result is in part[0]. */
static void join(float *const *part, int ranks, int64_t n)
{
    for (int step = 1; step < ranks; step *= 2)
        for (int r = 0; r < ranks; r += 2 * step)
            for (int64_t i = 0; i < n; ++i) part[r][i] += part[r + step][i];
}

static void check_ranks(Backend *backend, const Dense *d, Tensors *whole, int ranks)
{
    const int64_t size = d->inputs ? d->in : d->out, rows = d->rows;
    int64_t *index = mem_new((size_t)size * sizeof *index), differ = 0;
    Tensors t[SLICES];
    float *part[SLICES];
    for (int r = 0; r < ranks; ++r) {
        const int64_t n = indices(d, size, r, ranks, index);
        t[r] = tensors_new(rows, d->inputs ? n : d->in, d->inputs ? d->out : n);
        for (int compare = 0; compare < 2; ++compare) {
            if (d->inputs) {
                columns(t[r].x, whole->x, rows, d->in, index, n, false);
                columns(t[r].w, whole->w, d->out, d->in, index, n, false);
                memcpy(t[r].dy, whole->dy, (size_t)(rows * d->out) * sizeof(float));
            } else {
                memcpy(t[r].x, whole->x, (size_t)(rows * d->in) * sizeof(float));
                matrix_rows(t[r].w, whole->w, d->in, index, n, false);
                matrix_rows(t[r].b, whole->b, 1, index, n, false);
                columns(t[r].dy, whole->dy, rows, d->out, index, n, false);
            }
            if (compare == 0) run(backend, d, &t[r], r, ranks);
        }
        if (d->inputs) {
            differ += columns(t[r].dx, whole->dx, rows, d->in, index, n, true);
            differ += columns(t[r].dw, whole->dw, d->out, d->in, index, n, true);
        } else {
            differ += columns(t[r].y, whole->y, rows, d->out, index, n, true);
            differ += matrix_rows(t[r].dw, whole->dw, d->in, index, n, true);
            if (d->bias) differ += matrix_rows(t[r].db, whole->db, 1, index, n, true);
        }
        part[r] = d->inputs ? t[r].y : t[r].dx;
    }
    const int64_t elements = rows * (d->inputs ? d->out : d->in);
    join(part, ranks, elements);
    for (int64_t i = 0; i < elements; ++i) {
        float sum = part[0][i];
        if (d->inputs && d->bias) sum += whole->b[i % d->out];
        if (d->inputs && d->relu && !(sum > 0)) sum = 0;
        if (d->half) sum = rounded(sum);
        differ += memcmp(&sum, (d->inputs ? whole->y : whole->dx) + i, sizeof sum) != 0;
    }
    if (differ)
        printf("  %s, %d rows, %d to %d, %s, %d ranks: %d other bits\n", d->half ? "bf16" : "fp32",
               (int)rows, (int)d->in, (int)d->out, d->inputs ? "inputs" : "outputs", ranks,
               (int)differ);
    CU_ASSERT_EQUAL(differ, 0);
    for (int r = 0; r < ranks; ++r) tensors_free(&t[r]);
    mem_free(&index);
}

/* The whole layer's results are also those of sums in double. */
static void check_values(const Dense *d, const Tensors *t)
{
    double error = 0;
    for (int64_t r = 0; r < d->rows; r += 7)
        for (int64_t o = 0; o < d->out; o += 5) {
            double sum = d->bias ? (double)t->b[o] : 0;
            for (int64_t i = 0; i < d->in; ++i)
                sum += (double)t->x[r * d->in + i] *
                       (double)(d->half ? rounded(t->w[o * d->in + i]) : t->w[o * d->in + i]);
            if (d->relu && sum < 0) sum = 0;
            const double ulp = d->half ? fabs(sum) / 256 : 0;
            error = fmax(error, fabs(sum - (double)t->y[r * d->out + o]) - ulp);
        }
    CU_ASSERT(error < 2e-4);
}

static void check(const Dense *d)
{
    Backend *backend;
    Tensors whole = tensors_new(d->rows, d->in, d->out);
    CHECK_OK(backend_open(
        &backend, &backend_cpu,
        (BackendOptions){.threads = 2, .precision = d->half ? DTYPE_BF16 : DTYPE_F32}));
    ref_random(whole.x, d->rows * d->in, 1);
    ref_random(whole.w, d->in * d->out, 2);
    ref_random(whole.b, d->out, 3);
    ref_random(whole.dy, d->rows * d->out, 4);
    for (int64_t i = 0; d->half && i < d->rows * d->in; ++i) whole.x[i] = rounded(whole.x[i]);
    for (int64_t i = 0; d->half && i < d->rows * d->out; ++i) whole.dy[i] = rounded(whole.dy[i]);
    float *dy = floats(d->rows * d->out);
    memcpy(dy, whole.dy, (size_t)(d->rows * d->out) * sizeof *dy);
    run(backend, d, &whole, 0, 1);
    /* a divided layer has no activation of its own */
    for (int64_t i = 0; i < d->rows * d->out; ++i)
        whole.dy[i] = d->relu && whole.y[i] <= 0 ? 0 : dy[i];
    check_values(d, &whole);
    for (int ranks = 2; ranks <= d->slices; ranks *= 2)
        if (ranks <= SLICES) check_ranks(backend, d, &whole, ranks);
    mem_free(&dy);
    tensors_free(&whole);
    backend_close(&backend);
}

static void check_sizes(const int64_t *rows, size_t count, bool half)
{
    static const struct {
        int64_t in, out;
    } size[] = {{20, 16}, {64, 24}, {300, 40}, {1100, 96}, {96, 800}};
    for (size_t r = 0; r < count; ++r)
        for (size_t k = 0; k < sizeof size / sizeof *size; ++k)
            for (int inputs = 0; inputs < 2; ++inputs) {
                const int64_t in = size[k].in, out = size[k].out;
                const bool odd = (r + k) & 1;
                check(&(Dense){.rows = rows[r],
                               .in = in,
                               .out = out,
                               .units = inputs ? in : out,
                               .lead = 1,
                               .parts = 1,
                               .slices = SLICES,
                               .inputs = inputs,
                               .bias = odd,
                               .relu = inputs && odd,
                               .half = half});
            }
}

static void test_dense(void)
{
    static const int64_t rows[] = {1, 3, 8, 9, 17, 40, 130, 270};
    check_sizes(rows, sizeof rows / sizeof *rows, false);
}

/* Where this processor has bf16. */
static bool has_bf16(void)
{
    Backend *backend = NULL;
    const BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    if (backend_open(&backend, &backend_cpu, options) != OK) {
        printf("  skipped: %s\n", fail_message());
        return false;
    }
    backend_close(&backend);
    return true;
}

static void test_bf16(void)
{
    static const int64_t rows[] = {1, 9, 270};
    if (has_bf16()) check_sizes(rows, sizeof rows / sizeof *rows, true);
}

/* Queries, keys and values of 6 heads of 8 in 4 slices; 2 heads of queries for each of 8 heads of
 * keys; both halves of swiglu; 8 or 14 heads of queries, and the columns of 2 heads of keys that
 * they share. */
static void test_parts(void)
{
    static const Dense cases[] = {
        {50, 48, 144, .units = 6, .others = 6, .lead = 1, .parts = 3, .slices = 4},
        {50, 128, 32 * 16, .units = 8, .others = 8, .lead = 2, .parts = 3, .slices = 8},
        {300, 64, 2 * 777, .units = 777, .others = 777, .lead = 1, .parts = 2, .slices = 8},
        {5, 64, 2 * 21, .units = 21, .others = 21, .lead = 1, .parts = 2, .slices = 4},
        {50, 64, 12 * 16, .units = 8, .others = 32, .lead = 16, .parts = 3, .slices = 8},
        {130, 64, 18 * 12, .units = 14, .others = 24, .lead = 12, .parts = 3, .slices = 8},
    };
    const bool both = has_bf16();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int half = 0; half < 1 + both; ++half) {
            Dense d = cases[i];
            d.half = half;
            check(&d);
        }
}

TEST_MAIN("slices", {"dense layers", test_dense}, {"bf16", test_bf16},
          {"parts of a layer", test_parts})
