/* Measures a memory-bound operation, and a copy of the same number of bytes. If the data of the
 * operation fit into a cache, the data of the copy do, too.
 *
 * Only the bytes that the algorithm must move are counted: each tensor once for every necessary
 * pass. A batch norm, for example, must read its input twice, for the statistics and for the
 * result; its backward must read the input and the gradient twice. A kernel that reads more often
 * than it must has the same number of bytes, and so a lower rate. */
#include "bench_op.h"

enum { ALLOCATIONS_MAX = 32 };

/* An operation with its arguments. */
typedef struct Bench {
    Backend *backend;
    Op *op;
    /* arguments of the operation */
    OpRun run;
    /* number of allocations */
    int count;
    /* the allocations, [count]; owned */
    void *memory[ALLOCATIONS_MAX];
    /* size of each allocation, [count] */
    size_t bytes[ALLOCATIONS_MAX];
} Bench;

/* ---- bytes that must be moved ---- */

/* Returns whether forward may write the gradient over its input. The input is then read only once,
 * and backward does nothing, so forward and backward are measured together. */
static bool is_measured_together(const Op *op)
{
    return op->dx_over_x && op->spec.need_dx[0];
}

static double forward_bytes(const Op *op)
{
    const OpSpec *s = &op->spec;
    const OpInfo *info = op_info(s->kind);
    double bytes = (double)desc_bytes(s->y) + (double)op->saved_bytes;
    for (int i = 0; i < s->x_count; ++i) bytes += (double)desc_bytes(s->x[i]);
    if (info->traffic == TRAFFIC_TWICE) bytes += (double)desc_bytes(s->x[0]);
    /* one row of the table for each row of y */
    if (info->traffic == TRAFFIC_LOOK_UP)
        return bytes + (double)shape_count(s->y.shape) * sizeof(float);
    for (int i = 0; i < s->w_count; ++i) bytes += (double)op->w_elements[i] * sizeof(float);
    return bytes;
}

/* Returns the bytes of backward of an operation that reads its input twice (TRAFFIC_TWICE): it also
 * reads the gradient dy twice, and writes dx. */
static double two_passes_backward_bytes(const OpSpec *s)
{
    /* With a residual and an activation, two more tensors are counted: y, from which the
     * activation's mask is computed, and the masked dy, which is written as the gradient of the
     * residual. The CPU's batch norm reads saved bits instead of y. */
    bool masked = s->residual && s->act != ACT_NONE;
    return (5.0 + 2.0 * masked) * (double)desc_bytes(s->x[0]);
}

/* Returns the bytes of backward; 0 if backward has nothing to do. */
static double backward_bytes(const Op *op)
{
    const OpSpec *s = &op->spec;
    const OpInfo *info = op_info(s->kind);
    double read = op_is_loss(info) ? 0 : (double)desc_bytes(s->y), written = 0;
    if (info->traffic == TRAFFIC_TWICE) return two_passes_backward_bytes(s);
    bool alias = false;
    for (int i = 0; i < s->x_count; ++i) {
        if (op->needs_x[i]) read += (double)desc_bytes(s->x[i]);
        alias = alias || op->dx_is_dy[i];
        if (s->need_dx[i] && !op->dx_is_dy[i]) written += (double)desc_bytes(s->x[i]);
    }
    if (alias && s->act != ACT_NONE) written += (double)desc_bytes(s->y);
    for (int i = 0; i < s->w_count; ++i) written += (double)op->w_elements[i] * sizeof(float);
    if (op->needs_y) read += (double)desc_bytes(s->y);
    return written > 0 ? read + written + (double)op->saved_bytes : 0;
}

/* ---- memory ---- */

static void *allocate(Bench *b, size_t bytes)
{
    if (bytes == 0) return NULL;
    b->bytes[b->count] = bytes;
    return b->memory[b->count++] = b->backend->table->alloc(b->backend, bytes);
}

/* Allocates a tensor and fills it with random numbers. An integer is the number of a random row of
 * the first weight. */
static void *allocate_random(Bench *b, Desc d)
{
    void *memory = allocate(b, desc_bytes(d));
    if (d.dtype == DTYPE_I32)
        bench_fill_integers(b->backend, memory, desc_elements(d), b->op->spec.w[0].dim[0]);
    else
        bench_fill(b->backend, memory, d.dtype, desc_elements(d), -0.5f);
    return memory;
}

/* Allocates random labels and targets of a loss. */
static void allocate_targets(Bench *b)
{
    Shape x = b->op->spec.x[0].shape;
    int64_t rows = loss_labels(&b->op->spec), width = shape_count(x) / rows;
    int32_t *labels = allocate(b, (size_t)rows * sizeof *labels);
    float *targets = allocate(b, (size_t)shape_count(x) * sizeof *targets);
    bench_fill_integers(b->backend, labels, rows, width);
    bench_fill(b->backend, targets, DTYPE_F32, shape_count(x), -0.5f);
    b->run.labels = labels;
    b->run.targets = targets;
}

/* Allocates targets of a detection loss that have no boxes, because boxes cost little time compared
 * with the cells of the grid. */
static void allocate_boxes(Bench *b)
{
    const int64_t starts = b->op->spec.x[0].shape.dim[0] + 1, levels = b->op->spec.x_count;
    int32_t *start = allocate(b, (size_t)starts * sizeof *start);
    int64_t *match_counts = allocate(b, (size_t)(levels + 1) * sizeof *match_counts);
    /* fills both arrays with zeros, because all integers below 1 are 0; an int64 is filled as two
     * int32 */
    bench_fill_integers(b->backend, start, starts, 1);
    bench_fill_integers(b->backend, (int32_t *)match_counts, 2 * (levels + 1), 1);
    b->run.boxes = (BoxTargets){.start = start, .match_counts = match_counts};
}

