/* Statistics of a step. They are computed in the backend's memory, and copied to the host at the
 * end of the step; only step_report_read and a check for overflow wait for the copy. They are
 * summed with the gradients: one bucket of a micro-batch's gradients contains the metrics of the
 * micro-batch, and the sum of that bucket contains the metrics of the step. */
#ifndef WEFT_PIPELINE_STEP_REPORT_H
#define WEFT_PIPELINE_STEP_REPORT_H

#include "grad_sync.h"
#include "input_ring.h"

/* Numbers of the step in the backend's memory, where captured work reads them. */
typedef struct StepBlock {
    StepNumbers numbers;
    /* values that this rank has set (executor_request): METRIC_STOP and after */
    float requests[METRIC_REQUESTS];
    /* 1 once a gradient is infinite or NaN */
    float overflow;
} StepBlock;

typedef struct StepReport {
    const Context *context;
    /* numbers of the current step, in the backend's memory; owned */
    StepBlock *block;
    /* metrics of each slot, METRIC_PAD floats each, in the backend's memory; owned */
    float *metrics;
    /* rows of the loss per sample */
    int64_t rows_per_sample;
    /* statistics of the last two steps, METRIC_PAD floats each, with the overflow flag after the
     * metrics; in host memory to which a device can copy; owned */
    float *host;
    /* recorded when a step's statistics have arrived in `host`; owned */
    Event *arrived[2];
    /* steps begun so far */
    int64_t steps;
    /* result of the last executor_metrics */
    float sums[METRIC_COUNT];
    /* values for the next step, see StepBlock.requests */
    float requests[METRIC_REQUESTS];
    /* true: steps are checked for overflow (executor_find_overflow) */
    bool finds_overflow;
    /* true: the last step overflowed (executor_overflowed) */
    bool overflow;
} StepReport;

void step_report_init(StepReport *report, const Context *context, SlotMemory *memory);
void step_report_fini(StepReport *report);
/* Copies the step's numbers and request flags to the backend's memory. */
void step_report_begin(StepReport *report, const StepValues *values);
/* Sums the loss of the micro-batch whose forward pass has just ended in `slot` into the slot's
 * metrics; does nothing if the chunk has no loss. rows: samples of the micro-batch. */
void step_report_loss(const StepReport *report, const SlotMemory *memory, const ChunkRun *chunk,
                      Slot *slot, int rows);
/* Copies the micro-batch's metrics to `place` in its bucket of gradients; micro-batch 0 also gets
 * the values that this rank has set (StepBlock.requests). */
void step_report_copy(const StepReport *report, const Slot *slot, int micro, float *place);
/* Returns the address of the step's sums among the sums of gradients; NULL if another replica has
 * them. */
float *step_report_sum(const StepReport *report, const GradSync *sync);
/* Checks for overflow if finds_overflow is set, and begins to copy the step's statistics to the
 * host. Collective on the grid if it checks. */
void step_report_end(StepReport *report, const GradSync *sync);
/* Implements executor_metrics. Collective. */
const float *step_report_read(StepReport *report, int behind);

#endif
