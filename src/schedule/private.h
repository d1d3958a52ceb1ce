/* Inside the schedule module: lists that grow, the form of a kind of schedule, and what is true of
 * a list. */
#ifndef WEFT_SCHEDULE_PRIVATE_H
#define WEFT_SCHEDULE_PRIVATE_H

#include "schedule.h"

typedef struct TaskList {
    /* owned */
    Task *task;
    int count, room;
} TaskList;
void list_add(TaskList *list, TaskKind kind, int chunk, int micro);
/* A work task with its messages: receives just before, sends just after. */
void list_add_work(TaskList *list, const Schedule *schedule, TaskKind kind, int chunk, int micro);

/* What makes a kind of schedule, beside its row in schedules.def. */
typedef struct ScheduleForm {
    /* that has the chunk; NULL: the file says */
    int (*stage)(ScheduleShape shape, int chunk);
    /* Appends the tasks of one stage; the schedule's shape and mapping are there. NULL: the file
     * has them. */
    void (*order)(TaskList *list, const Schedule *schedule, int stage);
    /* backward in halves; of a file's lists: found there */
    bool split;
} ScheduleForm;

/* ---- mappings ---- */
/* round the stages: chunk % stages */
int stage_round(ScheduleShape shape, int chunk);
/* down the stages and back: v.c */
int stage_v(ScheduleShape shape, int chunk);

/* ---- orders ---- */
/* turns.c: forwards and backwards of a stage each have an order of their own: groups of
 * micro-batches, in a group chunk by chunk. `ahead` forwards come first, then they take turns, then
 * the backwards that are left follow. */
void order_turns(TaskList *list, const Schedule *schedule, int stage, int groups, int64_t ahead);
/* Micro-batches of group `group` where `groups` share them, the largest first. */
int group_size(ScheduleShape shape, int groups, int group);
void order_interleaved(TaskList *list, const Schedule *schedule, int stage);

/* v.c: `times` times the steps of a pattern, one letter each, on a stage of two chunks. F, f:
 * forward of the next micro-batch through the first and the second one; B, b: backward, data; W:
 * the oldest weights' half that is left. */
typedef struct SchedulePhase {
    int times;
    const char *steps;
} SchedulePhase;
/* The phases of a stage. They may be for more micro-batches than the schedule has, whose tasks are
 * left out. */
void order_phases(TaskList *list, const Schedule *schedule, int stage, const SchedulePhase *phase,
                  int phases);

/* One list a stage, and stage_of, as the file has them; ERR_CONFIG with file:line. */
Status file_read(TaskList *list, const char *path, Schedule *schedule);
/* forward.c: fills the lists of all stages. */
void order_forward(TaskList *list, const Schedule *schedule);

/* Every list by itself: each task once, after what it needs on its own stage. Fills live, one a
 * chunk of the model. */
Status schedule_check(const Schedule *schedule, int *live);
Status task_fail(const Schedule *schedule, int stage, int place, const char *what);
/* "task 7 of 40 (forward, chunk 2, micro 5)", into TASK_TEXT chars, which it returns. */
enum { TASK_TEXT = 96 };
char *task_text(const Schedule *schedule, int stage, int place, char *out);
bool schedule_is_forward(const Schedule *schedule);
/* The time of the shortest work task that takes any; both pictures are scaled by it. */
double shortest_work(const Schedule *s, const ScheduleReport *r);

static inline bool task_is_message(TaskKind kind)
{
    return kind >= TASK_SEND_FORWARD;
}
/* A message's channel: 2 * b for values, 2 * b + 1 for gradients between chunks b and b + 1. */
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
