/* bag: adds, averages or concatenates the table rows of a sample's ids: the rows of each field or,
 * with bag_together, the rows of all fields together. In backward, the first id that refers to a
 * row writes the row's gradient, and later ids add to it in order. One thread computes the gradient
 * of a row, so any number of threads gives the same bits. */
#include "view.h"

#include <string.h>

/* Reads OpRun.bag. x (N,...) is the data, of which only N is used. A row of y has one part for each
 * bag (a field, or all fields together): the sum or the mean of the table rows of the bag's ids or,
 * with BAG_CONCAT, bag_ids table rows side by side. */
const OpInfo info_bag = {
    .name = "bag",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_SPARSE_ROWS,
    .reads = READS_IDS,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_NONE,
    .acts = ACTS_NONE,
};

/* number of columns that are summed at a time */
enum { COLUMNS = 128 };
/* number of items in backward; item i computes the gradients of rows r with r % PARTS == i */
enum { PARTS = 64 };

typedef struct Bag {
    int64_t samples;
    /* bags of a sample: one for each field, or one for all fields */
    int64_t bags;
    /* elements of y for one bag */
    int64_t width;
    DType type;
} Bag;

typedef struct BagTask {
    const OpSpec *spec;
    const Bag *bag;
    const OpRun *run;
    const BagInput *ids;
} BagTask;

static Status bag_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    (void)preferred;
    s->y = desc_plain(s->y.shape, op->backend->options.precision);
    Bag *bag = op->impl = mem_new(sizeof *bag);
    bag->samples = s->x[0].shape.dim[0];
    bag->bags = s->bag_together ? 1 : s->bag_fields;
    bag->width = s->y.shape.dim[1] / bag->bags;
    bag->type = s->y.dtype;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

static BagTask task_of(Op *op, const OpRun *run)
{
    if (!run->bag) die("bag: OpRun.bag is NULL: the rows of its ids are missing");
    return (BagTask){
        .spec = &op->spec, .bag = op->impl, .run = run, .ids = &run->bag[op->spec.bag]};
}

/* Sets *from and *to: bag b of sample n has the ids numbered *from .. *to - 1. Ends the job with
 * ERR_DATA if a bag that is concatenated has more than bag_ids ids. */
static void ids_of(const BagTask *t, int64_t n, int64_t b, int32_t *from, int32_t *to)
{
    const int32_t *first = t->ids->first + n * t->spec->bag_fields + b;
    *from = first[0];
    *to = first[t->spec->bag_together ? t->spec->bag_fields : 1];
    if (t->spec->bag_mode == BAG_CONCAT && *to - *from > t->spec->bag_ids)
        die_as(ERR_DATA,
               "layer bag, mode concat: sample %lld of a micro-batch has %d ids in field %lld, but "
               "`ids` of the layer is %d: raise `ids` in model.layers, or use data with fewer ids",
               (long long)n, *to - *from, (long long)(t->spec->bag_first + b), t->spec->bag_ids);
}

/* Returns the values of the table row to which id number `id` of the micro-batch refers. */
static const float *row_values(const BagTask *t, int32_t id)
{
    return t->ids->value + (int64_t)t->ids->at[t->ids->row[id]] * t->spec->row_width;
}

/* Writes to y the table rows of ids number `from` to `to` - 1, one after the other, then zeros. */
static void concatenate_rows(const BagTask *t, char *y, int32_t from, int32_t to)
{
    const int64_t width = t->spec->row_width;
    for (int32_t id = from; id < to; ++id)
        simd_table(t->bag->type)
            ->from_floats(element_out(y, (id - from) * width, t->bag->type), row_values(t, id),
                          width);
    elements_zero(element_out(y, (to - from) * width, t->bag->type),
                  t->bag->width - (to - from) * width, t->bag->type);
}

/* Returns the number by which the sum of the table rows of a bag of `ids` ids is divided. */
static int divisor_of(BagMode mode, int ids)
{
    switch (mode) {
    case BAG_MEAN:
        return ids;
    case BAG_SUM:
    case BAG_CONCAT:
        break;
    }
    return 1;
}

