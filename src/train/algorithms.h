/* train.cuda_tune: which algorithms cuBLASLt and cuDNN take, and how ranks and resumed runs come to
 * take the same. */
#ifndef WEFT_TRAIN_ALGORITHMS_H
#define WEFT_TRAIN_ALGORITHMS_H

#include "trainer.h"

/* Finds the record that the run goes by: the file's, that of the checkpoint that it resumes from,
 * or an empty one. ERR_CONFIG where it is of another GPU or other libraries, and the run must not
 * have others. only: of a dry run, or NULL. Collective; all ranks agree. */
Status algorithms_find(Trainer *t, const DryRun *only);
/* Plans the trainer's graph. Shapes that the record lacks are timed, by rank 0; those that only
 * other ranks of the tensor group have, by the first of these. Then all ranks have one record.
 * Collective; all ranks agree. */
Status algorithms_plan(Trainer *t);
/* May the run go on from path, which was trained with meta's record? ERR_CONFIG under any_grid,
 * naming the first shape with another algorithm. Not collective. */
Status algorithms_check(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
