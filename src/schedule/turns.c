/* Makes orders in which a stage's forwards and backwards alternate. Forwards and backwards each
 * process one group of micro-batches after the other. In a group, all micro-batches pass through
 * one chunk of the stage before the first of them passes through the next chunk of the stage. */
#include "private.h"

/* The next forward or the next backward of a stage: its chunk and micro-batch. */
typedef struct Cursor {
    ScheduleShape shape;
    /* number of groups of micro-batches */
    int groups;
    /* number of the current group, from 0 */
    int group;
    /* first micro-batch of the current group */
    int first_micro;
    /* number of micro-batches in the current group */
    int size;
    /* index of the chunk among the stage's chunks, in the order of the passes: 0 is the first chunk
     * for forwards and the last chunk for backwards */
    int turn;
    /* index of the micro-batch in the group */
    int micro;
} Cursor;

int group_size(ScheduleShape shape, int groups, int group)
{
    return shape.micro_batches / groups + (group < shape.micro_batches % groups);
}

static void cursor_next(Cursor *c)
{
    if (++c->micro < c->size) return;
    c->micro = 0;
    if (++c->turn < c->shape.chunks_per_stage) return;
    c->turn = 0;
    c->first_micro += c->size;
    if (++c->group < c->groups) c->size = group_size(c->shape, c->groups, c->group);
}

static void add_forward(TaskList *list, const Schedule *s, Cursor *c, int stage)
{
    int chunk = schedule_chunk(s, stage, c->turn);
    list_add_work(list, s, TASK_FORWARD, chunk, c->first_micro + c->micro);
    cursor_next(c);
}

static void add_backward(TaskList *list, const Schedule *s, Cursor *c, int stage)
{
    int chunk = schedule_chunk(s, stage, c->shape.chunks_per_stage - 1 - c->turn);
    list_add_work(list, s, TASK_BACKWARD, chunk, c->first_micro + c->micro);
    cursor_next(c);
}

void order_turns(TaskList *list, const Schedule *s, int stage, int groups, int64_t ahead)
{
    Cursor forward = {.shape = s->shape, .groups = groups, .size = group_size(s->shape, groups, 0)};
    Cursor backward = forward;
    int passes = s->shape.chunks_per_stage * s->shape.micro_batches,
        done = ahead < passes ? (int)ahead : passes;
    for (int i = 0; i < done; ++i) add_forward(list, s, &forward, stage);
    for (int i = done; i < passes; ++i) {
        add_forward(list, s, &forward, stage);
        add_backward(list, s, &backward, stage);
    }
    for (int i = 0; i < done; ++i) add_backward(list, s, &backward, stage);
}
