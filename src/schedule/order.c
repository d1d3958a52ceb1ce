/* The order of work of each built-in kind. All but zero-bubble are one form: the forwards and the backwards of a stage each
 * have an order of their own; some forwards go ahead, then they take turns, then the backwards that are left follow. */
#include "private.h"

/* Walks the chunks of a stage and the micro-batches: groups of micro-batches, in a group chunk by chunk. */
typedef struct Cursor {
    ScheduleShape shape;
    int groups;
    int group, first, size; /* this group: its number, its first micro-batch, how many */
    int turn, at;           /* chunk of the stage; micro-batch of the group */
} Cursor;

static int group_size(ScheduleShape shape, int groups, int group)
{
    return shape.micros / groups + (group < shape.micros % groups);
}

static Cursor cursor_first(ScheduleShape shape, int groups)
{
    return (Cursor){.shape = shape, .groups = groups, .size = group_size(shape, groups, 0)};
}

static void cursor_next(Cursor *c)
{
    if (++c->at < c->size) return;
    c->at = 0;
    if (++c->turn < c->shape.chunks) return;
    c->turn = 0;
    c->first += c->size;
    if (++c->group < c->groups) c->size = group_size(c->shape, c->groups, c->group);
}

static void add_forward(TaskList *list, Cursor *c, int stage)
{
    int chunk = c->turn * c->shape.stages + stage;
    list_add_work(list, c->shape, TASK_FORWARD, chunk, c->first + c->at);
    cursor_next(c);
}

static void add_backward(TaskList *list, Cursor *c, int stage)
{
    int chunk = (c->shape.chunks - 1 - c->turn) * c->shape.stages + stage;
    list_add_work(list, c->shape, TASK_BACKWARD, chunk, c->first + c->at);
    cursor_next(c);
}

static void order(TaskList *list, ScheduleShape shape, int stage, int groups, int64_t ahead)
{
    Cursor forward = cursor_first(shape, groups), backward = forward;
    int passes = shape.chunks * shape.micros, done = ahead < passes ? (int)ahead : passes;
    for (int i = 0; i < done; ++i) add_forward(list, &forward, stage);
    for (int i = done; i < passes; ++i) {
        add_forward(list, &forward, stage);
        add_backward(list, &backward, stage);
    }
    for (int i = 0; i < done; ++i) add_backward(list, &backward, stage);
}

void order_gpipe(TaskList *list, ScheduleShape shape, int stage)
{
    order(list, shape, stage, 1, shape.micros);
}

/* Narayanan et al. 2021: groups of `stages` micro-batches. Where they do not come out even, the groups are larger and not
 * smaller, for a stage waits in a group that is shorter than the way round; the largest come first, so that the forwards that
 * go ahead cover every group. A larger group's outputs come back to stage 0 before it asks for them: channels hold as many
 * more messages as the group has more micro-batches than stages. */
void order_interleaved(TaskList *list, ScheduleShape shape, int stage)
{
    int groups = shape.micros >= shape.stages ? shape.micros / shape.stages : 1;
    int64_t ahead = shape.stages - 1 - stage;
    if (shape.chunks > 1)
        ahead = 2 * ahead + (int64_t)(shape.chunks - 1) * group_size(shape, groups, 0);
    order(list, shape, stage, groups, ahead);
}

/* ZB-H1: the forwards and the backwards' data halves are those of 1f1b. The weights' half of stage i is i micro-batches
 * late, so a stage holds as many micro-batches as the first, and has work left while the last backwards come down. */
void order_zero_bubble(TaskList *list, ScheduleShape shape, int stage)
{
    int ahead = shape.stages - 1 - stage, forward = 0, weight = 0;
    for (int i = 0; i < shape.micros; ++i) {
        for (; forward < shape.micros && forward <= i + ahead; ++forward)
            list_add_work(list, shape, TASK_FORWARD, stage, forward);
        list_add_work(list, shape, TASK_BACKWARD_DATA, stage, i);
        if (i >= stage) list_add_work(list, shape, TASK_BACKWARD_WEIGHT, stage, weight++);
    }
    for (; weight < shape.micros; ++weight)
        list_add_work(list, shape, TASK_BACKWARD_WEIGHT, stage, weight);
}

void order_forward(TaskList *list, ScheduleShape shape, int stage)
{
    int groups = (shape.micros + shape.stages - 1) / shape.stages;
    Cursor forward = cursor_first(shape, groups);
    for (int i = 0; i < shape.chunks * shape.micros; ++i) add_forward(list, &forward, stage);
}
