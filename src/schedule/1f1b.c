/* 1f1b: as few live micro-batches as the depth asks, p - s on stage s of p (Narayanan et al. 2019,
 * PipeDream-flush): the interleaved order with one chunk a stage. */
#include "private.h"

const ScheduleForm schedule_form_1f1b = {.stage = stage_round, .order = order_interleaved};
