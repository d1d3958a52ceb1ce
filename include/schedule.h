/* schedule: who does what when in a pipeline, as lists of actions from pure functions; their
 * simulation and their picture. A list can be printed, timed and proved free of dead ends before a
 * rank starts. No MPI, no model. Nothing is collective. The model is cut into chunks 0 ..
 * stages*chunks-1 in node order, and every stage has `chunks` of them. Which ones is the schedule's
 * to say (schedule_stage): as a rule chunk c is on stage c % stages, so a micro-batch goes round
 * the stages `chunks` times; V-shaped schedules turn back at the last stage. Where two chunks in a
 * row are on one stage no message passes between them. Every stage does a chunk's backward passes
 * in the order of the micro-batches. */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include "config.h"

typedef enum TaskKind {
    TASK_FORWARD,
    /* both halves at once */
    TASK_BACKWARD,
    /* the gradient for the chunk before; its weights' gradients wait in memory, */
    TASK_BACKWARD_DATA,
    /* until this one */
    TASK_BACKWARD_WEIGHT,
    /* the chunk's outputs, to the stage of chunk + 1 */
    TASK_SEND_FORWARD,
    /* the chunk's inputs, from the stage of chunk - 1 */
    TASK_RECEIVE_FORWARD,
    /* the gradients of the chunk's inputs, to the stage of chunk - 1 */
    TASK_SEND_BACKWARD,
    /* the gradients of the chunk's outputs, from the stage of chunk + 1 */
    TASK_RECEIVE_BACKWARD,
    TASK_KINDS
} TaskKind;
/* "forward", ... as in schedule files */
extern const char *const task_names[TASK_KINDS];

typedef struct Task {
    TaskKind kind;
    /* of the whole model; of this replica's micro-batches, 0-based */
    int chunk, micro;
} Task;

typedef struct ScheduleShape {
    /* chunks: of one stage */
    int stages, chunks, micros;
} ScheduleShape;
typedef struct Schedule {
    ScheduleShape shape;
    /* borrowed, constant: "gpipe", "1f1b", ..., "file", "forward" */
    const char *name;
    /* backward in two halves: then no list has a whole one */
    bool split;
    /* owned, one a chunk of the model: its stage, */
    int *stage_of;
    /* and its number among that stage's chunks */
    int *local_of;
    /* owned (stages, chunks): the other way round, rising on each stage */
    int *chunk_at;
    /* owned: tasks of each stage */
    int *count;
    /* owned, and each list */
    Task **task;
} Schedule;

/* The stage that has a chunk; the chunk's number there; the chunk that has number `local` on a
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
/* of the model */
static inline int schedule_chunks(const Schedule *schedule)
{
    return schedule->shape.stages * schedule->shape.chunks;
}
/* Between this chunk and the next: is there a boundary at all, and does a stage meet itself there,
 * so that no message passes? chunk may be -1 or the last one. */
static inline bool schedule_meets(const Schedule *schedule, int chunk)
{
    return chunk >= 0 && chunk + 1 < schedule_chunks(schedule) &&
           schedule->stage_of[chunk] == schedule->stage_of[chunk + 1];
}
static inline bool schedule_crosses(const Schedule *schedule, int chunk)
{
    return chunk >= 0 && chunk + 1 < schedule_chunks(schedule) &&
           schedule->stage_of[chunk] != schedule->stage_of[chunk + 1];
}

/* The lists of all stages, messages included. kind: SCHEDULE_1F1B, ... (schedules.def); its file in
 * src/schedule says where it comes from and what it promises. From a file, path is a CSV: a head
 * line `stage,task,chunk,micro`, then rows in the order of each stage. Without any send or receive
 * row, messages are put in: receives just before, sends just after the work. A line
 * `stages,0,1,1,0` before the head says which stage has chunk 0, 1, ...; without it chunk c is on
 * stage c % stages. ERR_CONFIG where kind and shape do not fit or a file's row is wrong, with
 * file:line. Owner: the caller. */
Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape);
/* Only forwards, for evaluation; at most `stages` micro-batches are under way at a time, and
 * channels need not hold more than 2 messages. stage_of: borrowed for the call, one a chunk: its
 * stage; NULL: chunk % stages. */
Status schedule_forward(Schedule **schedule, ScheduleShape shape, const int *stage_of);
void schedule_free(Schedule **schedule);

/* Costs in any unit of time, for the simulation: one per chunk, or all 1:1:1 with free messages
 * where `chunk` is NULL. */
typedef struct TaskCost {
    /* a whole backward is the sum of the two */
    double forward, backward_data, backward_weight;
    /* from this chunk to the next, on the wire; the sender does not wait for it */
    double message;
} TaskCost;
/* one task on the clock */
typedef struct ScheduleSpan {
    double start, end;
} ScheduleSpan;
typedef struct ScheduleReport {
    /* bubble: share of stages x makespan in which a stage does no work */
    double makespan, bubble;
    /* owned, one a chunk of the model: micro-batches whose forward is done and last backward half
     * is not */
    int *live;
    /* messages that a channel must hold, at least 2 and as few as run without a dead end */
    int depth;
    /* owned: as schedule->task */
    ScheduleSpan **span;
} ScheduleReport;
/* Plays all lists at once. ERR_CONFIG names stage, place in the list and task where something can
 * never happen: a message that nobody sends or takes, work before what it needs, work twice or
 * never, backward passes out of order, stages that wait for each other. cost may be NULL. report
 * may be NULL; release with schedule_report_fini. */
Status schedule_simulate(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report);
void schedule_report_fini(ScheduleReport *report);

/* The order in which messages move where both stages of a channel must say so, as between GPUs: one
 * sequence of work and messages of all stages, as a simulation with `depth` places a channel plays
 * it, and of it what one stage does. So each stage's moves stand at places of its list where no
 * stage that does the same with its own can wait for ever, even if moving a message blocks until
 * the other side moves it, too. What is moved has been sent before and is taken after. */
typedef struct Move {
    /* of the stage's list, before which it comes; the list's count: after the last */
    int task;
    /* 2 * k for values, 2 * k + 1 for gradients over the k-th boundary at which messages pass */
    int channel;
} Move;
typedef struct Moves {
    /* owned; free it with mem_free */
    Move *move;
    int count;
} Moves;
/* ERR_BUG where the schedule does not run with such a depth. */
Status schedule_moves(Moves *moves, const Schedule *schedule, int depth, int stage);

/* The picture: one line a stage, time to the right, at most `columns` wide ("F0 F1 . B0"); and as
 * SVG. */
void schedule_print(const Schedule *schedule, const ScheduleReport *report, int columns, FILE *out);
void schedule_svg(const Schedule *schedule, const ScheduleReport *report, FILE *out);

#endif
