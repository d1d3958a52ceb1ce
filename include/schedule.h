/* schedule: which stage of a pipeline does which task when, as lists of tasks made by pure
 * functions, with their simulation and picture. A list can be printed, timed and proved free of
 * deadlock before a rank starts. No MPI, no model; nothing is collective.
 *
 * The model is cut into chunks 0 .. stages * chunks - 1 in node order, and every stage has `chunks`
 * of them. The schedule decides which ones (schedule_stage): usually chunk c is on stage c %
 * stages, so a micro-batch passes through the stages `chunks` times; V-shaped schedules turn back
 * at the last stage. Between consecutive chunks on one stage there is no message. Every stage does
 * a chunk's backward passes in the order of the micro-batches. */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include "config.h"

typedef enum TaskKind {
    TASK_FORWARD,
    /* the whole backward pass */
    TASK_BACKWARD,
    /* the half that makes the gradients of the chunk's inputs */
    TASK_BACKWARD_DATA,
    /* the half that makes the gradients of the chunk's weights, at any later time */
    TASK_BACKWARD_WEIGHT,
    /* the chunk's outputs, to the stage of chunk + 1 */
    TASK_SEND_FORWARD,
    /* the chunk's inputs, from the stage of chunk - 1 */
    TASK_RECEIVE_FORWARD,
    /* the gradients of the chunk's inputs, to the stage of chunk - 1 */
    TASK_SEND_BACKWARD,
    /* the gradients of the chunk's outputs, from the stage of chunk + 1 */
    TASK_RECEIVE_BACKWARD,
    TASK_KINDS,
    /* kinds of work, which come before those of messages */
    TASK_WORK_KINDS = TASK_SEND_FORWARD
} TaskKind;
/* Names in schedule files: "forward", ... */
extern const char *const task_names[TASK_KINDS];

typedef struct Task {
    TaskKind kind;
    /* chunk of the whole model; micro-batch of this replica, 0-based */
    int chunk, micro;
} Task;

typedef struct ScheduleShape {
    /* chunks: chunks per stage; micros: micro-batches of one replica */
    int stages, chunks, micros;
} ScheduleShape;
typedef struct Schedule {
    ScheduleShape shape;
    /* "gpipe", "1f1b", ..., "file", "forward"; borrowed, constant */
    const char *name;
    /* true: every backward pass is in two halves, and no list has a TASK_BACKWARD */
    bool split;
    /* stage of each chunk of the model, [stages * chunks]; owned */
    int *stage_of;
    /* index of each chunk among its stage's chunks, [stages * chunks]; owned */
    int *local_of;
    /* chunks of each stage in ascending order, [stages][chunks]; owned */
    int *chunk_at;
    /* number of tasks of each stage, [stages]; owned */
    int *count;
    /* tasks of each stage, [stages][count]; owned, as is each list */
    Task **task;
} Schedule;

/* The stage of a chunk; the chunk's index on that stage; the chunk with index `local` on a
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
/* Number of chunks of the model. */
static inline int schedule_chunks(const Schedule *schedule)
{
    return schedule->shape.stages * schedule->shape.chunks;
}
/* True if this chunk and the next are on one stage, with no message in between
 * (schedule_shares_stage), or on two stages (schedule_crosses). Both are false if chunk is -1 or
 * the last one. */
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
 * of a kind in src/schedule names its source and its properties. SCHEDULE_FILE reads the CSV file
 * path: a head line `stage,task,chunk,micro`, then rows in the order of each stage. If no row is a
 * send or a receive, messages are inserted: receives just before the work, sends just after. A line
 * `stages,0,1,1,0` before the head gives the stage of chunks 0, 1, ...; without it chunk c is on
 * stage c % stages. ERR_CONFIG if kind and shape do not fit or a row is wrong, with file:line.
 * Release with schedule_free. */
Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape);
/* Returns the kind whose schedules have this name (Schedule.name); -1: none, or SCHEDULE_FILE, of
 * which the name is not enough. */
int schedule_kind(const char *name);
/* Makes a schedule of forward passes only, for evaluation: at most `stages` micro-batches are in
 * flight, and no channel needs more than 2 slots. stage_of: stage of each chunk, borrowed for the
 * call; NULL: chunk % stages. */
