/* Checks, before a run begins, that all ranks have the same libraries, environment variables, data
 * files and folder. The cli has already compared the programs and the configurations of the
 * ranks. */
#ifndef WEFT_TRAIN_AGREE_H
#define WEFT_TRAIN_AGREE_H

#include "run/rundir.h"
#include "trainer.h"

/* Returns ERR_CONFIG if a rank would compute other bits or read other data than rank 0. The message
 * names the first fact (list `facts` in agree.c) that differs, and gives it for the first such rank
 * and for rank 0. Different processors are only logged. Call it after the schedule is made.
 * Collective; all ranks return the same Status. */
Status agree_on_bits(const Trainer *trainer);
/* Returns ERR_CONFIG if the path of the run's folder leads a rank to another folder than rank 0.
 * Collective; all ranks return the same Status. */
Status agree_on_folder(const World *world, const RunDir *dir);

#endif
