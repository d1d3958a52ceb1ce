/* Reads arrays that are stored in HDF5's chunks. HDF5 only finds the chunks, once; then they are
 * read by their offset and unpacked without it, on any number of threads. The chunks that were used
 * last are kept. */
#ifndef WEFT_DATA_FIELD_CHUNKS_H
#define WEFT_DATA_FIELD_CHUNKS_H

#include "field_slab.h"

typedef struct FieldChunks FieldChunks;
/* f and files are borrowed. */
FieldChunks *field_chunks_new(const FieldSet *f, FieldFiles *files);
void field_chunks_free(FieldChunks **chunks);
/* Reads a slab to `to`, in this machine's byte order. *done false: nothing was read, and HDF5 must
 * read the array, since it is not chunked, has too many chunks, has other filters than shuffle and
 * deflate, or has chunks that are not stored. Several threads may call it. ERR_IO, ERR_DATA,
 * ERR_NOINPUT. */
Status field_chunks_read(FieldChunks *chunks, const FieldSlab *slab, void *to, bool *done);
/* Defined in field_reader.c. Reads `bytes` bytes of a variable from byte `at` of a file. ERR_IO,
 * ERR_DATA, ERR_NOINPUT. */
Status field_read_bytes(FieldFiles *files, const FieldSet *f, int file, int variable, int64_t at,
                        int64_t bytes, void *to);

#endif
