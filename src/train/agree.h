/* Checks that ranks have the same environment before a run begins, in addition to the program and
 * the configuration, which the cli has compared. */
#ifndef WEFT_TRAIN_AGREE_H
#define WEFT_TRAIN_AGREE_H

#include "run/rundir.h"
#include "trainer.h"

/* Returns ERR_CONFIG if a rank would compute other bits than rank 0 or read other data; the message
 * has the values of the first such rank and of rank 0. Different processors are only logged. Call
 * after the schedule is made. Collective; all ranks return the same Status. */
Status agree_on_bits(const Trainer *trainer);
/* Returns ERR_CONFIG if on a rank the run's path leads to another folder than on rank 0.
 * Collective; all ranks return the same Status. */
Status agree_on_folder(const World *world, const RunDir *dir);

#endif
