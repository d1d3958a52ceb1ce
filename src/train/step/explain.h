/* Explains a bad step in words, for the message that ends a run. */
#ifndef WEFT_TRAIN_EXPLAIN_H
#define WEFT_TRAIN_EXPLAIN_H

#include "../trainer.h"

/* bytes of the text */
enum { EXPLAIN_BYTES = 1024 };

/* Writes to text why the last step is bad. result: the result of this step. Reads the step's data
 * again. The trainer cannot make another step afterwards. Collective; all ranks return the same
 * Status. */
Status explain(Trainer *trainer, const StepResult *result, char text[EXPLAIN_BYTES]);

#endif
