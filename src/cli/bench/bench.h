/* Declarations shared by the benchmarks: timing on a backend, the backend's rates of matrix
 * products and copies, random numbers in memory and in files, times of steps, and parts of weft
 * bench machine. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "../private.h"

#include "machine.h"
#include "train.h"

/* Returns the sum over ranks. Collective. */
double bench_sum_ranks(const World *world, double mine);
/* Returns the maximum over ranks. Collective. */
double bench_max_ranks(const World *world, double mine);

/* Function that is timed. It queues work on the backend's compute stream. */
typedef void (*BenchWork)(void *user);
/* Returns the median time of a call of `work` in seconds, by the backend's own clock. Measures for
 * about 0.2 s, and at least nine calls. */
double bench_seconds(Backend *backend, BenchWork work, void *user);

/* Rate of products of square matrices in the backend's precision. */
typedef struct BenchProduct {
    /* number of rows and of columns of each matrix: the smallest power of two from 256 to 8192 for
     * which a product takes at least 5 ms on rank 0, or 8192 if there is none */
    int64_t size;
    /* flop/s of all ranks together */
    double flops;
} BenchProduct;
/* Measures products of random matrices on all ranks at the same time. Collective. */
Status bench_product(BenchProduct *product, Backend *backend, const World *world);
/* Returns the rate, in bytes/s, of a copy within the backend's memory. The copy reads bytes / 2
 * bytes and writes the same number; both are counted. */
double bench_copy(Backend *backend, double bytes);

/* Fills memory of the backend with random numbers from low to low + 1. The numbers repeat after
 * 2^18 elements. type: fp32, bf16 or fp16. */
void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low);
/* Fills memory of the backend with random integers from 0 to limit - 1. The numbers repeat after
 * 2^18 elements. */
void bench_fill_integers(Backend *backend, int32_t *to, int64_t elements, int64_t limit);

/* Times of the steps of a trainer. */
typedef struct BenchSteps {
    /* median time of a step on this rank */
    double median_s;
    /* mean time of a step on this rank */
    double mean_s;
    /* fraction of the steps' time in which this rank's host waits for data */
    double data_wait_fraction;
    /* fraction of the steps' time in which the compute stream waits for sums, on the rank where it
     * is largest */
    double sum_wait_fraction;
    /* number of times per step that the compute stream waits for a sum, on the rank where it is
     * largest */
    double sum_waits;
    /* fraction of the time in which stages are idle; NaN: not known */
    double bubble;
} BenchSteps;
/* Makes `warmup` steps, and then times `count` steps by the clock of the compute stream, so that
 * the host need not wait for a GPU between steps. Collective; all ranks return the same Status. */
Status bench_steps(BenchSteps *result, Trainer *trainer, int warmup, int count);
/* Returns the name of the model, or "layers" if the configuration lists layers. */
const char *bench_model_name(const Trainer *trainer);
/* Returns the word for train.precision. */
const char *bench_precision_name(const Trainer *trainer);
/* Returns the unit that rates count: "samples" or "tokens". */
const char *bench_row_name(const Trainer *trainer);
/* If train.threads is not set, sets it to the number that a trainer on all ranks of world would
 * use. Called before trainers are made on a part of the ranks: such a trainer would ignore the
 * remaining ranks of its node, and use too many threads. Collective. */
void bench_fix_threads(Config *config, const World *world);
/* Checks that the configuration has no servers, because servers make no steps. verb: last word of
 * the verb's name, for the message, such as "step". ERR_CONFIG: it has servers. */
Status bench_check_servers(const Config *config, const char *verb);

/* The flag --input of verbs that make steps. The options struct has a field `input`. */
#define BENCH_FLAG_INPUT(Options)                                                                  \
    {                                                                                              \
        "--input", FLAG_FIELD(Options, input),                                                     \
            .value = "CxHxW|tokens",                                                               \
            .help = "random images of this shape, or random tokens, instead of data.train"         \
    }
/* Parses the value of --input. text: NULL if the flag is not given; input is then zeroed.
 * ERR_USAGE: the text has a wrong form, or describes rows of a table. */
Status bench_input_parse(const char *text, Input *input);
/* If the input has a shape or tokens, generates a file of random samples on each node, makes it the
 * training set, and removes the test set from the configuration. Otherwise the configuration must
 * name a training set. path: receives the path of the generated file, or "". ERR_USAGE: the samples
 * do not fit train.loss. ERR_CONFIG: there is neither a shape nor a training set. Collective.
 * Release with bench_data_end, which removes the file. */
Status bench_data_begin(Job *job, const Input *input, char path[DATA_PATH]);
void bench_data_end(const Job *job, const char *path);

/* Measures messages and sums, and counts the nodes and the ranks of a node. Sets these fields of
 * *machine. ERR_USAGE: the nodes have different numbers of ranks. Collective. */
Status bench_measure_links(const World *world, Backend *backend, Machine *machine);
/* Measures three rates of a node: of its memory, of reading the file `set`, and of saving a file in
 * `folder`. set: path, the same on all ranks. If it is NULL or the file is small, the rate of
 * reading is that of reading a saved file back. If the times of copies are not known, they are
 * computed from the rate of memory. If saving or reading cannot be measured, both rates of files
 * are 0, and the log says why. Collective. */
void bench_measure_rates(const World *world, const char *set, const char *folder, Machine *machine);
/* Measures Machine.overlap_compute, a number from 1 to OVERLAP_MAX: the time of a step's tasks
 * during sums over world's ranks, divided by their time without sums; mean over the ranks. The
 * ranks must be on several nodes, because on one node a sum only proceeds while ranks wait for it.
 * steps: number of steps that are timed with sums, and also without. Collective. */
Status bench_measure_overlap(Trainer *trainer, const World *world, int64_t steps, Machine *machine);

/* Measures each memory-bound operation of the model, and the optimizer unless its rule needs norms
 * or whole tensors. Rank 0 prints its own rates, compared with the rates of copies. Overwrites the
 * model's parameters and optimizer state. All ranks call it at the same time; it does not
 * communicate. */
void bench_model(Trainer *trainer, bool json);

#endif
