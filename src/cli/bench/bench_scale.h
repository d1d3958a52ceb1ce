/* Measurements of weft bench scale, and their output. */
#ifndef WEFT_CLI_BENCH_SCALE_H
#define WEFT_CLI_BENCH_SCALE_H

#include "bench.h"

/* A measurement: steps on a number of replicas. */
typedef struct ScaleRow {
    int replicas, ranks;
    /* samples of the global batch */
    int64_t batch;
    /* seconds of a step, measured and forecast; NaN: none */
    double step_s, forecast_s;
    /* note: why the row was not measured, or which micro-batches are padding; forecast_note: why
     * there is no forecast; NULL: no note; owned */
    char *note, *forecast_note;
} ScaleRow;

/* The measurements of a job, complete on rank 0. Texts are borrowed. */
typedef struct Scale {
    /* borrowed; train.batch is changed for each row */
    Config *config;
    /* grid of all ranks */
    GridShape shape;
    /* file of a machine's times; "": none */
    const char *machine_path;
    Machine machine;
    /* number of timed steps of a row, and of steps before them */
    int steps, warmup;
    /* number of samples of a micro-batch, and TrainSizes.rows_per_sample */
    int64_t micro_batch, rows_per_sample;
    /* row_name: result of bench_row_name */
    const char *row_name, *model, *precision, *device;
    /* rows of the table of strong scaling and of that of weak scaling, by ascending ranks, [count];
     * owned */
    int count;
    ScaleRow *strong, *weak;
} Scale;

/* Print to stdout. */
void scale_print_text(const Scale *scale);
void scale_print_json(const Scale *scale);

#endif
