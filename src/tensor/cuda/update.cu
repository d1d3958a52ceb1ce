/* Updates of the parameters and of their average. An element must get the same bits whether it is
 * processed in a pack or alone. Therefore update rules use explicit fused multiply-adds; otherwise
 * the compiler might fuse in only one of the two cases. */
#include "passes/map.cuh"

/* elements that a thread processes at a time */
enum { E = PACK(float) };

/* Returns the arguments with the numbers of the current step. Unless a.numbers is NULL, these are
 * read from device memory, because a replayed launch has the arguments of the step in which it was
 * recorded. */
static __device__ __forceinline__ SgdArgs with_step_numbers(SgdArgs a)
{
    if (!a.numbers) return a;
    a.lr = a.numbers->lr;
    a.grad_scale = a.numbers->grad_scale;
    a.momentum = a.numbers->momentum;
    a.average_rate = a.numbers->average_rate;
    return a;
}

static __device__ __forceinline__ AdamArgs with_step_numbers(AdamArgs a)
{
    if (!a.numbers) return a;
    a.lr = a.numbers->lr;
    a.grad_scale = a.numbers->grad_scale;
    a.beta1 = a.numbers->momentum;
    a.average_rate = a.numbers->average_rate;
    a.correct1 = a.numbers->correct1;
    a.correct2 = a.numbers->correct2;
    return a;
}

/* Moves elements i .. i + COUNT - 1 of an average towards w[0 .. COUNT - 1]. */
template <int COUNT>
static __device__ __forceinline__ void average_elements(Average average, const float *w, int64_t i)
{
    float to[COUNT];
    read_floats<COUNT, true>(to, average.to + i);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) to[k] = __fmaf_rn(average.rate, w[k] - to[k], to[k]);
    write_floats<COUNT, true>(average.to + i, to);
}

template <int COUNT>
static __global__ void average_kernel(Average average, const UpdateNumbers *numbers, const float *w,
                                      int64_t n)
{
    int64_t i = element();
    float x[COUNT];
    if (numbers) average.rate = numbers->average_rate;
    if (i < n / COUNT) {
        read_floats<COUNT, true>(x, w + i * COUNT);
        average_elements<COUNT>(average, x, i * COUNT);
    }
    if (i < n % COUNT)
        average_elements<1>(average, w + n / COUNT * COUNT + i, n / COUNT * COUNT + i);
}

/* largest number of pieces of one launch */
enum { UPDATE_PIECES = 56 };
/* The pieces that a launch updates, each with blocks of its own: the launches of small pieces would
 * take longer than their work. The list is an argument of the kernel, which CUDA copies at the
 * call. */
typedef struct UpdateList {
    int count;
    /* first_block[i]: number of blocks of the pieces before piece i */
    unsigned first_block[UPDATE_PIECES];
    UpdatePiece piece[UPDATE_PIECES];
} UpdateList;
static_assert(sizeof(UpdateList) + sizeof(AdamArgs) + sizeof(float *) <= 4096,
              "before CUDA 12.1 a kernel has at most 4096 bytes of arguments");

/* Returns the piece of this block. *i: number of this thread in the piece. */
static __device__ __forceinline__ const UpdatePiece &piece_of_block(const UpdateList &list,
                                                                    int64_t *i)
{
    int at = 0;
    for (int end = list.count; end - at > 1;) {
        const int middle = (at + end) / 2;
        if (list.first_block[middle] <= blockIdx.x)
            at = middle;
        else
            end = middle;
    }
    *i = (int64_t)(blockIdx.x - list.first_block[at]) * THREADS + threadIdx.x;
    return list.piece[at];
}

/* Writes w[0 .. COUNT - 1] to elements i .. i + COUNT - 1 of a copy in a 16-bit type. */
template <int COUNT>
static __device__ __forceinline__ void copy_elements(DType type, void *copy, const float *w,
                                                     int64_t i)
{
    if (type == DTYPE_BF16)
        write_floats<COUNT, true>((__nv_bfloat16 *)copy + i, w);
    else
        write_floats<COUNT, true>((__half *)copy + i, w);
}

/* Updates elements i .. i + COUNT - 1. */
template <int COUNT>
static __device__ __forceinline__ void sgd_elements(const SgdArgs &a, const UpdatePiece &piece,
                                                    int64_t i)
{
    float w[COUNT], g[COUNT], m[COUNT];
    bool has_momentum = a.momentum != 0;
    read_floats<COUNT, true>(w, piece.w + i);
    read_floats<COUNT, true>(g, piece.g + i);
    if (has_momentum && !a.m_is_empty) read_floats<COUNT, true>(m, piece.m + i);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float step = __fmaf_rn(g[k], a.grad_scale, piece.weight_decay * w[k]);
        if (has_momentum) {
            float velocity = a.m_is_empty ? step : __fmaf_rn(a.momentum, m[k], step);
            m[k] = velocity;
            step = a.nesterov ? __fmaf_rn(a.momentum, velocity, step) : velocity;
        }
        w[k] = __fmaf_rn(-a.lr, step, w[k]);
    }
    if (has_momentum) write_floats<COUNT, true>(piece.m + i, m);
    write_floats<COUNT, true>(piece.w + i, w);
    if (piece.copy) copy_elements<COUNT>(a.copy_type, piece.copy, w, i);
    if (piece.average) average_elements<COUNT>({piece.average, a.average_rate}, w, i);
}

