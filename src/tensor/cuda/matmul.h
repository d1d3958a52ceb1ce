/* One matrix product by cuBLASLt, planned for its shape. cuBLAS counts columns first, so a row-major a[r,c] is its c x r
 * matrix. Algorithms whose sums have no fixed order are left out: the same product has the same bits each time. */
#ifndef WEFT_CUDA_MATMUL_H
#define WEFT_CUDA_MATMUL_H

#include "cuda.h"

typedef struct MatmulSpec {
    const char *name; /* for messages */
    bool turn_a, turn_b;
    int m, n, k;
    int lda, ldb, ldd;
    DType in, out; /* of a and b; of d */
    bool bias;     /* d[:, j] += bias, m elements of type out */
    bool relu;     /* of d at last */
} MatmulSpec;
typedef struct Matmul {
    cublasLtMatmulDesc_t desc; /* owned, as the layouts */
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
} Matmul;

/* d[m,n] = a[m,k] b[k,n], as cuBLAS sees them; turned ones are k x m, n x k in memory. On error nothing is held. */
Status matmul_plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec);
void matmul_run(const Matmul *matmul, CudaState *state, const void *a, const void *b, void *d,
                const void *bias);
void matmul_free(Matmul *matmul);

#endif
