/* The order of samples in an epoch: a keyed permutation, computed on demand, maps a position to a
 * sample, so no list of samples is stored. An alternating Feistel network permutes numbers of
 * ceil(log2(n)) bits for any round function; a result of n or more is permuted again until it is
 * below n (cycle walking; Black & Rogaway 2002). The resulting map is a permutation of 0..n-1. The
 * network permutes fewer than 2n numbers, so on average it is applied fewer than two times. Small
 * sets use BITS_MIN bits, and apply it more often, because a network of one or two bits has too few
 * permutations.
 *
 * If the samples are in chunks, a reader must unpack a whole chunk for one sample. Then there are
 * two steps: the position is permuted within its window of neighbouring positions. The result is a
 * position in the sequence of all samples in which the chunks are in a permuted order. */
#include "../data_private.h"

enum { ROUNDS = 8, BITS_MIN = 8 };
/* Last word of the keys of an epoch's permutations and random numbers. The permutation within
 * window w has the word CHUNK_WINDOWS + w. */
enum { ALL_SAMPLES, CHUNK_ORDER, SHORT_CHUNK, CHUNK_WINDOWS };

static uint64_t mix(uint64_t x, uint64_t key)
{
    x = (x + key) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* Returns where permutation number `which` of an epoch, of the numbers 0 to n - 1, maps
 * `position`. */
static int64_t permuted(int64_t n, uint64_t seed, int64_t epoch, uint64_t which, int64_t position)
{
    if (n <= 1) return 0;
    RngKey rng = rng_key(seed, RNG_SHUFFLE, (uint64_t)epoch, which);
    uint64_t key = (uint64_t)rng.k[0] << 32 | rng.k[1];
    int bits = 64 - __builtin_clzll((uint64_t)n - 1);
    if (bits < BITS_MIN) bits = BITS_MIN;
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

static void check_position(int64_t n, int64_t position)
{
    if (n < 1 || position < 0 || position >= n)
        die("sampler: position %lld of %lld samples", (long long)position, (long long)n);
}

int64_t sampler_at(int64_t n, uint64_t seed, int64_t epoch, int64_t position)
{
    check_position(n, position);
    return permuted(n, seed, epoch, ALL_SAMPLES, position);
}

int64_t sampler_in_chunks(int64_t n, int64_t chunk, int64_t window, uint64_t seed, int64_t epoch,
                          int64_t position)
{
    check_position(n, position);
    int64_t full = n / chunk, rest = n % chunk, first = position / window * window;
    int64_t window_samples = n - first < window ? n - first : window;
    /* position in the sequence of permuted chunks */
    int64_t at = first + permuted(window_samples, seed, epoch,
                                  CHUNK_WINDOWS + (uint64_t)(position / window), position - first);
    /* In this sequence the short chunk, which is the last of the file, comes after short_at full
     * chunks. */
    int64_t short_at = (int64_t)draw_below(
        rng_u32(rng_key(seed, RNG_SHUFFLE, (uint64_t)epoch, SHORT_CHUNK), 0), full + 1);
    if (at >= short_at * chunk && at < short_at * chunk + rest)
        return full * chunk + at - short_at * chunk;
    if (at >= short_at * chunk) at -= rest;
    return permuted(full, seed, epoch, CHUNK_ORDER, at / chunk) * chunk + at % chunk;
}

/* The plan depends on the set and the configuration alone, so all ranks have the same plan. */
ShufflePlan data_shuffle_plan(const DataSet *set, const Config *config)
{
    enum {
        /* bytes of a window, if this is enough for WINDOW_CHUNKS_MIN chunks */
        WINDOW_BYTES = 128 << 20,
        /* smallest number of chunks in a window */
        WINDOW_CHUNKS_MIN = 4,
        /* bytes; data.shuffle: auto shuffles larger sets by chunks */
        LARGE_BYTES = 256 << 20
    };
    int64_t chunk = set->x.chunk_rows;
    bool large = set->x.dim[0] > LARGE_BYTES / set->x.sample_bytes;
    int shuffle = config ? config->data.shuffle : SHUFFLE_AUTO;
    if (shuffle == SHUFFLE_FULL || chunk < 1 || data_has_tokens(set)) return (ShufflePlan){0};
    if (shuffle == SHUFFLE_AUTO && !large) return (ShufflePlan){0};
    int64_t chunks = WINDOW_BYTES / (chunk * set->x.sample_bytes);
    return (ShufflePlan){chunk, chunk * (chunks < WINDOW_CHUNKS_MIN ? WINDOW_CHUNKS_MIN : chunks)};
}
