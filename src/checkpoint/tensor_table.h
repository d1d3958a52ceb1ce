/* Reads a checkpoint's table of tensors and its attributes through HDF5. */
#ifndef WEFT_CHECKPOINT_TENSOR_TABLE_H
#define WEFT_CHECKPOINT_TENSOR_TABLE_H

#include "stored.h"

/* maximum number of bytes to which one stored byte can expand; deflate's limit is 1032 */
enum { INFLATE_RATIO_MAX = 1100 };

/* Writes the table and attributes of the file whose path is `input` to `answer`, for stored_take.
 * The function is an IsolatedJob's `work`. */
void tensor_table_read(const void *input, size_t input_bytes, FILE *answer);

#endif
