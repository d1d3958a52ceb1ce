/* Schedules: the lists of all stages, made by one pure function a kind. Refuses a shape that a kind cannot have and lists
 * whose length does not fit an int. */
#include "private.h"

#include <limits.h>
#include <string.h>

const char *const task_names[TASK_KINDS] = {
    "forward",      "backward",        "backward_data", "backward_weight",
    "send_forward", "receive_forward", "send_backward", "receive_backward",
};

static const struct {
    const char *name;
    void (*order)(TaskList *list, ScheduleShape shape, int stage); /* NULL: from a file */
    bool chunks;                                                   /* may a stage have several? */
} kinds[] = {
    [SCHEDULE_1F1B] = {"1f1b", order_interleaved, false},
    [SCHEDULE_GPIPE] = {"gpipe", order_gpipe, false},
    [SCHEDULE_INTERLEAVED] = {"interleaved", order_interleaved, true},
    [SCHEDULE_ZERO_BUBBLE] = {"zero-bubble", order_zero_bubble, false},
    [SCHEDULE_FILE] = {"file", NULL, true},
};
static const char forward_name[] = "forward";

bool schedule_is_forward(const Schedule *schedule)
{
    return strcmp(schedule->name, forward_name) == 0;
}

void list_add(TaskList *list, TaskKind kind, int chunk, int micro)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->task = mem_resize(list->task, (size_t)list->room * sizeof *list->task);
    }
    list->task[list->count++] = (Task){kind, chunk, micro};
}

void list_add_work(TaskList *list, ScheduleShape shape, TaskKind kind, int chunk, int micro)
{
    bool before = shape_boundary(shape, chunk - 1), after = shape_boundary(shape, chunk);
    bool forward = kind == TASK_FORWARD, weight = kind == TASK_BACKWARD_WEIGHT;
    if (forward && before) list_add(list, TASK_RECEIVE_FORWARD, chunk, micro);
    if (!forward && !weight && after) list_add(list, TASK_RECEIVE_BACKWARD, chunk, micro);
    list_add(list, kind, chunk, micro);
    if (forward && after) list_add(list, TASK_SEND_FORWARD, chunk, micro);
    if (!forward && !weight && before) list_add(list, TASK_SEND_BACKWARD, chunk, micro);
}

/* A list has at most 7 tasks for each chunk and micro-batch, and may grow to twice its length. */
static Status shape_check(const char *name, ScheduleShape shape)
{
    if (shape.stages < 1 || shape.chunks < 1 || shape.micros < 1)
        return fail(ERR_CONFIG,
                    "schedule %s: %d stages of %d chunks and %d micro-batches; each must be "
                    "at least 1",
                    name, shape.stages, shape.chunks, shape.micros);
    if (shape.stages > INT_MAX / 4 / shape.chunks || shape.micros > INT_MAX / 14 / shape.chunks)
        return fail(ERR_CONFIG,
                    "schedule %s: %d stages of %d chunks and %d micro-batches are too many; "
                    "use larger micro-batches or fewer chunks",
                    name, shape.stages, shape.chunks, shape.micros);
    return OK;
}

static Schedule *schedule_empty(const char *name, ScheduleShape shape)
{
    Schedule *s = mem_new(sizeof *s);
    s->shape = shape;
    s->name = name;
    s->count = mem_new((size_t)shape.stages * sizeof *s->count);
    s->task = mem_new((size_t)shape.stages * sizeof *s->task);
    return s;
}

/* Takes the list over. */
static void schedule_set(Schedule *s, int stage, TaskList list)
{
    s->count[stage] = list.count;
    s->task[stage] = list.task;
    for (int i = 0; i < list.count; ++i)
        if (list.task[i].kind == TASK_BACKWARD_DATA || list.task[i].kind == TASK_BACKWARD_WEIGHT)
            s->split = true;
}

static Status fill_from_file(Schedule *s, const char *path)
{
    TaskList *list = mem_new((size_t)s->shape.stages * sizeof *list);
    Status st = file_read(list, path, s->shape);
    for (int i = 0; i < s->shape.stages; ++i) schedule_set(s, i, list[i]);
    mem_free(&list);
    return st;
}

static void fill_by(Schedule *s, void (*order)(TaskList *, ScheduleShape, int))
{
    for (int i = 0; i < s->shape.stages; ++i) {
        TaskList list = {0};
        order(&list, s->shape, i);
        schedule_set(s, i, list);
    }
}

Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape)
{
    *schedule = NULL;
    if (kind < 0 || kind >= (int)(sizeof kinds / sizeof kinds[0]))
        return fail(ERR_BUG, "there is no schedule number %d", kind);
    TRY(shape_check(kinds[kind].name, shape));
    if (shape.chunks > 1 && !kinds[kind].chunks)
        return fail(ERR_CONFIG,
                    "schedule %s: takes one chunk a stage, not %d; use interleaved, or a file",
                    kinds[kind].name, shape.chunks);
    *schedule = schedule_empty(kinds[kind].name, shape);
    if (kinds[kind].order) {
        fill_by(*schedule, kinds[kind].order);
        return OK;
    }
    Status st = fill_from_file(*schedule, path);
    if (st != OK) schedule_free(schedule);
    return st;
}

Status schedule_forward(Schedule **schedule, ScheduleShape shape)
{
    *schedule = NULL;
    TRY(shape_check(forward_name, shape));
    *schedule = schedule_empty(forward_name, shape);
    fill_by(*schedule, order_forward);
    return OK;
}

void schedule_free(Schedule **schedule)
{
    Schedule *s = *schedule;
    if (!s) return;
    for (int i = 0; i < s->shape.stages; ++i) mem_free(&s->task[i]);
    mem_free(&s->task);
    mem_free(&s->count);
    mem_free(schedule);
}
