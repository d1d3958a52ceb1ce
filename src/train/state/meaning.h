/* The meaning of data: compares a checkpoint's data with this run's. All functions run on rank 0
 * only. */
#ifndef WEFT_TRAIN_MEANING_H
#define WEFT_TRAIN_MEANING_H

#include "checkpoint.h"
#include "../trainer.h"

/* Returns the configuration of the training of a checkpoint's model; NULL: not known, for example
 * for a file that weft did not train. Owner: the caller. */
Config *meaning_config(const CheckpointMeta *meta, const char *path);
/* Returns ERR_DATA if data have another meaning for this run than for the model in the file.
 * Compared are: kind and shape of samples; channels and units of fields; the number of the first
 * label; the order of pixels and of columns; names of columns; the tokenizer. Columns that another
 * import has scaled are only logged. Facts that a file of an older version does not contain are not
 * compared. */
Status meaning_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Logs the differences that meaning_check would refuse, for a run that begins with the parameters
 * of a file. whole = true: all parameters are read from the file; then another tokenizer is
 * ERR_DATA, because the file's rows of the embedding belong to its own tokens. */
Status meaning_check_beginning(const Trainer *t, const CheckpointMeta *meta, const char *path,
                               bool whole);

#endif
