/* Classes of labels: maps labels to the classes of the model or a checkpoint, and checks labels.
 * All functions run on rank 0 only. */
#ifndef WEFT_TRAIN_CLASSES_H
#define WEFT_TRAIN_CLASSES_H

#include "../trainer.h"

/* Maps the labels of both sets to the model's classes, by name, and sets t->classes; does nothing
 * for sets without classes. Returns ERR_DATA if names do not match. */
Status classes_fit(Trainer *t);
/* Reads all labels: returns ERR_DATA if a label has no class, and warns of suspicious labels. Call
 * it after classes_fit. */
Status classes_check_labels(Trainer *t);
/* Returns ERR_DATA if a checkpoint has other names of classes; the message names the first
 * difference. */
Status classes_check_loaded(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
