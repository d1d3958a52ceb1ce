/* dualpipe-v: a V-shaped schedule. In its long middle part a forward through one chunk is paired
 * with a backward through the other, from both ends of the V (DeepSeek-AI 2024, "DeepSeek-V3
 * technical report", section 3.2.1, DualPipe). DualPipe has two copies of each stage's parameters;
 * this is one half of it, with one copy. The authors run a pair at the same time, so that work
 * hides messages. Here the passes of a pair follow each other, and the gradients of a backward are
 * sent before its weight half. If a chunk's forward and both halves of its backward take one unit
 * each, messages take none, and there are 2p micro-batches or more, then a step of m micro-batches
 * on p stages takes 6m + p - 1 units, and the live micro-batches of a stage's two chunks add up to
 * 2p + 1 at most. */
#include "private.h"

/* Near the end there are pairs of backwards. In the first half of the pairs each weight half
 * follows its data half at once; in the second half the weight halves are delayed and fill idle
 * time at the end. */
static void order_dualpipe_v(TaskList *list, const Schedule *s, int stage)
{
    /* down: number of stages up to and including this one; below: number of stages after it */
    int p = s->shape.stages, down = stage + 1, below = p - down;
    int m = s->shape.micros > 2 * p ? s->shape.micros : 2 * p;
    const SchedulePhase phase[] = {
        {2 * below, "F"}, {down, "Ff"},       {below, "bWf"},    {m - p - below, "FbWfBW"},
        {below, "bWfBW"}, {down / 2, "bWBW"}, {down % 2, "bWB"}, {down / 2, "bB"},
        {below, "WB"},    {down, "W"},
    };
    order_phases(list, s, stage, phase, sizeof phase / sizeof phase[0]);
}

const ScheduleForm schedule_form_dualpipe_v = {
    .stage = stage_v, .order = order_dualpipe_v, .split = true};
