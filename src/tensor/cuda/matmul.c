/* Products by cuBLASLt: descriptions, the choice of an algorithm, the call. */
#include "matmul.h"

#include <string.h>

enum { POINTER_ALIGN = 16 };

static cudaDataType_t data_type(DType type)
{
    return type == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static void describe(Matmul *matmul, const CudaState *state, const MatmulSpec *s)
{
    cublasOperation_t a = s->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                      b = s->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = s->bias && s->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : s->bias          ? CUBLASLT_EPILOGUE_BIAS
                                  : s->relu          ? CUBLASLT_EPILOGUE_RELU
                                                     : CUBLASLT_EPILOGUE_DEFAULT;
    CUBLAS_CALL(cublaslt.desc_create(&matmul->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CUBLAS_CALL(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a));
    CUBLAS_CALL(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b));
    CUBLAS_CALL(
        cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (s->bias) /* any pointer: an algorithm is chosen for a bias that is there */
        CUBLAS_CALL(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                      &state->blas_workspace, sizeof(void *)));
    cudaDataType_t in = data_type(s->in), out = data_type(s->out);
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    CUBLAS_CALL(
        cublaslt.layout_create(&matmul->a, in, s->turn_a ? k : m, s->turn_a ? m : k, s->lda));
    CUBLAS_CALL(
        cublaslt.layout_create(&matmul->b, in, s->turn_b ? n : k, s->turn_b ? k : n, s->ldb));
    CUBLAS_CALL(cublaslt.layout_create(&matmul->d, out, m, n, s->ldd));
}

static void prefer(cublasLtMatmulPreference_t preference,
                   cublasLtMatmulPreferenceAttributes_t which, const void *value, size_t bytes)
{
    CUBLAS_CALL(cublaslt.preference_set(preference, which, value, bytes));
}

static cublasStatus_t choose(Matmul *matmul, CudaState *state, int *found)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result = {0};
    uint64_t room = CUDA_BLAS_WORKSPACE_BYTES;
    uint32_t align = POINTER_ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CUBLAS_CALL(cublaslt.preference_create(&preference));
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (size_t i = 0; i < sizeof aligned / sizeof aligned[0]; ++i)
        prefer(preference, aligned[i], &align, sizeof align);
    cublasStatus_t status = cublaslt.heuristic(state->blas, matmul->desc, matmul->a, matmul->b,
                                               matmul->d, matmul->d, preference, 1, &result, found);
    CUBLAS_CALL(cublaslt.preference_destroy(preference));
    matmul->algorithm = result.algo;
    return status == CUBLAS_STATUS_SUCCESS ? result.state : status;
}

Status matmul_plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    int found = 0;
    *matmul = (Matmul){0};
    if (!cuda_is_there(state)) return OK;
    describe(matmul, state, spec);
    cublasStatus_t status = choose(matmul, state, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found > 0) return OK;
    matmul_free(matmul);
    return fail(ERR_CONFIG,
                "GPU %d (%s): cuBLASLt has no algorithm for the product of %s, %d x %d x %d: %s",
                state->device, state->name, spec->name, spec->m, spec->n, spec->k,
                cublaslt.status_string(status));
}

void matmul_run(const Matmul *matmul, CudaState *state, const void *a, const void *b, void *d,
                const void *bias)
{
    const float one = 1, zero = 0;
    if (bias)
        CUBLAS_CALL(
            cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    CUBLAS_CALL(cublaslt.matmul(state->blas, matmul->desc, &one, a, matmul->a, b, matmul->b, &zero,
                                d, matmul->d, d, matmul->d, &matmul->algorithm,
                                state->blas_workspace, CUDA_BLAS_WORKSPACE_BYTES,
                                state->compute.handle));
}

void matmul_free(Matmul *matmul)
{
    if (matmul->desc) CUBLAS_CALL(cublaslt.desc_destroy(matmul->desc));
    if (matmul->a) CUBLAS_CALL(cublaslt.layout_destroy(matmul->a));
    if (matmul->b) CUBLAS_CALL(cublaslt.layout_destroy(matmul->b));
    if (matmul->d) CUBLAS_CALL(cublaslt.layout_destroy(matmul->d));
    *matmul = (Matmul){0};
}
