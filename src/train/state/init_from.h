/* Matching of a checkpoint's tensors with this model's, for model.init_from. */
#ifndef WEFT_TRAIN_INIT_FROM_H
#define WEFT_TRAIN_INIT_FROM_H

#include "../trainer.h"

/* Sets from[i] to the stored tensor that initialises tensor i of io, or -1 if it gets new initial
 * values, according to model.init_fresh, model.init_rename and names. *anew: names of the latter,
 * "" for none; owned by the caller. Returns ERR_DATA with one message that lists all tensors that
 * are missing, are not in the model, or have another size; ERR_CONFIG if a pattern of init_fresh
 * matches nothing. Not collective. */
Status init_match(const Config *config, const CheckpointIo *io, const CheckpointStored *stored,
                  int count, int *from, char **anew);

#endif
