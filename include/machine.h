/* machine: times measured on a machine and kept in a file, and the forecast of a training step from
 * these times and a plan. A run never cuts a model or chooses what a step computes by these times;
 * weft plan --choose only prints fast grids. Not collective. */
#ifndef WEFT_MACHINE_H
#define WEFT_MACHINE_H

#include "machine/times.h"
#include "pipeline.h"

/* Returns a text that describes a planned operation: its kind, shapes, layouts, and the attributes
 * that its time depends on. The caller owns it. */
char *operation_key(const OpSpec *spec);

/* Parts of a step's time. They add up to the time of the step on the rank that ends last. update:
 * time by which updates, after the sums, make the step longer still; rest: Machine.rest_s. */
#define FORECAST_LINES(W)                                                                          \
    /* operations except exchanges, plus copies and additions between them: mean over stages */    \
    W(FORECAST_COMPUTE, "compute")                                                                 \
    /* idle time of the schedule if all chunks took the same time and messages no time */          \
    W(FORECAST_BUBBLE, "bubble")                                                                   \
    /* additional idle time because chunks take different times */                                 \
    W(FORECAST_IMBALANCE, "imbalance")                                                             \
    /* time added by messages, by passes that they slow down, and by gathers of parameters */      \
    W(FORECAST_MESSAGES, "messages")                                                               \
    /* exchanges between the ranks of tensor groups: mean over the stages */                       \
    W(FORECAST_EXCHANGES, "exchanges")                                                             \
    /* time by which sums over replicas, and gathers after updates, make the step longer */        \
    W(FORECAST_SUMS, "sums")                                                                       \
    W(FORECAST_UPDATE, "update")                                                                   \
    W(FORECAST_REST, "rest")
typedef enum ForecastLine { FORECAST_LINES(LIST_CONSTANT) FORECAST_LINE_COUNT } ForecastLine;
extern const char *const forecast_names[FORECAST_LINE_COUNT];

typedef struct Forecast {
    /* seconds of a step. low, high: the step if all parts took their low or high times */
    TimeRange step;
    /* seconds of each part, by median times */
    double line[FORECAST_LINE_COUNT];
    /* true: the machine has rates (Machine.has_rates), by which missing times are computed */
    bool described;
} Forecast;
/* The run whose step is forecast. All fields are borrowed. */
typedef struct ForecastOf {
    const Schedule *schedule;
    /* plans of all stages, [schedule->shape.stages] */
    const Plan *const *plan;
    /* threads of one rank */
    int threads;
    /* settings on which times depend (train_setup) */
    const char *setup;
    /* grid.sums; number of micro-batches of one replica in a step */
    CommWay sums;
    int micros;
    /* true: forecast by median times only, in a third of the time; the three values of
     * Forecast.step are then equal */
    bool median_only;
    /* path of the machine's file, for error messages */
    const char *from;
} ForecastOf;
/* Sets *seconds to the median time of a part of a planned operation. ERR_CONFIG: the file has
 * neither a time of this part nor rates; the message says how to measure the time. */
Status machine_part_s(const Machine *machine, const ForecastOf *of, const Op *op,
                      OperationPart part, double *seconds);
/* Forecasts a step of full micro-batches. The ranks fill one node after the other. ERR_CONFIG: the
 * file gives no time of an operation, a message or a sum of the step, neither measured nor by rates
 * (the message says how to add it), or is for other settings, another number of threads or fewer
 * ranks. */
Status machine_forecast(const Machine *machine, const ForecastOf *of, Forecast *forecast);

#endif
