/* Activations, forward and backward, and sums of activations. */
#include "act.cuh"
#include "elem.cuh"

template <class T, Act ACT> static __global__ void forward_kernel(T *y, const T *x, int64_t n)
{
    each_pack<T>(n, [&](int64_t i, int count) {
        float v[Pack<T>::COUNT];
        load(v, x + i, count);
        for (int k = 0; k < count; ++k) v[k] = act_value<ACT>(v[k]);
        store(y + i, v, count);
    });
}

template <class T, Act ACT>
static __global__ void backward_kernel(T *dx, const T *dy, const T *at, int64_t n)
{
    each_pack<T>(n, [&](int64_t i, int count) {
        float v[Pack<T>::COUNT], a[Pack<T>::COUNT];
        load(v, dy + i, count);
        load(a, at + i, count);
        for (int k = 0; k < count; ++k) v[k] *= act_slope<ACT>(a[k]);
        store(dx + i, v, count);
    });
}

template <class T> static __global__ void sum_kernel(T *y, const T *a, const T *b, int64_t n)
{
    each_pack<T>(n, [&](int64_t i, int count) {
        float v[Pack<T>::COUNT], w[Pack<T>::COUNT];
        load(v, a + i, count);
        load(w, b + i, count);
        for (int k = 0; k < count; ++k) v[k] += w[k];
        store(y + i, v, count);
    });
}

template <class TO, class FROM>
static __global__ void convert_kernel(TO *to, const FROM *from, int64_t n)
{
    int64_t i = element();
    if (i < n) set(to + i, value_of(from[i]));
}

#define GRID(T) pack_blocks<T>(n), THREADS, 0, stream

cudaError_t cuda_activation(cudaStream_t stream, DType type, Act act, void *y, const void *x,
                            int64_t n)
{
#define LAUNCH_ACT(A) forward_kernel<Elem, A><<<GRID(Elem)>>>((Elem *)y, (const Elem *)x, n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    if (n > 0) TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaGetLastError();
}

cudaError_t cuda_activation_backward(cudaStream_t stream, DType type, Act act, void *dx,
                                     const void *dy, const void *at, int64_t n)
{
#define LAUNCH_ACT(A)                                                                              \
    backward_kernel<Elem, A><<<GRID(Elem)>>>((Elem *)dx, (const Elem *)dy, (const Elem *)at, n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    if (n > 0) TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaGetLastError();
}

cudaError_t cuda_sum(cudaStream_t stream, DType type, void *y, const void *a, const void *b,
                     int64_t n)
{
#define LAUNCH(T) sum_kernel<T><<<GRID(T)>>>((T *)y, (const T *)a, (const T *)b, n)
    if (n > 0) TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
    return cudaGetLastError();
}

cudaError_t cuda_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                         const void *from, int64_t n)
{
#define GRID_EACH         blocks_for(n, THREADS), THREADS, 0, stream
#define FROM_TO(FROM, TO) convert_kernel<TO, FROM><<<GRID_EACH>>>((TO *)to, (const FROM *)from, n)
#define LAUNCH(T)                                                                                  \
    if (to_type == DTYPE_BF16)                                                                     \
        FROM_TO(T, __nv_bfloat16);                                                                 \
    else                                                                                           \
        FROM_TO(T, float)
    if (n > 0) TYPE_SWITCH(from_type, LAUNCH);
    return cudaGetLastError();
}
