/* Passes over arrays: to[i] = f(a[i], b[i]). */
#ifndef WEFT_MAP_CUH
#define WEFT_MAP_CUH

#include "elem.cuh"

/* BATCH: number of packs of E elements that a thread loads at a time from each input. It is at
 * least 1 and at most 4; within these limits, BATCH_BYTES are in flight. */
template <class F, class FROM, int E> struct MapSize {
    enum {
        BYTES = E * (int)sizeof(FROM) * (F::INPUTS > 1 ? 2 : 1),
        BATCH = 4 * BYTES < BATCH_BYTES ? 4
                : BYTES < BATCH_BYTES   ? BATCH_BYTES / BYTES
                                        : 1
    };
};

/* Computes to[0 .. n). F::INPUTS: number of arrays that are read: 0, 1 (only a) or 2 (a and b).
 * `to` may be an array that is read if TO is FROM. */
template <class F, class TO, class FROM, int E>
static __global__ void map_kernel(F f, TO *to, const FROM *a, const FROM *b, int64_t n)
{
    enum { BATCH = MapSize<F, FROM, E>::BATCH };
    int64_t i = (int64_t)blockIdx.x * THREADS * BATCH + threadIdx.x, last = n / E;
    auto load = [&](int64_t at) {
        TwoPacks<FROM, E> v = {};
        if (F::INPUTS > 0) v.a = read_pack<E, true>(a + at * E);
        if (F::INPUTS > 1) v.b = read_pack<E, true>(b + at * E);
        return v;
    };
    auto finish = [&](int64_t at, const TwoPacks<FROM, E> &v) {
        float out[E];
#pragma unroll
        for (int k = 0; k < E; ++k)
            out[k] = f(F::INPUTS > 0 ? v.a[k] : 0, F::INPUTS > 1 ? v.b[k] : 0);
        write_floats<E, true>(to + at * E, out);
    };
    if (i + (BATCH - 1) * THREADS < last)
        batch<BATCH, true>(i, last, THREADS, load, finish);
    else
        batch<BATCH, false>(i, last, THREADS, load, finish);
    int64_t rest = n / E * E + threadIdx.x;
    if (blockIdx.x == 0 && rest < n)
        store_float(to + rest, f(F::INPUTS > 0 ? as_float(a[rest]) : 0,
                                 F::INPUTS > 1 ? as_float(b[rest]) : 0));
}

template <int E, class F, class TO, class FROM>
static void launch_map(cudaStream_t stream, F f, TO *to, const FROM *a, const FROM *b, int64_t n)
{
    unsigned blocks = blocks_for(n, (int64_t)THREADS * E * MapSize<F, FROM, E>::BATCH);
    map_kernel<F, TO, FROM, E><<<blocks, THREADS, 0, stream>>>(f, to, a, b, n);
}

template <class F, class TO, class FROM>
static cudaError_t map(cudaStream_t stream, F f, TO *to, const FROM *a, const FROM *b, int64_t n)
{
    enum { E = sizeof(TO) < sizeof(FROM) ? PACK(TO) : PACK(FROM) };
    if (n > 0 && aligned_to_packs(to, a, b))
        launch_map<E>(stream, f, to, a, b, n);
    else if (n > 0)
        launch_map<1>(stream, f, to, a, b, n);
    return cudaGetLastError();
}

#endif
