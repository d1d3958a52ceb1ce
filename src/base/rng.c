/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011). There is no state: element i of a key is always the same
 * number. A block has four words, so four neighbouring elements share a block. */
#include "philox.h"

#include <math.h>

enum { PHILOX_ROUNDS = 10 };
static const uint32_t MULTIPLIER[2] = {0xD2511F53u, 0xCD9E8D57u};
/* fractional parts of the golden ratio and of sqrt(3), times 2^32 */
static const uint32_t WEYL[2] = {0x9E3779B9u, 0xBB67AE85u};

void philox4x32(RngKey key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key.k[0], k1 = key.k[1];
    for (int round = 0; round < PHILOX_ROUNDS; ++round) {
        uint64_t p0 = (uint64_t)MULTIPLIER[0] * c0, p1 = (uint64_t)MULTIPLIER[1] * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += WEYL[0];
        k1 += WEYL[1];
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint32_t low(uint64_t v)
{
    return (uint32_t)v;
}
static uint32_t high(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

/* The generator also computes the keys. It gets the seed as its key and the purpose as its counter,
 * and returns a first key. With the first key, and with a and b as its counter, it returns the
 * block whose first two words are the result. */
RngKey rng_key(uint64_t seed, RngPurpose purpose, uint64_t a, uint64_t b)
{
    uint32_t out[4];
    philox4x32((RngKey){{low(seed), high(seed)}}, (uint32_t[]){(uint32_t)purpose, 0, 0, 0}, out);
    philox4x32((RngKey){{out[0], out[1]}}, (uint32_t[]){low(a), high(a), low(b), high(b)}, out);
    return (RngKey){{out[0], out[1]}};
}

void rng_block(RngKey key, uint64_t counter, uint32_t out[4])
{
    philox4x32(key, (uint32_t[]){low(counter), high(counter), 0, 0}, out);
}

uint32_t rng_u32(RngKey key, uint64_t element)
{
    uint32_t out[4];
    rng_block(key, element / 4, out);
    return out[element % 4];
}

float rng_uniform(RngKey key, uint64_t element)
{
    return rng_unit(rng_u32(key, element));
}

/* Returns the radius of the Box-Muller transform; the argument of the logarithm is in (0, 1]. */
static double radius_of(const uint32_t pair[2])
{
    return sqrt(-2.0 * log(((double)pair[0] + 1.0) * 0x1p-32));
}

/* Returns the angle of the Box-Muller transform. */
static double angle_of(const uint32_t pair[2])
{
    const double two_pi = 6.283185307179586;
    return two_pi * 0x1p-32 * (double)pair[1];
}

/* Elements 2i and 2i+1 are computed from the same pair of words: element 2i with the cosine,
 * element 2i+1 with the sine. */
float rng_normal(RngKey key, uint64_t element)
{
    uint32_t out[4];
    rng_block(key, element / 4, out);
    const uint32_t *pair = out + (element % 4 & 2);
    double angle = angle_of(pair);
    return (float)(radius_of(pair) * (element & 1 ? sin(angle) : cos(angle)));
}

void rng_normals(RngKey key, uint64_t block, float normal[4])
{
    uint32_t out[4];
    rng_block(key, block, out);
    for (int i = 0; i < 4; i += 2) {
        double radius = radius_of(out + i), angle = angle_of(out + i);
        normal[i] = (float)(radius * cos(angle));
        normal[i + 1] = (float)(radius * sin(angle));
    }
}
