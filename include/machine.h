/* machine: times measured on a machine and kept in a file, and the forecast of a training step from
 * these times and a plan. No run uses these times to decide where a model is cut into stages or
 * what a step computes; `weft plan --choose` prints fast grids, and the user sets one. Not
 * collective. */
#ifndef WEFT_MACHINE_H
#define WEFT_MACHINE_H

#include "machine/times.h"
#include "pipeline.h"

/* Returns a text that describes a planned operation: its kind, shapes, layouts, and the attributes
 * that its time depends on. The caller owns it. */
char *operation_key(const OpSpec *spec);

/* Parts of a step's time. Their sum is the time until the last rank has ended the step. compute and
 * exchanges are means over the stages; each other part is the time by which it makes the step
 * longer. Identifiers call a part a line; line_of in src/train/run/run_ledger.c says to which part
 * of the ledger each belongs. */
#define FORECAST_LINES(W)                                                                          \
    /* operations except exchanges, and copies and additions between operations */                 \
    W(FORECAST_COMPUTE, "compute")                                                                 \
    /* idle time of the schedule if all chunks took the same time and messages no time */          \
    W(FORECAST_BUBBLE, "bubble")                                                                   \
    /* additional idle time because chunks take different times */                                 \
    W(FORECAST_IMBALANCE, "imbalance")                                                             \
    /* waits for messages, slower computing while messages move, gathers of parameters */          \
    W(FORECAST_MESSAGES, "messages")                                                               \
    /* exchanges between the ranks of tensor-parallel groups */                                    \
    W(FORECAST_EXCHANGES, "exchanges")                                                             \
    /* time by which sums over replicas, and gathers after updates, make the step longer */        \
    W(FORECAST_SUMS, "sums")                                                                       \
    /* time from the end of the last sum to the end of the last update */                          \
    W(FORECAST_UPDATE, "update")                                                                   \
    /* bookkeeping, and fetching of micro-batches (Machine.rest_s) */                              \
    W(FORECAST_REST, "rest")
typedef enum ForecastLine { FORECAST_LINES(LIST_CONSTANT) FORECAST_LINE_COUNT } ForecastLine;
extern const char *const forecast_names[FORECAST_LINE_COUNT];

/* The forecast time of a step. */
typedef struct Forecast {
    /* seconds of the step. low and high: the seconds if all parts needed their low or their high
     * times */
    TimeRange step;
    /* seconds of each part, from median times */
    double line[FORECAST_LINE_COUNT];
    /* true: the machine has rates (Machine.has_rates); missing times are computed from them */
    bool has_rates;
} Forecast;
/* The run whose step is forecast. All fields are borrowed. */
typedef struct ForecastInput {
    const Schedule *schedule;
    /* plans of all stages, [schedule->shape.stages] */
    const Plan *const *plan;
    /* threads of one rank */
    int threads;
    /* settings of the run on which times depend, as train_settings_text returns them */
    const char *setup;
    /* algorithm of sums (grid.sums) */
    SumAlgorithm sums;
    /* true: the forecast uses median times only, which takes a third of the time; the three values
     * of Forecast.step are then equal */
    bool median_only;
    /* path of the machine's file, for messages */
    const char *path;
} ForecastInput;
/* Sets *seconds to the median time of a part of a planned operation. ERR_CONFIG: the file has
 * neither this time nor rates; the error's text says how to measure the time. */
Status machine_part_s(const Machine *machine, const ForecastInput *input, const Op *op,
                      OperationPart part, double *seconds);
/* Forecasts a step of full micro-batches. The ranks fill one node after the other. ERR_CONFIG: the
 * file was made with other settings, with another number of threads or with fewer ranks; or it has
 * neither a time nor rates for an operation, a message or a sum of the step. The error's text says
 * how to add the time. */
Status machine_forecast(const Machine *machine, const ForecastInput *input, Forecast *forecast);

#endif
