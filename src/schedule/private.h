/* Shared by the files of the schedule module: growing lists, the form of a kind of schedule, and
 * properties of lists. */
#ifndef WEFT_SCHEDULE_PRIVATE_H
#define WEFT_SCHEDULE_PRIVATE_H

#include "schedule.h"

typedef struct TaskList {
    /* owned */
    Task *task;
    int count, room;
} TaskList;
void list_add(TaskList *list, TaskKind kind, int chunk, int micro);
/* Adds a work task with its messages: receives just before it, sends just after. */
void list_add_work(TaskList *list, const Schedule *schedule, TaskKind kind, int chunk, int micro);

/* The functions that define a kind of schedule, in addition to its row in schedules.def. */
typedef struct ScheduleForm {
    /* stage of a chunk; NULL: the file decides */
    int (*stage)(ScheduleShape shape, int chunk);
    /* Appends the tasks of one stage; the schedule's shape and mapping are set. NULL: the lists
     * come from a file. */
    void (*order)(TaskList *list, const Schedule *schedule, int stage);
    /* true: backward passes are in halves; for a file it is found in its lists */
    bool split;
} ScheduleForm;

/* ---- mappings ---- */
/* Round the stages: chunk % stages. */
int stage_round(ScheduleShape shape, int chunk);
/* Down the stages and back up (v_shaped.c). */
int stage_v(ScheduleShape shape, int chunk);

/* ---- orders ---- */
/* The forwards and the backwards of a stage each have an order: by groups of micro-batches, inside
 * a group chunk by chunk. The list has `ahead` forwards first, then forwards and backwards in
 * turns, then the remaining backwards (turns.c). */
void order_turns(TaskList *list, const Schedule *schedule, int stage, int groups, int64_t ahead);
/* Micro-batches of group `group` if `groups` share them, the largest groups first. */
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

/* Checks every list separately: each task once, after what it needs on the same stage. live:
 * receives the most live micro-batches, per chunk of the model. */
Status schedule_check(const Schedule *schedule, int *live);
Status task_fail(const Schedule *schedule, int stage, int place, const char *what);
/* Writes "task 7 of 40 (forward, chunk 2, micro 5)" to out, TASK_TEXT chars, and returns it. */
enum { TASK_TEXT = 96 };
char *task_text(const Schedule *schedule, int stage, int place, char *out);
bool schedule_is_forward(const Schedule *schedule);
/* Time of the shortest work task that does not take 0; both pictures are scaled by it. */
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
