/* The machine module's private header, shared by the files that forecast a step: times from rates,
 * links between the ranks of a grid, the simulation of a schedule on shared connections, and the
 * end of a step. */
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

/* Computes the seconds of a part of an operation by the machine's rates: the time of its
 * calculations or of its bytes, whichever is longer (the roofline of Williams, Waterman and
 * Patterson 2009), plus call_s. For an exchange in a tensor-parallel group, computes the time of
 * its messages. ERR_CONFIG: the machine's file has no time of such messages. */
Status rates_operation_s(const Machine *machine, const ForecastInput *input, const Op *op,
                         OperationPart part, double *seconds);

/* ---- links.c: rank r of the grid is on node r / machine->ranks ---- */

/* Returns the node of a rank. `rank` is counted from the stage's first rank. */
static inline int node_of(const Machine *machine, GridShape shape, int stage, int rank)
{
    return (int)(((int64_t)stage * shape.dp * shape.tp + rank) / machine->ranks);
}

/* Computes the cost of a message of `bytes` bytes between two stages. ERR_CONFIG: the machine's
 * file has no time of such a message. */
Status message_between_stages(const Machine *machine, const ForecastInput *input, int from, int to,
                              double bytes, MessageCost *cost);
/* Checks that the machine's file has the time of messages between nodes. ERR_CONFIG. */
Status network_known(const Machine *machine, const ForecastInput *input);
/* Finds the link between the ranks of a tensor-parallel group: Machine.message_link if every node
 * holds whole groups, otherwise Machine.network_link, shared by all ranks of a node. ERR_CONFIG:
 * the machine's file has no time of this link. */
Status link_in_tensor_group(const Machine *machine, const ForecastInput *input, Link *link);
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
/* Computes the time of a sum of `bytes` bytes over `ranks` ranks of a node. ERR_CONFIG: the
 * machine's file has no time of such a sum. */
Status sum_on_node(const Machine *machine, const ForecastInput *input, int ranks, double bytes,
                   double *seconds);
/* Returns the cost of a sum of `elements` floats over the replicas of a stage. Counts only its
 * messages between nodes. places: the result of sum_places for the stage. As in SumShape
 * (parallel/sums.h), collect: values are summed; spread: the sums are sent to all ranks. */
SumCost sum_between_nodes(const Machine *machine, const ForecastInput *input, const Plan *plan,
                          SumPlaces places, double elements, bool collect, bool spread);

/* ---- replay.c ---- */

/* Simulates the schedule with messages and sums that share the connections of nodes, and replaces
 * the makespan and the spans of `report`. If all ranks are on one node, leaves `report` as it is.
 * The span of a task is that of the rank on which the task ends last. If a stage fills several
 * whole nodes, only the ranks of one such node are simulated. If the simulation of the tasks or of
 * the sums would take more than about a second, one rank of each stage is simulated, and each
 * message has an equal share of the connection. last_sum_end: receives for each stage the end of
 * its last sum between nodes, [stages]; 0: the stage has no such sum. ERR_CONFIG: the machine's
 * file has no time of a sum or of a message between nodes. */
Status replay_nodes(const Machine *machine, const ForecastInput *input, Level level,
                    const TaskCost *cost, ScheduleReport *report, double *last_sum_end);

/* ---- step_end.c ---- */

/* Times by which the end of a step follows the last tasks of its stages. */
typedef struct StepEnd {
    /* seconds by which sums make the step longer */
    double sums_s;
    /* seconds by which updates make the step longer after the sums */
    double update_s;
} StepEnd;
/* Computes the end of the step whose simulated schedule is `report`. last_sum_end: ends of sums
 * between nodes, as replay_nodes returns them. ERR_CONFIG: the machine's file has no time of a
 * sum. */
Status step_end(const Machine *machine, const ForecastInput *input, Level level,
                const ScheduleReport *report, const double *last_sum_end, StepEnd *end);

/* ---- forecast.c ---- */

/* A chunk of a stage's plan, and what the times of its actions depend on. */
typedef struct ChunkInput {
    const Machine *machine;
    const ForecastInput *input;
    const Plan *plan;
    const ChunkPlan *chunk;
    Level level;
    /* total to which add_action adds the times of exchanges in a tensor-parallel group; NULL: these
     * times are not totalled; borrowed */
    double *exchanges_s;
} ChunkInput;
/* Adds the time of an action to *pass_cost, the cost of its pass. In a backward pass that is not
 * split, the time of the gradients of weights is added to *weight_cost instead. ERR_CONFIG: the
 * machine's file has no time of an operation. */
Status add_action(const ChunkInput *chunk, const Action *action, double *weight_cost,
                  double *pass_cost);

#endif
