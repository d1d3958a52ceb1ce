/* The machine module's private header, shared by the files that forecast a step: times from rates,
 * links between the ranks of a grid, a schedule on shared connections, and the end of a step. */
#ifndef WEFT_MACHINE_PRIVATE_H
#define WEFT_MACHINE_PRIVATE_H

#include "machine.h"

/* The time of a TimeRange that a forecast uses. */
typedef enum Level { LOW, MEDIAN, HIGH, LEVELS } Level;
static inline double time_at(const TimeRange *range, Level level)
{
    return level == LOW ? range->low : level == HIGH ? range->high : range->median;
}

/* ---- rates.c ---- */

/* Returns the seconds of a part of an operation by the machine's rates: the time of its
 * calculations or of its bytes, whichever is longer (the roofline of Williams, Waterman and
 * Patterson 2009), plus call_s. For an exchange in a tensor group, returns the time of its
 * messages. */
double rates_operation_s(const Machine *machine, const ForecastOf *of, const Op *op,
                         OperationPart part);

/* ---- links.c: rank r of the grid is on node r / machine->ranks ---- */

/* Returns the node of a rank. `rank` is counted from the stage's first rank. */
static inline int node_of(const Machine *machine, GridShape shape, int stage, int rank)
{
    return (int)(((int64_t)stage * shape.dp * shape.tp + rank) / machine->ranks);
}

/* Computes the cost of a message of `bytes` between two stages. ERR_CONFIG: the machine's file has
 * no time of it. */
Status message_between_stages(const Machine *machine, const ForecastOf *of, int from, int to,
                              double bytes, MessageCost *cost);
/* Checks that the machine's file has the time of messages between nodes. ERR_CONFIG. */
Status network_known(const Machine *machine, const ForecastOf *of);
/* Returns the link between the ranks of a tensor group. */
Link link_in_tensor_group(const Machine *machine, const ForecastOf *of);
/* Distribution of the replicas of a stage over nodes. */
typedef struct SumPlaces {
    /* number of neighbouring replicas that form a group on one node, as comm_group_width returns
     * it; the number of all replicas if all are on one node */
    int width;
    /* largest number of ranks of the stage on one node; these ranks share the node's connection. 0:
     * all ranks of the stage are on one node */
    int sharers;
} SumPlaces;
SumPlaces sum_places(const Machine *machine, GridShape shape, int stage);
/* Computes the time of a sum of `bytes` over `ranks` ranks of a node. ERR_CONFIG: the machine's
 * file has no time of it. */
Status sum_on_node(const Machine *machine, const ForecastOf *of, int ranks, double bytes,
                   double *seconds);

/* ---- replay.c ---- */

/* If messages pass between nodes: simulates the schedule on all ranks that share a node's
 * connection, and replaces the makespan and the spans of `report`. The span of a task is that of
 * the rank on which it ends last. Does nothing if each stage has only one rank, or if the schedule
 * has too many tasks for a simulation of about a second. In the unchanged `report` each message has
 * an equal share of the connection. */
void replay_shared(const Machine *machine, const ForecastOf *of, const TaskCost *cost,
                   ScheduleReport *report);

/* ---- step_end.c ---- */

/* Times by which the end of a step follows the last tasks of its stages. */
typedef struct StepEnd {
    /* sums_s: seconds by which sums make the step longer; update_s: seconds by which updates after
     * the sums make it longer */
    double sums_s, update_s;
} StepEnd;
/* Computes the end of the step whose simulated schedule is `report`. ERR_CONFIG: the machine's file
 * has no time of a sum or of a message between nodes. */
Status step_end(const Machine *machine, const ForecastOf *of, Level level,
                const ScheduleReport *report, StepEnd *end);

/* ---- forecast.c ---- */

/* A chunk of a stage's plan, and what the times of its actions depend on. */
typedef struct ChunkOf {
    const Machine *machine;
    const ForecastOf *of;
    const Plan *plan;
    const ChunkPlan *chunk;
    Level level;
} ChunkOf;
/* Adds the time of an action to *pass_cost, the cost of its pass. In a backward pass that is not
 * split, the time of the gradients of weights is added to *weight_cost instead. ERR_CONFIG: the
 * machine's file has no time of an operation. */
Status add_action(const ChunkOf *chunk, const Action *action, double *weight_cost,
                  double *pass_cost);

#endif
