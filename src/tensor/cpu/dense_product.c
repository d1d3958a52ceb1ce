/* Maps each direction of a dense layer to a matrix product, and divides the product's result into
 * parts for threads (dense_product.h). */
#include "dense_product.h"
#include "simd/simd.h"

#include <omp.h>

struct DenseRun {
    DenseSpec spec;
    /* number of parts into which the result is divided along its rows and along its columns */
    int64_t row_parts, column_parts;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns the product's sizes: rows (m) and columns (n) of the result, terms of each sum (k). */
static DenseProduct shape_of_product(const DenseSpec *s)
{
    switch (s->kind) {
    case KERNEL_DENSE_FORWARD:
        return (DenseProduct){.m = s->rows, .n = s->out, .k = s->in};
    case KERNEL_DENSE_DATA:
        return (DenseProduct){.m = s->rows, .n = s->in, .k = s->out};
    default:
        return (DenseProduct){.m = s->out, .n = s->in, .k = s->rows};
    }
}

/* Returns where part number `part` begins if `size` elements, `units` units of `unit` each, are
 * divided into `parts` parts. */
static int64_t part_begin(int64_t units, int64_t part, int64_t parts, int64_t unit, int64_t size)
{
    int64_t begin = units * part / parts * unit;
    return begin < size ? begin : size;
}

/* Chooses the division that gives the busiest thread the least work. The work is its multiply-adds,
 * and the elements of a and b that it copies, each of which counts as DENSE_COLUMNS
 * multiply-adds. */
static void divide(DenseRun *d, const DenseProduct *p)
{
    double best = 0;
    const int64_t threads = d->spec.threads;
    for (int64_t across = 1; across <= threads; ++across) {
        if (threads % across) continue;
        const int64_t down = threads / across;
        double rows = (double)ceil_div(ceil_div(p->m, DENSE_ROWS), down) * DENSE_ROWS;
        double columns = (double)ceil_div(ceil_div(p->n, DENSE_COLUMNS), across) * DENSE_COLUMNS;
        double cost = rows * columns + DENSE_COLUMNS * (rows + columns);
        if (across > 1 && cost >= best) continue;
        best = cost;
        d->column_parts = across;
        d->row_parts = down;
    }
}

DenseRun *dense_product_new(const DenseSpec *spec)
{
    DenseRun *d = mem_new(sizeof *d);
    d->spec = *spec;
    const DenseProduct shape = shape_of_product(spec);
    divide(d, &shape);
    return d;
}

void dense_product_free(DenseRun **run)
{
    mem_free(run);
}

size_t dense_product_scratch_bytes(const DenseRun *d)
{
    return d->spec.rows > DENSE_FEW ? (size_t)d->spec.threads * DENSE_SCRATCH * sizeof(float) : 0;
}

static DenseProduct product_of(const DenseSpec *s, void *const data[ROLES])
{
    DenseProduct p = shape_of_product(s);
    switch (s->kind) {
    case KERNEL_DENSE_FORWARD:
        p.out = data[ROLE_Y];
        p.a = data[ROLE_X];
        p.b = data[ROLE_W];
        p.bias = data[ROLE_B];
        p.relu = s->relu;
        p.a_row = p.b_col = s->in;
        p.a_col = p.b_row = 1;
        break;
    case KERNEL_DENSE_DATA:
        p.out = data[ROLE_X];
        p.a = data[ROLE_Y];
        p.b = data[ROLE_W];
        p.a_row = s->out;
        p.b_row = s->in;
        p.a_col = p.b_col = 1;
        break;
    default:
        p.out = data[ROLE_W];
        p.a = data[ROLE_Y];
        p.b = data[ROLE_X];
        p.a_col = s->out;
        p.b_row = s->in;
        p.a_row = p.b_col = 1;
    }
    return p;
}

void dense_product_run(const DenseRun *d, void *const data[ROLES], void *scratch)
{
    const DenseSpec *s = &d->spec;
    const DenseProduct p = product_of(s, data);
    const int64_t rows = ceil_div(p.m, DENSE_ROWS), columns = ceil_div(p.n, DENSE_COLUMNS);
    const bool bias = s->kind == KERNEL_DENSE_WEIGHT && data[ROLE_B];
#pragma omp parallel num_threads(s->threads) if (s->threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        float *thread_scratch = (float *)scratch + thread * DENSE_SCRATCH;
        for (int64_t i = thread; i < d->row_parts * d->column_parts; i += threads) {
            const int64_t y = i / d->column_parts, x = i % d->column_parts;
            const DensePart part = {
                .row = part_begin(rows, y, d->row_parts, DENSE_ROWS, p.m),
                .row_end = part_begin(rows, y + 1, d->row_parts, DENSE_ROWS, p.m),
                .column = part_begin(columns, x, d->column_parts, DENSE_COLUMNS, p.n),
                .column_end = part_begin(columns, x + 1, d->column_parts, DENSE_COLUMNS, p.n)};
            if (s->rows > DENSE_FEW)
                simd_table(DTYPE_F32)->dense_product(&p, &part, thread_scratch);
            else
                simd_table(DTYPE_F32)->dense_few(&p, &part);
            /* the bias's gradient for the part's rows of dw, which are columns of dy */
            if (bias && x == 0)
                simd_table(DTYPE_F32)->dense_columns(data[ROLE_Y], s->rows, s->out, part.row,
                                                     part.row_end, data[ROLE_B]);
        }
    }
}
