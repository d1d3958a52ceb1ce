/* schedule: the order of the tasks of each stage of a pipeline, as lists of tasks that pure
 * functions make, and a simulation and pictures of the lists. The lists can be printed, timed and
 * checked for deadlocks before a rank starts. The module needs no MPI and no model; nothing is
 * collective.
 *
 * The model is cut into chunks 0 .. stages * chunks_per_stage - 1 in the order of its nodes, and
 * every stage has chunks_per_stage chunks. The schedule decides which stage has which chunks
 * (schedule_stage). Usually chunk c is on stage c % stages, so a micro-batch passes through all
 * stages chunks_per_stage times. In V-shaped schedules it passes through the stages in ascending
 * and then in descending order.
 * Between consecutive chunks on one stage there is no message. Every stage runs the backward passes
 * of a chunk in the order of the micro-batches. */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include "config.h"

/* Kinds of tasks. `chunk` is Task.chunk. */
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
/* Names of the kinds in schedule files: "forward", ... */
extern const char *const task_names[TASK_KINDS];

typedef struct Task {
    TaskKind kind;
    /* chunk: number of the chunk in the model, from 0; micro: number of the micro-batch in this
     * replica, from 0 */
    int chunk, micro;
} Task;

typedef struct ScheduleShape {
    /* stages: number of stages; chunks_per_stage: number of chunks of each stage; micro_batches:
     * number of micro-batches of one replica */
    int stages, chunks_per_stage, micro_batches;
} ScheduleShape;
/* The lists of tasks of all stages. */
typedef struct Schedule {
    ScheduleShape shape;
    /* name of its kind: "gpipe", "1f1b", ..., "file"; or "forward" (schedule_forward); static */
    const char *name;
    /* true: every backward pass is two tasks, its two halves, and no list has a TASK_BACKWARD */
    bool split;
    /* stage of each chunk of the model, [chunks of the model]; owned */
    int *stage_of;
    /* index of each chunk among its stage's chunks, [chunks of the model]; owned */
    int *index_on_stage;
    /* chunks of each stage in ascending order, [stages][chunks_per_stage]; owned */
    int *chunk_at;
    /* number of tasks of each stage, [stages]; owned */
    int *count;
    /* list of tasks of each stage, [stages][count]; the array and each list are owned */
    Task **task;
} Schedule;

/* schedule_stage returns the stage of a chunk; schedule_index_on_stage returns the index of a chunk
 * among the chunks of its stage; schedule_chunk returns the chunk with index `local` of a stage. */
static inline int schedule_stage(const Schedule *schedule, int chunk)
{
    return schedule->stage_of[chunk];
}
static inline int schedule_index_on_stage(const Schedule *schedule, int chunk)
{
    return schedule->index_on_stage[chunk];
}
static inline int schedule_chunk(const Schedule *schedule, int stage, int local)
{
    return schedule->chunk_at[stage * schedule->shape.chunks_per_stage + local];
}
/* Returns the number of chunks of the model. */
static inline int schedule_chunks(const Schedule *schedule)
{
    return schedule->shape.stages * schedule->shape.chunks_per_stage;
}
/* schedule_shares_stage returns true if this chunk and the next are on one stage, so that no
 * message passes between them; schedule_crosses returns true if they are on two stages. Both return
 * false if `chunk` is -1 or the last chunk. */
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

/* Checks that every kind of schedule defines what it needs. ERR_BUG: a kind does not; the message
 * names the kind and the field that it lacks. */
Status schedule_rows_check(void);
/* Makes the lists of all stages, with messages. kind: SCHEDULE_1F1B, ... (schedules.def); the file
 * of each kind in src/schedule names the paper that describes the kind, and the properties of the
 * kind. SCHEDULE_FILE reads the CSV file `path`: a header line `stage,task,chunk,micro`, then a row
 * for each task; the rows of a stage are in the order of its tasks. If no row is a send or a
 * receive, messages are inserted: receives just before the work, sends just after it. A line
 * `stages,0,1,1,0` before the header gives the stages of chunks 0, 1, ...; without this line chunk
 * c is on stage c % stages. ERR_NOINPUT: there is no such file. ERR_CONFIG: kind and shape do not
 * fit, or a row is invalid; the message has file and line. It does not check whether the lists of a
 * file can run: call schedule_simulate. Release with schedule_free. */
Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape);
/* Returns the kind whose schedules have this name (Schedule.name). Returns -1 if there is none, and
 * for SCHEDULE_FILE, which also needs a path. */
int schedule_kind(const char *name);
/* Makes a schedule with only forward passes, for evaluation: at most `stages` micro-batches are in
 * flight, and no channel needs more than 2 slots. A slot of a channel holds one message. stage_of:
 * stage of each chunk, borrowed for the call; NULL: chunk c is on stage c % stages. ERR_CONFIG: the
 * shape is invalid or too large, or a stage has more than shape.chunks_per_stage chunks. Release
 * with schedule_free. */
Status schedule_forward(Schedule **schedule, ScheduleShape shape, const int *stage_of);
void schedule_free(Schedule **schedule);

