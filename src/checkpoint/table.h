/* What HDF5 finds in a checkpoint. */
#ifndef WEFT_CHECKPOINT_TABLE_H
#define WEFT_CHECKPOINT_TABLE_H

#include "stored.h"

enum { HDF5_INFLATE = 1100 /* deflate makes at most 1032 bytes of one */ };

/* asked: a path. answer: what stored_open takes apart. */
void table_read(const void *asked, size_t asked_bytes, FILE *answer);

#endif
