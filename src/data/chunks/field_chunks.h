/* Reads arrays that HDF5 stores in chunks. HDF5 only finds the chunks, once. Then the chunks are
 * read by their offsets and unpacked without HDF5, on any number of threads, and kept in memory
 * (chunk_memory.h). */
#ifndef WEFT_DATA_FIELD_CHUNKS_H
#define WEFT_DATA_FIELD_CHUNKS_H

#include "chunk_memory.h"
#include "../fields/field_slab.h"

/* largest number of chunks of an array; arrays with more are read by HDF5 */
enum { CHUNKS_MOST = 1 << 20 };

typedef struct FieldChunks FieldChunks;
/* Creates a reader of chunks. `set` and `files` are borrowed. */
FieldChunks *field_chunks_new(const DataSet *set, FieldFiles *files);
void field_chunks_free(FieldChunks **chunks);
/* Do what field_reader_share and field_reader_unpacked do for a FieldReader. */
void field_chunks_share(FieldChunks *chunks, const FieldMemory *memory);
int64_t field_chunks_unpacked(FieldChunks *chunks);
/* Reads a slab to `to`, in this processor's byte order. *done false: nothing was read, and HDF5
 * must read the array. This is so if HDF5 is older than 1.10.5. It is also so if the array is not
 * chunked, has more than CHUNKS_MOST chunks, has filters other than shuffle and deflate, or has
 * chunks that are not stored. Several threads may call it. ERR_IO, ERR_DATA, ERR_NOINPUT. */
Status field_chunks_read(FieldChunks *chunks, const FieldSlab *slab, void *to, bool *done);
/* Defined in field_memory.c. Returns the sizes of a memory for the chunks of a set that the readers
 * of `ranks` ranks share. */
ChunkSizes field_chunk_sizes(const DataSet *set, int ranks);
/* Defined in field_reader.c. Reads `bytes` bytes of a variable from byte `at` of a file. ERR_IO,
 * ERR_DATA, ERR_NOINPUT. */
Status field_read_bytes(FieldFiles *files, const FieldSet *f, int file, int variable, int64_t at,
                        int64_t bytes, void *to);

#endif
