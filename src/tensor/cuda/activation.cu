/* Elementwise kernels: activations, their gradients, sums with an activation, and conversions
 * between number formats. */
#include "passes/act.cuh"
#include "passes/map.cuh"

template <Act ACT> struct Forward {
    enum { INPUTS = 1 };
    float factor;
    __device__ __forceinline__ float operator()(float x, float) const
    {
        return act_value<ACT>(x, factor);
    }
};

template <Act ACT> struct Backward {
    enum { INPUTS = 2 };
    float factor;
    __device__ __forceinline__ float operator()(float dy, float at) const
    {
        return dy * act_slope<ACT>(at, factor);
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
/* The case of one activation in a switch over all activations. LAUNCH_ACT(A) launches the kernel
 * and returns from the launcher. */
#define ACT_CASE(ACT, name, facts)                                                                 \
    case ACT_##ACT:                                                                                \
        LAUNCH_ACT(ACT_##ACT);

cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, float factor, void *y,
                              const void *x, int64_t n)
{
#define LAUNCH_ACT(A)                                                                              \
    return map(stream, Forward<A>{factor}, (Elem *)y, (const Elem *)x, NO_INPUT(Elem), n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    switch (act) {                                                                                 \
        ACTIVATIONS(ACT_CASE)                                                                      \
    }
    TYPE_SWITCH(type, LAUNCH);
#undef LAUNCH
#undef LAUNCH_ACT
    return cudaErrorInvalidValue;
}

cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, float factor,
                                       void *dx, const void *dy, const void *at, int64_t n)
{
#define LAUNCH_ACT(A)                                                                              \
    return map(stream, Backward<A>{factor}, (Elem *)dx, (const Elem *)dy, (const Elem *)at, n)
#define LAUNCH(T)                                                                                  \
    typedef T Elem;                                                                                \
    switch (act) {                                                                                 \
        ACTIVATIONS(ACT_CASE)                                                                      \
    }
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
    return map(stream, Forward<ACT_NONE>{0}, (TO *)to, (const FROM *)from, NO_INPUT(FROM), n)
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
