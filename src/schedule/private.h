/* The schedule module's private header: lists that grow, the functions that define a kind of
 * schedule, the check of the lists, and properties of tasks and messages. */
#ifndef WEFT_SCHEDULE_PRIVATE_H
#define WEFT_SCHEDULE_PRIVATE_H

#include "schedule.h"

typedef struct TaskList {
    /* tasks in order, [capacity]; owned */
    Task *task;
    int count, capacity;
} TaskList;
void list_add(TaskList *list, TaskKind kind, int chunk, int micro);
/* Adds a task that computes, with its messages: the receive of its input just before the task, and
 * the send of its result just after the task. A message is added only if the neighbouring chunk is
 * on another stage; a weight half has none. */
void list_add_work(TaskList *list, const Schedule *schedule, TaskKind kind, int chunk, int micro);

/* Whether the lists of a kind split backward passes into halves. */
typedef enum ScheduleBackward {
    /* the form does not set the field, which is an error */
    BACKWARD_UNSET,
    BACKWARD_WHOLE,
    BACKWARD_HALVES,
    /* the schedule is split if any task in the file is a half; only with ScheduleForm.read */
    BACKWARD_BY_FILE,
} ScheduleBackward;
/* The functions that define a kind of schedule, in addition to its row in schedules.def. */
typedef struct ScheduleForm {
    /* Returns the stage of a chunk. A file that gives the stages of chunks overrides it. */
    int (*stage)(ScheduleShape shape, int chunk);
    /* Appends the tasks of one stage to its list. The schedule already has its shape, and the
     * mapping of chunks to stages. NULL only if `read` is given. */
    void (*order)(TaskList *list, const Schedule *schedule, int stage);
    /* Reads the lists of all stages from the file `path` (file_read). NULL: `order` makes them. */
    Status (*read)(TaskList *list, const char *path, Schedule *schedule);
    ScheduleBackward backward;
} ScheduleForm;
/* Returns ERR_BUG if the form lacks a field that it needs; the message names the field. word: value
 * of grid.pipeline_schedule that selects the kind, for the message. */
Status schedule_form_check(const char *word, const ScheduleForm *form);

/* ---- mappings ---- */
/* Returns chunk % stages (round-robin). */
int stage_round(ScheduleShape shape, int chunk);
/* Returns the stage of a chunk if chunks go down the stages and back up (v_shaped.c). */
int stage_v(ScheduleShape shape, int chunk);

/* ---- orders ---- */
/* Appends the tasks of a stage: first `ahead` forwards (or all, if there are fewer), then a forward
 * and a backward in turns, then the remaining backwards. groups: number of groups into which the
 * micro-batches are divided; turns.c describes the order of groups and chunks. */
void order_turns(TaskList *list, const Schedule *schedule, int stage, int groups, int64_t ahead);
/* Returns the number of micro-batches in the group with index `group`, if there are `groups`
 * groups. Sizes differ by 1 at most; larger groups come first. */
int group_size(ScheduleShape shape, int groups, int group);
/* Appends the tasks of a stage in the order of interleaved and 1f1b (interleaved.c). */
void order_interleaved(TaskList *list, const Schedule *schedule, int stage);

/* A phase of a stage with two chunks: a pattern of steps that is repeated. */
typedef struct SchedulePhase {
    /* number of repetitions; may be 0 */
    int times;
    /* the pattern, one letter per step: "FbW".
     *  F, f: forward of the next micro-batch through the stage's first (F) or second (f) chunk
     *  B, b: data half of the next backward through the first (B) or second (b) chunk
     *  W: weight half, of either chunk, that belongs to the oldest data half still without one */
    const char *steps;
} SchedulePhase;
/* Appends a stage's tasks, given as `phases` phases (v_shaped.c). The phases may contain more
 * micro-batches than the schedule has; tasks of the excess micro-batches are left out. */
void order_phases(TaskList *list, const Schedule *schedule, int stage, const SchedulePhase *phase,
                  int phases);

/* Reads a file into one list per stage, list[stages], and inserts messages if the file has none.
 * Changes schedule->stage_of if the file gives the stages of chunks. ERR_CONFIG: path is empty, or
 * the file's content is invalid; the message has file and line. ERR_NOINPUT or ERR_IO: the file
 * cannot be opened or read. */
Status file_read(TaskList *list, const char *path, Schedule *schedule);
/* Fills the lists of all stages, list[stages], with the forward passes of an evaluation
 * (forward.c). */
void order_forward(TaskList *list, const Schedule *schedule);

/* Checks every list separately: each task occurs once, after the tasks of the same stage that it
 * needs. live: [chunks of the model], zero before the call; receives the largest number of live
 * micro-batches of each chunk. ERR_CONFIG: a list is wrong; the message names the stage and the
 * task. */
Status schedule_check(const Schedule *schedule, int *live);
/* Returns ERR_CONFIG with a message that names the task at `index` of the stage's list and says
 * what is wrong with it. */
Status task_fail(const Schedule *schedule, int stage, int index, const char *what);
/* Writes a text such as "task 7 of 40 (forward, chunk 2, micro 5)" to out, which has TASK_TEXT
 * bytes, and returns out. */
enum { TASK_TEXT = 96 };
char *task_text(const Schedule *schedule, int stage, int index, char *out);
/* Returns true if schedule_forward made the schedule. */
bool schedule_is_forward(const Schedule *schedule);
/* Returns the duration of the shortest task that computes and takes time; the makespan if there is
 * none. The text picture and the SVG picture choose their scale by it. */
double shortest_work(const Schedule *s, const ScheduleReport *r);

static inline bool task_is_message(TaskKind kind)
{
    return kind >= TASK_SEND_FORWARD;
}
/* Returns the number of a message's channel. Between chunks b and b + 1 it is 2 * b for activations
 * and 2 * b + 1 for gradients. */
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

/* Returns the stage at the other end of a message's channel. */
static inline int message_peer(const Schedule *s, Task t)
{
    bool is_next = t.kind == TASK_SEND_FORWARD || t.kind == TASK_RECEIVE_BACKWARD;
    return schedule_stage(s, is_next ? t.chunk + 1 : t.chunk - 1);
}

static inline bool task_is_send(TaskKind kind)
{
    return kind == TASK_SEND_FORWARD || kind == TASK_SEND_BACKWARD;
}

#endif
