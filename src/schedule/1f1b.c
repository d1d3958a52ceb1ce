/* 1f1b: stage s of p has as few live micro-batches as the depth of the pipeline permits: at most
 * p - s (Narayanan et al. 2021, "Memory-efficient pipeline-parallel DNN training",
 * PipeDream-Flush). The order is that of interleaved with one chunk per stage. */
#include "private.h"

const ScheduleForm schedule_form_1f1b = {.stage = stage_round, .order = order_interleaved};
