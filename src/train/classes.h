/* Functions of classes.c for the rest of the module, all of which run on rank 0. */
#ifndef WEFT_TRAIN_CLASSES_H
#define WEFT_TRAIN_CLASSES_H

#include "trainer.h"

/* Labels of both sets become those of the model's classes, by name; t->classes names these.
 * ERR_DATA where names do not fit. */
Status classes_fit(Trainer *t);
/* Reads all labels: ERR_DATA where one is of no class of the model. Warns of odd ones. */
Status classes_check_labels(Trainer *t);
/* Is a checkpoint of these classes, and were its samples scaled as they are now? ERR_DATA that
 * names the first difference. */
Status classes_check_loaded(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