/* Allocates and fills all arguments of the operation. */
static void bench_open(Bench *b, Op *op)
{
    const OpSpec *s = &op->spec;
    *b = (Bench){.backend = op->backend, .op = op};
    b->run = (OpRun){.sample_count = (int)s->x[0].shape.dim[0], .training = true, .loss_factor = 1};
    b->run.y = allocate(b, desc_bytes(s->y));
    b->run.dy = allocate_random(b, s->y);
    for (int i = 0; i < s->x_count; ++i) {
        void *x = allocate_random(b, s->x[i]);
        b->run.x[i] = x;
        if (s->need_dx[i])
            b->run.dx[i] = op->dx_is_dy[i] ? b->run.dy
                           : op->dx_over_x ? x
                                           : allocate(b, desc_bytes(s->x[i]));
    }
    for (int i = 0; i < s->w_count; ++i) {
        float *w = allocate(b, (size_t)op->w_elements[i] * sizeof *w);
        /* positive numbers, because a variance must be positive */
        bench_fill(b->backend, w, DTYPE_F32, op->w_elements[i], 0);
        b->run.w[i] = w;
        b->run.dw[i] = allocate(b, (size_t)op->w_elements[i] * sizeof *w);
    }
    if (op_info(op->spec.kind)->reads == READS_BOXES)
        allocate_boxes(b);
    else if (op_is_loss(op_info(op->spec.kind)))
        allocate_targets(b);
    b->run.sample = allocate(b, (size_t)b->run.sample_count * sizeof *b->run.sample);
    b->run.saved = allocate(b, op->saved_bytes);
    b->run.cache = allocate(b, op->cache_bytes);
    b->run.workspace = allocate(b, op->workspace_bytes);
    op_refresh(op, &b->run);
}

static void bench_close(Bench *b)
{
    for (int i = 0; i < b->count; ++i)
        b->backend->table->release(b->backend, b->memory[i], b->bytes[i]);
}

static void forward(void *user)
{
    Bench *b = user;
    op_forward(b->op, &b->run);
}

static void backward(void *user)
{
    Bench *b = user;
    op_backward_begin(b->op, &b->run);
    op_backward_weight(b->op, &b->run);
    op_backward_data(b->op, &b->run);
}

static void both(void *user)
{
    forward(user);
    backward(user);
}

/* ---- lines ---- */

static void label_of(const OpSpec *s, const char *name, char label[BENCH_LABEL])
{
    if (op_info(s->kind)->fuse == FUSE_ACT)
        snprintf(label, BENCH_LABEL, "%s", act_name(s->act));
    else
        snprintf(label, BENCH_LABEL, "%s%s%s%s", name, s->residual ? "+add" : "",
                 s->act != ACT_NONE ? "+" : "", act_name(s->act));
}

static void print_json(const BenchLine *line, double rate)
{
    Json json = json_to(stdout, false);
    json_object(&json, NULL);
    json_text(&json, "bench", "kernel");
    json_text(&json, "op", line->label);
    json_text(&json, "x", line->shape);
    if (line->layout) {
        json_text(&json, "cpu", line->cpu_set);
        json_text(&json, "layout", line->layout);
    } else {
        json_int(&json, "times", line->occurrences);
    }
    json_text(&json, "direction", line->direction);
    json_fixed(&json, "bytes", 0, line->bytes);
    json_fixed(&json, "seconds", 9, line->seconds);
    json_fixed(&json, "gb_per_s", 9, rate * 1e-9);
    json_fixed(&json, "copy_gb_per_s", 9, line->copy_rate * 1e-9);
    json_fixed(&json, "share", 4, rate / line->copy_rate);
    json_end(&json);
}

void bench_line_head(bool layouts)
{
    printf("%-24s %-18s ", "operation", "input");
    if (layouts)
        printf("%-7s %-13s", "cpu", "layout");
    else
        printf("%5s", "times");
    printf("  %-8s %10s %10s %9s %9s %7s\n", "", "MB", "ms", "GB/s", "copy's", "share");
}

void bench_line_print(const BenchLine *line, bool json)
{
    double rate = line->bytes / line->seconds;
    if (json) {
        print_json(line, rate);
        return;
    }
    printf("%-24s %-18s ", line->label, line->shape);
    if (line->layout)
        printf("%-7s %-13s", line->cpu_set, line->layout);
    else
        printf("%5d", line->occurrences);
    printf("  %-8s %10.2f %10.4f %9.1f %9.1f %7.3f\n", line->direction, line->bytes * 1e-6,
           line->seconds * 1e3, rate * 1e-9, line->copy_rate * 1e-9, rate / line->copy_rate);
}

static void measure(Bench *b, BenchLine *line, const char *direction, BenchWork work, double bytes)
{
    line->direction = direction;
    line->bytes = bytes;
    line->seconds = bench_seconds(b->backend, work, b);
}

int bench_op(BenchLine line[2], Op *op, const char *name)
{
    Bench b;
    int count = 1;
    line[0] = (BenchLine){.occurrences = 1};
    label_of(&op->spec, name, line->label);
    shape_text(op->spec.x[0].shape, line->shape);
    line[1] = line[0];
    bench_open(&b, op);
    if (is_measured_together(op)) {
        double bytes = forward_bytes(op) + (double)desc_bytes(op->spec.x[0]);
        measure(&b, &line[0], "both", both, bytes);
    } else {
        double bytes = backward_bytes(op);
        measure(&b, &line[0], "forward", forward, forward_bytes(op));
        if (bytes > 0) measure(&b, &line[count++], "backward", backward, bytes);
    }
    bench_close(&b);
    for (int i = 0; i < count; ++i) line[i].copy_rate = bench_copy(op->backend, line[i].bytes);
    return count;
}
