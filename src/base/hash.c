/* The hashes XXH64 and XXH3 (Collet), from libxxhash: fast, well distributed, not cryptographic. */
#include "base.h"

#include <string.h>
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t bytes)
{
    return XXH64(data, bytes, 0);
}

struct HashPieces {
    XXH64_state_t *state;
};

HashPieces *hash_begin(void)
{
    HashPieces *p = mem_new(sizeof *p);
    p->state = XXH64_createState();
    if (!p->state) die_as(ERR_MEMORY, "out of memory");
    XXH64_reset(p->state, 0);
    return p;
}

void hash_add(HashPieces *p, const void *data, size_t bytes)
{
    XXH64_update(p->state, data, bytes);
}

uint64_t hash_end(HashPieces **pieces)
{
    uint64_t hash = XXH64_digest((*pieces)->state);
    XXH64_freeState((*pieces)->state);
    mem_free(pieces);
    return hash;
}

uint64_t hash_seeded(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}
