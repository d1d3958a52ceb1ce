/* What the tests of the CUDA backend share: what is allowed, the backends, fresh random inputs. */
#ifndef WEFT_TEST_CUDA_CASES_H
#define WEFT_TEST_CUDA_CASES_H

#include "harness.h"
#include "op_rig.h"
#include "train.h"

/* Allowed |cuda - cpu| / max(1, |cpu|), for all of this file. */
static const struct {
    double product;      /* sums of products, in another order */
    double elementwise;  /* one element's arithmetic: fused multiply-adds, exp, tanh */
    double exact;        /* the same operations in the same order */
    double loss;         /* of ten training steps, */
    double deep;         /* where batch norm of few samples makes more of a difference */
    double loss_rounded; /* in bf16, fp16 or tf32 against fp32 */
    double fp16, tf32;   /* as bf16; products of factors that TF32 does not hold */
    double bf16; /* what is rounded to bf16 against the same in fp32, of inputs that bf16 holds */
} allowed = {.product = 2e-5,
             .elementwise = 2e-6,
             .exact = 0,
             .loss = 1e-4,
             .deep = 5e-3,
             .bf16 = 1.5e-2,
             .loss_rounded = 5e-2,
             .fp16 = 2e-3,
             .tf32 = 1e-2};

/* What a backend's precision allows, where fp32 allows `exact`. */
static double allowed_of(const Backend *backend, double exact)
{
    DType type = backend->options.precision;
    return type == DTYPE_BF16 ? allowed.bf16 : type == DTYPE_F16 ? allowed.fp16 : exact;
}

static const char *precision_name(const Backend *backend)
{
    DType type = backend->options.precision;
    return type == DTYPE_BF16 ? ", bf16" : type == DTYPE_F16 ? ", fp16" : "";
}

static uint32_t seed; /* fresh each run, printed */
static Backend *cpu, *gpu, *gpu_bf16, *gpu_fp16, *gpu_tf32;

/* Numbers that bf16 and fp16 hold, too. */
static void fill(float *out, int64_t n, float scale)
{
    static uint64_t calls;
    RngKey key = rng_key(seed, RNG_TEST, ++calls, 0);
    for (int64_t i = 0; i < n; ++i)
        out[i] = bf16_value(bf16_of((2 * rng_uniform(key, (uint64_t)i) - 1) * scale));
}

static void fill_tokens(int32_t *out, int64_t n, int64_t below)
{
    static uint64_t calls;
    RngKey key = rng_key(seed, RNG_TEST, ++calls, 1);
    for (int64_t i = 0; i < n; ++i) out[i] = (int32_t)(rng_u32(key, (uint64_t)i) % (uint64_t)below);
}

#endif
