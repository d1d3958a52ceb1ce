/* Products by cuBLASLt: descriptions, the choice of an algorithm, the call. */
#include "matmul.h"

#include <string.h>

static cudaDataType_t data_type(DType type)
{
    return type == DTYPE_BF16 ? CUDA_R_16BF : type == DTYPE_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static const cublasLtEpilogue_t epilogues[] = {
    [MATMUL_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
    [MATMUL_RELU] = CUBLASLT_EPILOGUE_RELU,
    [MATMUL_GELU] = CUBLASLT_EPILOGUE_GELU_AUX,
    [MATMUL_GELU_SLOPE] = CUBLASLT_EPILOGUE_DGELU,
    [MATMUL_BIAS] = CUBLASLT_EPILOGUE_BIAS,
    [MATMUL_BIAS_RELU] = CUBLASLT_EPILOGUE_RELU_BIAS,
    [MATMUL_BIAS_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    [MATMUL_SUM_B] = CUBLASLT_EPILOGUE_BGRADB,
};

static bool has_bias(MatmulEpilogue e)
{
    return e >= MATMUL_BIAS;
}

static bool has_aux(MatmulEpilogue e)
{
    return e == MATMUL_GELU || e == MATMUL_GELU_SLOPE || e == MATMUL_BIAS_GELU;
}

static void attribute(const Matmul *matmul, cublasLtMatmulDescAttributes_t which, const void *value,
                      size_t bytes)
{
    CUBLAS_CALL(cublaslt.desc_set(matmul->desc, which, value, bytes));
}

/* An algorithm is chosen for pointers that are there, and aligned as they are: these are as little
 * as ours ever will be. */
static void describe_epilogue(const Matmul *matmul, const CudaState *state, const MatmulSpec *s)
{
    const char *some = (const char *)state->blas_workspace + MATMUL_ALIGN;
    int64_t stride = s->ldd;
    attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[s->epilogue],
              sizeof epilogues[s->epilogue]);
    if (has_bias(s->epilogue))
        attribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &some, sizeof some);
    if (has_aux(s->epilogue)) {
        attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &some, sizeof some);
        attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride);
    }
}

static void describe(Matmul *matmul, const CudaState *state, const MatmulSpec *s)
{
    cublasOperation_t a = s->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                      b = s->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool tf32 = state->tf32 && s->in == DTYPE_F32;
    CUBLAS_CALL(cublaslt.desc_create(
        &matmul->desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    attribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    attribute(matmul, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    describe_epilogue(matmul, state, s);
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

/* Can it add a c that is not d? */
static bool adds_apart(const cublasLtMatmulAlgo_t *algorithm)
{
    int32_t can = 0;
    size_t written = 0;
    cublasStatus_t status = cublaslt.algorithm_cap(
        algorithm, CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, &can, sizeof can, &written);
    return status == CUBLAS_STATUS_SUCCESS && can != 0;
}

static uint32_t configured(const cublasLtMatmulAlgo_t *algorithm,
                           cublasLtMatmulAlgoConfigAttributes_t which)
{
    uint32_t value = 0;
    size_t written = 0;
    cublasStatus_t status =
        cublaslt.algorithm_config(algorithm, which, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

/* Are partial sums rounded to d's type between slices of k? With no scheme at all some kernels keep
 * the running sum in d itself, which the mask of schemes does not leave out. */
static bool sums_in_output(const cublasLtMatmulAlgo_t *algorithm)
{
    return configured(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 &&
           configured(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) !=
               CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static bool will_do(const MatmulSpec *spec, const cublasLtMatmulHeuristicResult_t *result)
{
    return result->state == CUBLAS_STATUS_SUCCESS && !(spec->adds && !adds_apart(&result->algo)) &&
           !(spec->out != DTYPE_F32 && sums_in_output(&result->algo));
}

/* The fastest that will do, by cuBLASLt's own estimate. It is not asked for with beta, which comes
 * with a run. */
static cublasStatus_t choose(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    enum { CHOICES = 8 };
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result[CHOICES] = {0};
    int found = 0;
    uint64_t room = CUDA_BLAS_WORKSPACE_BYTES;
    uint32_t align = MATMUL_ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CUBLAS_CALL(cublaslt.preference_create(&preference));
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (size_t i = 0; i < sizeof aligned / sizeof aligned[0]; ++i)
        prefer(preference, aligned[i], &align, sizeof align);
    cublasStatus_t status =
        cublaslt.heuristic(state->blas, matmul->desc, matmul->a, matmul->b, matmul->d, matmul->d,
                           preference, CHOICES, result, &found);
    CUBLAS_CALL(cublaslt.preference_destroy(preference));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    for (int i = 0; i < found; ++i)
        if (will_do(spec, &result[i])) {
            matmul->algorithm = result[i].algo;
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    *matmul = (Matmul){0};
    if (!cuda_is_there(state)) return CUBLAS_STATUS_SUCCESS;
    describe(matmul, state, spec);
    cublasStatus_t status = choose(matmul, state, spec);
    if (status != CUBLAS_STATUS_SUCCESS) matmul_free(matmul);
    return status;
}

Status matmul_plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    cublasStatus_t status = plan(matmul, state, spec);
    if (status == CUBLAS_STATUS_SUCCESS) return OK;
    return fail(ERR_CONFIG,
                "GPU %d (%s): cuBLASLt has no algorithm for the product of %s, %d x %d x %d: %s",
                state->device, state->name, spec->name, spec->m, spec->n, spec->k,
                cublaslt.status_string(status));
}

bool matmul_try(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    return plan(matmul, state, spec) == CUBLAS_STATUS_SUCCESS;
}

void matmul_run(const Matmul *matmul, CudaState *state, MatmulRun run)
{
    const float one = 1, beta = run.c ? 1 : 0;
    if (run.bias) attribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &run.bias, sizeof run.bias);
    if (run.aux)
        attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &run.aux, sizeof run.aux);
    CUBLAS_CALL(cublaslt.matmul(state->blas, matmul->desc, &one, run.a, matmul->a, run.b, matmul->b,
                                &beta, run.c ? run.c : run.d, matmul->d, run.d, matmul->d,
                                &matmul->algorithm, state->blas_workspace,
                                CUDA_BLAS_WORKSPACE_BYTES, state->compute.handle));
}

void matmul_free(Matmul *matmul)
{
    if (matmul->desc) CUBLAS_CALL(cublaslt.desc_destroy(matmul->desc));
    if (matmul->a) CUBLAS_CALL(cublaslt.layout_destroy(matmul->a));
    if (matmul->b) CUBLAS_CALL(cublaslt.layout_destroy(matmul->b));
    if (matmul->d) CUBLAS_CALL(cublaslt.layout_destroy(matmul->d));
    *matmul = (Matmul){0};
}
