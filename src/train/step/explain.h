/* Explains a bad step in words, for the message that ends a run. */
#ifndef WEFT_TRAIN_EXPLAIN_H
#define WEFT_TRAIN_EXPLAIN_H

#include "../trainer.h"

/* bytes of the text */
enum { EXPLAIN_BYTES = 1024 };

/* Writes to text why the last step is bad; "" if that cannot be found because the step made its
 * update. result: the result of this step. If the step was skipped, reads its data again, and
 * train_begin_steps must be called before another step. Collective; all ranks return the same
 * Status. */
Status explain(Trainer *trainer, const StepResult *result, char text[EXPLAIN_BYTES]);

#endif
