/* The schedule module's private header: lists that grow, the functions that define a kind of
 * schedule, the check of the lists, and properties of tasks and messages. */
#ifndef WEFT_SCHEDULE_PRIVATE_H
#define WEFT_SCHEDULE_PRIVATE_H

#include "schedule.h"

typedef struct TaskList {
    /* [capacity]; owned */
    Task *task;
    int count, capacity;
} TaskList;
void list_add(TaskList *list, TaskKind kind, int chunk, int micro);
/* Adds a task that computes, with its messages: the receive just before the task, the send just
 * after it. */
void list_add_work(TaskList *list, const Schedule *schedule, TaskKind kind, int chunk, int micro);

/* The functions that define a kind of schedule, in addition to its row in schedules.def. */
typedef struct ScheduleForm {
    /* Returns the stage of a chunk. NULL if the lists come from a file: the file then gives the
     * stages, or the stage is chunk % stages. */
    int (*stage)(ScheduleShape shape, int chunk);
    /* Appends the tasks of one stage; the schedule's shape and mapping are set. NULL: the lists
     * come from a file. */
    void (*order)(TaskList *list, const Schedule *schedule, int stage);
    /* true: backward passes are split into halves. A schedule from a file is split if any of its
     * rows is a half. */
    bool split;
} ScheduleForm;

/* ---- mappings ---- */
/* Round-robin: chunk % stages. */
int stage_round(ScheduleShape shape, int chunk);
/* V-shaped: down the stages and back up (v_shaped.c). */
int stage_v(ScheduleShape shape, int chunk);

/* ---- orders ---- */
/* Appends the tasks of a stage: first `ahead` forwards, then one forward and one backward in turns,
 * then the remaining backwards. The micro-batches are divided into `groups` groups. Forwards and
 * backwards process them group by group, and the micro-batches of a group chunk by chunk
 * (turns.c). */
void order_turns(TaskList *list, const Schedule *schedule, int stage, int groups, int64_t ahead);
/* Returns the number of micro-batches in group number `group` of `groups`. Sizes differ by 1 at
 * most; larger groups come first. */
int group_size(ScheduleShape shape, int groups, int group);
void order_interleaved(TaskList *list, const Schedule *schedule, int stage);

/* A phase of a stage with two chunks: `times` repetitions of a pattern of steps, one letter per
 * step. F, f: forward of the next micro-batch through the stage's first (F) or second (f) chunk. B,
 * b: data half of the next backward through the first or second chunk. W: the oldest weight half
 * that has not been done. */
typedef struct SchedulePhase {
    int times;
    const char *steps;
} SchedulePhase;
/* Appends the phases of a stage (v_shaped.c). They may cover more micro-batches than the schedule
 * has; tasks of the excess micro-batches are left out. */
void order_phases(TaskList *list, const Schedule *schedule, int stage, const SchedulePhase *phase,
                  int phases);

/* Reads a file into one list per stage, and inserts messages if the file has none. Changes
 * schedule->stage_of if the file gives the stages. ERR_CONFIG: the file is invalid; the message has
 * file and line. */
Status file_read(TaskList *list, const char *path, Schedule *schedule);
/* Fills the lists of all stages, list[stages], with the forward passes of an evaluation
 * (forward.c). */
void order_forward(TaskList *list, const Schedule *schedule);

/* Checks every list separately: each task occurs once, after the tasks of the same stage that it
 * needs. live: zeros, [chunks of the model]; receives each chunk's largest number of live
 * micro-batches. ERR_CONFIG. */
Status schedule_check(const Schedule *schedule, int *live);
/* Returns ERR_CONFIG with a message that names the task at `index` of the stage's list and says
 * what is wrong with it. */
Status task_fail(const Schedule *schedule, int stage, int index, const char *what);
/* Writes "task 7 of 40 (forward, chunk 2, micro 5)" to out, TASK_TEXT chars, and returns it. */
enum { TASK_TEXT = 96 };
char *task_text(const Schedule *schedule, int stage, int index, char *out);
/* Returns true if schedule_forward made the schedule. */
bool schedule_is_forward(const Schedule *schedule);
/* Returns the duration of the shortest forward or backward task, without tasks of duration 0. It
 * determines the scale of both pictures. */
double shortest_work(const Schedule *s, const ScheduleReport *r);

static inline bool task_is_message(TaskKind kind)
{
    return kind >= TASK_SEND_FORWARD;
}
/* Returns the channel of a message between chunks b and b + 1: 2 * b for activations, 2 * b + 1 for
 * gradients. */
static inline int message_channel(Task t)
{
    switch (t.kind) {
    case TASK_SEND_FORWARD:
        return 2 * t.chunk;
    case TASK_RECEIVE_FORWARD:
        return 2 * (t.chunk - 1);
    case TASK_SEND_BACKWARD:
        return 2 * (t.chunk - 1) + 1;
    default:
        return 2 * t.chunk + 1;
    }
}

/* Returns the stage at the other end of a message. */
static inline int message_peer(const Schedule *s, Task t)
{
    bool next = t.kind == TASK_SEND_FORWARD || t.kind == TASK_RECEIVE_BACKWARD;
    return schedule_stage(s, next ? t.chunk + 1 : t.chunk - 1);
}

static inline bool task_is_send(TaskKind kind)
{
    return kind == TASK_SEND_FORWARD || kind == TASK_SEND_BACKWARD;
}

#endif
