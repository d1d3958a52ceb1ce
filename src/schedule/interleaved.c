/* interleaved: 1f1b over several chunks per stage (Narayanan et al. 2021, section 2.2), for any
 * number of micro-batches. If that exceeds `stages` and is no multiple of it, channels may need
 * more than 2 slots. */
#include "private.h"

/* Micro-batches are in groups of about `stages`. If they do not divide evenly, some groups are
 * larger rather than smaller, since a stage idles in a group shorter than the way round the stages.
 * The largest groups come first, so that the forwards ahead cover every group. A larger group's
 * outputs arrive at stage 0 before it needs them; channels need one more slot for each micro-batch
 * that the group has beyond `stages`. */
void order_interleaved(TaskList *list, const Schedule *s, int stage)
{
    ScheduleShape shape = s->shape;
    int groups = shape.micros >= shape.stages ? shape.micros / shape.stages : 1;
    int64_t ahead = shape.stages - 1 - stage;
    if (shape.chunks > 1)
        ahead = 2 * ahead + (int64_t)(shape.chunks - 1) * group_size(shape, groups, 0);
    order_turns(list, s, stage, groups, ahead);
}

const ScheduleForm schedule_form_interleaved = {.stage = stage_round, .order = order_interleaved};
