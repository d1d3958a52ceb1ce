/* Reads a checkpoint's table of tensors and its attributes through HDF5. */
#ifndef WEFT_CHECKPOINT_TABLE_H
#define WEFT_CHECKPOINT_TABLE_H

#include "stored.h"

enum { HDF5_INFLATE = 1100 /* deflate makes at most 1032 bytes of one */ };

/* Writes the table and attributes of the file whose path is `input` to answer, for stored_take. An
 * IsolatedJob's work. */
void table_read(const void *input, size_t input_bytes, FILE *answer);

#endif
