/* Makes a trainer's next step in tests; begins the trainer first if it has not begun. */
#ifndef WEFT_TEST_NEXT_STEP_H
#define WEFT_TEST_NEXT_STEP_H

#include "train.h"

static inline Status next_step(Trainer *trainer, StepResult *result)
{
    TRY(train_begin_steps(trainer));
    return train_step(trainer, result);
}

#endif
