/* dualpipe-v: a V-shaped schedule. In its long middle part a stage pairs a forward through one of
 * its chunks with a backward through its other chunk (DeepSeek-AI 2024, "DeepSeek-V3 technical
 * report", section 3.2.1, DualPipe). DualPipe has two copies of each stage's parameters; dualpipe-v
 * is one half of DualPipe, with one copy. The authors run the two passes of a pair at the same
 * time, so that messages move while a stage computes. Here one pass of a pair follows the other,
 * and the gradients of a backward are sent before its weight half.
 *
 * Assume that a chunk's forward and each half of its backward take one unit of time, that messages
 * take none, and that there are m >= 2p micro-batches on p stages. Then a step takes 6m + p - 1
 * units, and the two chunks of a stage together have at most 2p + 1 live micro-batches. */
#include "private.h"

/* Near the end a stage runs pairs of two backwards. In the first half of the pairs each weight half
 * follows its data half at once. In the second half the weight halves are delayed, and fill idle
 * time at the end. */
static void order_dualpipe_v(TaskList *list, const Schedule *s, int stage)
{
    /* down: number of stages from the first to this one; below: number of stages after this one */
    int p = s->shape.stages, down = stage + 1, below = p - down;
    int m = s->shape.micro_batches > 2 * p ? s->shape.micro_batches : 2 * p;
    const SchedulePhase phase[] = {
        {2 * below, "F"}, {down, "Ff"},       {below, "bWf"},    {m - p - below, "FbWfBW"},
        {below, "bWfBW"}, {down / 2, "bWBW"}, {down % 2, "bWB"}, {down / 2, "bB"},
        {below, "WB"},    {down, "W"},
    };
    order_phases(list, s, stage, phase, sizeof phase / sizeof phase[0]);
}

const ScheduleForm schedule_form_dualpipe_v = {
    .stage = stage_v, .order = order_dualpipe_v, .backward = BACKWARD_HALVES};
