/* Defines the table of this instruction set for one type of activations. The base build for fp32
 * also has the functions that choose the tables in use: those of the set cpu_used(), or of the set
 * that simd_use names. */
#include "vector.h"

extern const SimdTable SIMD_NAME(kernels);
#define SIMD_TEXT_(isa)  #isa
#define SIMD_TEXT(isa)   SIMD_TEXT_(isa)
#define SLOT(slot)       .slot = SIMD_NAME(slot)
#define SLOT_FLOAT(slot) .slot = SIMD_FLOAT_NAME(slot)
const SimdTable SIMD_NAME(kernels) = {
    .name = SIMD_TEXT(SIMD_ISA),
    SLOT(act),
    SLOT(max_pool),
    SLOT(max_pool_grad),
    SLOT(avg_pool),
    SLOT(avg_pool_grad),
    SLOT(mean_rows),
    SLOT(spread_rows),
    SLOT_FLOAT(dropout),
    SLOT_FLOAT(scale_add),
    SLOT_FLOAT(squares),
    SLOT_FLOAT(exact_squares),
    SLOT_FLOAT(not_finite),
    SLOT_FLOAT(copy),
    SLOT_FLOAT(sgd),
    SLOT_FLOAT(adam),
    SLOT_FLOAT(adam_direction),
    SLOT_FLOAT(average),
    SLOT_FLOAT(matrix_tile),
    SLOT_FLOAT(dense_few),
    SLOT_FLOAT(dense_columns),
    SLOT_FLOAT(dense_product),
/* The avx2 build for bf16 has only the kernels above this comment. Pools of narrow planes use them
 * on CPUs with AVX-512. weft does not support bf16 on CPUs that have only AVX2. */
#if !(defined(SIMD_avx2) && defined(SIMD_BF16))
    SLOT(batch_norm_stats),
    SLOT(batch_norm_apply),
    SLOT(batch_norm_sums),
    SLOT(batch_norm_grad),
    SLOT(layer_norm_forward),
    SLOT(layer_norm_grad),
    SLOT(layer_norm_sums),
    SLOT(rms_norm_forward),
    SLOT(rms_norm_grad),
    SLOT(rms_norm_sums),
    SLOT(swiglu),
    SLOT(swiglu_grad),
    SLOT(act_grad),
    SLOT(add_act),
    SLOT(mul),
    SLOT(add_floats),
    SLOT(add_into),
    SLOT(from_floats),
    SLOT(to_floats),
    SLOT(resample_row),
    SLOT(softmax),
    SLOT(softmax_label_rank),
    SLOT(softmax_grad),
    SLOT(attention_forward),
    SLOT(attention_grad),
    SLOT(attention_grad_queries),
    SLOT(attention_grad_keys),
    SLOT(pixel_softmax),
    SLOT(pixel_grad),
    SLOT(region_sums),
    SLOT(region_grad),
    SLOT(point_loss),
    SLOT(point_grad),
#endif
#ifdef __AVX2__
    .conv_lanes = VECTOR,
    SLOT_FLOAT(winograd_input),
    SLOT_FLOAT(winograd_gradient),
    SLOT_FLOAT(winograd_output),
    SLOT_FLOAT(winograd_kernel),
    SLOT_FLOAT(winograd_taps),
    SLOT_FLOAT(winograd_forward),
    SLOT_FLOAT(winograd_weight),
    SLOT_FLOAT(conv_weight),
    SLOT_FLOAT(first_forward),
    SLOT_FLOAT(first_weight),
    SLOT_FLOAT(depthwise_forward),
    SLOT_FLOAT(depthwise_data),
    SLOT_FLOAT(depthwise_weight),
#endif
};

#if defined(SIMD_base) && !defined(SIMD_BF16)
#include <stdatomic.h>

/* The tables that are in use together. */
typedef struct Tables {
    InstructionSet set;
    const SimdTable *floats;
    /* NULL: this set has no tables for bf16, or the CPU lacks AVX512_BF16 */
    const SimdTable *bf16;
    /* tables with vectors of at most 8 floats; narrow_bf16 is NULL if bf16 is */
    const SimdTable *narrow_floats, *narrow_bf16;
} Tables;

#if defined(__x86_64__)
extern const SimdTable simd_kernels_avx2, simd_kernels_avx512;
extern const SimdTable simd_bf16_kernels_avx2, simd_bf16_kernels_avx512;
static bool runs(const Tables *tables)
{
    if (tables->bf16 == &simd_bf16_kernels_avx512 && !__builtin_cpu_supports("avx512bf16"))
        return false;
    return tables->set <= cpu_best();
}
static const Tables built[] = {{CPU_AVX512, &simd_kernels_avx512, &simd_bf16_kernels_avx512,
                                &simd_kernels_avx2, &simd_bf16_kernels_avx2},
                               {CPU_AVX512, &simd_kernels_avx512, NULL, &simd_kernels_avx2, NULL},
                               {CPU_AVX2, &simd_kernels_avx2, NULL, &simd_kernels_avx2, NULL},
                               {CPU_BASE, &simd_kernels_base, NULL, &simd_kernels_base, NULL}};
#else
static bool runs(const Tables *tables)
{
    (void)tables;
    return true;
}
static const Tables built[] = {{CPU_BASE, &simd_kernels_base, NULL, &simd_kernels_base, NULL}};
#endif

static _Atomic(const Tables *) in_use;

/* Returns the tables in use; the first call chooses them. If two threads make the first call at the
 * same time, both store the same pointer. */
static const Tables *tables_in_use(void)
{
    const Tables *tables = atomic_load_explicit(&in_use, memory_order_relaxed);
    if (!tables) {
        simd_use(cpu_name(cpu_used()));
        tables = atomic_load_explicit(&in_use, memory_order_relaxed);
    }
    return tables;
}

const SimdTable *simd_table(DType type)
{
    return type == DTYPE_BF16 ? tables_in_use()->bf16 : tables_in_use()->floats;
}

const SimdTable *simd_table_narrow(DType type)
{
    return type == DTYPE_BF16 ? tables_in_use()->narrow_bf16 : tables_in_use()->narrow_floats;
}

bool simd_use(const char *name)
{
    for (size_t i = 0; i < sizeof built / sizeof *built; ++i)
        if (!strcmp(built[i].floats->name, name) && runs(&built[i])) {
            atomic_store_explicit(&in_use, &built[i], memory_order_relaxed);
            return true;
        }
    return false;
}
#endif
