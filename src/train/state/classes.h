/* Classes of labels: maps labels to the classes of the model or a checkpoint, and checks labels.
 * All functions run on rank 0 only. */
#ifndef WEFT_TRAIN_CLASSES_H
#define WEFT_TRAIN_CLASSES_H

#include "../trainer.h"

/* Maps the labels of the training set and of the test set to the model's classes, by the names of
 * classes, and sets t->classes. Does nothing for tokens and for sets without classes. Returns
 * ERR_DATA if names do not match. */
Status classes_fit(Trainer *t);
/* Reads all labels of both sets. Returns ERR_DATA if a label has no class, and warns of suspicious
 * labels. Call it after classes_fit. */
Status classes_check_labels(Trainer *t);
/* Returns ERR_DATA if the checkpoint `path`, whose metadata is meta, names its classes differently
 * than t->classes does; the message names the first difference. Classes that are named only by
 * their numbers are not compared. */
Status classes_check_loaded(const Trainer *t, const CheckpointMeta *meta, const char *path);

#endif
