/* schedule: the order of the tasks of each stage of a pipeline, as lists of tasks that pure
 * functions make, with a simulation and pictures of the lists. The lists can be printed, timed and
 * proved free of deadlock before a rank starts. The module needs no MPI and no model; nothing is
 * collective.
 *
 * The model is cut into chunks 0 .. stages * chunks - 1 in the order of its nodes, and every stage
 * has `chunks` chunks. The schedule decides which stage has which chunks (schedule_stage). Usually
 * chunk c is on stage c % stages, so a micro-batch passes through all stages `chunks` times. In
 * V-shaped schedules it goes down the stages and back up. Consecutive chunks on one stage exchange
 * no message. Every stage runs the backward passes of a chunk in the order of the micro-batches. */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include "config.h"

typedef enum TaskKind {
    TASK_FORWARD,
    /* the whole backward pass */
    TASK_BACKWARD,
    /* the half of backward that computes the gradients of the chunk's inputs */
    TASK_BACKWARD_DATA,
    /* the half of backward that computes the gradients of the chunk's weights; it may run at any
     * time after the other half */
    TASK_BACKWARD_WEIGHT,
    /* sends the chunk's outputs to the stage of chunk + 1 */
    TASK_SEND_FORWARD,
    /* receives the chunk's inputs from the stage of chunk - 1 */
    TASK_RECEIVE_FORWARD,
    /* sends the gradients of the chunk's inputs to the stage of chunk - 1 */
    TASK_SEND_BACKWARD,
    /* receives the gradients of the chunk's outputs from the stage of chunk + 1 */
    TASK_RECEIVE_BACKWARD,
    TASK_KINDS,
    /* number of the kinds that compute; the kinds from TASK_SEND_FORWARD on are messages */
    TASK_WORK_KINDS = TASK_SEND_FORWARD
} TaskKind;
/* Names in schedule files: "forward", ... */
extern const char *const task_names[TASK_KINDS];

typedef struct Task {
    TaskKind kind;
    /* number of the chunk in the whole model, and of the micro-batch in this replica, both from
     * 0 */
    int chunk, micro;
} Task;

typedef struct ScheduleShape {
    /* number of stages, of chunks of each stage, and of micro-batches of one replica */
    int stages, chunks, micros;
} ScheduleShape;
typedef struct Schedule {
    ScheduleShape shape;
    /* "gpipe", "1f1b", ..., "file", "forward"; borrowed, constant */
    const char *name;
    /* true: every backward pass is two tasks, its halves, and no list has a TASK_BACKWARD */
    bool split;
    /* stage of each chunk of the model, [stages * chunks]; owned */
    int *stage_of;
    /* index of each chunk among its stage's chunks, [stages * chunks]; owned */
    int *local_of;
    /* chunks of each stage in ascending order, [stages][chunks]; owned */
    int *chunk_at;
    /* number of tasks of each stage, [stages]; owned */
    int *count;
    /* list of tasks of each stage, [stages][count]; the array and each list are owned */
    Task **task;
} Schedule;

/* Return the stage of a chunk; the index of a chunk on its stage; the chunk with index `local` on a
 * stage. */
static inline int schedule_stage(const Schedule *schedule, int chunk)
{
    return schedule->stage_of[chunk];
}
static inline int schedule_local(const Schedule *schedule, int chunk)
{
    return schedule->local_of[chunk];
}
static inline int schedule_chunk(const Schedule *schedule, int stage, int local)
{
    return schedule->chunk_at[stage * schedule->shape.chunks + local];
}
/* Returns the number of chunks of the model. */
static inline int schedule_chunks(const Schedule *schedule)
{
    return schedule->shape.stages * schedule->shape.chunks;
}
/* schedule_shares_stage returns true if this chunk and the next are on one stage, so that no
 * message passes between them; schedule_crosses if they are on two stages. Both return false if
 * chunk is -1 or the last chunk. */
static inline bool schedule_shares_stage(const Schedule *schedule, int chunk)
{
    return chunk >= 0 && chunk + 1 < schedule_chunks(schedule) &&
           schedule->stage_of[chunk] == schedule->stage_of[chunk + 1];
}
static inline bool schedule_crosses(const Schedule *schedule, int chunk)
{
    return chunk >= 0 && chunk + 1 < schedule_chunks(schedule) &&
           schedule->stage_of[chunk] != schedule->stage_of[chunk + 1];
}

/* Makes the lists of all stages, with messages. kind: SCHEDULE_1F1B, ... (schedules.def); the file
 * of each kind in src/schedule names the paper that describes the kind, and the properties of the
 * kind. SCHEDULE_FILE reads the CSV file `path`: a header line `stage,task,chunk,micro`, then a row
 * for each task; the rows of a stage are in the order of its tasks. If no row is a send or a
 * receive, messages are inserted: receives just before the work, sends just after. A line
 * `stages,0,1,1,0` before the header gives the stages of chunks 0, 1, ...; without this line chunk
 * c is on stage c % stages. ERR_NOINPUT: there is no such file. ERR_CONFIG: kind and shape do not
 * fit, or a row is invalid; the message has file and line. Whether the lists of a file can run is
 * only checked by schedule_simulate. Release with schedule_free. */
Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape);
/* Returns the kind whose schedules have this name (Schedule.name). -1: there is none, or it is
 * SCHEDULE_FILE, which also needs a path. */
