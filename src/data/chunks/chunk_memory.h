/* Memory in which unpacked chunks are kept. It belongs to one process, or to all processes of a
 * node, which map it at different addresses; threads of all of them may use it at once. A chunk
 * that is not there is claimed by the first thread that needs it, which unpacks it; other threads
 * try again until it is complete. No function waits for another one's work. */
#ifndef WEFT_DATA_CHUNK_MEMORY_H
#define WEFT_DATA_CHUNK_MEMORY_H

#include "base.h"

typedef struct ChunkMemory ChunkMemory;

/* A part of a memory: bytes for the places of chunks (chunk_place_bytes), and largest number of
 * chunks that are kept at once. */
typedef struct ChunkPart {
    size_t bytes;
    uint32_t chunks;
} ChunkPart;
/* The parts for chunks of static variables, and for other chunks. */
typedef struct ChunkSizes {
    ChunkPart fixed, other;
} ChunkSizes;
/* Returns the bytes of the place of a chunk of `bytes` bytes. */
size_t chunk_place_bytes(size_t bytes);
/* Returns the bytes of a memory. */
size_t chunk_memory_bytes(const ChunkSizes *sizes);
/* Prepares zeroed memory of chunk_memory_bytes bytes, at a multiple of 64. One process calls it,
 * before any other function is called. The memory needs no release. */
ChunkMemory *chunk_memory_init(void *at, const ChunkSizes *sizes);

typedef struct ChunkKey {
    int32_t file, variable;
    /* the chunk's number in the grid of chunks of the variable in the file */
    int64_t number;
} ChunkKey;
typedef enum ChunkAnswer {
    /* the chunk is complete; the thread holds it until chunk_memory_release */
    CHUNK_COMPLETE,
    /* the thread must unpack the chunk, and then call chunk_memory_unpacked */
    CHUNK_CLAIMED,
    /* another thread unpacks the chunk: try again later */
    CHUNK_AWAITED,
    /* the chunk does not fit, because it is too large or other threads use all places */
    CHUNK_NO_PLACE
} ChunkAnswer;
/* A chunk that a thread holds. */
typedef struct ChunkHeld {
    /* number of the chunk's slot in the memory, and the bytes of the chunk */
    uint32_t slot;
    void *data;
} ChunkHeld;
/* Finds a chunk of `bytes` bytes, or claims a place for it. If there is no room, older chunks that
 * nobody holds are dropped, in the order in which they were claimed. is_static: true for chunks of
 * static variables, which have a part of their own. *held: set for CHUNK_COMPLETE and
 * CHUNK_CLAIMED. */
ChunkAnswer chunk_memory_find(ChunkMemory *memory, ChunkKey key, size_t bytes, bool is_static,
                              ChunkHeld *held);
/* Ends a claim. success: the chunk is complete, and the thread holds it; false: it could not be
 * read, and is no longer in the memory. */
void chunk_memory_unpacked(ChunkMemory *memory, const ChunkHeld *held, bool success);
void chunk_memory_release(ChunkMemory *memory, const ChunkHeld *held);
/* chunk_memory_count counts a chunk that was unpacked outside the memory. chunk_memory_total
 * returns the number of chunks that all processes have unpacked, inside and outside. */
void chunk_memory_count(ChunkMemory *memory);
int64_t chunk_memory_total(ChunkMemory *memory);

#endif
