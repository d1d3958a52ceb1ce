/* machine: times measured on a machine and kept in a file, and the forecast of a training step from
 * these times and a plan. Times never decide how a model is cut or what a step computes. Not
 * collective. */
#ifndef WEFT_MACHINE_H
#define WEFT_MACHINE_H

#include "machine/times.h"
#include "pipeline.h"

/* Returns a text that describes a planned operation: its kind, shapes, layouts, and the attributes
 * that its time depends on. The caller owns it. */
char *operation_key(const OpSpec *spec);

/* Parts of a step's time. They add up to the time of the step on the rank that ends last. */
#define FORECAST_LINES(W)                                                                          \
    /* operations without exchanges, copies and additions: mean over the stages */                 \
    W(FORECAST_COMPUTE, "compute")                                                                 \
    /* idle time of the schedule if all chunks took the same time and messages no time */          \
    W(FORECAST_BUBBLE, "bubble")                                                                   \
    /* additional idle time because chunks take different times */                                 \
    W(FORECAST_IMBALANCE, "imbalance")                                                             \
    /* time added by messages, by passes that they slow down, and by gathers of parameters */      \
    W(FORECAST_MESSAGES, "messages")                                                               \
    /* operations that exchange slices of a tensor group: mean over the stages */                  \
    W(FORECAST_EXCHANGES, "exchanges")                                                             \
    /* sums over replicas */                                                                       \
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
    /* true: times that were not measured are computed from the machine's rates */
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
/* Sets *seconds to the median time of a part of a planned operation. ERR_CONFIG: the file has no
 * time of this part; the message says how to measure it. */
Status machine_part_s(const Machine *machine, const ForecastOf *of, const Op *op,
                      OperationPart part, double *seconds);
/* Forecasts a step of full micro-batches. The ranks fill one node after the other. ERR_CONFIG: the
 * file has no time of an operation, a message or a sum of the step, or its times were measured with
 * other settings, another number of threads or fewer ranks; the message says how to measure what is
 * missing. */
Status machine_forecast(const Machine *machine, const ForecastOf *of, Forecast *forecast);

#endif
