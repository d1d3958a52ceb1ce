/* weft plan --choose: the fastest plans of a configuration on a number of ranks. */
#ifndef WEFT_CLI_PLAN_CHOOSE_H
#define WEFT_CLI_PLAN_CHOOSE_H

#include "train.h"

/* The machine, the ranks and the limits of a choice. All pointers are borrowed. */
typedef struct ChooseFrom {
    const Config *config;
    const World *world;
    /* training set of the dry runs; NULL: data.train is opened */
    const DataSet *data;
    const Machine *machine;
    /* path of the file with the machine's times, for messages */
    const char *path;
    /* bytes that a rank may use */
    double memory;
    int ranks;
    /* number of samples of a step; number of its micro-batches, which limits the number of
     * replicas */
    int64_t batch, micros;
    /* number of plans to print */
    int top;
    /* any_bits true: plans whose results have the same bits only on some grids are listed, too.
     * json true: one JSON object is printed instead of text. */
    bool any_bits, json;
} ChooseFrom;
/* Prints the fastest plans on rank 0. ERR_CONFIG: there is no plan that is allowed, fits in memory
 * and can be forecast from the machine's times. Collective on world, because its ranks agree on
 * each plan. */
Status plan_choose(const ChooseFrom *from, FILE *out);

#endif
