/* What eval_data.c says to the rest of the module. */
#ifndef WEFT_TRAIN_EVAL_DATA_H
#define WEFT_TRAIN_EVAL_DATA_H

#include "trainer.h"

/* A rank's micro-batches of one pass over a set. */
typedef struct EvalData {
    /* borrowed */
    const Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    LoaderPlan plan;
    Loader *loader;
    /* micro-batches that the loader gave, that went back to it */
    int64_t read, returned;
    /* of the first one that could not be read */
    Status status;
    /* owned: why status */
    char *message;
    /* owned: what is given from then on, one after the other */
    Batch *spare;
    /* how many have been given */
    int64_t spares;
    /* owned: what all of them hold */
    void *zeros;
    size_t zeros_bytes;
} EvalData;
/* Opens the loader. Release with eval_data_fini in every case. Collective; all ranks agree. */
Status eval_data_init(EvalData *data, const Trainer *trainer, const DataSet *set);
/* Borrowed. */
BatchSource eval_data_source(EvalData *data);
/* How the pass went, as this rank knows it; after the last micro-batch went back. Not
 * collective. */
Status eval_data_fini(EvalData *data);

#endif
