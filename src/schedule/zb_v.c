/* zb-v: a V-shaped schedule with backward in halves (Qi et al. 2023, "Zero bubble pipeline
 * parallelism", section 6, ZB-V; Qi et al. 2024, "Pipeline parallelism with controllable memory",
 * V-ZB). If a chunk's forward and both halves of its backward take one unit each, messages take
 * none, and there are 2p - 1 micro-batches or more, then no stage is idle between its first task
 * and its last, a step of m micro-batches on p stages takes 6m + p - 1 units, and the live
 * micro-batches of a stage's two chunks add up to 2p at most. They need as much memory as the p
 * live micro-batches of the first stage in 1f1b, since a chunk is half of a stage there. With fewer
 * micro-batches stages are idle while a micro-batch goes down and comes back. */
#include "private.h"

/* A stage begins with forwards until the first micro-batch comes back up, then repeats one pass of
 * each kind through each chunk. A backward through the first chunk comes before the next forward
 * through this chunk, so that the two chunks together never have more than 2p live
 * micro-batches. */
static void order_zb_v(TaskList *list, const Schedule *s, int stage)
{
    /* down: number of stages before this one; up: number of stages from this one to the last */
    int p = s->shape.stages, down = stage, up = p - stage;
    int m = s->shape.micros > 2 * p - 1 ? s->shape.micros : 2 * p - 1;
    const SchedulePhase phase[] = {
        {2 * up - 1, "F"}, {down, "fF"}, {up, "fbW"}, {m - p - up + 1, "BWFfbW"},
        {up - 1, "BWfbW"}, {down, "Bb"}, {up, "BW"},  {2 * down, "W"},
    };
    order_phases(list, s, stage, phase, sizeof phase / sizeof phase[0]);
}

const ScheduleForm schedule_form_zb_v = {.stage = stage_v, .order = order_zb_v, .split = true};
