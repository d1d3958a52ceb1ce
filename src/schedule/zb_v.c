/* zb-v: a V-shaped schedule with backward in halves (Qi et al. 2023, "Zero bubble pipeline
 * parallelism", section 6, ZB-V; Qi et al. 2024, "Pipeline parallelism with controllable memory",
 * V-ZB).
 *
 * Assume that a chunk's forward and each half of its backward take one unit of time, that messages
 * take none, and that there are m >= 2p - 1 micro-batches on p stages. Then no stage is idle
 * between its first and its last task, a step takes 6m + p - 1 units, and the two chunks of a stage
 * together have at most 2p live micro-batches. These need as much memory as the p live
 * micro-batches of the first stage in 1f1b, where a chunk is twice as large. With fewer
 * micro-batches stages are idle while a micro-batch goes down the stages and comes back. */
#include "private.h"

/* A stage begins with forwards until the first micro-batch comes back up. It then repeats six
 * tasks: a forward, a data half and a weight half for each of its two chunks. A backward through
 * the first chunk comes before the next forward through this chunk, so that the two chunks together
 * never have more than 2p live micro-batches. */
static void order_zb_v(TaskList *list, const Schedule *s, int stage)
{
    /* down: number of stages before this one; up: number of stages from this one to the last */
    int p = s->shape.stages, down = stage, up = p - stage;
    int m = s->shape.micro_batches > 2 * p - 1 ? s->shape.micro_batches : 2 * p - 1;
    const SchedulePhase phase[] = {
        {2 * up - 1, "F"}, {down, "fF"}, {up, "fbW"}, {m - p - up + 1, "BWFfbW"},
        {up - 1, "BWfbW"}, {down, "Bb"}, {up, "BW"},  {2 * down, "W"},
    };
    order_phases(list, s, stage, phase, sizeof phase / sizeof phase[0]);
}

const ScheduleForm schedule_form_zb_v = {
    .stage = stage_v, .order = order_zb_v, .backward = BACKWARD_HALVES};
