/* Shared by the files that forecast a step: times from rates, links between the ranks of a grid,
 * and what follows a stage's last task. */
#ifndef WEFT_MACHINE_PRIVATE_H
#define WEFT_MACHINE_PRIVATE_H

#include "machine.h"

/* Which of the three times of a range a forecast takes. */
typedef enum Level { LOW, MEDIAN, HIGH, LEVELS } Level;
static inline double time_at(const TimeRange *range, Level level)
{
    return level == LOW ? range->low : level == HIGH ? range->high : range->median;
}

/* ---- rates.c ---- */

/* Seconds of a part of an operation by the machine's rates: its calculations or its bytes,
 * whichever take longer (the roofline of Williams, Waterman and Patterson 2009), and a call. An
 * exchange in a tensor group takes the time of its messages. */
double rates_operation_s(const Machine *machine, const ForecastOf *of, const Op *op,
                         OperationPart part);

/* ---- links.c: rank r of the grid is on node r / machine->ranks ---- */

/* The node of rank `rank` of a stage, counted from the stage's first rank. */
static inline int node_of(const Machine *machine, GridShape shape, int stage, int rank)
{
    return (int)(((int64_t)stage * shape.dp * shape.tp + rank) / machine->ranks);
}

/* Cost of a message of `bytes` from a stage to another one. ERR_CONFIG: it is not known. */
Status message_between_stages(const Machine *machine, const ForecastOf *of, int from, int to,
                              double bytes, MessageCost *cost);
/* ERR_CONFIG: the time of messages between nodes is not known. */
Status network_known(const Machine *machine, const ForecastOf *of);
/* The link between the ranks of a tensor group. */
Link link_in_tensor_group(const Machine *machine, const ForecastOf *of);
/* How the replicas of a stage lie on nodes. */
typedef struct SumPlaces {
    /* ranks of a group of neighbours on a node, as comm_group_width returns them; equal to the
     * number of replicas if all are on one node */
    int width;
    /* ranks of the stage on a node, which share its connection */
    int sharers;
} SumPlaces;
SumPlaces sum_places(const Machine *machine, GridShape shape, int stage);
/* Time of a sum of `bytes` over `ranks` ranks of a node. ERR_CONFIG: it is not known. */
Status sum_on_node(const Machine *machine, const ForecastOf *of, int ranks, double bytes,
                   double *seconds);

/* ---- replay.c ---- */

/* Replaces the makespan and the spans of a simulated schedule by those of the ranks of a node that
 * share its connection, each the latest of all ranks, if messages pass between nodes. A schedule of
 * very many tasks stays as it is: each of its messages has its share of the connection. */
void replay_shared(const Machine *machine, const ForecastOf *of, const TaskCost *cost,
                   ScheduleReport *report);

/* ---- step_end.c ---- */

/* Times of the step after the last tasks of its stages. */
typedef struct StepEnd {
    /* time by which sums make the step longer, and then the updates */
    double sums_s, update_s;
} StepEnd;
/* report: the simulated schedule with the costs of its chunks. */
Status step_end(const Machine *machine, const ForecastOf *of, Level level,
                const ScheduleReport *report, StepEnd *end);

/* ---- forecast.c ---- */

/* A chunk of a stage's plan. */
typedef struct ChunkOf {
    const Machine *machine;
    const ForecastOf *of;
    const Plan *plan;
    const ChunkPlan *chunk;
    Level level;
} ChunkOf;
/* Adds the time of an action to *pass_cost, the cost of its pass; that of the gradients of weights
 * in a backward pass that is not split to *weight_cost. ERR_CONFIG. */
Status add_action(const ChunkOf *chunk, const Action *action, double *weight_cost,
                  double *pass_cost);

#endif
