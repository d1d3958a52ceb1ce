/* Inside the schedule room: lists that grow, and what is true of a shape. */
#ifndef WEFT_SCHEDULE_PRIVATE_H
#define WEFT_SCHEDULE_PRIVATE_H

#include "schedule.h"

typedef struct TaskList {
    Task *task; /* owned */
    int count, room;
} TaskList;
void list_add(TaskList *list, TaskKind kind, int chunk, int micro);
/* A work task with its messages: receives just before, sends just after. */
void list_add_work(TaskList *list, ScheduleShape shape, TaskKind kind, int chunk, int micro);

/* The lists of one stage. */
void order_gpipe(TaskList *list, ScheduleShape shape, int stage);
void order_interleaved(TaskList *list, ScheduleShape shape, int stage);
void order_zero_bubble(TaskList *list, ScheduleShape shape, int stage);
void order_forward(TaskList *list, ScheduleShape shape, int stage);
/* One list a stage, as the file has them; ERR_CONFIG with file:line. */
Status file_read(TaskList *list, const char *path, ScheduleShape shape);

/* Every list by itself: each task once, after what it needs on its own stage. Fills live, one a chunk of the model. */
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
static inline int shape_chunks(ScheduleShape shape)
{
    return shape.stages * shape.chunks;
}
/* A message's channel, as in Moves: boundary b is between chunks b and b + 1. */
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
    return (next ? t.chunk + 1 : t.chunk - 1) % s->shape.stages;
}

static inline bool task_is_send(TaskKind kind)
{
    return kind == TASK_SEND_FORWARD || kind == TASK_SEND_BACKWARD;
}
/* Do messages pass between this chunk and the next? */
static inline bool shape_boundary(ScheduleShape shape, int chunk)
{
    return shape.stages > 1 && chunk >= 0 && chunk + 1 < shape_chunks(shape);
}

#endif
