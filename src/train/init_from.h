/* Beginning with what another run has learnt: which tensors of its file are this model's. */
#ifndef WEFT_TRAIN_INIT_FROM_H
#define WEFT_TRAIN_INIT_FROM_H

#include "trainer.h"

/* from[i]: the stored tensor that tensor i of io begins with, -1 for those that begin anew, by
 * model.init_fresh, model.init_rename and names. *anew: these as words, "" for none, owned by the
 * caller. ERR_DATA: what is missing, left over or of another size, all of it in one message;
 * ERR_CONFIG: a pattern of init_fresh that matches nothing. Not collective. */
Status init_match(const Config *config, const CheckpointIo *io, const CheckpointStored *stored,
                  int count, int *from, char **anew);

#endif
