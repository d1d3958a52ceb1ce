/* Where a bad step comes from, in words. */
#ifndef WEFT_TRAIN_EXPLAIN_H
#define WEFT_TRAIN_EXPLAIN_H

#include "trainer.h"

enum { EXPLAIN_BYTES = 1024 };

/* Of the last step, which result says is bad, whose data are read once more; the trainer's next
 * step is none. Collective; all ranks agree. */
Status explain(Trainer *trainer, const StepResult *result, char text[EXPLAIN_BYTES]);

#endif