/* Writes to y the sum or the mean of the table rows of ids number `from` to `to` - 1. */
static void add_rows(const BagTask *t, char *y, int32_t from, int32_t to)
{
    if (to - from < 2) {
        concatenate_rows(t, y, from, to);
        return;
    }
    const int divisor = divisor_of(t->spec->bag_mode, to - from);
    float sum[COLUMNS];
    for (int64_t c = 0; c < t->bag->width; c += COLUMNS) {
        const int64_t n = t->bag->width - c < COLUMNS ? t->bag->width - c : COLUMNS;
        memcpy(sum, row_values(t, from) + c, (size_t)n * sizeof *sum);
        for (int32_t id = from + 1; id < to; ++id) {
            const float *row = row_values(t, id) + c;
            for (int64_t i = 0; i < n; ++i) sum[i] += row[i];
        }
        if (divisor != 1)
            for (int64_t i = 0; i < n; ++i) sum[i] /= (float)divisor;
        simd_table(t->bag->type)->from_floats(element_out(y, c, t->bag->type), sum, n);
    }
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const BagTask *t = task;
    for (int64_t i = begin * t->bag->bags; i < end * t->bag->bags; ++i) {
        int32_t from = 0, to = 0;
        char *y = element_out(t->run->y, i * t->bag->width, t->bag->type);
        if (i < t->run->sample_count * t->bag->bags)
            ids_of(t, i / t->bag->bags, i % t->bag->bags, &from, &to);
        (t->spec->bag_mode == BAG_CONCAT ? concatenate_rows : add_rows)(t, y, from, to);
    }
}

static void bag_forward(Op *op, const OpRun *run)
{
    BagTask t = task_of(op, run);
    work_run(forward_body, &t, t.bag->samples, shape_count(op->spec.y.shape));
}

/* Adds one id's gradient to the gradient of its row, or writes it there if the id is the row's
 * first. divisor: number of ids of the bag if the bag is a mean, else 1. */
static void add_row(const BagTask *t, float *grad, const void *dy, bool is_first, int divisor)
{
    const SimdTable *simd = simd_table(t->bag->type);
    const int64_t width = t->spec->row_width;
    if (divisor == 1) {
        (is_first ? simd->to_floats : simd->add_into)(grad, dy, width);
        return;
    }
    float part[COLUMNS];
    for (int64_t c = 0; c < width; c += COLUMNS) {
        const int64_t n = width - c < COLUMNS ? width - c : COLUMNS;
        simd->to_floats(part, element_at(dy, c, t->bag->type), n);
        for (int64_t i = 0; i < n; ++i) part[i] /= (float)divisor;
        for (int64_t i = 0; i < n; ++i) grad[c + i] = is_first ? part[i] : grad[c + i] + part[i];
    }
}

/* An item of work_run is the rows r with r % PARTS equal to the item's number. Rows are numbered in
 * the order in which ids first refer to them. So if `seen` rows have occurred, an id whose row has
 * the number `seen` is the first id of that row. */
static void backward_body(const void *task, int64_t begin, int64_t end)
{
    const BagTask *t = task;
    const int64_t width = t->spec->row_width;
    const bool concat = t->spec->bag_mode == BAG_CONCAT;
    int32_t seen = 0, from, to;
    for (int64_t i = 0; i < t->run->sample_count * t->bag->bags; ++i) {
        const void *dy = element_at(t->run->dy, i * t->bag->width, t->bag->type);
        ids_of(t, i / t->bag->bags, i % t->bag->bags, &from, &to);
        for (int32_t id = from; id < to; ++id) {
            const int32_t row = t->ids->row[id];
            const bool is_first = row == seen;
            seen += is_first;
            if (row % PARTS < begin || row % PARTS >= end) continue;
            add_row(t, t->ids->grad + row * width,
                    concat ? element_at(dy, (id - from) * width, t->bag->type) : dy, is_first,
                    divisor_of(t->spec->bag_mode, to - from));
        }
    }
}

static void bag_backward_weight(Op *op, const OpRun *run)
{
    BagTask t = task_of(op, run);
    const int64_t ids = t.ids->first[run->sample_count * op->spec.bag_fields];
    if (t.ids->grad) work_run(backward_body, &t, PARTS, ids * op->spec.row_width);
}

const OpTable cpu_bag = {
    .name = "bag",
    .plan = bag_plan,
    .forward = bag_forward,
    .backward_weight = bag_backward_weight,
    .free = impl_free,
};
