/* What ranks must have alike before a run begins, beside program and configuration, which the cli
 * has compared. */
#ifndef WEFT_TRAIN_AGREE_H
#define WEFT_TRAIN_AGREE_H

#include "rundir.h"
#include "trainer.h"

/* Refuses ranks that would compute other bits than rank 0, or read other data: ERR_CONFIG names the
 * first of them, what it has and what rank 0 has. Processors of another make are said, and no
 * reason to refuse. After the schedule is made. Collective; all ranks agree. */
Status agree_on_bits(const Trainer *trainer);
/* Refuses ranks for which the run's folder is another one than rank 0 has opened. Likewise. */
Status agree_on_folder(const World *world, const RunDir *dir);

#endif
