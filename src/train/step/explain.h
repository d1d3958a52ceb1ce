/* Explanation of a bad step in words. */
#ifndef WEFT_TRAIN_EXPLAIN_H
#define WEFT_TRAIN_EXPLAIN_H

#include "../trainer.h"

enum { EXPLAIN_BYTES = 1024 };

/* Explains the last step, which result describes as bad; its data are read again. The trainer
 * cannot make another step afterwards. Collective; all ranks return the same Status. */
Status explain(Trainer *trainer, const StepResult *result, char text[EXPLAIN_BYTES]);

#endif