Status schedule_forward(Schedule **schedule, ScheduleShape shape, const int *stage_of);
void schedule_free(Schedule **schedule);

/* Cost of a message: time in which its sender and later its receiver copy it, and time on the wire
 * between the two, in which both may work. */
typedef struct MessageCost {
    double copy, wire;
} MessageCost;
/* Costs of a chunk for the simulation, in any unit of time. Without costs a forward and each half
 * of a backward take 1, and messages take 0. */
typedef struct TaskCost {
    /* a whole backward pass is the sum of its two halves */
    double forward, backward_data, backward_weight;
    /* the chunk's outputs, to the next chunk; their gradients, from there to this chunk */
    MessageCost activations, gradients;
} TaskCost;
/* Start and end of one task. */
typedef struct ScheduleSpan {
    double start, end;
} ScheduleSpan;
typedef struct ScheduleReport {
    /* bubble: share of stages * makespan in which a stage does no work */
    double makespan, bubble;
    /* the most live micro-batches of each chunk of the model, which are those whose forward is done
     * and whose last backward half is not; owned */
    int *live;
    /* slots that every channel needs: at least 2, and the fewest that do not deadlock */
    int depth;
    /* times of each task, in the same order as schedule->task; owned */
    ScheduleSpan **span;
} ScheduleReport;
/* Plays the lists of all stages. ERR_CONFIG, with stage, index in the list and task, for anything
 * that can never happen: a message that is not sent or not received, work before its inputs, twice
 * or missing, backward passes out of order, stages that wait for each other. cost: one per chunk,
 * may be NULL. report may be NULL; release it with schedule_report_fini. */
Status schedule_simulate(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report);
void schedule_report_fini(ScheduleReport *report);
/* Parts of the makespan that schedule_simulate gives for these costs. */
typedef struct ScheduleWaits {
    /* work of a stage, the mean over the stages */
    double work;
    /* waiting if all chunks took the same time and messages none; additional waiting because they
     * take different times; and because of messages */
    double bubble, imbalance, messages;
} ScheduleWaits;
/* cost: one per chunk. report: that of the simulation with these costs, as from schedule_simulate;
 * may be NULL. Errors as in schedule_simulate. */
Status schedule_waits(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report,
                      ScheduleWaits *waits);
/* The longest chain of tasks and messages that wait for each other, from the first to the last:
 * only if it gets shorter, the makespan does. */
typedef struct SchedulePath {
    /* work of each stage in the chain, [stages]; owned */
    double *work;
    /* messages in it; work and messages add up to the makespan */
    double messages, makespan;
} SchedulePath;
/* cost: one per chunk. Errors as in schedule_simulate. Release with schedule_path_fini. */
Status schedule_path(const Schedule *schedule, const TaskCost *cost, SchedulePath *path);
void schedule_path_fini(SchedulePath *path);

/* The order in which one stage moves messages where both ends of a channel must move a message
 * together, as between GPUs. The simulation of all stages, with `depth` slots per channel, gives
 * one sequence of work and messages; a stage's moves are its part of that sequence. If every stage
 * follows its part, no stage waits for ever, even if a move blocks until the other end makes it,
 * too. A message is sent before it moves and received after. */
typedef struct Move {
    /* index in the stage's list of the task before which the move is made; the list's length: after
     * the last task */
    int task;
    /* 2 * k for values, 2 * k + 1 for gradients, over the k-th boundary at which messages pass */
    int channel;
} Move;
typedef struct Moves {
    /* owned; release it with mem_free */
    Move *move;
    int count;
} Moves;
/* ERR_BUG if the schedule does not run with this depth. */
Status schedule_moves(Moves *moves, const Schedule *schedule, int depth, int stage);

/* Draws the simulated schedule: as text with one line per stage, time to the right, at most
 * `columns` wide ("F0 F1 . B0"); and as SVG. */
void schedule_print(const Schedule *schedule, const ScheduleReport *report, int columns, FILE *out);
void schedule_svg(const Schedule *schedule, const ScheduleReport *report, FILE *out);
/* The same as a part of an HTML page, which gives .schedule its style: f forward, b backward, w
 * weights and m several for boxes; n number, s stage and t title for texts. */
void schedule_svg_inline(const Schedule *schedule, const ScheduleReport *report, FILE *out);

#endif
