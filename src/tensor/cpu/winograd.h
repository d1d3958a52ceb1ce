/* A 3x3 convolution of stride 1 by Winograd's algorithm (simd/winograd.h), forward and both
 * gradients, on AVX2 and AVX-512. With L the floats of a vector, images lie in channel blocks of L,
 * the weight as [O/L][C/L][3][3][L of C][L of O], fp32 all. The result of a run depends neither on
 * the number of threads nor on who computes what. */
#ifndef WEFT_TENSOR_CPU_WINOGRAD_H
#define WEFT_TENSOR_CPU_WINOGRAD_H

#include "dnnl.h"

typedef struct Winograd Winograd;

typedef struct WinogradSpec {
    /* of a convolution */
    KernelKind kind;
    /* N C H W and O; C and O multiples of L. pad 0 or 1: rows, columns */
    int64_t n, c, h, w, o, pad[2];
    /* forward: y = max(y, 0) */
    bool relu;
    int threads;
} WinogradSpec;

/* Owner: the caller. */
Winograd *winograd_new(const WinogradSpec *spec);
void winograd_free(Winograd **winograd);
/* Of one run, whatever it computes in. */
size_t winograd_scratch_bytes(const Winograd *winograd);
/* data[role] as kernel_run has it; ROLE_B may be NULL. scratch: at a border of 64 bytes. */
void winograd_run(const Winograd *winograd, void *const data[ROLES], void *scratch);

#endif
