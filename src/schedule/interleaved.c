/* interleaved: 1f1b over several chunks a stage (Narayanan et al. 2021, section 2.2), for any
 * number of micro-batches. Where that is more than `stages` and no multiple of it, channels may
 * need more than 2 places. */
#include "private.h"

/* Groups of `stages` micro-batches. Where they do not come out even, the groups are larger and not
 * smaller, for a stage waits in a group that is shorter than the way round; the largest come first,
 * so that the forwards that go ahead cover every group. A larger group's outputs come back to stage
 * 0 before it asks for them: channels hold as many more messages as the group has more
 * micro-batches than stages. */
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
