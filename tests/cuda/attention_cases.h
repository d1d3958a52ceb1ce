/* Tests of attention: cuDNN's and weft's own kernels are compared with the CPU's. */
#ifndef WEFT_TEST_CUDA_ATTENTION_CASES_H
#define WEFT_TEST_CUDA_ATTENTION_CASES_H

#include "pairs.h"
#include "tensor/cuda/attention/cudnn_attention.h"

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

/* Shared keys, full attention, windows, and scaled rotary angles, by weft's own kernels. */
static void test_attention_kinds(void)
{
    static const struct {
        const char *attrs;
        int samples, length, heads, kv_heads, width, rows;
    } cases[] = {
        {"heads=4 kv_heads=2", 2, 70, 4, 2, 8, 0},
        {"heads=6 kv_heads=1 rotary=true rotary_base=500", 3, 45, 6, 1, 32, 2},
        {"heads=2 full=true", 2, 150, 2, 2, 16, 1},
        {"heads=3 full=true", 2, 33, 3, 3, 80, 0},
        {"heads=2 full=true rotary=true", 2, 64, 2, 2, 64, 0},
        {"heads=2 window=1", 2, 40, 2, 2, 16, 0},
        {"heads=2 window=7", 2, 300, 2, 2, 16, 1},
        {"heads=1 window=70", 2, 200, 1, 1, 100, 0},
        {"heads=2 window=500 rotary=true", 2, 40, 2, 2, 20, 0},
        {"heads=4 kv_heads=2 window=33 rotary=true rope_type=yarn rope_factor=4 "
         "rope_original_max_position_embeddings=8",
         2, 100, 4, 2, 40, 1},
        {"heads=2 rotary=true rope_type=linear rope_factor=2", 2, 40, 2, 2, 16, 0},
        {"heads=2 rotary=true rope_type=dynamic rope_factor=2 "
         "rope_original_max_position_embeddings=8",
         2, 40, 2, 2, 16, 0},
        {"heads=2 kv_heads=1 rotary=true rope_type=llama3 rope_factor=2 rope_low_freq_factor=1 "
         "rope_high_freq_factor=4 rope_original_max_position_embeddings=8",
         2, 40, 2, 1, 16, 0},
    };
    Pair p = pair_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const int64_t columns = (cases[i].heads + 2 * cases[i].kv_heads) * cases[i].width;
        const OpCase c = {"attention",
                          cases[i].attrs,
                          1,
                          {3, {cases[i].samples, cases[i].length, columns, 1}},
                          ACT_NONE,
                          cases[i].rows,
                          allowed.attention};
        run_op(&p, &c, gpu, "weft's own kernels, in fp32");
        run_op(&p, &c, gpu_bf16, NULL);
        run_op(&p, &c, gpu_fp16, NULL);
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
    CudnnAttention f;
    CHECK_OK(pair_open(&p, &c, gpu_bf16));
    CU_ASSERT_TRUE_FATAL(cudnn_attention_init(&f, (AttentionShape){2, 26, 2, 16, true, false},
                                              (DnnTarget){.handle = state->dnn}));
    p.rig[1].op->impl = &f;
    pair_run_twice(&p);
    for (int d = 0; d < 2; ++d) rig_close(&p.rig[d]);
    cudnn_attention_fini(&f);
    pair_free(&p);
}

#endif
