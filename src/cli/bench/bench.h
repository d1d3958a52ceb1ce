/* Shared by the benchmarks: timing on a backend, the rates of matrix products and copies there, and
 * random memory. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "train.h"

/* Sum over ranks. Collective. */
double bench_sum_ranks(const World *world, double mine);
/* Maximum over ranks. Collective. */
double bench_most_of_ranks(const World *world, double mine);

/* Queues work on the compute stream. */
typedef void (*BenchWork)(void *user);
/* Returns the median seconds of one call on the backend's own clock, measured for about 0.2 s. */
double bench_seconds(Backend *backend, BenchWork work, void *user);

/* Matrix products of size x size x size in the backend's precision, on random numbers, on all ranks
 * at the same time. size: the smallest power of two from 256 on for which a product takes 5 ms on
 * rank 0; at most 8192. */
typedef struct BenchProduct {
    int64_t size;
    /* flop/s of all ranks together */
    double flops;
} BenchProduct;
/* Collective. */
Status bench_product(BenchProduct *product, Backend *backend, const World *world);
/* Returns bytes/s, read and written, of a copy within the backend's memory that moves `bytes`
 * bytes, counted both ways. */
double bench_copy(Backend *backend, double bytes);

/* Fills memory of the backend with numbers between low and low + 1, or with integers from 0 to
 * below - 1. */
void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low);
void bench_fill_whole(Backend *backend, int32_t *to, int64_t elements, int64_t below);

/* Prints, on rank 0, the rate of each memory-bound operation of the model and of the optimizer next
 * to that of a copy. Overwrites the model's parameters and optimizer state. Ranks work at the same
 * time; not collective. */
void bench_model(Trainer *trainer, bool json);

#endif
