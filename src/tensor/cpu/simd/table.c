/* This instruction set's table; the base build also picks the table in use, once, by what the CPU says it can do. */
#include "vector.h"

extern const SimdTable SIMD_NAME(kernels);
#define SIMD_TEXT_(isa) #isa
#define SIMD_TEXT(isa)  SIMD_TEXT_(isa)
#define SLOT(slot)      .slot = SIMD_NAME(slot)
const SimdTable SIMD_NAME(kernels) = {
    .name = SIMD_TEXT(SIMD_ISA),
    SLOT(bn_stats),
    SLOT(bn_apply),
    SLOT(bn_sums),
    SLOT(bn_grad),
    SLOT(ln_forward),
    SLOT(ln_grad),
    SLOT(ln_sums),
    SLOT(act),
    SLOT(act_grad),
    SLOT(add_act),
    SLOT(mul),
    SLOT(dropout),
    SLOT(max_pool),
    SLOT(max_pool_grad),
    SLOT(avg_pool),
    SLOT(avg_pool_grad),
    SLOT(mean_rows),
    SLOT(softmax),
    SLOT(softmax_grad),
    SLOT(attention_forward),
    SLOT(attention_grad),
    SLOT(attention_grad_queries),
    SLOT(attention_grad_keys),
    SLOT(squared_error),
    SLOT(scaled_difference),
    SLOT(scale_add),
    SLOT(squares),
    SLOT(sgd),
    SLOT(adam),
    SLOT(adam_direction),
};

#ifdef SIMD_base
#include <stdatomic.h>

#if defined(__x86_64__)
extern const SimdTable simd_kernels_avx2, simd_kernels_avx512;
static bool runs(const SimdTable *table)
{
    if (table == &simd_kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (table == &simd_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}
static const SimdTable *const built[] = {&simd_kernels_avx512, &simd_kernels_avx2,
                                         &simd_kernels_base};
#else
static bool runs(const SimdTable *table)
{
    (void)table;
    return true;
}
static const SimdTable *const built[] = {&simd_kernels_base};
#endif

static _Atomic(const SimdTable *) in_use;

/* Two threads that race here store the same pointer. */
const SimdTable *simd_table(void)
{
    const SimdTable *table = atomic_load_explicit(&in_use, memory_order_relaxed);
    for (size_t i = 0; !table && i < sizeof built / sizeof *built; ++i)
        if (runs(built[i])) {
            table = built[i];
            atomic_store_explicit(&in_use, table, memory_order_relaxed);
        }
    return table;
}

bool simd_use(const char *name)
{
    for (size_t i = 0; i < sizeof built / sizeof *built; ++i)
        if (!strcmp(built[i]->name, name) && runs(built[i])) {
            atomic_store_explicit(&in_use, built[i], memory_order_relaxed);
            return true;
        }
    return false;
}
#endif
