/* gpipe: all forwards, then all backwards (Huang et al. 2019). All micro-batches of a stage are
 * live at once. */
#include "private.h"

static void order_gpipe(TaskList *list, const Schedule *s, int stage)
{
    order_turns(list, s, stage, 1, s->shape.micro_batches);
}

const ScheduleForm schedule_form_gpipe = {
    .stage = stage_round, .order = order_gpipe, .backward = BACKWARD_WHOLE};
