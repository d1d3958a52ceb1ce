/* interleaved: 1f1b over several chunks per stage (Narayanan et al. 2021, "Efficient large-scale
 * language model training on GPU clusters using Megatron-LM", section 2.2), for any number of
 * micro-batches. If there are more micro-batches than stages, and their number is not a multiple of
 * the number of stages, channels may need more than 2 slots. */
#include "private.h"

/* Micro-batches are divided into groups of at least `stages` micro-batches. If there are fewer than
 * `stages`, they are one group. Groups are larger than `stages` rather than smaller: in a smaller
 * group stage 0 would wait until the group's first micro-batch has passed through all stages. The
 * largest groups come first. Therefore the number `ahead` of forwards, which is computed from the
 * first group's size, suffices for every group. If a group is larger than `stages`, its outputs
 * arrive at stage 0 before stage 0 needs them. A channel then needs 1 slot, and 1 more for each
 * micro-batch by which the group exceeds `stages`. */
void order_interleaved(TaskList *list, const Schedule *s, int stage)
{
    ScheduleShape shape = s->shape;
    int groups = shape.micro_batches >= shape.stages ? shape.micro_batches / shape.stages : 1;
    int64_t ahead = shape.stages - 1 - stage;
    if (shape.chunks_per_stage > 1)
        ahead = 2 * ahead + (int64_t)(shape.chunks_per_stage - 1) * group_size(shape, groups, 0);
    order_turns(list, s, stage, groups, ahead);
}

const ScheduleForm schedule_form_interleaved = {
    .stage = stage_round, .order = order_interleaved, .backward = BACKWARD_WHOLE};
