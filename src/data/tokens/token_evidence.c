/* Checks token ids without a header against the width and the byte order by which they are read.
 * Ids of 32 bits that are read as 16 bits have every second value near 0; ids of 16 bits that are
 * read as 32 bits exceed any vocabulary. In ids from 0 to V - 1 the low byte takes all values, and
 * the high byte only V / 256 values. If instead the low byte takes fewer values than the high byte,
 * the byte order is wrong. A few ids may look like this by chance: if low bytes are uniform, the
 * low bytes of all D distinct ids are below p x 256 with probability p^D. So low bytes count as
 * evidence only if this probability is below CHANCE. */
#include "token_file.h"

#include <math.h>
#include <string.h>

enum {
    /* number of ids of 16 bits */
    IDS_16_BITS = 1 << 16,
    /* smallest number of tokens for checks of zeros */
    TOKENS_MIN_ZEROS = 16,
    /* smallest number of tokens for checks of small values */
    TOKENS_MIN_SMALL = 128,
    /* largest value of the high half of a 32-bit id in a vocabulary of up to 262,144 */
    HIGH_HALF_MAX = 3,
    /* Values look like 32 bits only if the largest low half is at least this, because in a small
     * file all ids may be small. */
    LOW_HALF_MIN = 1024,
    /* ids without --vocab must be below this number; published vocabularies have up to 262,144 */
    ID_LIMIT = 1 << 20,
    /* high bytes of ids are below this number if the vocabulary has at most 8,192 ids */
    HIGH_BYTE_MIN = 32
};
/* A pattern whose probability is below this is taken for evidence, not for chance. */
static const double CHANCE = 1e-6;

static void add_bytes(TokenEvidence *e, const TokenFormat *format, const uint8_t *p)
{
    for (int b = 0; b < format->bytes; ++b) {
        if (p[b] > e->byte_max[b]) e->byte_max[b] = p[b];
        e->not_text |= p[b] > '~' || (p[b] < ' ' && p[b] != '\n' && p[b] != '\r' && p[b] != '\t');
    }
}

static void add_token(TokenEvidence *e, const TokenFormat *format, const uint8_t *p)
{
    uint64_t v = 0, swapped = 0;
    int parity = (int)(e->count & 1);
    for (int b = 0; b < format->bytes; ++b) {
        v |= (uint64_t)p[b] << 8 * b;
        swapped = swapped << 8 | p[b];
    }
    if (v > e->largest[parity]) e->largest[parity] = v;
    if (swapped > e->swapped[parity]) e->swapped[parity] = swapped;
    e->others_not_zero |= v != 0 && (e->count & 3) != 0;
    unsigned low = (unsigned)(v % IDS_16_BITS);
    if (!(e->seen[low / 8] >> low % 8 & 1)) {
        e->seen[low / 8] |= (uint8_t)(1 << low % 8);
        ++e->distinct;
    }
    ++e->count;
}

void token_evidence_add(TokenEvidence *e, const TokenFormat *format, const uint8_t *p,
                        int64_t count)
{
    if (!e->seen) e->seen = mem_new(IDS_16_BITS / 8);
    for (int64_t i = 0; i < count; ++i, p += format->bytes) {
        add_bytes(e, format, p);
        add_token(e, format, p);
    }
}

void token_evidence_fini(TokenEvidence *e)
{
    mem_free(&e->seen);
}

/* Returns ERR_DATA. pattern: property that the values share, for the message; advice: the format
 * that they seem to have, and what the user can do. */
static Status fail_format(const TokenFormat *format, const char *path, const char *pattern,
                          const char *advice)
{
    return fail(ERR_DATA,
                "%s: read as tokens of %d bits, %s; %s. If these values are right, save them with "
                "numpy.save as a .npy file: its header gives the width of a token",
                path, 8 * format->bytes, pattern, advice);
}

/* Returns ERR_DATA if the values look like numbers of twice or four times the width, each read as
 * two or four tokens. */
