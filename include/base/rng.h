/* Random numbers as a pure function of what they are for, and hashes. Not collective. */
#ifndef WEFT_BASE_RNG_H
#define WEFT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Counter-based random numbers (Philox4x32-10; Salmon et al. 2011, "Parallel random numbers: as
 * easy as 1, 2, 3"): a pure function of (seed, purpose, a, b, element), never of the rank or of
 * what was drawn before. */
typedef enum RngPurpose {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    RNG_AUGMENT,
    RNG_DROPOUT,
    RNG_TEST,
    RNG_GENERATE,
    RNG_MIX,
    RNG_TABLE
} RngPurpose;
typedef struct RngKey {
    uint32_t k[2];
} RngKey;
/* Key for one use. a and b: hash of a parameter's name, epoch, step, sample id, ... as the purpose
 * wants. */
RngKey rng_key(uint64_t seed, RngPurpose purpose, uint64_t a, uint64_t b);
void rng_block(RngKey key, uint64_t counter, uint32_t out[4]);
uint32_t rng_u32(RngKey key, uint64_t element);
/* [0, 1), 24 bits; and what it makes of an element's word: element i is word i % 4 of block
 * i / 4. */
float rng_uniform(RngKey key, uint64_t element);
static inline float rng_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
/* mean 0, deviation 1 (Box-Muller) */
float rng_normal(RngKey key, uint64_t element);
/* The normal numbers of elements 4 * block to 4 * block + 3, for less than four times one. */
void rng_normals(RngKey key, uint64_t block, float normal[4]);
/* XXH64, seed 0 */
uint64_t hash_text(const char *text);
uint64_t hash_bytes(const void *data, size_t bytes);
/* The same of what comes piece by piece. Owner: the caller, who ends it. */
typedef struct HashPieces HashPieces;
HashPieces *hash_begin(void);
void hash_add(HashPieces *pieces, const void *data, size_t bytes);
uint64_t hash_end(HashPieces **pieces);
/* Faster, and of a seed; for what is compared while the program runs, and never kept. */
uint64_t hash_seeded(const void *data, size_t bytes, uint64_t seed);

#endif
