/* Measurements of weft bench scale, and their output. */
#ifndef WEFT_CLI_BENCH_SCALE_H
#define WEFT_CLI_BENCH_SCALE_H

#include "bench.h"

/* The measurement of steps on a number of replicas: a row of a table. */
typedef struct ScaleRow {
    int replicas, ranks;
    /* number of samples in the global batch */
    int64_t batch;
    /* measured median time of a step; NaN: not measured */
    double step_s;
    /* forecast time of a step; NaN: no forecast */
    double forecast_s;
    /* why the row was not measured, or which micro-batches are padding; NULL: nothing to say;
     * owned */
    char *note;
    /* why there is no forecast; NULL: nothing to say; owned */
    char *forecast_note;
} ScaleRow;

/* The measurements of a job. They are complete on rank 0. Texts are borrowed. */
typedef struct Scale {
    /* borrowed; train.batch is changed for each row */
    Config *config;
    /* grid of all ranks */
    GridShape shape;
    /* path of the file with a machine's times; "": none */
    const char *machine_path;
    /* content of that file, on rank 0; owned */
    Machine machine;
    /* number of timed steps of a row */
    int steps;
    /* number of steps of a row before the timed ones */
    int warmup;
    /* number of samples in a micro-batch */
    int64_t micro_batch;
    /* TrainSizes.counted_units_per_sample */
    int64_t counted_units_per_sample;
    /* result of bench_row_name */
    const char *row_name;
    /* names of the model, the precision and the device */
    const char *model, *precision, *device;
    /* number of rows of each table */
    int count;
    /* table of strong scaling, by ascending number of ranks, [count]; owned */
    ScaleRow *strong;
    /* table of weak scaling, by ascending number of ranks, [count]; owned */
    ScaleRow *weak;
} Scale;

/* Print both tables to stdout. */
void scale_print_text(const Scale *scale);
void scale_print_json(const Scale *scale);

#endif
