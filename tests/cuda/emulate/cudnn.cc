/* As much of cuDNN as the backend calls: convolutions, channels last, by loops over host memory. */
#include <cuda_bf16.h>
#include <cudnn.h>
#include <cstdlib>
#include <cstring>
#include <vector>

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int n, c, h, w;
};
struct cudnnFilterStruct {
    cudnnDataType_t type;
    int o, c, r, s;
};
struct cudnnConvolutionStruct {
    int pad[2], stride[2], groups;
};

extern "C" void emulate_window(int open); /* runtime.cc: the GPU's memory can be touched */

namespace
{
std::vector<float> floats(const void *from, cudnnDataType_t type, size_t count)
{
    std::vector<float> out(count);
    emulate_window(1);
    for (size_t i = 0; i < count; ++i)
        out[i] = type == CUDNN_DATA_BFLOAT16
                     ? __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[i])
                     : static_cast<const float *>(from)[i];
    emulate_window(0);
    return out;
}
void put(void *to, cudnnDataType_t type, const std::vector<float> &from)
{
    emulate_window(1);
    for (size_t i = 0; i < from.size(); ++i)
        if (type == CUDNN_DATA_BFLOAT16)
            static_cast<__nv_bfloat16 *>(to)[i] = __float2bfloat16_rn(from[i]);
        else
            static_cast<float *>(to)[i] = from[i];
    emulate_window(0);
}
size_t count(cudnnTensorDescriptor_t t)
{
    return size_t(t->n) * t->c * t->h * t->w;
}
size_t count(cudnnFilterDescriptor_t w)
{
    return size_t(w->o) * w->c * w->r * w->s;
}
bool fits(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
          cudnnTensorDescriptor_t y)
{
    return x->n == y->n && x->c == w->c * c->groups && y->c == w->o && x->type == y->type &&
           x->type == w->type && y->h == (x->h + 2 * c->pad[0] - w->r) / c->stride[0] + 1 &&
           y->w == (x->w + 2 * c->pad[1] - w->s) / c->stride[1] + 1;
}
/* f(x's place, w's place, y's place) for every product of the convolution. */
template <class F>
void each(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
          cudnnTensorDescriptor_t y, F f)
{
    for (int n = 0; n < y->n; ++n)
        for (int p = 0; p < y->h; ++p)
            for (int q = 0; q < y->w; ++q)
                for (int o = 0; o < y->c; ++o)
                    for (int r = 0; r < w->r; ++r)
                        for (int s = 0; s < w->s; ++s) {
                            int h = p * c->stride[0] - c->pad[0] + r,
                                v = q * c->stride[1] - c->pad[1] + s;
                            if (h < 0 || h >= x->h || v < 0 || v >= x->w) continue;
                            int first = o / (y->c / c->groups) * w->c;
                            for (int k = 0; k < w->c; ++k)
                                f(((size_t(n) * x->h + h) * x->w + v) * x->c + first + k,
                                  ((size_t(o) * w->r + r) * w->s + s) * w->c + k,
                                  ((size_t(n) * y->h + p) * y->w + q) * y->c + o);
                        }
}
} // namespace

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = reinterpret_cast<cudnnHandle_t>(malloc(1));
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t)
{
    return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}
const char *cudnnGetErrorString(cudnnStatus_t)
{
    return "emulated";
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out)
{
    *out = new cudnnTensorStruct{};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t)
{
    delete t;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    *t = {type, n, c, h, w};
    return format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out)
{
    *out = new cudnnFilterStruct{};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t w)
{
    delete w;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t w, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int o, int c, int r, int s)
{
    *w = {type, o, c, r, s};
    return format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out)
{
    *out = new cudnnConvolutionStruct{};
    (*out)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t c)
{
    delete c;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t c, int pad_h, int pad_w,
                                              int u, int v, int dh, int dw,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
    *c = {{pad_h, pad_w}, {u, v}, c->groups};
    bool known =
        dh == 1 && dw == 1 && mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT;
    return known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups)
{
    c->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t)
{
    return CUDNN_STATUS_SUCCESS;
}
/* The first algorithm does not repeat its bits: nobody may take it. */
#define OFFER(list, found, good)                                                                   \
    memset(list, 0, 2 * sizeof *list);                                                             \
    *found = 2;                                                                                    \
    list[0].determinism = CUDNN_NON_DETERMINISTIC;                                                 \
    list[0].memory = size_t(1) << 40;                                                              \
    list[1].determinism = CUDNN_DETERMINISTIC;                                                     \
    list[1].memory = 100;                                                                          \
    return (good) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int,
                                                     int *found,
                                                     cudnnConvolutionFwdAlgoPerf_t *list)
{
    OFFER(list, found, fits(x, w, c, y));
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t x, const int, int *found,
    cudnnConvolutionBwdDataAlgoPerf_t *list)
{
    OFFER(list, found, fits(x, w, c, y));
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t w, const int, int *found,
    cudnnConvolutionBwdFilterAlgoPerf_t *list)
{
    OFFER(list, found, fits(x, w, c, y));
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void *, const cudnnTensorDescriptor_t x,
                                      const void *from, const cudnnFilterDescriptor_t w,
                                      const void *weights, const cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t, void *, size_t, const void *,
                                      const cudnnTensorDescriptor_t y, void *to)
{
    std::vector<float> a = floats(from, x->type, count(x)), b = floats(weights, w->type, count(w)),
                       out(count(y));
    each(x, w, c, y, [&](size_t i, size_t j, size_t k) { out[k] += a[i] * b[j]; });
    put(to, y->type, out);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void *,
                                           const cudnnFilterDescriptor_t w, const void *weights,
                                           const cudnnTensorDescriptor_t y, const void *dy,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t, void *, size_t,
                                           const void *, const cudnnTensorDescriptor_t x, void *dx)
{
    std::vector<float> a = floats(dy, y->type, count(y)), b = floats(weights, w->type, count(w)),
                       out(count(x));
    each(x, w, c, y, [&](size_t i, size_t j, size_t k) { out[i] += a[k] * b[j]; });
    put(dx, x->type, out);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void *,
                                             const cudnnTensorDescriptor_t x, const void *from,
                                             const cudnnTensorDescriptor_t y, const void *dy,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t, void *, size_t,
                                             const void *, const cudnnFilterDescriptor_t w,
                                             void *dw)
{
    std::vector<float> a = floats(from, x->type, count(x)), b = floats(dy, y->type, count(y)),
                       out(count(w));
    each(x, w, c, y, [&](size_t i, size_t j, size_t k) { out[j] += a[i] * b[k]; });
    put(dw, w->type, out);
    return CUDNN_STATUS_SUCCESS;
}
}
