/* Micro-batches of an evaluation, with substitutes after an error of the data (eval_data.c). Also
 * declares run_unlabelled (predict.c), which runs the model on samples without labels. */
#ifndef WEFT_TRAIN_EVAL_DATA_H
#define WEFT_TRAIN_EVAL_DATA_H

#include "../trainer.h"

/* This rank's micro-batches of one pass over a set. */
typedef struct EvalData {
    /* borrowed */
    const Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    LoaderPlan plan;
    /* owned */
    Loader *loader;
    /* memory in which this node's ranks share unpacked chunks for the loader (chunk_share.h); NULL:
     * each rank keeps chunks for itself; owned */
    NodeMemory *chunk_memory;
    /* number of micro-batches taken from the loader */
    int64_t read;
    /* number of micro-batches released to the loader */
    int64_t returned;
    /* error of the first micro-batch that could not be read; OK: there was none */
    Status status;
    /* message of that error; owned */
    char *message;
    /* micro-batches of zeros provided after the error, in order; owned */
    MicroBatch *substitute;
    /* number of substitutes provided */
    int64_t substitutes;
    /* zeros to which the arrays of substitutes point; owned */
    void *zeros;
    /* size of `zeros` */
    size_t zeros_bytes;
} EvalData;
/* Opens the loader. Release with eval_data_fini, also after an error. Collective; all ranks return
 * the same Status. */
Status eval_data_init(EvalData *data, const Trainer *trainer, const DataSet *set);
/* Returns the source of the pass's micro-batches, which borrows from *data. */
BatchSource eval_data_source(EvalData *data);
/* Releases *data, and returns this rank's Status of the pass. Call it after the last micro-batch
 * has been released. Not collective. */
Status eval_data_fini(EvalData *data);
/* Runs the model on samples without labels. The loss is computed as well, so the samples get labels
 * and targets of 0, and no boxes. *logits: as in executor_logits. Requires one rank and a batch of
 * one micro-batch. */
Status run_unlabelled(Trainer *t, const MicroBatch *samples, const float **logits);

#endif
