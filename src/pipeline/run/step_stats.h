/* A step's statistics. They stay in the backend's memory until somebody asks for them, and travel
 * with the gradients: each micro-batch's among its gradients, the step's among their sums. */
#ifndef WEFT_PIPELINE_STEP_STATS_H
#define WEFT_PIPELINE_STEP_STATS_H

#include "grad_sync.h"
#include "input_ring.h"

/* In the backend's memory: what recorded work reads. */
typedef struct StepBlock {
    StepNumbers numbers;
    /* METRIC_STOP and behind: 1 or 0 */
    float asked[METRIC_ASKED];
    /* 1 once a gradient is infinite or no number */
    float overflow;
} StepBlock;

typedef struct StepReport {
    const Context *context;
    /* owned, in the backend's memory */
    StepBlock *block;
    /* owned, likewise: the slots', METRIC_PAD each */
    float *metrics;
    /* of the loss, a sample */
    int64_t rows_each;
    /* owned, where copies reach it: those of the last two steps, METRIC_PAD each, of which one is
     * the overflow */
    float *host;
    /* owned: they are there */
    Event *there[2];
    /* begun */
    int64_t steps;
    /* as executor_metrics gave them last */
    float sums[METRIC_COUNT];
    /* of the coming step, as StepBlock.asked */
    float asked[METRIC_ASKED];
    /* see executor_find_overflow, executor_overflowed */
    bool finds_overflow, overflow;
} StepReport;

void step_report_init(StepReport *report, const Context *context, SlotMemory *memory);
void step_report_fini(StepReport *report);
/* Puts the step's numbers, and what is asked, where its work reads them. */
void step_report_begin(StepReport *report, const RunOf *of);
/* The loss of the micro-batch that has just gone forward in slot; nothing where the chunk has
 * none. */
void step_report_take(const StepReport *report, const SlotMemory *memory, const ChunkRun *chunk,
                      Slot *slot, int rows);
/* The micro-batch's metrics to their place among its gradients. */
void step_report_put(const StepReport *report, const Slot *slot, int micro, float *place);
/* The step's sums in arena 0; NULL where they are another replica's. */
float *step_report_sum(const StepReport *report, const GradSync *sync);
/* Looks for overflow, and sends the step's statistics on their way to the host. Collective on the
 * grid where it looks. */
void step_report_end(StepReport *report, const GradSync *sync);
/* See executor_metrics. Collective. */
const float *step_report_read(StepReport *report, int behind);

#endif
