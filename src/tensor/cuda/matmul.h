/* One matrix product by cuBLASLt, planned for its shape, with what is done to d on the way out (the
 * epilogue). cuBLAS counts columns first, so a row-major a[r,c] is its c x r matrix. Algorithms
 * whose sums have no fixed order are left out: the same product has the same bits each time. */
#ifndef WEFT_CUDA_MATMUL_H
#define WEFT_CUDA_MATMUL_H

#include "cuda.h"

/* MATMUL_BIAS_RELU and so on: d = act(a b + c + bias[m]). MATMUL_(BIAS_)GELU also write act's input
 * to aux, d's like. */
typedef enum MatmulEpilogue {
    MATMUL_PLAIN,
    MATMUL_RELU,
    MATMUL_GELU,
    /* d = gelu'(aux) * (a b) */
    MATMUL_GELU_SLOPE,
    MATMUL_BIAS,
    MATMUL_BIAS_RELU,
    MATMUL_BIAS_GELU,
    /* bias[n] = sum of b over k, in d's type */
    MATMUL_SUM_B,
} MatmulEpilogue;
typedef struct MatmulSpec {
    /* for messages */
    const char *name;
    bool turn_a, turn_b;
    int m, n, k;
    int lda, ldb, ldd;
    /* of a and b; of d, bias and aux */
    DType in, out;
    MatmulEpilogue epilogue;
    /* runs have a c */
    bool adds;
} MatmulSpec;
typedef struct Matmul {
    /* owned, as the layouts */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
} Matmul;
enum { MATMUL_ALIGN = 16 };
/* Pointers of a run, MATMUL_ALIGN bytes aligned; bias and aux where the epilogue has them. c: d's
 * like in other memory, NULL where the spec does not add one. */
typedef struct MatmulRun {
    const void *a, *b, *c;
    void *d, *bias, *aux;
} MatmulRun;

/* d[m,n] = a[m,k] b[k,n] (+ c[m,n]), as cuBLAS sees them; turned ones are k x m, n x k in memory.
 * On error nothing is held. */
Status matmul_plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec);
/* The same; false where cuBLASLt does not have it with this epilogue, or c: then nothing is
 * held. */
bool matmul_try(Matmul *matmul, CudaState *state, const MatmulSpec *spec);
void matmul_run(const Matmul *matmul, CudaState *state, MatmulRun run);
void matmul_free(Matmul *matmul);

#endif
