/* As much of cuBLASLt as the backend calls, by loops over host memory. It believes nothing: what the backend forgets to say is an
 * error. */
#include "queue.h"

#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <vector>

namespace
{
struct Desc {
    cublasOperation_t turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};
struct Layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t stride;
};

float value(const void *from, cudaDataType_t type, int64_t at)
{
    return type == CUDA_R_16BF ? __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[at])
                               : static_cast<const float *>(from)[at];
}

/* Row-major and not turned: out[r][c]. */
std::vector<float> plain(const void *from, const Layout &l, bool turn)
{
    uint64_t rows = turn ? l.columns : l.rows, columns = turn ? l.rows : l.columns;
    std::vector<float> out(rows * columns);
    for (uint64_t r = 0; r < rows; ++r)
        for (uint64_t c = 0; c < columns; ++c) {
            uint64_t i = turn ? c : r, j = turn ? r : c;
            out[r * columns + c] = value(from, l.type, int64_t(i) + int64_t(j) * l.stride);
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

bool adds_bias(const Desc &m)
{
    return m.epilogue == CUBLASLT_EPILOGUE_BIAS || m.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

void multiply(const Desc &m, const void *a, const Layout &la, const void *b, const Layout &lb,
              void *d, const Layout &to)
{
    bool ta = m.turn_a == CUBLAS_OP_T, tb = m.turn_b == CUBLAS_OP_T;
    bool relu = m.epilogue == CUBLASLT_EPILOGUE_RELU || m.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    std::vector<float> left = plain(a, la, ta), right = plain(b, lb, !tb);
    uint64_t inner = left.size() / to.rows;
    for (uint64_t j = 0; j < to.columns; ++j)
        for (uint64_t i = 0; i < to.rows; ++i) {
            float sum = 0;
            const float *x = &left[i * inner], *y = &right[j * inner];
            for (uint64_t k = 0; k < inner; ++k) sum += x[k] * y[k];
            if (adds_bias(m)) sum += value(m.bias, to.type, int64_t(i));
            if (relu && !(sum > 0)) sum = 0;
            int64_t at = int64_t(i) + int64_t(j) * to.stride;
            if (to.type == CUDA_R_16BF)
                static_cast<__nv_bfloat16 *>(d)[at] = __float2bfloat16_rn(sum);
            else
                static_cast<float *>(d)[at] = sum;
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
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t,
                                        cudaDataType_t)
{
    Desc *d = new Desc{};
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
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t result[], int *found)
{
    const Desc &m = desc(of);
    bool ta = m.turn_a == CUBLAS_OP_T, tb = m.turn_b == CUBLAS_OP_T;
    const Layout &la = layout(a), &lb = layout(b), &ld = layout(d);
    uint64_t rows = ta ? la.columns : la.rows, inner = ta ? la.rows : la.columns;
    uint64_t columns = tb ? lb.rows : lb.columns, other = tb ? lb.columns : lb.rows;
    bool good =
        rows == ld.rows && columns == ld.columns && inner == other && la.type == lb.type && c == d;
    *found = good;
    result[0].state = good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    return result[0].state;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t of, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t stream)
{
    const Desc m = desc(of);
    const Layout la = layout(a_layout), lb = layout(b_layout), to = layout(d_layout);
    if (*static_cast<const float *>(beta) != 0 || *static_cast<const float *>(alpha) != 1 ||
        (adds_bias(m) && !m.bias))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    emulate::enqueue(stream, [=] { multiply(m, a, la, b, lb, d, to); });
    return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion(void)
{
    return 0;
}
const char *cublasLtGetStatusString(cublasStatus_t)
{
    return "emulated";
}
}
