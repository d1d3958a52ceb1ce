/* The contents of cuDNN's descriptors of tensors and operations, and an interpreter. The
 * interpreter runs the operations one after the other, in fp32 and in host memory, and rounds
 * tensors of type bf16 or fp16. */
#ifndef EMULATE_CUDNN_GRAPH_H
#define EMULATE_CUDNN_GRAPH_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace emulate
{
struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
};
struct Descriptor {
    cudnnBackendDescriptorType_t type;
    bool final = false;
    int64_t number = 0; /* index of a configuration among those proposed */
    std::map<int, Attribute> has;

    template <class T> T at(int name, int64_t i = 0) const
    {
        T out{};
        auto found = has.find(name);
        if (found != has.end() && i < found->second.count)
            memcpy(&out, found->second.bytes.data() + i * sizeof(T), sizeof(T));
        return out;
    }
    const Descriptor *part(int name, int64_t i = 0) const
    {
        return static_cast<const Descriptor *>(at<void *>(name, i));
    }
    int64_t count(int name) const
    {
        auto found = has.find(name);
        return found == has.end() ? 0 : found->second.count;
    }
    template <class T>
    void put(int name, cudnnBackendAttributeType_t kind, const std::vector<T> &values)
    {
        Attribute a{kind, int64_t(values.size()), std::vector<char>(values.size() * sizeof(T))};
        memcpy(a.bytes.data(), values.data(), a.bytes.size());
        has[name] = a;
    }
};

/* ---- tensors ---- */
struct Tensor {
    int64_t uid = 0, dim[4], stride[4];
    cudnnDataType_t type;
    bool is_virtual, is_value;

