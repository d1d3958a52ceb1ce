/* Runs an operation of a given spec once, forward and backward, on made-up inputs. */
#ifndef WEFT_TEST_OP_CASE_RUN_H
#define WEFT_TEST_OP_CASE_RUN_H

#include "kernel_rig.h"
#include "tensor/cpu/dnnl/dnnl.h"

static inline bool have_bf16(void)
{
    if (dnnl_bf16_check() == OK) return true;
    printf("  skipped: %s\n", fail_message());
    return false;
}

/* The function that gives the numbers of tensors, in [-1, 1). what: identifies the tensor; i:
 * index. A test may set another function. */
static double (*case_number)(uint64_t what, int64_t i) = rig_random;

/* Fills a tensor, in the type and layout of d, with scale * case_number, rounded to bf16. So the
 * numbers are the same in every type. int32 tensors get numbers from 0 to 9. */
static inline void fill(Desc d, const void *to, uint64_t what, double scale)
{
    memset((void *)(uintptr_t)to, 0, desc_bytes(d));
    for (int64_t i = 0; i < shape_count(d.shape); ++i) {
        Bf16 value = bf16_of((float)(scale * case_number(what, i)));
        int64_t at = rig_place(d, i);
        if (d.dtype == DTYPE_BF16)
            ((Bf16 *)(uintptr_t)to)[at] = value;
        else if (d.dtype == DTYPE_F32)
            ((float *)(uintptr_t)to)[at] = bf16_value(value);
        else
            ((int32_t *)(uintptr_t)to)[at] = (int32_t)(i * 7 % 10);
    }
}

/* The exchange of a group of one rank. */
static inline void alone_gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    (void)x;
    memcpy(whole, mine, (size_t)(s.ranges * s.items * s.item_elements) * dtype_bytes(s.type));
}

static inline void alone_reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    alone_gather(x, s, whole, mine);
}

/* Returns target boxes: two for each of the first BOXED samples. */
static inline BoxTargets some_boxes(int64_t samples)
{
    enum { BOXED = 8, SAMPLES = 1 << 10 };
    static const int64_t match_counts[BOX_LEVELS + 1] = {9, 4, 2, 1, 1, 3};
    static float row[2 * BOXED][BOX_NUMBERS];
    static int32_t start[SAMPLES + 1];
    CU_ASSERT_FATAL(samples <= SAMPLES);
    for (int i = 0; i < SAMPLES; ++i) start[i + 1] = start[i] + (i < BOXED ? 2 : 0);
    for (int i = 0; i < 2 * BOXED; ++i) {
        row[i][BOX_CLASS] = (float)(i % 3);
        for (int k = BOX_X; k < BOX_NUMBERS; ++k)
            row[i][k] = (float)((7 * i + 5 * k) % 16 + 1) / 16;
    }
    return (BoxTargets){.start = start, .box = row[0], .match_counts = match_counts};
}

static inline bool prefers_layout(OpKind kind)
{
    return kind != OP_REORDER && kind != OP_FLATTEN;
}

/* Returns s with the layouts that the operation prefers on this processor. */
static inline OpSpec preferring(OpSpec s, DType precision)
{
    Backend *backend;
    Op *op = NULL;
    Desc preferred[SPEC_INPUTS];
    CHECK_OK(backend_open(&backend, &backend_cpu,
                          (BackendOptions){.threads = 1, .precision = precision}));
    CHECK_OK(op_new(&op, backend, &s, preferred));
    for (int k = 0; k < s.x_count && prefers_layout(s.kind); ++k) s.x[k] = preferred[k];
    op_free(&op);
    backend_close(&backend);
    return s;
}

/* Opens spec in a precision, fills its inputs, and runs it forward and backward. */
static inline void run(Rig *r, OpSpec s, DType precision, int threads)
{
    enum { SAMPLES_MOST = 1 << 15, TARGETS_MOST = 1 << 17 };
    static const int32_t label[SAMPLES_MOST] = {1, 2}, two[SAMPLES_MOST] = {1, 0, 0, 1};
    static const int64_t ids[SAMPLES_MOST] = {5, 3, 9};
    static float targets[TARGETS_MOST];
    static const Exchange alone = {
        .size = 1, .all_gather = alone_gather, .reduce_scatter = alone_reduce};
    CU_ASSERT_FATAL(s.x[0].shape.dim[0] <= SAMPLES_MOST);
    CU_ASSERT_FATAL(s.kind != OP_POINT_LOSS || shape_count(s.x[0].shape) <= TARGETS_MOST);
    for (int k = 0; k < s.x_count; ++k)
        if (s.x[k].dtype != DTYPE_I32) s.x[k].dtype = precision;
    *r = (Rig){.precision = precision};
    rig_open(r, &s, &backend_poison, threads);
    const Op *op = r->op;
    for (int k = 0; k < s.x_count; ++k) {
        CU_ASSERT(!prefers_layout(s.kind) || desc_equal(r->preferred[k], s.x[k]));
        fill(op->spec.x[k], r->run.x[k], 10 + (uint64_t)k, 3);
    }
    for (int k = 0; k < s.w_count; ++k) {
        Desc d = desc_plain(s.w[k], DTYPE_F32);
        float *w = malloc(desc_bytes(d));
        fill(d, w, 20 + (uint64_t)k, 1);
        /* a variance is positive */
        for (int64_t i = 0; k == 3 && i < shape_count(s.w[k]); ++i) w[i] = 1;
        op_pack(r->op, k, w, (float *)(uintptr_t)r->run.w[k]);
        free(w);
    }
    r->run.cache = rig_memory(r, op->cache_bytes);
    r->run.labels = s.kind == OP_SIGMOID_LOSS ? two : label;
    r->run.sample = ids;
    r->run.targets = targets;
    if (op_info(s.kind)->reads == READS_BOXES) r->run.boxes = some_boxes(s.x[0].shape.dim[0]);
    r->run.exchange = &alone;
    r->run.sample_count -= r->run.sample_count > 1 && s.kind != OP_DENSE && s.kind != OP_CONV2D &&
                           s.kind != OP_CONV_TRANSPOSE2D;
    op_refresh(r->op, &r->run);
    op_forward(r->op, &r->run);
    fill(op->spec.y, r->run.dy, 30, 1);
    rig_backward(r);
}

#endif