int schedule_kind(const char *name);
/* Makes a schedule of forward passes only, for evaluation: at most `stages` micro-batches are in
 * flight, and no channel needs more than 2 slots. stage_of: stage of each chunk, borrowed for the
 * call; NULL: chunk % stages. ERR_CONFIG: the shape is too large, or a stage has more than
 * shape.chunks chunks. */
Status schedule_forward(Schedule **schedule, ScheduleShape shape, const int *stage_of);
void schedule_free(Schedule **schedule);

/* Cost of a message. copy: time in which the sender copies the message; the receiver needs the same
 * time to copy it again. wire: time between the two copies, in which both stages can compute. */
typedef struct MessageCost {
    double copy, wire;
} MessageCost;
/* Costs of a chunk for the simulation, in any unit of time. If no costs are given, a forward and
 * each half of a backward take 1, and messages take 0. */
typedef struct TaskCost {
    /* a whole backward pass is the sum of its two halves */
    double forward, backward_data, backward_weight;
    /* activations: a message with the chunk's outputs to the next chunk; gradients: a message from
     * the next chunk with the gradients of those outputs */
    MessageCost activations, gradients;
} TaskCost;
/* Returns the time of a chunk's passes for one micro-batch. */
static inline double task_cost_passes(const TaskCost *cost)
{
    return cost->forward + cost->backward_data + cost->backward_weight;
}
/* Start and end of one task. */
typedef struct ScheduleSpan {
    double start, end;
} ScheduleSpan;
typedef struct ScheduleReport {
    /* makespan: end of the last task. bubble: fraction of stages * makespan in which stages compute
     * nothing */
    double makespan, bubble;
    /* largest number of live micro-batches of each chunk of the model, [chunks of the model];
     * owned. A micro-batch is live from its forward to its last backward half. */
    int *live;
    /* slots of every channel: the fewest with which the stages do not deadlock, but at least 2 */
    int depth;
    /* times of each task, [stages][count], in the same order as schedule->task; owned */
    ScheduleSpan **span;
} ScheduleReport;
/* Simulates the lists of all stages together. ERR_CONFIG: the lists cannot run, because a message
 * is not sent or not received, a task comes before its inputs, occurs twice or is missing, backward
 * passes are out of order, or stages wait for each other; the message names stage, index in the
 * list and task. cost: one for each chunk of the model, or NULL. report: NULL, or released with
 * schedule_report_fini. */
Status schedule_simulate(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report);
void schedule_report_fini(ScheduleReport *report);
/* The parts of a makespan: why it is as long as it is. They add up to the makespan. */
typedef struct ScheduleWaits {
    /* work of a stage, mean over the stages */
    double work;
    /* bubble: waiting if all chunks took the same time and messages no time; imbalance: additional
     * waiting because chunks take different times; messages: additional waiting because of
     * messages */
    double bubble, imbalance, messages;
} ScheduleWaits;
/* Returns the time in which a stage works in one step. cost: one for each chunk of the model. */
double schedule_stage_work(const Schedule *schedule, const TaskCost *cost, int stage);
/* Computes the parts of the makespan that schedule_simulate gives for these costs. cost: one for
 * each chunk of the model. report: receives the report of this simulation, and is released with
 * schedule_report_fini; it may be NULL. Errors as in schedule_simulate. */
Status schedule_waits(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report,
                      ScheduleWaits *waits);
/* The longest chain of tasks and messages that wait for each other, from the first task to the
 * last. The makespan gets shorter only if this chain does. */
typedef struct SchedulePath {
    /* work of each stage in the chain, [stages]; owned */
    double *work;
    /* time of the messages in the chain; work and messages add up to the makespan */
    double messages, makespan;
} SchedulePath;
/* Finds the longest chain of the schedule with these costs. cost: one for each chunk of the model.
 * Errors as in schedule_simulate. Release with schedule_path_fini. */
Status schedule_path(const Schedule *schedule, const TaskCost *cost, SchedulePath *path);
void schedule_path_fini(SchedulePath *path);

/* The order in which one stage moves messages. Between GPUs both ends of a channel must move a
 * message together: a move blocks until the other end makes it, too. A simulation of all stages,
 * with `depth` slots per channel, gives one sequence of work and moves, and the moves of a stage
 * are its part of this sequence. If every stage follows its part, no stage waits for ever. A
 * message moves after its send task and before its receive task. */
typedef struct Move {
    /* the move is made before the task with this index in the stage's list. If task is the list's
     * length, the move is made after the last task */
    int task;
    /* 2 * k for activations, 2 * k + 1 for gradients; k: number of the boundary, from 0, among the
     * boundaries that messages cross */
    int channel;
} Move;
typedef struct Moves {
    /* owned; release it with mem_free */
    Move *move;
    int count;
} Moves;
/* Computes the moves of one stage. ERR_BUG: the schedule deadlocks with this depth. */
Status schedule_moves(Moves *moves, const Schedule *schedule, int depth, int stage);

/* schedule_print draws the simulated schedule as text ("F0 F1 . B0") with one line per stage, at
 * most `columns` characters wide; schedule_svg draws it as SVG. Time goes to the right. */
void schedule_print(const Schedule *schedule, const ScheduleReport *report, int columns, FILE *out);
void schedule_svg(const Schedule *schedule, const ScheduleReport *report, FILE *out);
/* Draws the SVG as a part of an HTML page. The page must have CSS for the classes inside .schedule:
 * boxes f (forward), b (backward), w (gradients of weights), m (several kinds); texts n (number), s
 * (stage), t (title). */
void schedule_svg_inline(const Schedule *schedule, const ScheduleReport *report, FILE *out);

#endif
