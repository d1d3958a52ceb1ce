/* Operations whose gradient is added to what other readers of their input gave; the CPU's is added here. Layer norms of wide and
 * narrow rows, in packs and not, one part of the rows and several; convolutions. The last sample is not there. */
#ifndef WEFT_TEST_CUDA_SUM_CASES_H
#define WEFT_TEST_CUDA_SUM_CASES_H

#include "cases.h"

typedef struct SumCase {
    const char *kind, *attributes;
    Shape x;
    Bound bound;
    Rig host, device;
} SumCase;

static Status sum_open(SumCase *c, Rig *rig, Backend *backend)
{
    TRY(rig_spec(rig, backend, c->kind, c->attributes));
    rig->spec.x_count = 1;
    rig->spec.x[0] = desc_plain(c->x, DTYPE_F32);
    rig->spec.x_shared = true;
    TRY(rig_open(rig, c->kind));
    rig->run.rows = (int)c->x.dim[0] - 1;
    return OK;
}

/* Of a tensor of the shape; zeros in the last sample. Owner: the caller. */
static float *sum_draw(Shape shape)
{
    int64_t n = shape_count(shape), real = n / shape.dim[0] * (shape.dim[0] - 1);
    float *x = mem_new((size_t)n * sizeof *x);
    fill(x, n, 1);
    for (int64_t i = real; i < n; ++i) x[i] = 0;
    return x;
}

static void sum_forward(SumCase *c)
{
    Rig *const rigs[] = {&c->host, &c->device};
    float *x = sum_draw(c->x);
    for (int r = 0; r < 2; ++r) rig_set_x(rigs[r], 0, x);
    mem_free(&x);
    for (int i = 0; i < c->host.spec.w_count; ++i) {
        int64_t n = shape_count(c->host.spec.w[i]);
        float *w = mem_new((size_t)n * sizeof *w);
        fill(w, n, 1);
        for (int r = 0; r < 2; ++r) rig_set_w(rigs[r], i, w);
        mem_free(&w);
    }
    for (int r = 0; r < 2; ++r) rig_forward(rigs[r]);
}

static void sum_compare(SumCase *c)
{
    Rig *device = &c->device;
    int64_t n = shape_count(c->x);
    float *before = sum_draw(c->x), *dy = sum_draw(c->host.spec.y.shape);
    float *expected = mem_new((size_t)n * sizeof *expected),
          *got = mem_new((size_t)n * sizeof *got);
    rig_backward(&c->host, dy);
    rig_get_dx(&c->host, 0, expected);
    for (int64_t i = 0; i < n; ++i) expected[i] += before[i];
    rig_put(device, device->spec.x[0], device->run.dx[0], before);
    device->run.dx_add = true;
    rig_backward(device, dy);
    rig_get_dx(device, 0, got);
    compare("sum of gradients", device->backend, PART_DX, c->bound, c->kind, "dx", got, expected,
            n);
    mem_free(&before);
    mem_free(&dy);
    mem_free(&expected);
    mem_free(&got);
}

static void sum_compare_weights(SumCase *c)
{
    for (int i = 0; i < c->host.spec.w_count; ++i) {
        int64_t n = shape_count(c->host.spec.w[i]);
        float *expected = mem_new((size_t)n * sizeof *expected),
              *got = mem_new((size_t)n * sizeof *got);
        rig_get_dw(&c->host, i, expected);
        rig_get_dw(&c->device, i, got);
        compare("sum of gradients", c->device.backend, PART_DW, c->bound, c->kind, "dw", got,
                expected, n);
        mem_free(&expected);
        mem_free(&got);
    }
}

static void check_sum(Backend *device, SumCase c)
{
    Status st = sum_open(&c, &c.host, cpu);
    if (st == OK) st = sum_open(&c, &c.device, device);
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        CU_ASSERT_TRUE(c.device.op->dx_adds);
        sum_forward(&c);
        sum_compare(&c);
        sum_compare_weights(&c);
    }
    rig_close(&c.host);
    rig_close(&c.device);
}

static void test_sum_of_gradients(void)
{
    static const int64_t widths[] = {8, 77, 264, 768, 1608, 6144, 6152};
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    for (int d = 0; d < 3; ++d) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w)
            check_sum(devices[d],
                      (SumCase){.kind = "layer_norm",
                                .x = shape_of(3, 3, widths[w] < 2000 ? 23 : 2, widths[w], 1),
                                .bound = allowed.product});
        check_sum(devices[d], (SumCase){.kind = "conv2d",
                                        .attributes = "channels=12 kernel=1 bias=false",
                                        .x = shape_of(4, 3, 20, 5, 6),
                                        .bound = allowed.conv});
        check_sum(devices[d], (SumCase){.kind = "conv2d",
                                        .attributes = "channels=8 kernel=3 stride=2 pad=1",
                                        .x = shape_of(4, 2, 5, 9, 8),
                                        .bound = allowed.conv});
    }
}

#endif
