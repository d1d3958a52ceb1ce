/* interleaved: 1f1b over several chunks per stage (Narayanan et al. 2021, "Efficient large-scale
 * language model training on GPU clusters using Megatron-LM", section 2.2), for any number of
 * micro-batches. If this number exceeds `stages` and is not a multiple of `stages`, channels may
 * need more than 2 slots. */
#include "private.h"

/* Micro-batches are divided into groups of `stages` or more, or into one group if there are fewer
 * than `stages`. Groups are larger rather than smaller, since with a smaller group stage 0 would
 * wait until the group's first micro-batch has passed through all stages. The largest groups come
 * first, so that `ahead` forwards suffice for every group. The outputs of a larger group arrive at
 * stage 0 before stage 0 needs them: a channel needs at most one slot, and one more for each
 * micro-batch that the group has beyond `stages`. */
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