    Tensor() = default;
    explicit Tensor(const Descriptor *d)
        : uid(d->at<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
          type(d->at<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
          is_virtual(d->at<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
          is_value(d->at<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
    {
        for (int i = 0; i < 4; ++i) {
            dim[i] = d->at<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
            stride[i] = d->at<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i);
        }
    }
    int64_t count() const { return dim[0] * dim[1] * dim[2] * dim[3]; }
    /* Returns the position in memory of element i, counted in the order of dimensions. */
    int64_t place(int64_t i) const
    {
        int64_t out = 0;
        for (int d = 3; d >= 0; i /= dim[d--]) out += i % dim[d] * stride[d];
        return out;
    }
    /* Returns the index of the element that is read for element i of y. A dimension of 1 is
     * broadcast. */
    int64_t spread(int64_t i, const Tensor &y) const
    {
        int64_t at[4], out = 0;
        for (int d = 3; d >= 0; i /= y.dim[d--]) at[d] = i % y.dim[d];
        for (int d = 0; d < 4; ++d) out = out * dim[d] + (dim[d] == 1 ? 0 : at[d]);
        return out;
    }
    bool spreads(const Tensor &y) const
    {
        for (int d = 0; d < 4; ++d)
            if (dim[d] != 1 && dim[d] != y.dim[d]) return false;
        return true;
    }
    bool same(const Tensor &y) const { return memcmp(dim, y.dim, sizeof dim) == 0; }
    float rounded(float value) const
    {
        if (type == CUDNN_DATA_BFLOAT16) return __bfloat162float(__float2bfloat16_rn(value));
        return type == CUDNN_DATA_HALF ? __half2float(__float2half_rn(value)) : value;
    }
};

/* ---- operations ---- */
struct Operation {
    cudnnBackendDescriptorType_t type;
    int mode = 0;
    int64_t axis = 0, stride[2] = {1, 1}, pad[2] = {0, 0};
    /* factor of the previous values of y, which are added to the result; used only for the gradient
     * of a convolution's input */
    float beta = 0;
    Tensor y;
    std::vector<Tensor> in;

    explicit Operation(const Descriptor *d) : type(d->type)
    {
        switch (type) {
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
            const Descriptor *inner = d->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
            mode = inner->at<int>(CUDNN_ATTR_POINTWISE_MODE);
            axis = inner->count(CUDNN_ATTR_POINTWISE_AXIS)
                       ? inner->at<int64_t>(CUDNN_ATTR_POINTWISE_AXIS)
                       : -1;
            tensors(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                    {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                     CUDNN_ATTR_OPERATION_POINTWISE_TDESC});
            break;
        }
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            tensors(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                    {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC});
            break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            mode = d->part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                       ->at<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
            tensors(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                    {CUDNN_ATTR_OPERATION_REDUCTION_XDESC});
            break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
            convolution(d->part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
            tensors(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W});
            break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
            convolution(d->part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
            beta = d->at<float>(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
            tensors(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W});
            break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            convolution(d->part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
            tensors(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY});
            break;
        default:
            tensors(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC});
        }
    }
    void convolution(const Descriptor *inner)
    {
        for (int i = 0; i < 2; ++i) {
            stride[i] = inner->at<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
            pad[i] = inner->at<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        }
    }
    bool is_conv() const
    {
        return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
               type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
               type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    }
    /* Returns a convolution's input, or the gradient of the input. */
    const Tensor &image() const
    {
        return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? y : in[0];
    }
    const Tensor &weights() const
    {
        return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? y : in[1];
    }
    const Tensor &result() const
    {
        if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return y;
        return in[type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR];
    }
    /* Returns true if the shapes of a convolution's tensors match, and their types are equal; cuDNN
     * has no engine that converts between types. */
    bool conv_fits() const
    {
        const Tensor &x = image(), &w = weights(), &to = result();
        bool good = x.dim[0] == to.dim[0] && to.dim[1] == w.dim[0] && w.dim[1] > 0 &&
                    x.dim[1] % w.dim[1] == 0 && to.dim[1] % (x.dim[1] / w.dim[1]) == 0 &&
                    x.type == w.type && x.type == to.type;
        for (int i = 0; i < 2; ++i)
            good =
                good && to.dim[2 + i] == (x.dim[2 + i] + 2 * pad[i] - w.dim[2 + i]) / stride[i] + 1;
        return good;
    }
    void tensors(const Descriptor *d, int to, const std::vector<int> &from)
    {
        y = Tensor(d->part(to));
        for (int name : from)
            if (d->count(name)) in.emplace_back(d->part(name));
    }
    /* Returns the number of inputs that the operation needs. */
    size_t input_count() const
    {
        if (type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR || is_conv()) return 2;
        if (type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return 1;
        switch (mode) {
        case CUDNN_POINTWISE_EXP:
        case CUDNN_POINTWISE_LOG:
        case CUDNN_POINTWISE_RELU_FWD:
        case CUDNN_POINTWISE_GEN_INDEX:
            return 1;
        case CUDNN_POINTWISE_BINARY_SELECT:
            return 3;
        default:
            return 2;
        }
    }
    bool fits() const
    {
        if (in.size() != input_count()) return false;
        if (is_conv()) return conv_fits();
        const int64_t *a = in[0].dim, *b = in.size() > 1 ? in[1].dim : nullptr;
        switch (type) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            return a[0] == b[0] && a[1] == b[1] && a[3] == b[2] && y.dim[0] == a[0] &&
                   y.dim[1] == a[1] && y.dim[2] == a[2] && y.dim[3] == b[3];
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            return y.spreads(in[0]);
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            return y.count() == in[0].count();
        default:
            for (const Tensor &t : in)
                if (!t.spreads(y)) return false;
            return in[0].same(y) && (mode != CUDNN_POINTWISE_GEN_INDEX || (axis >= 0 && axis < 4));
        }
    }
};

/* ---- the interpreter ---- */
using Values = std::map<int64_t, std::vector<float>>;

inline float pointwise(const Operation &op, int64_t i, const float *v)
{
    switch (op.mode) {
    case CUDNN_POINTWISE_ADD:
        return v[0] + v[1];
    case CUDNN_POINTWISE_SUB:
        return v[0] - v[1];
    case CUDNN_POINTWISE_MUL:
        return v[0] * v[1];
    case CUDNN_POINTWISE_DIV:
        return v[0] / v[1];
    case CUDNN_POINTWISE_EXP:
        return expf(v[0]);
    case CUDNN_POINTWISE_LOG:
        return logf(v[0]);
    case CUDNN_POINTWISE_RELU_FWD:
        return v[0] > 0 ? v[0] : 0;
    case CUDNN_POINTWISE_CMP_GE:
        return v[0] >= v[1];
    case CUDNN_POINTWISE_BINARY_SELECT:
        return v[2] != 0 ? v[0] : v[1];
    case CUDNN_POINTWISE_GEN_INDEX:
        for (int d = 3; d > op.axis; --d) i /= op.y.dim[d];
        return float(i % op.y.dim[op.axis]);
    default:
        return NAN;
    }
}
inline void run_pointwise(const Operation &op, const Values &values, std::vector<float> &y)
{
    for (int64_t i = 0; i < op.y.count(); ++i) {
        float v[3] = {0, 0, 0};
        for (size_t k = 0; k < op.in.size(); ++k)
            v[k] = values.at(op.in[k].uid)[op.in[k].spread(i, op.y)];
        y[i] = pointwise(op, i, v);
    }
}
inline void run_matmul(const Operation &op, const Values &values, std::vector<float> &y)
{
    const std::vector<float> &a = values.at(op.in[0].uid), &b = values.at(op.in[1].uid);
    const int64_t m = op.y.dim[2], n = op.y.dim[3], k = op.in[0].dim[3];
    for (int64_t head = 0; head < op.y.dim[0] * op.y.dim[1]; ++head)
        for (int64_t r = 0; r < m; ++r)
            for (int64_t c = 0; c < n; ++c) {
                float sum = 0;
                for (int64_t i = 0; i < k; ++i)
                    sum += a[(head * m + r) * k + i] * b[(head * k + i) * n + c];
                y[(head * m + r) * n + c] = sum;
            }
}
inline void run_reduction(const Operation &op, const Values &values, std::vector<float> &y)
{
    const bool most = op.mode == CUDNN_REDUCE_TENSOR_MAX;
    const std::vector<float> &x = values.at(op.in[0].uid);
    y.assign(y.size(), most ? -INFINITY : 0);
    for (size_t i = 0; i < x.size(); ++i) {
        float &to = y[op.y.spread(int64_t(i), op.in[0])];
        to = most ? fmaxf(to, x[i]) : to + x[i];
    }
}
/* Gives y the elements of x's memory with other dimensions and strides. */
inline void run_reshape(const Operation &op, const Values &values, std::vector<float> &y)
{
    const std::vector<float> &x = values.at(op.in[0].uid);
    std::map<int64_t, float> memory;
    for (size_t i = 0; i < x.size(); ++i) memory[op.in[0].place(int64_t(i))] = x[i];
    for (size_t i = 0; i < y.size(); ++i) y[i] = memory.at(op.y.place(int64_t(i)));
}
/* Calls f(position in x, position in w, position in y) for every product of a convolution, in the
 * order of dimensions. */
template <class F> inline void each_product(const Operation &op, F f)
{
    const int64_t *x = op.image().dim, *w = op.weights().dim, *y = op.result().dim;
    const int64_t of_group = y[1] / (x[1] / w[1]);
    for (int64_t n = 0; n < y[0]; ++n)
        for (int64_t o = 0; o < y[1]; ++o)
            for (int64_t c = 0; c < w[1]; ++c)
                for (int64_t p = 0; p < y[2]; ++p)
                    for (int64_t r = 0; r < w[2]; ++r) {
                        int64_t h = p * op.stride[0] - op.pad[0] + r;
                        if (h < 0 || h >= x[2]) continue;
                        int64_t from = ((n * x[1] + o / of_group * w[1] + c) * x[2] + h) * x[3];
                        int64_t weight = ((o * w[1] + c) * w[2] + r) * w[3];
                        int64_t to = ((n * y[1] + o) * y[2] + p) * y[3];
                        for (int64_t s = 0; s < w[3]; ++s) {
                            int64_t step = op.stride[1], off = s - op.pad[1];
                            int64_t first = off < 0 ? (-off + step - 1) / step : 0;
                            int64_t end =
                                off < x[3] ? std::min(y[3], (x[3] - 1 - off) / step + 1) : 0;
                            for (int64_t q = first; q < end; ++q)
                                f(from + q * step + off, weight + s, to + q);
                        }
                    }
}
inline void run_convolution(const Operation &op, const Values &values, std::vector<float> &y)
{
    const float *a = values.at(op.in[0].uid).data(), *b = values.at(op.in[1].uid).data();
    float *to = y.data();
    switch (op.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        each_product(op, [=](int64_t i, int64_t j, int64_t k) { to[k] += a[i] * b[j]; });
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        each_product(op, [=](int64_t i, int64_t j, int64_t k) { to[i] += a[k] * b[j]; });
        for (size_t i = 0; op.beta != 0 && i < y.size(); ++i)
            to[i] += op.beta * values.at(op.y.uid)[i];
        break;
    default:
        each_product(op, [=](int64_t i, int64_t j, int64_t k) { to[j] += a[i] * b[k]; });
    }
}
inline void run_operation(const Operation &op, Values &values)
{
    std::vector<float> y(op.y.count());
    switch (op.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        run_matmul(op, values, y);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        run_reduction(op, values, y);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        run_reshape(op, values, y);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        run_convolution(op, values, y);
        break;
    default:
        run_pointwise(op, values, y);
    }
    for (float &v : y) v = op.y.rounded(v);
    values[op.y.uid] = y;
}
inline float load_one(cudnnDataType_t type, const void *from, int64_t at)
{
    if (type == CUDNN_DATA_BFLOAT16)
        return __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[at]);
    if (type == CUDNN_DATA_HALF) return __half2float(static_cast<const __half *>(from)[at]);
    return static_cast<const float *>(from)[at];
}
inline std::vector<float> load(const Tensor &t, const void *from)
{
    std::vector<float> out(t.count());
    for (int64_t i = 0; i < t.count(); ++i) out[i] = load_one(t.type, from, t.place(i));
    return out;
}
inline void store(const Tensor &t, void *to, const std::vector<float> &from)
{
    for (int64_t i = 0; i < t.count(); ++i)
        if (t.type == CUDNN_DATA_BFLOAT16)
            static_cast<__nv_bfloat16 *>(to)[t.place(i)] = __float2bfloat16_rn(from[i]);
        else if (t.type == CUDNN_DATA_HALF)
            static_cast<__half *>(to)[t.place(i)] = __float2half_rn(from[i]);
        else
            static_cast<float *>(to)[t.place(i)] = from[i];
}
} // namespace emulate

#endif
