/* Declarations shared by the benchmarks: timing on a backend, the rates of its matrix products and
 * copies, and filling memory with random numbers. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "../private.h"

#include "train.h"

/* Returns the sum over ranks. Collective. */
double bench_sum_ranks(const World *world, double mine);
/* Returns the maximum over ranks. Collective. */
double bench_max_ranks(const World *world, double mine);

/* Queues work on the compute stream. */
typedef void (*BenchWork)(void *user);
/* Returns the median seconds of one call on the backend's own clock, measured for about 0.2 s. */
double bench_seconds(Backend *backend, BenchWork work, void *user);

/* Rate of matrix products of size x size x size in the backend's precision. */
typedef struct BenchProduct {
    /* the smallest power of two from 256 to 8192 for which a product takes 5 ms on rank 0; else
     * 8192 */
    int64_t size;
    /* flop/s of all ranks together */
    double flops;
} BenchProduct;
/* Measures products of random numbers on all ranks at the same time. Collective. */
Status bench_product(BenchProduct *product, Backend *backend, const World *world);
/* Returns the bytes/s of a copy within the backend's memory that reads bytes / 2 and writes as
 * many; both count. */
double bench_copy(Backend *backend, double bytes);

/* Fills memory of the backend with random numbers from low to low + 1. */
void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low);
/* Fills memory of the backend with random integers from 0 to limit - 1. */
void bench_fill_whole(Backend *backend, int32_t *to, int64_t elements, int64_t limit);

/* Times of the steps of a trainer. */
typedef struct BenchSteps {
    /* time of a step */
    double median_s, mean_s;
    /* fractions of the steps' time in which the host waits for data, and in which the compute
     * stream waits for sums */
    double data_wait, sum_wait;
    /* how often the compute stream waits for a sum, per step */
    double sum_waits;
    /* fraction of the time in which stages are idle; NaN: not known */
    double bubble;
} BenchSteps;
/* Makes `warmup` steps, then times `count` steps by the clock of the compute stream, so that the
 * host does not wait for a GPU between steps. Collective; all ranks return the same Status. */
Status bench_steps(BenchSteps *result, Trainer *trainer, int warmup, int count);
/* Names of the model, of its precision, and of what a rate counts: "samples" or "tokens". */
const char *bench_model_name(const Trainer *trainer);
const char *bench_precision_name(const Trainer *trainer);
const char *bench_row_name(const Trainer *trainer);
/* Sets train.threads, if it is not set, as a trainer of all ranks of world would: trainers of fewer
 * ranks would not know of the others on their node. Collective. */
void bench_fix_threads(Config *config, const World *world);
/* ERR_CONFIG: the configuration has servers, which make no steps. verb: "step". */
Status bench_check_servers(const Config *config, const char *verb);

/* The flag --input of verbs that make steps; the options have a field `input`. */
#define BENCH_FLAG_INPUT(Options)                                                                  \
    {                                                                                              \
        "--input", FLAG_FIELD(Options, input),                                                     \
            .value = "CxHxW|tokens",                                                               \
            .help = "random images of this shape, or random tokens, instead of data.train"         \
    }
/* Reads that flag; text NULL: no shape and no tokens. ERR_USAGE. */
Status bench_input_parse(const char *text, Input *input);
/* If the input has a shape or tokens, generates a file of random samples on each node and makes it
 * the training set; *path is then its name, else "". ERR_CONFIG: there is no data set. Collective;
 * bench_data_end removes the file. */
Status bench_data_begin(Job *job, const Input *input, char path[DATA_PATH]);
void bench_data_end(const Job *job, const char *path);

/* Measures each memory-bound operation of the model, and the optimizer, and prints their rates
 * compared with those of copies on rank 0. Overwrites the model's parameters and optimizer state.
 * All ranks measure at the same time; not collective. */
void bench_model(Trainer *trainer, bool json);

#endif
