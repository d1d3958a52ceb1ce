/* Emulates the functions of cuBLASLt that the backend calls by loops on the CPU. No attribute has a
 * default: an attribute that the backend does not set is an error. */
#include "queue.h"

#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

namespace
{
struct Desc {
    bool tf32; /* factors are rounded to 10 bits */
    cublasOperation_t turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    void *bias, *aux;
    int64_t aux_stride;

    bool has(int part) const { return (epilogue & part) != 0; }
};
enum {
    RELU = 2,
    BIAS = 4,
    GELU = 32,
    SLOPE = 64,
    AUX = 128,
    SUM_B = 512,
    KNOWN = RELU | BIAS | GELU | SLOPE | AUX | SUM_B
};

struct Layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t stride;
};

float value(const void *from, cudaDataType_t type, int64_t at)
{
    switch (type) {
    case CUDA_R_16BF:
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[at]);
    case CUDA_R_16F:
        return __half2float(static_cast<const __half *>(from)[at]);
    default:
        return static_cast<const float *>(from)[at];
    }
}
void put(void *to, cudaDataType_t type, int64_t at, float x)
{
    switch (type) {
    case CUDA_R_16BF:
        static_cast<__nv_bfloat16 *>(to)[at] = __float2bfloat16_rn(x);
        break;
    case CUDA_R_16F:
        static_cast<__half *>(to)[at] = __float2half_rn(x);
        break;
    default:
        static_cast<float *>(to)[at] = x;
    }
}
float gelu(float x)
{
    return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}
float gelu_slope(float x)
{
    float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 0.134145f * x * x);
}

float as_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Copies a matrix to row-major order, transposed if needed: out[r][c]. */
std::vector<float> plain(const void *from, const Layout &l, bool transpose, bool tf32)
{
    uint64_t rows = transpose ? l.columns : l.rows, columns = transpose ? l.rows : l.columns;
    std::vector<float> out(rows * columns);
    for (uint64_t r = 0; r < rows; ++r)
        for (uint64_t c = 0; c < columns; ++c) {
            uint64_t i = transpose ? c : r, j = transpose ? r : c;
            float x = value(from, l.type, int64_t(i) + int64_t(j) * l.stride);
            out[r * columns + c] = tf32 ? as_tf32(x) : x;
        }
    return out;
}
Layout &layout(const void *of)
{
    Layout *l;
    memcpy(&l, of, sizeof l);
    return *l;
}
Desc &desc(const void *of)
{
    Desc *d;
    memcpy(&d, of, sizeof d);
    return *d;
}
bool aligned(const void *pointer)
{
    return pointer && reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}
/* Returns true for an epilogue that is documented and whose pointers are set and aligned. An
 * epilogue with a bias gradient is refused if the columns are not aligned to 16 bytes; the backend
 * must then compute the bias gradient by another kernel. */
bool good_epilogue(const Desc &m, const Layout &b, const Layout &d)
{
    if (m.epilogue != CUBLASLT_EPILOGUE_DEFAULT && m.epilogue & ~KNOWN) return false;
    if (m.has(BIAS | SUM_B) && !aligned(m.bias)) return false;
    if (m.has(AUX))
        return m.has(GELU) != m.has(SLOPE) && aligned(m.aux) && m.aux_stride % 8 == 0 &&
               m.aux_stride >= int64_t(d.rows);
    return !m.has(SUM_B) || b.stride * (b.type == CUDA_R_32F ? 4 : 2) % 16 == 0;
}

/* Returns true for matrices of the same type and size; strides may differ. */
bool same_size(const Layout &c, const Layout &d)
{
    return c.type == d.type && c.rows == d.rows && c.columns == d.columns;
}
/* Algorithms in the order in which they are proposed. IN_SLICES rounds the partial sum to d's type
 * after each slice of k, and is offered only if columns are not aligned. IN_PLACE requires that c
 * is d. OUT_OF_PLACE requires aligned columns, but not that c is d. REVERSED also requires that c
 * is d, and adds the products from the last to the first. */
enum Algorithm { IN_SLICES, IN_PLACE, OUT_OF_PLACE, REVERSED, ALGORITHMS };
const uint64_t SLICES = 4;
bool is_offered(Algorithm algorithm, const Layout &c, const Layout &d)
{
    size_t size = d.type == CUDA_R_32F ? 4 : 2;
    bool even = c.stride * size % 16 == 0 && d.stride * size % 16 == 0;
    return algorithm == IN_PLACE || algorithm == REVERSED || even == (algorithm == OUT_OF_PLACE);
}

/* The matrix, times beta, that is added to the product in fp32 before the result is rounded. */
struct Added {
    float beta;
    const void *c;
    Layout layout;

    float at(int64_t row, int64_t column) const
    {
        return beta == 0 ? 0 : beta * value(c, layout.type, row + column * layout.stride);
    }
};

float rounded(float x, cudaDataType_t type)
{
    float as_kept = 0;
    put(&as_kept, type, 0, x);
    return value(&as_kept, type, 0);
}

