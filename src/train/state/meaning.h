/* Functions of meaning.c. All run on rank 0. */
#ifndef WEFT_TRAIN_MEANING_H
#define WEFT_TRAIN_MEANING_H

#include "checkpoint.h"
#include "../trainer.h"

/* Returns the configuration of the training of a checkpoint's model; NULL: not known, as for a file
 * that weft did not train. Owner: the caller. */
Config *meaning_config(const CheckpointMeta *meta, const char *path);
/* Returns ERR_DATA if data have another meaning for this run than for the model in the file: other
 * shapes of samples, first labels, orders of pixels or tokenizers. Older files say less: what they
 * do not say is not compared. */
Status meaning_check(const Trainer *t, const CheckpointMeta *meta, const char *path);
/* Logs what meaning_check would refuse, for a run that begins with a file's parameters. whole: all
 * parameters are read from the file. Then another tokenizer is ERR_DATA, because the file's rows of
 * the embedding belong to its own tokens. */
Status meaning_check_beginning(const Trainer *t, const CheckpointMeta *meta, const char *path,
                               bool whole);

#endif
