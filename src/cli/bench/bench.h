/* Declarations shared by the benchmarks: timing on a backend, the rates of its matrix products and
 * copies, memory and files of random numbers, times of steps, and parts of weft bench machine. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include "../private.h"

#include "machine.h"
#include "train.h"

/* Returns the sum over ranks. Collective. */
double bench_sum_ranks(const World *world, double mine);
/* Returns the maximum over ranks. Collective. */
double bench_max_ranks(const World *world, double mine);

/* Queues work on the compute stream. */
typedef void (*BenchWork)(void *user);
/* Returns the median seconds of one call on the backend's own clock, measured for about 0.2 s, but
 * for at least nine calls. */
double bench_seconds(Backend *backend, BenchWork work, void *user);

/* Rate of matrix products of size x size x size in the backend's precision. */
typedef struct BenchProduct {
    /* the smallest power of two from 256 to 8192 for which a product takes at least 5 ms on rank 0;
     * 8192 if there is none */
    int64_t size;
    /* flop/s of all ranks together */
    double flops;
} BenchProduct;
/* Measures products of random numbers on all ranks at the same time. Collective. */
Status bench_product(BenchProduct *product, Backend *backend, const World *world);
/* Returns the bytes/s of a copy within the backend's memory. The copy reads bytes / 2 bytes and
 * writes the same number; both are counted. */
double bench_copy(Backend *backend, double bytes);

/* Fills memory of the backend with random numbers from low to low + 1, which repeat after 2^18
 * elements. type: fp32, bf16 or fp16. */
void bench_fill(Backend *backend, void *to, DType type, int64_t elements, float low);
/* Fills memory of the backend with random integers from 0 to limit - 1. */
void bench_fill_whole(Backend *backend, int32_t *to, int64_t elements, int64_t limit);

/* Times of the steps of a trainer. */
typedef struct BenchSteps {
    /* time of a step on this rank */
    double median_s, mean_s;
    /* fraction of the steps' time in which this rank's host waits for data, and largest fraction,
     * of all ranks, in which a compute stream waits for sums */
    double data_wait, sum_wait;
    /* number of times that a compute stream waits for a sum in a step, the largest of all ranks */
    double sum_waits;
    /* fraction of the time for which stages are idle; NaN: not known */
    double bubble;
} BenchSteps;
/* Makes `warmup` steps, and then times `count` steps with the clock of the compute stream, so that
 * the host need not wait for a GPU between steps. Collective; all ranks return the same Status. */
Status bench_steps(BenchSteps *result, Trainer *trainer, int warmup, int count);
/* Return the names of the model, of its precision, and of the things that a rate counts: "samples"
 * or "tokens". */
const char *bench_model_name(const Trainer *trainer);
const char *bench_precision_name(const Trainer *trainer);
const char *bench_row_name(const Trainer *trainer);
/* If train.threads is not set, sets it to the number that a trainer on all ranks of world would
 * use. A trainer on fewer ranks would not take into account the other ranks of its node.
 * Collective. */
void bench_fix_threads(Config *config, const World *world);
/* Checks that the configuration has no servers, because servers make no steps. verb: name for the
 * message, "step". ERR_CONFIG. */
Status bench_check_servers(const Config *config, const char *verb);

/* The flag --input of verbs that make steps; the options have a field `input`. */
#define BENCH_FLAG_INPUT(Options)                                                                  \
    {                                                                                              \
        "--input", FLAG_FIELD(Options, input),                                                     \
            .value = "CxHxW|tokens",                                                               \
            .help = "random images of this shape, or random tokens, instead of data.train"         \
    }
/* Parses the value of this flag; text NULL: input gets neither a shape nor tokens. ERR_USAGE. */
Status bench_input_parse(const char *text, Input *input);
/* If the input has a shape or tokens, generates a file of random samples on each node, makes it the
 * training set, and drops the test set; path is then the name of the file, otherwise "". ERR_USAGE:
 * such samples do not fit train.loss; ERR_CONFIG: there is neither a shape nor a data set.
 * Collective. Release with bench_data_end, which removes the file. */
Status bench_data_begin(Job *job, const Input *input, char path[DATA_PATH]);
void bench_data_end(const Job *job, const char *path);

/* Measures messages and sums, and counts nodes and their ranks. ERR_USAGE: the nodes have different
 * numbers of ranks. Collective. */
Status bench_measure_links(const World *world, Backend *backend, Machine *machine);
/* Measures the rates of a node's memory and of files: of reading the file `set`, and of saving a
 * file in a folder. set: NULL, or the same on all ranks; if it is NULL or small, the rate of
 * reading is that of a saved file. If the times of copies are not known, they are computed from the
 * rate of memory. If saving or reading cannot be measured, both rates are 0, and the log says why.
 * Collective. */
void bench_measure_rates(const World *world, const char *set, const char *folder, Machine *machine);
/* Measures Machine.overlap_compute: the time of the tasks of steps during sums over world's ranks,
 * divided by their time without sums; the mean over the ranks, from 1 to OVERLAP_MAX. The ranks are
 * on several nodes: on one node, nothing moves sums but the ranks that wait for them. steps: number
 * of steps of each kind. Collective. */
Status bench_measure_overlap(Trainer *trainer, const World *world, int64_t steps, Machine *machine);

/* Measures each memory-bound operation of the model, and the optimizer, unless its rule needs norms
 * or whole tensors. Rank 0 prints its own rates, compared with the rates of copies. Overwrites the
 * model's parameters and optimizer state. All ranks measure at the same time; not collective. */
void bench_model(Trainer *trainer, bool json);

#endif
