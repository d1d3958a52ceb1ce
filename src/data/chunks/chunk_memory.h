/* Keeps unpacked chunks in a memory. The memory belongs to one process, or to all processes of a
 * node, which map it at different addresses; all their threads may use it at the same time. The
 * first thread that needs a chunk which is not in the memory claims it and unpacks it; other
 * threads try again until the chunk is complete. No function here waits until a chunk is
 * unpacked. */
#ifndef WEFT_DATA_CHUNK_MEMORY_H
#define WEFT_DATA_CHUNK_MEMORY_H

#include "base.h"

typedef struct ChunkMemory ChunkMemory;

/* The size of a part of a memory. */
typedef struct ChunkPart {
    /* bytes of the places of its chunks (chunk_place_bytes) */
    size_t bytes;
    /* largest number of chunks that are in the part at the same time */
    uint32_t chunks;
} ChunkPart;
/* The sizes of the two parts of a memory. */
typedef struct ChunkSizes {
    /* for chunks of static variables */
    ChunkPart statics;
    /* for all other chunks */
    ChunkPart other;
} ChunkSizes;
/* Returns the size in bytes of the place for a chunk of `bytes` bytes. */
size_t chunk_place_bytes(size_t bytes);
/* Returns the size in bytes of a memory with these parts. */
size_t chunk_memory_bytes(const ChunkSizes *sizes);
/* Prepares zeroed memory of chunk_memory_bytes bytes, at an address that is a multiple of 64. One
 * process calls it, before any other function is called. The memory needs no release. */
ChunkMemory *chunk_memory_init(void *at, const ChunkSizes *sizes);

typedef struct ChunkKey {
    /* indices of the file and of the variable in the set */
    int32_t file, variable;
    /* number of the chunk in the grid of chunks of the variable in the file */
    int64_t number;
} ChunkKey;
typedef enum ChunkAnswer {
    /* the chunk is complete; the thread holds it until chunk_memory_release */
    CHUNK_COMPLETE,
    /* the thread must unpack the chunk, and then call chunk_memory_unpacked */
    CHUNK_CLAIMED,
    /* another thread is unpacking the chunk: try again later */
    CHUNK_AWAITED,
    /* the chunk does not fit, because it is too large or threads hold too many chunks */
    CHUNK_NO_PLACE
} ChunkAnswer;
/* A chunk that a thread holds. */
typedef struct ChunkHeld {
    /* number of the chunk's slot in the memory */
    uint32_t slot;
    /* the chunk's values, in the memory */
    void *data;
} ChunkHeld;
/* Finds a chunk of `bytes` bytes, or claims a place for it. If there is no free place, drops chunks
 * that no thread holds, in the order in which they were claimed. is_static: true for chunks of
 * static variables, which have a part of their own. *held: set for CHUNK_COMPLETE and
 * CHUNK_CLAIMED. */
ChunkAnswer chunk_memory_find(ChunkMemory *memory, ChunkKey key, size_t bytes, bool is_static,
                              ChunkHeld *held);
/* Ends a claim. success true: the chunk is complete, and the thread holds it; false: it could not
 * be read, and is no longer in the memory. */
void chunk_memory_unpacked(ChunkMemory *memory, const ChunkHeld *held, bool success);
/* Ends the hold of a thread on a complete chunk. */
void chunk_memory_release(ChunkMemory *memory, const ChunkHeld *held);
/* Counts a chunk that was unpacked outside the memory. */
void chunk_memory_count(ChunkMemory *memory);
/* Returns the number of chunks that all processes have unpacked, inside and outside the memory. */
int64_t chunk_memory_total(ChunkMemory *memory);

#endif
