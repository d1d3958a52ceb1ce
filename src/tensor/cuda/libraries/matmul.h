/* One matrix product d = a b by cuBLASLt, planned for its shape, with an epilogue, that is,
 * operations on d before it is written. Matrices of cuBLAS are column-major, so a row-major a[r,c]
 * is a c x r matrix for cuBLAS. Algorithms whose sums have no fixed order are excluded, so the same
 * product has the same bits each time. */
#ifndef WEFT_CUDA_MATMUL_H
#define WEFT_CUDA_MATMUL_H

#include "../cuda.h"

/* The parts of a name say what is computed: MATMUL_BIAS_RELU means d = relu(a b + c + bias[m]).
 * MATMUL_GELU and MATMUL_BIAS_GELU also write gelu's input to aux, in d's layout. */
typedef enum MatmulEpilogue {
    MATMUL_PLAIN,
    MATMUL_RELU,
    MATMUL_GELU,
    /* d = gelu'(aux) * (a b) */
    MATMUL_GELU_SLOPE,
    MATMUL_BIAS,
    MATMUL_BIAS_RELU,
    MATMUL_BIAS_GELU,
    /* d = a b, and bias[n] = the sum of b over k, in d's type */
    MATMUL_SUM_B,
} MatmulEpilogue;
typedef struct MatmulSpec {
    /* name of the product, for messages */
    const char *name;
    bool transpose_a, transpose_b;
    int m, n, k;
    /* leading dimensions of a, b and d: elements from one column to the next */
    int lda, ldb, ldd;
    /* type of a and b */
    DType in;
    /* type of d, bias and aux */
    DType out;
    MatmulEpilogue epilogue;
    /* true: c is added to the product */
    bool add_c;
} MatmulSpec;
typedef struct Matmul {
    /* description of the product; owned */
    cublasLtMatmulDesc_t desc;
    /* layouts of the matrices; owned */
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
} Matmul;
enum { MATMUL_ALIGN = 16 };
/* Addresses for one run, aligned to MATMUL_ALIGN bytes. bias and aux are NULL unless the epilogue
 * has them. c has d's layout but other memory; it is NULL unless MatmulSpec.add_c is set. */
typedef struct MatmulRun {
    const void *a, *b, *c;
    void *d, *bias, *aux;
} MatmulRun;

/* Plans d[m,n] = a[m,k] b[k,n] (+ c[m,n]), with column-major matrices; with transpose_a or
 * transpose_b, that matrix is stored transposed. Without a GPU (dry run) plans nothing. ERR_CONFIG:
 * cuBLASLt has no algorithm; then there is nothing to free. Release with matmul_free. */
Status matmul_plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec);
/* Does the same as matmul_plan, but returns false if cuBLASLt has no algorithm for this product. */
bool matmul_try(Matmul *matmul, CudaState *state, const MatmulSpec *spec);
void matmul_run(const Matmul *matmul, CudaState *state, MatmulRun run);
void matmul_free(Matmul *matmul);

#endif
