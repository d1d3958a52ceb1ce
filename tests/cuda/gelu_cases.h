/* Tests of a dense layer with gelu before it. On the GPU both are one node, and the product for the
 * gradient includes gelu's slope; on the CPU they are two nodes. */
#ifndef WEFT_TEST_CUDA_GELU_CASES_H
#define WEFT_TEST_CUDA_GELU_CASES_H

#include "cases.h"

enum { GELU_ROWS = 9, GELU_WIDTH = 40 };

typedef struct GeluCase {
    /* on the CPU: before: gelu; behind: dense. On the GPU: fused: both */
    Rig before, behind, fused;
    /* h: gelu's input; x: its output; given, got: scratch; owned, [ROOM] each */
    float *h, *x, *given, *got;
} GeluCase;

static Status gelu_open(GeluCase *c, Backend *device, int64_t in)
{
    Desc x = desc_plain(shape_of(2, GELU_ROWS, in, 1, 1), DTYPE_F32);
    TRY(rig_spec(&c->before, cpu, "gelu", NULL));
    TRY(rig_spec(&c->behind, cpu, "dense", "width=40"));
    TRY(rig_spec(&c->fused, device, "dense", "width=40"));
    c->fused.spec.x_act = ACT_GELU;
    Rig *const all[] = {&c->before, &c->behind, &c->fused};
    for (int i = 0; i < 3; ++i) {
        all[i]->spec.x_count = 1;
        all[i]->spec.x[0] = x;
        TRY(rig_open(all[i], i ? "dense" : "gelu"));
    }
    return OK;
}

/* Compares the gradients of gelu's input. */
static void gelu_compare(GeluCase *c, int64_t in)
{
    int64_t n = GELU_ROWS * in;
    fill(c->given, GELU_WIDTH * in, 1);
    rig_set_w(&c->behind, 0, c->given);
    rig_set_w(&c->fused, 0, c->given);
    fill(c->h, n, 2);
    rig_set_x(&c->before, 0, c->h);
    rig_forward(&c->before);
    rig_get_y(&c->before, c->x);
    rig_set_x(&c->behind, 0, c->x);
    rig_set_x(&c->fused, 0, c->x);
    void *saved = rig_alloc(&c->fused, desc_bytes(c->fused.spec.x[0]));
    rig_put(&c->fused, c->fused.spec.x[0], saved, c->h);
    c->fused.run.x_saved = saved;
    rig_forward(&c->behind);
    rig_forward(&c->fused);
    fill(c->given, GELU_ROWS * GELU_WIDTH, 1);
    rig_backward(&c->behind, c->given);
    rig_backward(&c->fused, c->given);
    rig_get_dx(&c->behind, 0, c->x);
    rig_backward(&c->before, c->x);
    rig_get_dx(&c->before, 0, c->x);
    rig_get_dx(&c->fused, 0, c->got);
    rig_release(&c->fused, saved, desc_bytes(c->fused.spec.x[0]));
    compare("gelu and dense", c->fused.backend, PART_DX, allowed.gelu_product, "gelu before dense",
            "dx", c->got, c->x, n);
}

/* in: number of inputs. If it is a multiple of 8, cuBLASLt computes the slope in an epilogue. */
static void check_gelu(Backend *device, int64_t in)
{
    enum { ROOM = 4096 };
    GeluCase c = {.h = mem_new(ROOM * sizeof(float)),
                  .x = mem_new(ROOM * sizeof(float)),
                  .given = mem_new(ROOM * sizeof(float)),
                  .got = mem_new(ROOM * sizeof(float))};
    Status st = gelu_open(&c, device, in);
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        gelu_compare(&c, in);
        bool apart = c.fused.op->kernels && strstr(c.fused.op->kernels, "slope");
        CU_ASSERT_TRUE(apart || in % 8 == 0);
    }
    rig_close(&c.before);
    rig_close(&c.behind);
    rig_close(&c.fused);
    mem_free(&c.h);
    mem_free(&c.x);
    mem_free(&c.given);
    mem_free(&c.got);
}

static void test_gelu(void)
{
    check_gelu(gpu, 24);
    check_gelu(gpu, 17);
    check_gelu(gpu_fp16, 24);
    check_gelu(gpu_bf16, 24);
    check_gelu(gpu_bf16, 17);
}

#endif