/* Costs of a message. copy: time in which the sender copies the message; the receiver needs the
 * same time to copy it again. wire: time between the two copies, in which both stages can
 * compute. */
typedef struct MessageCost {
    double copy, wire;
} MessageCost;
/* Costs of a chunk for the simulation, in any unit of time. If there are no costs, a forward pass
 * and each half of a backward pass take 1, and messages take 0. */
typedef struct TaskCost {
    /* times of a forward pass and of the two halves of a backward pass; a backward pass that is one
     * task takes the sum of its halves */
    double forward, backward_data, backward_weight;
    /* activations: costs of a message with the chunk's outputs to the next chunk; gradients: costs
     * of a message from the next chunk with the gradients of the outputs */
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
/* The result of a simulation. */
typedef struct ScheduleReport {
    /* makespan: end of the last task; bubble: fraction of stages * makespan in which stages do not
     * compute */
    double makespan, bubble;
    /* largest number of live micro-batches of each chunk of the model, [chunks of the model];
     * owned. A micro-batch is live from its forward to its last backward half. */
    int *live;
    /* number of slots of every channel: the smallest with which the stages do not deadlock, but at
     * least 2 */
    int channel_depth;
    /* times of each task, [stages][count], in the same order as schedule->task; owned */
    ScheduleSpan **span;
} ScheduleReport;
/* Simulates the lists of all stages together. cost: costs of each chunk of the model; NULL: see
 * TaskCost. report: NULL, or released with schedule_report_fini. ERR_CONFIG: the lists cannot run,
 * because a message is not sent or not received, a task comes before its inputs, occurs twice or is
 * missing, backward passes are not in the order of the micro-batches, or stages wait for each
 * other; the message names stage, index in the list and task. */
Status schedule_simulate(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report);
void schedule_report_fini(ScheduleReport *report);
/* The parts of a makespan, by cause. They add up to the makespan. */
typedef struct ScheduleWaits {
    /* time in which a stage works, mean over the stages */
    double work;
    /* bubble: time that stages would wait if all chunks took the same time and messages took no
     * time; imbalance: additional waiting because chunks take different times; messages: additional
     * waiting because of messages */
    double bubble, imbalance, messages;
} ScheduleWaits;
/* Returns the time in which a stage works in one step. cost: costs of each chunk of the model. */
double schedule_stage_work(const Schedule *schedule, const TaskCost *cost, int stage);
/* Computes the parts of the makespan that schedule_simulate computes with these costs. cost: costs
 * of each chunk of the model. report: gets the report of this simulation, and is released with
 * schedule_report_fini; it may be NULL. Errors as in schedule_simulate. */
Status schedule_waits(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report,
                      ScheduleWaits *waits);
/* The longest chain of tasks and messages, from the first task to the last, in which each waits for
 * the one before it. The makespan can only become shorter if this chain does. */
typedef struct CriticalPath {
    /* time in which each stage works in the chain, [stages]; owned */
    double *work;
    /* messages: time of the messages in the chain; makespan: sum of `messages` and of `work` of all
     * stages */
    double messages, makespan;
} CriticalPath;
/* Finds the longest chain of the schedule with these costs. cost: costs of each chunk of the model.
 * Errors as in schedule_simulate. Release with schedule_path_fini. */
Status schedule_critical_path(const Schedule *schedule, const TaskCost *cost, CriticalPath *path);
void schedule_path_fini(CriticalPath *path);

/* The order in which one stage moves messages. Between GPUs both ends of a channel must move a
 * message at the same time: a move blocks until the other end makes it, too. A simulation of all
 * stages, with `depth` slots per channel, gives one sequence of work and moves, and the moves of a
 * stage are its part of this sequence. If every stage makes its moves in this order, no stage waits
 * for ever. A message moves after its send task and before its receive task. */
typedef struct Move {
    /* index in the stage's list of the task before which the move is made; the length of the list:
     * it is made after the last task */
    int task;
    /* number of the channel: 2 * k for activations and 2 * k + 1 for gradients at boundary k,
     * counted from 0 among the boundaries that messages cross */
    int channel;
} Move;
typedef struct Moves {
    /* moves in order, [count]; owned; release it with mem_free */
    Move *move;
    int count;
} Moves;
/* Computes the moves of stage `stage`. depth: number of slots of a channel. ERR_BUG: the schedule
 * deadlocks with this depth. */
Status schedule_moves(Moves *moves, const Schedule *schedule, int depth, int stage);

/* schedule_print draws the simulated schedule as text ("F0 F1 . B0") with one line per stage, at
 * most `columns` characters wide, but with at least 10 characters for the time; schedule_svg draws
 * it as SVG. Time goes to the right. */
void schedule_print(const Schedule *schedule, const ScheduleReport *report, int columns, FILE *out);
void schedule_svg(const Schedule *schedule, const ScheduleReport *report, FILE *out);
/* Draws the SVG as a part of an HTML page. The page must have CSS for the classes inside .schedule:
 * boxes f (forward), b (backward), w (gradients of weights), m (several kinds); texts n (number), s
 * (stage), t (title). */
void schedule_svg_inline(const Schedule *schedule, const ScheduleReport *report, FILE *out);

#endif
