/* weft plan --choose: the fastest plans of a configuration on a number of ranks. */
#ifndef WEFT_CLI_PLAN_CHOOSE_H
#define WEFT_CLI_PLAN_CHOOSE_H

#include "train.h"

/* The machine, the ranks and the limits of a choice. All pointers are borrowed. */
typedef struct ChooseInput {
    const Config *config;
    const World *world;
    /* training set of the dry runs; NULL: data.train is opened */
    const DataSet *data;
    const Machine *machine;
    /* path of the file with the machine's times, for messages */
    const char *path;
    /* number of bytes that a rank may use */
    double memory;
    int ranks;
    /* number of samples in a step */
    int64_t batch;
    /* number of micro-batches in a step, which is also the largest number of replicas */
    int64_t micro_batches;
    /* largest number of plans that are printed */
    int top;
    /* true: plans whose results have the same bits only on some grids are listed, too */
    bool any_bits;
    /* true: one JSON object is printed instead of text */
    bool json;
} ChooseInput;
/* Prints the fastest plans to out, on rank 0. ERR_CONFIG: no plan is allowed, fits in memory and
 * can be forecast from the machine's times. Collective on world, because its ranks agree on each
 * plan. */
Status plan_choose(const ChooseInput *input, FILE *out);

#endif
