/* Matching of a checkpoint's tensors with this model's, for model.init_from. */
#ifndef WEFT_TRAIN_INIT_FROM_H
#define WEFT_TRAIN_INIT_FROM_H

#include "../trainer.h"

/* Sets from[i] to the index of the stored tensor that initialises tensor i of io; from[i], which
 * must be -1 before the call, does not change if the tensor gets new initial values. Matches names
 * after model.init_rename has changed those of the file. model.init_fresh selects tensors for new
 * initial values; without it the last layer with parameters gets them if its size differs. *anew:
 * names of up to 32 tensors with new initial values, "" if there are none; owned by the caller;
 * NULL after an error. Returns ERR_DATA with one message that lists the tensors that are missing in
 * the file, are not in the model, or have another size, up to 32 of each kind; ERR_CONFIG if a
 * pattern of init_fresh matches nothing, or init_rename gives two tensors one name. Not
 * collective. */
Status init_match(const Config *config, const CheckpointIo *io, const CheckpointStored *stored,
                  int count, int *from, char **anew);

#endif
