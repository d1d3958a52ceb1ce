/* Matrix products by cuBLASLt: describes a product, chooses its algorithm and queues it. */
#include "matmul.h"
#include "timing.h"

#include <inttypes.h>
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

static void set_attribute(const Matmul *matmul, cublasLtMatmulDescAttributes_t which,
                          const void *value, size_t bytes)
{
    CUBLAS_CALL(cublaslt.desc_set(matmul->desc, which, value, bytes));
}

/* Sets the epilogue, and example addresses of the arrays that the epilogue reads or writes.
 * cuBLASLt chooses an algorithm by the alignment of the addresses, so an example has the smallest
 * alignment that a run may have, MATMUL_ALIGN bytes. Each run sets the real addresses. */
static void describe_epilogue(const Matmul *matmul, const CudaState *state, const MatmulSpec *s)
{
    const char *example = (const char *)state->blas_workspace + MATMUL_ALIGN;
    int64_t stride = s->ldd;
    set_attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[s->epilogue],
                  sizeof epilogues[s->epilogue]);
    if (has_bias(s->epilogue))
        set_attribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &example, sizeof example);
    if (has_aux(s->epilogue)) {
        set_attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &example, sizeof example);
        set_attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride);
    }
}

static void describe(Matmul *matmul, const CudaState *state, const MatmulSpec *s)
{
    cublasOperation_t a = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                      b = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool tf32 = state->tf32 && s->in == DTYPE_F32;
    CUBLAS_CALL(cublaslt.desc_create(
        &matmul->desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set_attribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    set_attribute(matmul, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    describe_epilogue(matmul, state, s);
    cudaDataType_t in = data_type(s->in), out = data_type(s->out);
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    CUBLAS_CALL(cublaslt.layout_create(&matmul->a, in, s->transpose_a ? k : m,
                                       s->transpose_a ? m : k, s->lda));
    CUBLAS_CALL(cublaslt.layout_create(&matmul->b, in, s->transpose_b ? n : k,
                                       s->transpose_b ? k : n, s->ldb));
    CUBLAS_CALL(cublaslt.layout_create(&matmul->d, out, m, n, s->ldd));
}

static void set_preference(cublasLtMatmulPreference_t preference,
                           cublasLtMatmulPreferenceAttributes_t which, const void *value,
                           size_t bytes)
{
    CUBLAS_CALL(cublaslt.preference_set(preference, which, value, bytes));
}

/* Returns whether the algorithm can add a matrix c that is not in d's memory. */
static bool supports_separate_c(const cublasLtMatmulAlgo_t *algorithm)
{
    int32_t can = 0;
    size_t written = 0;
    cublasStatus_t status = cublaslt.algorithm_cap(
        algorithm, CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, &can, sizeof can, &written);
    return status == CUBLAS_STATUS_SUCCESS && can != 0;
}

static uint32_t config_value(const cublasLtMatmulAlgo_t *algorithm,
                             cublasLtMatmulAlgoConfigAttributes_t which)
{
    uint32_t value = 0;
    size_t written = 0;
    cublasStatus_t status =
        cublaslt.algorithm_config(algorithm, which, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

/* Returns whether the algorithm divides the sum over k and rounds partial sums to d's type. Some
 * algorithms without a reduction scheme keep the running sum in d. The mask of schemes in the
 * preference does not exclude such algorithms. */
static bool sums_in_output(const cublasLtMatmulAlgo_t *algorithm)
{
    return config_value(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 &&
           config_value(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) !=
               CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static bool is_suitable(const MatmulSpec *spec, const cublasLtMatmulHeuristicResult_t *result)
{
    return result->state == CUBLAS_STATUS_SUCCESS &&
           !(spec->add_c && !supports_separate_c(&result->algo)) &&
           !(spec->out != DTYPE_F32 && sums_in_output(&result->algo));
}

enum { CHOICES = 8 };
/* suitable algorithms for a product, [count], best first */
typedef struct Choices {
    cublasLtMatmulAlgo_t algorithm[CHOICES];
    int count;
} Choices;

/* Lists the suitable algorithms in the order of cuBLASLt's own estimate, the fastest first. The
 * estimate does not depend on beta, the factor of c, which is an argument of the run. */
static cublasStatus_t propose(const Matmul *matmul, const CudaState *state, const MatmulSpec *spec,
                              Choices *choices)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result[CHOICES] = {0};
    int found = 0;
    uint64_t workspace_max = CUDA_BLAS_WORKSPACE_BYTES;
    uint32_t align = MATMUL_ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CUBLAS_CALL(cublaslt.preference_create(&preference));
    set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_max,
                   sizeof workspace_max);
    set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                   sizeof schemes);
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; ++i)
        set_preference(preference, alignments[i], &align, sizeof align);
    cublasStatus_t status =
        cublaslt.heuristic(state->blas, matmul->desc, matmul->a, matmul->b, matmul->d, matmul->d,
                           preference, CHOICES, result, &found);
    CUBLAS_CALL(cublaslt.preference_destroy(preference));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    *choices = (Choices){0};
    for (int i = 0; i < found; ++i)
        if (is_suitable(spec, &result[i])) choices->algorithm[choices->count++] = result[i].algo;
    return choices->count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* ---- the record of algorithms ---- */

/* Writes to `key` the key that the product has in the record of algorithms. The key has everything
 * on which the choice of an algorithm depends. */
static void algorithm_key(char key[160], const CudaState *state, const MatmulSpec *s)
{
    static const char *const epilogue[] = {
        [MATMUL_PLAIN] = "plain",         [MATMUL_RELU] = "relu",
        [MATMUL_GELU] = "gelu",           [MATMUL_GELU_SLOPE] = "gelu_slope",
        [MATMUL_BIAS] = "bias",           [MATMUL_BIAS_RELU] = "bias_relu",
        [MATMUL_BIAS_GELU] = "bias_gelu", [MATMUL_SUM_B] = "sum_b",
    };
    bool tf32 = state->tf32 && s->in == DTYPE_F32;
    snprintf(key, 160, "cublaslt %s>%s %c%c %dx%dx%d ld %d,%d,%d %s%s",
             tf32 ? "tf32" : dtype_name(s->in), dtype_name(s->out), s->transpose_a ? 't' : 'n',
             s->transpose_b ? 't' : 'n', s->m, s->n, s->k, s->lda, s->ldb, s->ldd,
             epilogue[s->epilogue], s->add_c ? " adds" : "");
}

enum { ALGORITHM_WORDS = sizeof(cublasLtMatmulAlgo_t) / sizeof(uint64_t), ALGORITHM_TEXT = 160 };
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof((cublasLtMatmulAlgo_t *)0)->data &&
                   ALGORITHM_WORDS * 17 < ALGORITHM_TEXT,
               "an algorithm consists of 64-bit words, and ALGORITHM_TEXT is long enough for them");

/* Writes an algorithm as hexadecimal words, from which the same version of cuBLASLt can restore
 * it. */
static void write_algorithm(char text[ALGORITHM_TEXT], const cublasLtMatmulAlgo_t *algorithm)
{
    size_t at = 0;
    for (int i = 0; i < ALGORITHM_WORDS; ++i)
        at += (size_t)snprintf(text + at, ALGORITHM_TEXT - at, "%s%" PRIx64, i ? "." : "",
                               algorithm->data[i]);
}

static bool read_algorithm(cublasLtMatmulAlgo_t *algorithm, const char *text)
{
    for (int i = 0; i < ALGORITHM_WORDS; ++i) {
        int used = 0;
        uint64_t word;
        if (sscanf(text, "%16" SCNx64 "%n", &word, &used) != 1) return false;
        algorithm->data[i] = word;
        text += used;
        if (i + 1 < ALGORITHM_WORDS && *text++ != '.') return false;
    }
    return !*text;
}

/* Uses the recorded algorithm `text` if cuBLASLt accepts it and it is suitable; otherwise returns
 * false. */
static bool use_recorded(Matmul *matmul, const CudaState *state, const MatmulSpec *spec,
                         const char *text)
{
    cublasLtMatmulHeuristicResult_t result = {0};
    cublasLtMatmulAlgo_t algorithm;
    if (!read_algorithm(&algorithm, text)) return false;
    cublasStatus_t status = cublaslt.algorithm_check(
        state->blas, matmul->desc, matmul->a, matmul->b, matmul->d, matmul->d, &algorithm, &result);
    result.algo = algorithm;
    if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > CUDA_BLAS_WORKSPACE_BYTES ||
        !is_suitable(spec, &result))
        return false;
    matmul->algorithm = algorithm;
    return true;
}

/* ---- timing ---- */

/* Arguments of try_choice; all pointers are borrowed. */
typedef struct Trial {
    Matmul *matmul;
    CudaState *state;
    const Choices *choices;
    MatmulRun run;
} Trial;

static cublasStatus_t queue(const Matmul *matmul, const CudaState *state, const MatmulRun *run)
{
    const float one = 1, beta = run->c ? 1 : 0;
    return cublaslt.matmul(state->blas, matmul->desc, &one, run->a, matmul->a, run->b, matmul->b,
                           &beta, run->c ? run->c : run->d, matmul->d, run->d, matmul->d,
                           &matmul->algorithm, state->blas_workspace, CUDA_BLAS_WORKSPACE_BYTES,
                           state->compute.handle);
}

static void set_epilogue_pointers(const Matmul *matmul, const MatmulRun *run)
{
    if (run->bias)
        set_attribute(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &run->bias, sizeof run->bias);
    if (run->aux)
        set_attribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &run->aux,
                      sizeof run->aux);
}

static bool try_choice(void *user, int i)
{
    Trial *trial = user;
    trial->matmul->algorithm = trial->choices->algorithm[i];
    return queue(trial->matmul, trial->state, &trial->run) == CUBLAS_STATUS_SUCCESS;
}

/* Returns the index of the fastest choice, or 0 if the GPU has too little memory to time the
 * choices. */
static int time_choices(Matmul *matmul, CudaState *state, const MatmulSpec *s,
                        const Choices *choices)
{
    enum { A, B, C, D, BIAS, AUX, BUFFERS };
    size_t in = dtype_bytes(s->in), out = dtype_bytes(s->out);
    size_t d = (size_t)s->ldd * (size_t)s->n * out;
    const size_t bytes[BUFFERS] = {
        [A] = (size_t)s->lda * (size_t)(s->transpose_a ? s->m : s->k) * in,
        [B] = (size_t)s->ldb * (size_t)(s->transpose_b ? s->k : s->n) * in,
        [C] = s->add_c ? d : 0,
        [D] = d,
        [BIAS] = has_bias(s->epilogue) ? (size_t)(s->m > s->n ? s->m : s->n) * out : 0,
        [AUX] = has_aux(s->epilogue) ? d : 0,
    };
    TimedMemory memory;
    if (!timed_memory_init(&memory, state, bytes, BUFFERS)) {
        log_warn("train.cuda_tune: the GPU lacks the memory to time the products of %s, %d x %d x "
                 "%d: cuBLASLt's first choice is used",
                 s->name, s->m, s->n, s->k);
        return 0;
    }
    void **at = memory.buffer;
    Trial trial = {.matmul = matmul, .state = state, .choices = choices};
    trial.run = (MatmulRun){.a = at[A], .b = at[B], .c = bytes[C] ? at[C] : NULL, .d = at[D]};
    if (bytes[BIAS]) trial.run.bias = at[BIAS];
    if (bytes[AUX]) trial.run.aux = at[AUX];
    set_epilogue_pointers(matmul, &trial.run);
    int fastest = find_fastest(state, choices->count, try_choice, &trial);
    timed_memory_fini(&memory);
    return fastest;
}

/* Chooses the recorded algorithm. If none is recorded, chooses the fastest by time if
 * cuda_times_algorithms returns true, else the first by cuBLASLt's estimate; then adds the choice
 * to the record of algorithms, if the backend has a record. If the recorded algorithm cannot be
 * used, marks its key (algorithm_record_reject) and chooses the first by estimate. */
static cublasStatus_t choose(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    char key[160], text[ALGORITHM_TEXT];
    Choices choices;
    AlgorithmRecord *record = cuda_algorithm_record(state);
    algorithm_key(key, state, spec);
    const char *recorded = record ? algorithm_record_find(record, key) : NULL;
    if (recorded && use_recorded(matmul, state, spec, recorded)) return CUBLAS_STATUS_SUCCESS;
    if (recorded) algorithm_record_reject(record, key);
    cublasStatus_t status = propose(matmul, state, spec, &choices);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    int which =
        cuda_times_algorithms(state) && !recorded ? time_choices(matmul, state, spec, &choices) : 0;
    matmul->algorithm = choices.algorithm[which];
    write_algorithm(text, &matmul->algorithm);
    if (record && !recorded) algorithm_record_set(record, key, text);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t plan(Matmul *matmul, CudaState *state, const MatmulSpec *spec)
{
    *matmul = (Matmul){0};
    if (!cuda_has_gpu(state)) return CUBLAS_STATUS_SUCCESS;
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
    set_epilogue_pointers(matmul, &run);
    cublas_check(queue(matmul, state, &run), "cublasLtMatmul");
}

void matmul_free(Matmul *matmul)
{
    if (matmul->desc) CUBLAS_CALL(cublaslt.desc_destroy(matmul->desc));
    if (matmul->a) CUBLAS_CALL(cublaslt.layout_destroy(matmul->a));
    if (matmul->b) CUBLAS_CALL(cublaslt.layout_destroy(matmul->b));
    if (matmul->d) CUBLAS_CALL(cublaslt.layout_destroy(matmul->d));
    *matmul = (Matmul){0};
}
