/* What the benchmarks share: how long work takes on a backend, what products and copies reach
 * there, random memory. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "train.h"

/* Collective. */
double bench_sum_ranks(const World *world, double mine);
/* Collective. */
double bench_most_of_ranks(const World *world, double mine);

/* queues work on the compute stream */
typedef void (*BenchWork)(void *user);
/* Median seconds of one call on the backend's own clock, over about 0.2 s. */
double bench_seconds(Backend *backend, BenchWork work, void *user);

/* The ranks' dense operation of size x size x size in the backend's precision, on random numbers,
 * all at the same time. The size is the smallest power of two, from 256 on, of which one takes 5 ms
 * on rank 0; at most 8192. */
typedef struct BenchProduct {
    int64_t size;
    /* a second, of all ranks */
    double flops;
} BenchProduct;
/* Collective. */
Status bench_product(BenchProduct *product, Backend *backend, const World *world);
/* Bytes a second that a copy within the backend's memory reads and writes, where these are `bytes`
 * together. */
double bench_copy(Backend *backend, double bytes);

/* Numbers between low and low + 1 in the backend's memory; integers from 0 to below - 1. */
void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low);
void bench_fill_whole(Backend *backend, int32_t *to, int64_t elements, int64_t below);

/* Prints, on rank 0, the rate of each operation of the model that memory bounds, and of the
 * optimizer, beside a copy. The model's parameters and optimizer state are not the run's any more.
 * Ranks work at the same time; not collective. */
void bench_model(Trainer *trainer, bool json);

#endif
