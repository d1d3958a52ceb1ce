/* Makes the next step of a trainer in tests. First calls train_begin_steps, which prepares the
 * trainer if this is the first step, or the first one after train_load. */
#ifndef WEFT_TEST_NEXT_STEP_H
#define WEFT_TEST_NEXT_STEP_H

#include "train.h"

static inline Status next_step(Trainer *trainer, StepResult *result)
{
    TRY(train_begin_steps(trainer));
    return train_step(trainer, result);
}

#endif
