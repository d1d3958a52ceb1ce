/* zero-bubble: backward is split into halves, and weight halves fill a part of the bubble (Qi et
 * al. 2023, "Zero bubble pipeline parallelism", ZB-H1). No stage has more live micro-batches than
 * the first stage of 1f1b. */
#include "private.h"

/* Forwards and data halves are in the order of 1f1b. On stage i, the weight half of a micro-batch
 * follows the data half that comes i micro-batches later. Each stage then has as many live
 * micro-batches as the first stage, and has weight halves to do while it waits for the last
 * backwards. */
static void order_zero_bubble(TaskList *list, const Schedule *s, int stage)
{
    int micro_batches = s->shape.micro_batches, ahead = s->shape.stages - 1 - stage, forward = 0,
        weight = 0;
    for (int i = 0; i < micro_batches; ++i) {
        for (; forward < micro_batches && forward <= i + ahead; ++forward)
            list_add_work(list, s, TASK_FORWARD, stage, forward);
        list_add_work(list, s, TASK_BACKWARD_DATA, stage, i);
        if (i >= stage) list_add_work(list, s, TASK_BACKWARD_WEIGHT, stage, weight++);
    }
    for (; weight < micro_batches; ++weight)
        list_add_work(list, s, TASK_BACKWARD_WEIGHT, stage, weight);
}

const ScheduleForm schedule_form_zero_bubble = {
    .stage = stage_round, .order = order_zero_bubble, .backward = BACKWARD_HALVES};
