/* Matches the tensors of a checkpoint with those of the model, for model.init_from. */
#ifndef WEFT_TRAIN_INIT_FROM_H
#define WEFT_TRAIN_INIT_FROM_H

#include "../trainer.h"

/* Finds the stored tensor that initialises each tensor of io, and sets from[i] to its index.
 * from[i], which must be -1 before the call, does not change if tensor i gets new initial values.
 * stored: `count` tensors of the file; their names are changed by model.init_rename before they are
 * compared. model.init_fresh selects tensors for new initial values; without it the last layer with
 * parameters gets new values if its size differs. *anew: names of up to 32 tensors with new initial
 * values, "" if there are none; owned by the caller; NULL after an error. Returns ERR_DATA with one
 * message that lists the tensors that are missing in the file, are not in the model, or have
 * another size, up to 32 of each kind. Returns ERR_CONFIG if a pattern of init_fresh matches
 * nothing, or if init_rename gives two tensors one name. Not collective. */
Status init_match(const Config *config, const CheckpointIo *io, const CheckpointStored *stored,
                  int count, int *from, char **anew);

#endif
