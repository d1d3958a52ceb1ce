/* What memory.c says to the rest of the room. */
#ifndef WEFT_TRAIN_MEMORY_H
#define WEFT_TRAIN_MEMORY_H

#include "train.h"

/* This rank's share of the host's memory, bytes. */
double memory_of_host(const Trainer *t);
/* Refuses more bytes of batches on their way to a device than that: they can be neither moved nor swapped out. */
Status memory_fits_host(const Trainer *t, double bytes);

#endif
