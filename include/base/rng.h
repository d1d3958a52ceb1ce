/* Random numbers as a pure function of their purpose, and hashes. Not collective. */
#ifndef WEFT_BASE_RNG_H
#define WEFT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Counter-based random numbers (Philox4x32-10; Salmon et al. 2011, "Parallel random numbers: as
 * easy as 1, 2, 3"): a pure function of (seed, purpose, a, b, element), independent of the rank and
 * of earlier draws. */

/* Purposes of random numbers. The values change the bits of results, so they must never change; add
 * a new purpose at the end. */
typedef enum RngPurpose {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    /* augmentation. All random choices for one sample share one key (augment_key), and each kind of
     * choice draws other blocks of it: their numbers are the constants DRAW_... in
     * src/data/data_private.h */
    RNG_AUGMENT,
    RNG_DROPOUT,
    RNG_TEST,
    RNG_GENERATE,
    RNG_MIX,
    RNG_TABLE,
    RNG_FLOW,
    RNG_PATCH
} RngPurpose;
typedef struct RngKey {
    uint32_t k[2];
} RngKey;
/* Returns the key of one use of random numbers. a, b: numbers whose meaning depends on the purpose,
 * for example the hash of a parameter's name, an epoch, a step or the number of a sample. */
RngKey rng_key(uint64_t seed, RngPurpose purpose, uint64_t a, uint64_t b);
/* Computes block `counter`: the random words of elements 4 * counter to 4 * counter + 3. */
void rng_block(RngKey key, uint64_t counter, uint32_t out[4]);
/* Returns the random word of an element. */
uint32_t rng_u32(RngKey key, uint64_t element);
/* rng_uniform returns a number in [0, 1) with 24 random bits. rng_unit computes this number from
 * the random word of the element. */
float rng_uniform(RngKey key, uint64_t element);
static inline float rng_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
/* Returns a normally distributed number with mean 0 and standard deviation 1 (Box-Muller). */
float rng_normal(RngKey key, uint64_t element);
/* Computes what rng_normal returns for elements 4 * block to 4 * block + 3, and is cheaper than
 * four calls of rng_normal. */
void rng_normals(RngKey key, uint64_t block, float normal[4]);
/* Both return the hash XXH64 with seed 0. */
uint64_t hash_text(const char *text);
uint64_t hash_bytes(const void *data, size_t bytes);
/* These functions compute hash_bytes of data that is added piece by piece. hash_begin returns a
 * state, owned by the caller; hash_end returns the hash and releases the state. */
typedef struct HashPieces HashPieces;
HashPieces *hash_begin(void);
void hash_add(HashPieces *pieces, const void *data, size_t bytes);
uint64_t hash_end(HashPieces **pieces);
/* Returns the hash XXH3 with a seed, which is faster than XXH64. Use it only for hashes that are
 * never stored. */
uint64_t hash_seeded(const void *data, size_t bytes, uint64_t seed);

#endif