static Status check_halves(const TokenEvidence *e, const TokenFormat *format, const char *path)
{
    static const char big_endian[] =
        "they look like wider numbers in big-endian byte order: write them in little-endian order";
    bool every_fourth = !e->others_not_zero && format->bytes == 2;
    bool is_64_bits = every_fourth || format->bytes == 4;
    if (e->count % 2 || format->bytes > 4) return OK;
    if (e->count >= TOKENS_MIN_ZEROS && e->largest[1] == 0 && e->largest[0] > 0)
        return fail_format(
            format, path, every_fourth ? "three of four are 0" : "every second one is 0",
            is_64_bits ? "they look like 64 bits: --bits 64" : "they look like 32 bits: --bits 32");
    if (e->count >= TOKENS_MIN_ZEROS && e->largest[0] == 0 && e->largest[1] > 0)
        return fail_format(format, path, "the first of each two is 0", big_endian);
    if (format->bytes != 2 || e->count < TOKENS_MIN_SMALL) return OK;
    if (e->largest[1] <= HIGH_HALF_MAX && e->largest[0] >= LOW_HALF_MIN)
        return fail_format(format, path, "every second one is 3 or less",
                           "they look like 32 bits: --bits 32");
    if (e->swapped[0] <= HIGH_HALF_MAX && e->swapped[1] >= LOW_HALF_MIN)
        return fail_format(format, path,
                           "the first of each two is at most 3 with its bytes swapped", big_endian);
    return OK;
}

/* Returns whether it may be chance that the low bytes of all distinct ids are at most `max`, if low
 * bytes are uniform from 0 to `range`. */
static bool is_chance(const TokenEvidence *e, int max, int range)
{
    return (double)e->distinct * log((max + 1.0) / (range + 1.0)) > log(CHANCE);
}

/* Returns ERR_DATA if ids of 16 bits look as if they were read in the wrong byte order, or were 8
 * bits each. */
static Status check_bytes(const TokenEvidence *e, const TokenFormat *format, const char *path,
                          bool has_vocab)
{
    int low = e->byte_max[0], high = e->byte_max[1];
    if (format->bytes != 2) return OK;
    bool low_is_zero = low == 0 && e->distinct > 1 && e->count >= TOKENS_MIN_ZEROS;
    if (low < high && (low_is_zero || !is_chance(e, low, high)) && (e->not_text || has_vocab))
        return fail_format(format, path, "their low bytes take fewer values than their high bytes",
                           "they look like big-endian numbers: write them in little-endian order");
    if (has_vocab || high < HIGH_BYTE_MIN || is_chance(e, low, 255)) return OK;
    if (!e->not_text)
        return fail_format(format, path, "all bytes are those of text",
                           "use `weft data import text`, or give --vocab");
    return fail_format(format, path, "neither of their bytes takes the largest values",
                       "they look like 8 bits: if they have 16, give --vocab");
}

/* Returns ERR_DATA if values are so large that they seem to be read from narrower ids or in the
 * wrong byte order. */
static Status check_size(const TokenEvidence *e, const TokenFormat *format, const char *path)
{
    uint64_t largest = e->largest[0] > e->largest[1] ? e->largest[0] : e->largest[1];
    uint64_t swapped = e->swapped[0] > e->swapped[1] ? e->swapped[0] : e->swapped[1];
    int64_t low_half_max = (int64_t)(e->byte_max[1] << 8 | e->byte_max[0]);
    char pattern[80];
    if (format->bytes < 4 || largest < IDS_16_BITS) return OK;
    snprintf(pattern, sizeof pattern, "the largest is %llu", (unsigned long long)largest);
    if (largest >= ID_LIMIT && swapped < ID_LIMIT)
        return fail_format(format, path, pattern,
                           "they look like big-endian numbers: write them in little-endian order");
    if (largest >= ID_LIMIT)
        return fail_format(format, path, pattern,
                           "no known vocabulary is as large: correct --bits, or give --vocab");
    /* In a vocabulary of more than 65,536 ids the low halves take all values. */
    if (e->count >= TOKENS_MIN_ZEROS && low_half_max <= 4 * (int64_t)(largest / IDS_16_BITS + 1))
        return fail_format(format, path, "their low and high halves are alike",
                           "they look like 16 bits: --bits 16");
    return OK;
}

Status token_evidence_check(const TokenEvidence *e, const TokenFormat *format, const char *path,
                            bool has_vocab)
{
    TRY(check_halves(e, format, path));
    TRY(check_bytes(e, format, path, has_vocab));
    return has_vocab ? OK : check_size(e, format, path);
}
