/* Explains a bad step in words, for the message that ends a run. */
#ifndef WEFT_TRAIN_EXPLAIN_H
#define WEFT_TRAIN_EXPLAIN_H

#include "../trainer.h"

/* size of an explanation in bytes, with its final zero */
enum { EXPLAIN_BYTES = 1024 };

/* Writes to `text` why the last step is bad. result: the result of this step. `text` is "" if the
 * cause cannot be found because the step made its update. If the step was skipped, its data may be
 * read again; then train_begin_steps must be called before another step. Collective; all ranks
 * return the same Status. */
Status explain(Trainer *trainer, const StepResult *result, char text[EXPLAIN_BYTES]);

#endif
