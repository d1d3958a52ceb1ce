/* Elementwise kernels: activations, their gradients, sums with an activation, and conversions
 * between number formats. */
#include "act.cuh"
#include "map.cuh"

template <Act ACT> struct Forward {
    enum { INPUTS = 1 };
    __device__ __forceinline__ float operator()(float x, float) const { return act_value<ACT>(x); }
};

template <Act ACT> struct Backward {
    enum { INPUTS = 2 };
    __device__ __forceinline__ float operator()(float dy, float at) const
    {
        return dy * act_slope<ACT>(at);
    }
};

template <Act ACT> struct Sum {
    enum { INPUTS = 2 };
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return act_value<ACT>(a + b);
    }
};

#define NO_INPUT(T) ((const T *)nullptr)

cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, void *y, const void *x,
                              int64_t n)
{
#define LAUNCH_ACT(A)                                                                              \
    return map(stream, Forward<A>(), (Elem *)y, (const Elem *)x, NO_INPUT(Elem), n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaErrorInvalidValue;
}

cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, void *dx,
                                       const void *dy, const void *at, int64_t n)
{
#define LAUNCH_ACT(A)                                                                              \
    return map(stream, Backward<A>(), (Elem *)dx, (const Elem *)dy, (const Elem *)at, n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaErrorInvalidValue;
}

cudaError_t launch_add_act(cudaStream_t stream, DType type, Act act, void *y, const void *a,
                           const void *b, int64_t n)
{
#define LAUNCH_ACT(A) return map(stream, Sum<A>(), (Elem *)y, (const Elem *)a, (const Elem *)b, n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    ACT_SWITCH(act, LAUNCH_ACT)
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaErrorInvalidValue;
}

cudaError_t launch_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                           const void *from, int64_t n)
{
#define FROM_TO(FROM, TO)                                                                          \
    return map(stream, Forward<ACT_NONE>(), (TO *)to, (const FROM *)from, NO_INPUT(FROM), n)
#define LAUNCH(T)                                                                                  \
    if (to_type == DTYPE_BF16)                                                                     \
        FROM_TO(T, __nv_bfloat16);                                                                 \
    else if (to_type == DTYPE_F16)                                                                 \
        FROM_TO(T, __half);                                                                        \
    else                                                                                           \
        FROM_TO(T, float)
    TYPE_SWITCH(from_type, LAUNCH);
    return cudaErrorInvalidValue;
}
