/* A layer norm whose gradient is added to what other readers of its input gave; the CPU's is added here. Wide and narrow rows,
 * in packs and not, one part of the rows and several, the last sample not there. */
#ifndef WEFT_TEST_CUDA_SUM_CASES_H
#define WEFT_TEST_CUDA_SUM_CASES_H

#include "cases.h"

typedef struct SumCase {
    Rig host, device;
    int64_t samples, lines, width;
    float *x, *before, *dx, *dw[2], *got; /* dx, dw: the CPU's */
} SumCase;

static Status sum_open_rig(SumCase *c, Rig *rig, Backend *backend)
{
    TRY(rig_spec(rig, backend, "layer_norm", NULL));
    rig->spec.x_count = 1;
    rig->spec.x[0] = desc_plain(shape_of(3, c->samples, c->lines, c->width, 1), DTYPE_F32);
    TRY(rig_open(rig, "layer_norm"));
    rig->run.rows = (int)c->samples - 1;
    return OK;
}

static Status sum_open(SumCase *c, Backend *device)
{
    TRY(sum_open_rig(c, &c->host, cpu));
    return sum_open_rig(c, &c->device, device);
}

static void sum_give(SumCase *c, int64_t n, int64_t real)
{
    Rig *const rigs[] = {&c->host, &c->device};
    fill(c->x, n, 1);
    for (int64_t i = real; i < n; ++i) c->x[i] = 0;
    for (int w = 0; w < 2; ++w) fill(c->dw[w], c->width, 1);
    for (int r = 0; r < 2; ++r) {
        rig_set_x(rigs[r], 0, c->x);
        for (int w = 0; w < 2; ++w) rig_set_w(rigs[r], w, c->dw[w]);
        rig_forward(rigs[r]);
    }
    fill(c->x, n, 1);
    for (int64_t i = real; i < n; ++i) c->x[i] = 0;
}

static void sum_compare(SumCase *c)
{
    Rig *device = &c->device;
    int64_t n = c->samples * c->lines * c->width, real = n - c->lines * c->width;
    sum_give(c, n, real);
    fill(c->before, n, 1);
    for (int64_t i = real; i < n; ++i) c->before[i] = 0;
    rig_backward(&c->host, c->x);
    rig_get_dx(&c->host, 0, c->dx);
    for (int64_t i = 0; i < n; ++i) c->dx[i] += c->before[i];
    rig_put(device, device->spec.x[0], device->run.dx[0], c->before);
    device->run.dx_add = true;
    rig_backward(device, c->x);
    rig_get_dx(device, 0, c->got);
    compare("sum of gradients", device->backend, PART_DX, allowed.product, "layer_norm", "dx",
            c->got, c->dx, n);
    for (int w = 0; w < 2; ++w) {
        rig_get_dw(&c->host, w, c->dw[w]);
        rig_get_dw(device, w, c->got);
        compare("sum of gradients", device->backend, PART_DW, allowed.product, "layer_norm", "dw",
                c->got, c->dw[w], c->width);
    }
}

static void check_sum(Backend *device, int64_t samples, int64_t lines, int64_t width)
{
    size_t bytes = (size_t)(samples * lines * width) * sizeof(float);
    SumCase c = {.samples = samples,
                 .lines = lines,
                 .width = width,
                 .x = mem_new(bytes),
                 .before = mem_new(bytes),
                 .dx = mem_new(bytes),
                 .dw = {mem_new(bytes), mem_new(bytes)},
                 .got = mem_new(bytes)};
    Status st = sum_open(&c, device);
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        CU_ASSERT_TRUE(c.device.op->dx_adds);
        sum_compare(&c);
    }
    rig_close(&c.host);
    rig_close(&c.device);
    mem_free(&c.x);
    mem_free(&c.before);
    mem_free(&c.dx);
    mem_free(&c.dw[0]);
    mem_free(&c.dw[1]);
    mem_free(&c.got);
}

static void test_sum_of_gradients(void)
{
    static const int64_t widths[] = {8, 77, 264, 768, 1608, 6144, 6152};
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    for (int d = 0; d < 3; ++d)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w)
            check_sum(devices[d], 3, widths[w] < 2000 ? 23 : 2, widths[w]);
}

#endif
