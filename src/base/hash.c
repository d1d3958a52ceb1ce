/* XXH64 and XXH3 (Collet), from libxxhash: fast, well spread, not cryptographic. */
#include "base.h"

#include <string.h>
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t bytes)
{
    return XXH64(data, bytes, 0);
}

uint64_t hash_seeded(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}
