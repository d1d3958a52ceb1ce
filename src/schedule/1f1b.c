/* 1f1b: a stage begins with a few forwards, then forwards and backwards alternate (Narayanan et al.
 * 2021, "Memory-efficient pipeline-parallel DNN training", PipeDream-Flush). Stage s of p stages
 * has at most p - s live micro-batches. The order is that of interleaved with one chunk per
 * stage. */
#include "private.h"

const ScheduleForm schedule_form_1f1b = {
    .stage = stage_round, .order = order_interleaved, .backward = BACKWARD_WHOLE};