/* Each thread updates COUNT elements of a piece. Each of the first n % COUNT threads of the piece
 * also updates one of its last n % COUNT elements. */
template <int COUNT> static __global__ void sgd_kernel(SgdArgs args, UpdateList list)
{
    int64_t i;
    const UpdatePiece &piece = piece_of_block(list, &i);
    const SgdArgs a = with_step_numbers(args);
    if (i < piece.n / COUNT) sgd_elements<COUNT>(a, piece, i * COUNT);
    if (i < piece.n % COUNT) sgd_elements<1>(a, piece, piece.n / COUNT * COUNT + i);
}

/* u: as in launch_adam */
template <int COUNT>
static __device__ __forceinline__ void adam_elements(const AdamArgs &a, float *u,
                                                     const UpdatePiece &piece, int64_t i)
{
    float w[COUNT], g[COUNT], m[COUNT], v[COUNT], out[COUNT];
    read_floats<COUNT, true>(w, piece.w + i);
    read_floats<COUNT, true>(g, piece.g + i);
    read_floats<COUNT, true>(m, piece.m + i);
    read_floats<COUNT, true>(v, piece.v + i);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        float weight = w[k], gradient = g[k] * a.grad_scale;
        if (!u && !a.decoupled) gradient = __fmaf_rn(piece.weight_decay, weight, gradient);
        m[k] = __fmaf_rn(a.beta1, m[k], (1 - a.beta1) * gradient);
        v[k] = __fmaf_rn(a.beta2, v[k], (1 - a.beta2) * gradient * gradient);
        float direction = (m[k] / a.correct1) / (sqrtf(v[k] / a.correct2) + a.eps);
        if (u) {
            out[k] = __fmaf_rn(piece.weight_decay, weight, direction);
        } else {
            if (a.decoupled) weight *= __fmaf_rn(-a.lr, piece.weight_decay, 1);
            out[k] = __fmaf_rn(-a.lr, direction, weight);
        }
    }
    write_floats<COUNT, true>(piece.m + i, m);
    write_floats<COUNT, true>(piece.v + i, v);
    write_floats<COUNT, true>((u ? u : piece.w) + i, out);
    if (u) return;
    if (piece.copy) copy_elements<COUNT>(a.copy_type, piece.copy, out, i);
    if (piece.average) average_elements<COUNT>({piece.average, a.average_rate}, out, i);
}

template <int COUNT> static __global__ void adam_kernel(AdamArgs args, float *u, UpdateList list)
{
    int64_t i;
    const UpdatePiece &piece = piece_of_block(list, &i);
    const AdamArgs a = with_step_numbers(args);
    if (i < piece.n / COUNT) adam_elements<COUNT>(a, u, piece, i * COUNT);
    if (i < piece.n % COUNT) adam_elements<1>(a, u, piece, piece.n / COUNT * COUNT + i);
}

/* Calls launch(blocks, list, aligned) for lists of at most UPDATE_PIECES pieces, which cover all
 * pieces that have elements. aligned: true if u and all arrays of the list's pieces are aligned to
 * packs, so that a thread updates E elements; else it updates one. */
template <class F>
static void in_lists(const float *u, const UpdatePiece *piece, int count, F launch)
{
    for (int at = 0; at < count;) {
        UpdateList list = {};
        bool aligned = aligned_to_packs(u);
        for (; at < count && list.count < UPDATE_PIECES; ++at) {
            const UpdatePiece &p = piece[at];
            if (p.n == 0) continue;
            list.piece[list.count++] = p;
            aligned = aligned && aligned_to_packs(p.w, p.g, p.m, p.v) &&
                      aligned_to_packs(p.average, p.copy);
        }
        unsigned blocks = 0;
        for (int i = 0; i < list.count; ++i) {
            list.first_block[i] = blocks;
            blocks += blocks_for(list.piece[i].n, aligned ? THREADS * E : THREADS);
        }
        if (list.count > 0) launch(blocks, list, aligned);
    }
}

cudaError_t launch_sgd(cudaStream_t stream, SgdArgs a, const UpdatePiece *piece, int count)
{
    in_lists(nullptr, piece, count, [&](unsigned blocks, const UpdateList &list, bool aligned) {
        if (aligned)
            sgd_kernel<E><<<blocks, THREADS, 0, stream>>>(a, list);
        else
            sgd_kernel<1><<<blocks, THREADS, 0, stream>>>(a, list);
    });
    return cudaGetLastError();
}

cudaError_t launch_adam(cudaStream_t stream, AdamArgs a, float *u, const UpdatePiece *piece,
                        int count)
{
    in_lists(u, piece, count, [&](unsigned blocks, const UpdateList &list, bool aligned) {
        if (aligned)
            adam_kernel<E><<<blocks, THREADS, 0, stream>>>(a, u, list);
        else
            adam_kernel<1><<<blocks, THREADS, 0, stream>>>(a, u, list);
    });
    return cudaGetLastError();
}

cudaError_t launch_average(cudaStream_t stream, Average average, const UpdateNumbers *numbers,
                           const float *w, int64_t n)
{
    if (n > 0 && aligned_to_packs(average.to, w))
        average_kernel<E>
            <<<blocks_for(n, THREADS * E), THREADS, 0, stream>>>(average, numbers, w, n);
    else if (n > 0)
        average_kernel<1><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(average, numbers, w, n);
    return cudaGetLastError();
}
