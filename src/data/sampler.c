/* The order of an epoch, without an index file: position -> sample is a keyed permutation computed
 * on the spot. An alternating Feistel network permutes the numbers of ceil(log2(n)) bits whatever
 * its round function is; a result beyond n is put in again until it falls inside (cycle walking;
 * Black & Rogaway 2002), which keeps it one to one on 0..n-1 and takes fewer than two turns on
 * average, as the network's range is below 2n. Tiny sets use at least MIN_BITS, for a network of
 * one or two bits has too few permutations. */
#include "data_private.h"

enum { ROUNDS = 8, MIN_BITS = 8 };

static uint64_t mix(uint64_t x, uint64_t key)
{
    x = (x + key) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position)
{
    if (n < 1 || position < 0 || position >= n)
        die("sampler: position %lld of %lld samples", (long long)position, (long long)n);
    if (n == 1) return 0;
    RngKey rng = rng_key(seed, RNG_SHUFFLE, (uint64_t)epoch, 0);
    uint64_t key = (uint64_t)rng.k[0] << 32 | rng.k[1];
    int bits = 64 - __builtin_clzll((uint64_t)n - 1);
    if (bits < MIN_BITS) bits = MIN_BITS;
    int low = bits / 2, high = bits - low;
    uint64_t low_mask = ((uint64_t)1 << low) - 1, high_mask = ((uint64_t)1 << high) - 1;
    uint64_t v = (uint64_t)position;
    do {
        uint64_t right = v & low_mask, left = v >> low;
        for (uint64_t round = 0; round < ROUNDS; round += 2) {
            left ^= mix(right, key + round * 0xa0761d6478bd642fu) & high_mask;
            right ^= mix(left, key + (round + 1) * 0xa0761d6478bd642fu) & low_mask;
        }
        v = left << low | right;
    } while (v >= (uint64_t)n);
    return (int64_t)v;
}
