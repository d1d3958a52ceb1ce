/* Computes the size of the memory in which readers keep the unpacked chunks of a set. If all chunks
 * of a set have at most KEPT_BYTES bytes together, all are kept. From a larger set KEPT_BYTES bytes
 * are kept if its chunks have several frames each. This is about two windows of the order in which
 * its samples are shuffled (loader/sampler.c). A chunk of one frame is seldom used twice in a short
 * time. So if chunks have one frame, KEPT_SINGLE_BYTES bytes are kept for each rank, and static
 * variables in addition. The static variables of a larger set get up to half of KEPT_BYTES. */
#include "field_chunks.h"
#include "../fields/fields_private.h"

enum { KEPT_BYTES = 256 << 20, KEPT_SINGLE_BYTES = 16 << 20 };

typedef struct ChunkCount {
    /* number of chunks */
    double chunks;
    /* bytes of their places */
    double bytes;
} ChunkCount;

/* Counts the chunks of static variables, which are read in the first file only, and all other
 * chunks. */
static void count_chunks(const FieldSet *f, ChunkCount *fixed, ChunkCount *other)
{
    *fixed = *other = (ChunkCount){0};
    for (int file = 0; file < f->files; ++file)
        for (int i = 0; i < f->stored; ++i) {
            const FieldArray *a = field_array(f, file, i);
            const bool is_static = f->variable[i].is_static;
            const bool has_chunks = a->chunks > 0 && a->chunks <= CHUNKS_MOST;
            if (!has_chunks || (is_static && file > 0)) continue;
            ChunkCount *count = is_static ? fixed : other;
            count->chunks += (double)a->chunks;
            count->bytes += (double)a->chunks * (double)chunk_place_bytes((size_t)a->chunk_bytes);
        }
}

/* Returns the size of a part for these chunks, with at most `most` bytes. If not all chunks fit,
 * the part has slots for twice the number of chunks of mean size that fit, because chunks differ in
 * size. */
static ChunkPart part_of(const ChunkCount *count, double most)
{
    const double spare = 64;
    if (count->bytes <= most)
        return (ChunkPart){.bytes = (size_t)count->bytes, .chunks = (uint32_t)count->chunks};
    const double fit = 2 * count->chunks * (most / count->bytes) + spare;
    return (ChunkPart){.bytes = (size_t)most,
                       .chunks = (uint32_t)(fit < count->chunks ? fit : count->chunks)};
}

ChunkSizes field_chunk_sizes(const DataSet *set, int ranks)
{
    ChunkCount fixed, other;
    count_chunks(&set->field_set, &fixed, &other);
    if (fixed.bytes + other.bytes <= KEPT_BYTES)
        return (ChunkSizes){.statics = part_of(&fixed, KEPT_BYTES),
                            .other = part_of(&other, KEPT_BYTES)};
    /* every sample needs the static variables */
    const ChunkPart part = part_of(&fixed, KEPT_BYTES / 2);
    const double most = set->x.chunk_rows < 2 ? (double)KEPT_SINGLE_BYTES * ranks
                                              : (double)KEPT_BYTES - (double)part.bytes;
    return (ChunkSizes){.statics = part, .other = part_of(&other, most)};
}

size_t data_fields_kept_bytes(const DataSet *set, int ranks)
{
    if (data_fields_chunks(set) == 0) return 0;
    const ChunkSizes sizes = field_chunk_sizes(set, ranks);
    return chunk_memory_bytes(&sizes);
}

void data_fields_memory_init(const DataSet *set, int ranks, void *at)
{
    const ChunkSizes sizes = field_chunk_sizes(set, ranks);
    chunk_memory_init(at, &sizes);
}

int64_t data_fields_chunks(const DataSet *set)
{
    ChunkCount fixed, other;
    if (!data_has_fields(set)) return 0;
    count_chunks(&set->field_set, &fixed, &other);
    return (int64_t)(fixed.chunks + other.chunks);
}
