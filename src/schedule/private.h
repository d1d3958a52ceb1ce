/* Shared by the files of the schedule module: lists that grow, the functions that define a kind of
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
/* Adds a forward or backward task with its messages: the receive just before it, the send just
 * after. */
void list_add_work(TaskList *list, const Schedule *schedule, TaskKind kind, int chunk, int micro);

/* The functions that define a kind of schedule, in addition to its row in schedules.def. */
typedef struct ScheduleForm {
    /* Returns the stage of a chunk. NULL: chunk % stages, unless the file says otherwise. */
    int (*stage)(ScheduleShape shape, int chunk);
    /* Appends the tasks of one stage; the schedule's shape and mapping are set. NULL: the lists
     * come from a file. */
    void (*order)(TaskList *list, const Schedule *schedule, int stage);
    /* true: backward passes are in halves. A file's schedule is split if its lists contain a
     * half. */
    bool split;
} ScheduleForm;

/* ---- mappings ---- */
/* Round-robin: chunk % stages. */
int stage_round(ScheduleShape shape, int chunk);
/* Down the stages and back up (v_shaped.c). */
int stage_v(ScheduleShape shape, int chunk);

/* ---- orders ---- */
/* Appends the tasks of a stage: first `ahead` forwards, then one forward and one backward in turns,
 * then the remaining backwards. Both the forwards and the backwards go through the micro-batches
 * group by group, and through a group chunk by chunk (turns.c). */
void order_turns(TaskList *list, const Schedule *schedule, int stage, int groups, int64_t ahead);
/* Number of micro-batches in group number `group` of `groups`. Sizes differ by 1 at most; larger
 * groups come first. */
int group_size(ScheduleShape shape, int groups, int group);
void order_interleaved(TaskList *list, const Schedule *schedule, int stage);

/* `times` repetitions of a pattern of steps on a stage of two chunks, one letter per step. F, f:
 * forward of the next micro-batch through the first or the second chunk; B, b: the data half of its
 * backward; W: the oldest weight half that is left. */
typedef struct SchedulePhase {
    int times;
    const char *steps;
} SchedulePhase;
/* Appends the phases of a stage (v_shaped.c). They may cover more micro-batches than the schedule
 * has; tasks of the excess ones are left out. */
void order_phases(TaskList *list, const Schedule *schedule, int stage, const SchedulePhase *phase,
                  int phases);

/* Reads a file into one list per stage and schedule->stage_of. ERR_CONFIG with file:line. */
Status file_read(TaskList *list, const char *path, Schedule *schedule);
/* Fills the lists of all stages (forward.c). */
void order_forward(TaskList *list, const Schedule *schedule);

/* Checks every list separately: each task is there once, after the tasks of the same stage that it
 * needs. live: receives the most live micro-batches of each chunk of the model. */
Status schedule_check(const Schedule *schedule, int *live);
/* Fails with the task at `index` of the stage's list, and what is wrong with it. */
Status task_fail(const Schedule *schedule, int stage, int index, const char *what);
/* Writes "task 7 of 40 (forward, chunk 2, micro 5)" to out, TASK_TEXT chars, and returns it. */
enum { TASK_TEXT = 96 };
char *task_text(const Schedule *schedule, int stage, int index, char *out);
bool schedule_is_forward(const Schedule *schedule);
/* Duration of the shortest forward or backward task that takes any time; it determines the scale
 * of both pictures. */
double shortest_work(const Schedule *s, const ScheduleReport *r);

static inline bool task_is_message(TaskKind kind)
{
    return kind >= TASK_SEND_FORWARD;
}
/* Channel of a message: 2 * b for values, 2 * b + 1 for gradients, between chunks b and b + 1. */
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

/* The stage at the other end of a message. */
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
