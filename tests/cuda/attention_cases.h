/* Tests of attention: cuDNN's and weft's own kernels are compared with the CPU's. */
#ifndef WEFT_TEST_CUDA_ATTENTION_CASES_H
#define WEFT_TEST_CUDA_ATTENTION_CASES_H

#include "pairs.h"
#include "tensor/cuda/cudnn_attention.h"

/* Lengths that are not a multiple of a tile, and few real samples. The widths include some that
 * cuDNN does not support. */
static void test_attention(void)
{
    static const struct {
        const char *attrs;
        int samples, length, heads, width, rows;
        const char *kernels;
    } cases[] = {
        {"heads=3", 5, 33, 3, 32, 3, "cuDNN's fused kernels"},
        {"heads=2", 2, 129, 2, 64, 0, "cuDNN's fused kernels"},
        {"heads=2", 3, 128, 2, 64, 1, "cuDNN's fused kernels"},
        {"heads=2 rotary=true", 2, 256, 2, 64, 0, "cuDNN's fused kernels"},
        {"heads=1", 2, 45, 1, 128, 1, "cuDNN's fused kernels"},
        {"heads=1", 2, 1, 1, 64, 0, "cuDNN's fused kernels"},
        {"heads=2 rotary=true", 3, 37, 2, 16, 2, "cuDNN's fused kernels"},
        {"heads=3", 2, 70, 3, 12, 1,
         "weft's own kernels, because cuDNN has none: heads of 12 columns"},
        {"heads=1", 2, 40, 1, 100, 0, "weft's own kernels"},
        {"heads=2 rotary=true", 2, 33, 2, 20, 0, "weft's own kernels"},
    };
    Pair p = pair_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        int64_t columns = 3 * cases[i].heads * cases[i].width;
        OpCase c = {"attention",
                    cases[i].attrs,
                    1,
                    {3, {cases[i].samples, cases[i].length, columns, 1}},
                    ACT_NONE,
                    cases[i].rows,
                    allowed.attention};
        run_op(&p, &c, gpu_bf16, cases[i].kernels);
        run_op(&p, &c, gpu_fp16, cases[i].kernels);
        run_op(&p, &c, gpu, "weft's own kernels, in fp32");
    }
    pair_free(&p);
}

/* More samples than a grid's 65,535 blocks in one dimension. An emulated GPU needs 90 s. */
static void test_attention_launches(void)
{
    const OpCase c = {"attention", "heads=1",        1, {3, {65537, 1, 3, 1}}, ACT_NONE,
                      0,           allowed.attention};
    if (!full) TEST_SKIP("only with \"full\"");
    Pair p = pair_new();
    run_op(&p, &c, gpu, NULL);
    pair_free(&p);
}

/* Attention with plans for a group of samples, which run one group after the other; the last real
 * group has a padded sample. */
static void test_attention_groups(void)
{
    static const OpCase c = {
        "attention", "heads=2 rotary=true", 1, {3, {6, 26, 3 * 2 * 16, 1}}, ACT_NONE,
        3,           allowed.attention};
    const CudaState *state = gpu_bf16->impl;
    Pair p = pair_new();
    FusedAttention f;
    CHECK_OK(pair_open(&p, &c, gpu_bf16));
    CU_ASSERT_TRUE_FATAL(fused_init(&f, (AttentionShape){2, 26, 2, 16, true, false},
                                    (DnnTarget){.handle = state->dnn}));
    p.rig[1].op->impl = &f;
    pair_run_twice(&p);
    for (int d = 0; d < 2; ++d) rig_close(&p.rig[d]);
    fused_fini(&f);
    pair_free(&p);
}

#endif
