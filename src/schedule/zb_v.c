/* zb-v: V-shaped, backward in halves (Qi et al. 2023, "Zero bubble pipeline parallelism", section
 * 6, ZB-V; Qi et al. 2024, "Pipeline parallelism with controllable memory", V-ZB). Where a chunk's
 * forward and both halves of its backward take one unit each and messages none, and there are 2p -
 * 1 micro-batches or more: no stage is idle between its first task and its last, a step takes 6m +
 * p - 1 units, and every stage has 2p live micro-batches of a chunk, which are 1f1b's p of a whole
 * stage. With fewer micro-batches stages wait for the way there and back. */
#include "private.h"

/* As many forwards ahead as the first micro-batch takes to come back; then, at every moment, one
 * pass of each kind and chunk. A backward of the first chunk comes before the next forward through
 * it: so the chunks' most live micro-batches add up to 2p. */
static void order_zb_v(TaskList *list, const Schedule *s, int stage)
{
    int p = s->shape.stages, down = stage, up = p - stage;
    int m = s->shape.micros > 2 * p - 1 ? s->shape.micros : 2 * p - 1;
    const SchedulePhase phase[] = {
        {2 * up - 1, "F"}, {down, "fF"}, {up, "fbW"}, {m - p - up + 1, "BWFfbW"},
        {up - 1, "BWfbW"}, {down, "Bb"}, {up, "BW"},  {2 * down, "W"},
    };
    order_phases(list, s, stage, phase, sizeof phase / sizeof phase[0]);
}

const ScheduleForm schedule_form_zb_v = {.stage = stage_v, .order = order_zb_v, .split = true};