void multiply(const Desc &m, const void *a, const Layout &la, const void *b, const Layout &lb,
              const Added &added, void *d, const Layout &to, Algorithm how)
{
    std::vector<float> left = plain(a, la, m.turn_a == CUBLAS_OP_T, m.tf32),
                       right = plain(b, lb, m.turn_b != CUBLAS_OP_T, m.tf32);
    uint64_t inner = left.size() / to.rows;
    for (uint64_t j = 0; j < to.columns; ++j)
        for (uint64_t i = 0; i < to.rows; ++i) {
            float sum = 0;
            const float *x = &left[i * inner], *y = &right[j * inner];
            for (uint64_t k = 0; k < inner; ++k) {
                uint64_t term = how == REVERSED ? inner - 1 - k : k;
                sum += x[term] * y[term];
                if (how == IN_SLICES && (k + 1) * SLICES % inner < SLICES) sum = rounded(sum, to.type);
            }
            sum += added.at(int64_t(i), int64_t(j));
            if (m.has(BIAS)) sum += value(m.bias, to.type, int64_t(i));
            int64_t aux = int64_t(i) + int64_t(j) * m.aux_stride;
            if (m.has(SLOPE)) sum *= gelu_slope(value(m.aux, to.type, aux));
            if (m.has(GELU)) put(m.aux, to.type, aux, sum), sum = gelu(sum);
            if (m.has(RELU) && !(sum > 0)) sum = 0;
            put(d, to.type, int64_t(i) + int64_t(j) * to.stride, sum);
        }
    for (uint64_t j = 0; j < to.columns && m.has(SUM_B); ++j) {
        float sum = 0;
        for (uint64_t k = 0; k < inner; ++k) sum += right[j * inner + k];
        put(m.bias, to.type, int64_t(j), sum);
    }
}
} // namespace

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = reinterpret_cast<cublasLtHandle_t>(malloc(1));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t)
{
    Desc *d = new Desc{};
    d->tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    *out = static_cast<cublasLtMatmulDesc_t>(malloc(sizeof **out));
    memcpy(static_cast<void *>(*out), &d, sizeof d);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of)
{
    delete &desc(of);
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    Desc &d = desc(of);
    void *to = which == CUBLASLT_MATMUL_DESC_TRANSA         ? static_cast<void *>(&d.turn_a)
               : which == CUBLASLT_MATMUL_DESC_TRANSB       ? static_cast<void *>(&d.turn_b)
               : which == CUBLASLT_MATMUL_DESC_EPILOGUE     ? static_cast<void *>(&d.epilogue)
               : which == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? static_cast<void *>(&d.bias)
               : which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ? static_cast<void *>(&d.aux)
               : which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? static_cast<void *>(&d.aux_stride)
                                                               : nullptr;
    if (!to) return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    if (stride < int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
    Layout *l = new Layout{type, rows, columns, stride};
    *out = static_cast<cublasLtMatrixLayout_t>(malloc(sizeof **out));
    memcpy(static_cast<void *>(*out), &l, sizeof l);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of)
{
    delete &layout(of);
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = static_cast<cublasLtMatmulPreference_t>(malloc(sizeof **out));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of)
{
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t of,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t result[], int *found)
{
    const Desc &m = desc(of);
    bool ta = m.turn_a == CUBLAS_OP_T, tb = m.turn_b == CUBLAS_OP_T;
    const Layout &la = layout(a), &lb = layout(b), &lc = layout(c), &ld = layout(d);
    uint64_t rows = ta ? la.columns : la.rows, inner = ta ? la.rows : la.columns;
    uint64_t columns = tb ? lb.rows : lb.columns, other = tb ? lb.columns : lb.rows;
    *found = 0;
    if (rows != ld.rows || columns != ld.columns || inner != other || la.type != lb.type ||
        !same_size(lc, ld) || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!good_epilogue(m, lb, ld)) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (Algorithm each : {IN_SLICES, IN_PLACE, OUT_OF_PLACE, REVERSED}) {
        if (*found == wanted || !is_offered(each, lc, ld)) continue;
        result[*found] = {};
        result[*found].algo.data[0] = each;
        result[(*found)++].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t which, void *to,
                                                 size_t bytes, size_t *written)
{
    int32_t can = algorithm->data[0] == OUT_OF_PLACE;
    if (which != CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT || bytes != sizeof can)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &can, *written = sizeof can);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void *to, size_t bytes, size_t *written)
{
    uint32_t value = CUBLASLT_REDUCTION_SCHEME_NONE;
    if (which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
        value = algorithm->data[0] == IN_SLICES ? uint32_t(SLICES) : 1;
    else if (which != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &value, *written = sizeof value);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t of, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *, size_t,
                              cudaStream_t stream)
{
    const Desc m = desc(of);
    const Layout la = layout(a_layout), lb = layout(b_layout), to = layout(d_layout);
    const Added added = {*static_cast<const float *>(beta), c, layout(c_layout)};
    const Algorithm how = Algorithm(algorithm->data[0]);
    if (*static_cast<const float *>(alpha) != 1 || !good_epilogue(m, lb, to) ||
        !is_offered(how, added.layout, to) || (c != d && added.beta != 0 && how != OUT_OF_PLACE))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!same_size(added.layout, to) || (c == d && added.layout.stride != to.stride) ||
        (added.beta != 0 && !aligned(c)))
        return CUBLAS_STATUS_INVALID_VALUE;
    emulate::enqueue(stream, [=] {
        multiply(m, a, la, b, lb, added, d, to, how);
        emulate::spend_time(how);
    });
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    if (algorithm->data[0] >= ALGORITHMS) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_offered(Algorithm(algorithm->data[0]), layout(c), layout(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
    *result = {};
    result->algo = *algorithm;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}
/* EMULATE_CUBLASLT: version number to report. */
size_t cublasLtGetVersion(void)
{
    return emulate::environment("EMULATE_CUBLASLT", 0);
}
const char *cublasLtGetStatusString(cublasStatus_t)
{
    return "emulated";
}
}
