/* A 3x3 convolution of stride 1 by Winograd's algorithm (simd/winograd.h), forward and both
 * gradients, on AVX2 and AVX-512. With L floats in a vector, images are in channel blocks of L and
 * the weight is [O/L][C/L][3][3][L of C][L of O]. All tensors are fp32. The result does not depend
 * on the number of threads. */
#ifndef WEFT_TENSOR_CPU_WINOGRAD_H
#define WEFT_TENSOR_CPU_WINOGRAD_H

#include "../dnnl/dnnl.h"

typedef struct Winograd Winograd;

typedef struct WinogradSpec {
    /* KERNEL_CONV_FORWARD, KERNEL_CONV_DATA or KERNEL_CONV_WEIGHT */
    KernelKind kind;
    /* x is (N,C,H,W); y has O channels; C and O are multiples of L */
    int64_t n, c, h, w, o;
    /* padding of rows and columns: 0 or 1 */
    int64_t pad[2];
    /* true: forward applies relu to y */
    bool relu;
    int threads;
} WinogradSpec;

/* Owner: the caller. */
Winograd *winograd_new(const WinogradSpec *spec);
void winograd_free(Winograd **winograd);
/* Returns the bytes of scratch for one call of winograd_run. */
size_t winograd_scratch_bytes(const Winograd *winograd);
/* Runs the direction of the spec. data[role]: pointers as in kernel_run. KERNEL_CONV_FORWARD writes
 * Y. KERNEL_CONV_DATA writes X (dx) from Y (dy) and W. KERNEL_CONV_WEIGHT writes W (dw), and B (db)
 * if B is not NULL. scratch: winograd_scratch_bytes, aligned to 64 bytes. */
void winograd_run(const Winograd *winograd, void *const data[ROLES], void *scratch);

#endif
