/* Checks numbers without a header against the width that the user gave. Numbers of 32 bits read as
 * 16 have every second value near 0; numbers of 16 bits read as 32 exceed any vocabulary. In ids 0
 * .. V - 1 the low byte takes all values and the high byte only V / 256; if it is the other way
 * round, the bytes are in the other order. A statistic decides between these and chance: if low
 * bytes are uniform, all of D different ids have a low byte below p x 256 with probability p^D.
 * Values that may be chance are accepted; others are refused, since a model trained on them would
 * be worthless. */
#include "token_file.h"

#include <math.h>
#include <string.h>

enum {
    IDS = 1 << 16,
    /* number of tokens from which zeros are judged; number from which small values are judged */
    FEW = 16,
    MANY = 128,
    /* largest high half of an id in a vocabulary of up to 262,144 */
    HALF_MOST = 3,
    /* bound of ids without --vocab: published vocabularies end at 262,144 */
    ID_MOST = 1 << 20,
    /* high bytes below this belong to a small vocabulary */
    HIGH_LEAST = 32
};
static const double chance = 1e-6;

static void note_bytes(TokenEvidence *e, const TokenFormat *format, const uint8_t *p)
{
    for (int b = 0; b < format->bytes; ++b) {
        if (p[b] > e->byte_most[b]) e->byte_most[b] = p[b];
        e->binary |= p[b] > '~' || (p[b] < ' ' && p[b] != '\n' && p[b] != '\r' && p[b] != '\t');
    }
}

static void note_token(TokenEvidence *e, const TokenFormat *format, const uint8_t *p)
{
    uint64_t v = 0, swapped = 0;
    int parity = (int)(e->count & 1);
    for (int b = 0; b < format->bytes; ++b) {
        v |= (uint64_t)p[b] << 8 * b;
        swapped = swapped << 8 | p[b];
    }
    if (v > e->largest[parity]) e->largest[parity] = v;
    if (swapped > e->swapped[parity]) e->swapped[parity] = swapped;
    e->between_fourths |= v != 0 && (e->count & 3) != 0;
    unsigned low = (unsigned)(v % IDS);
    if (!(e->seen[low / 8] >> low % 8 & 1)) {
        e->seen[low / 8] |= (uint8_t)(1 << low % 8);
        ++e->distinct;
    }
    ++e->count;
}

void token_evidence_add(TokenEvidence *e, const TokenFormat *format, const uint8_t *p,
                        int64_t count)
{
    if (!e->seen) e->seen = mem_new(IDS / 8);
    for (int64_t i = 0; i < count; ++i, p += format->bytes) {
        note_bytes(e, format, p);
        note_token(e, format, p);
    }
}

void token_evidence_fini(TokenEvidence *e)
{
    mem_free(&e->seen);
}

static Status judge_fail(const TokenFormat *format, const char *path, const char *seen,
                         const char *advice)
{
    return fail(ERR_DATA,
                "%s: read as tokens of %d bits, %s; %s. If tokens are so, save them with "
                "numpy.save as a .npy file, whose header says how wide they are",
                path, 8 * format->bytes, seen, advice);
}

/* Fails if the values look like numbers of twice the width, each read as two tokens. */
static Status judge_halves(const TokenEvidence *e, const TokenFormat *format, const char *path)
{
    static const char big[] = "they look like wider numbers in big-endian byte order: write them "
                              "in little-endian order";
    bool fourth = !e->between_fourths && format->bytes == 2;
    if (e->count >= FEW && e->count % 2 == 0 && e->largest[1] == 0 && e->largest[0] > 0)
        return judge_fail(format, path, fourth ? "three of four are 0" : "every second one is 0",
                          fourth || format->bytes == 4 ? "they look like 64 bits: --bits 64"
                                                       : "they look like 32 bits: --bits 32");
    if (e->count >= FEW && e->count % 2 == 0 && e->largest[0] == 0 && e->largest[1] > 0)
        return judge_fail(format, path, "every second one is 0, the first of each two", big);
    if (format->bytes != 2 || e->count < MANY || e->count % 2) return OK;
    if (e->largest[1] <= HALF_MOST && e->largest[0] >= 1024)
        return judge_fail(format, path, "every second one is 3 or less",
                          "they look like 32 bits: --bits 32");
    if (e->swapped[0] <= HALF_MOST && e->swapped[1] >= 1024)
        return judge_fail(format, path, "every second one has hardly a bit", big);
    return OK;
}

/* Could it be chance that the low bytes of all distinct ids are at most `most`, if they are uniform
 * up to `range`? */
static bool is_chance(const TokenEvidence *e, int most, int range)
{
    return (double)e->distinct * log((most + 1.0) / (range + 1.0)) > log(chance);
}

static Status judge_bytes(const TokenEvidence *e, const TokenFormat *format, const char *path,
                          bool has_vocab)
{
    int low = e->byte_most[0], high = e->byte_most[1];
    if (format->bytes != 2) return OK;
    bool multiples = low == 0 && e->distinct > 1 && e->count >= FEW;
    if (low < high && (multiples || !is_chance(e, low, high)) && (e->binary || has_vocab))
        return judge_fail(format, path, "their low bytes take fewer values than their high bytes",
                          "they look like big-endian numbers: write them in little-endian order");
    if (has_vocab || high < HIGH_LEAST || is_chance(e, low, 255)) return OK;
    if (!e->binary)
        return judge_fail(format, path, "all bytes are those of text",
                          "use `weft data import text`, or give --vocab");
    return judge_fail(format, path, "both of their bytes leave out the same values",
                      "they look like 8 bits: give --vocab where they are 16");
}

/* Fails if values are too large, as if read from narrower numbers or in the wrong byte order. */
static Status judge_size(const TokenEvidence *e, const TokenFormat *format, const char *path)
{
    uint64_t largest = e->largest[0] > e->largest[1] ? e->largest[0] : e->largest[1];
    uint64_t swapped = e->swapped[0] > e->swapped[1] ? e->swapped[0] : e->swapped[1];
    int64_t low = (int64_t)(e->byte_most[1] << 8 | e->byte_most[0]);
    char seen[80];
    if (format->bytes < 4 || largest < IDS) return OK;
    snprintf(seen, sizeof seen, "the largest is %llu", (unsigned long long)largest);
    if (largest >= ID_MOST && swapped < ID_MOST)
        return judge_fail(format, path, seen,
                          "they look like big-endian numbers: write them in little-endian order");
    if (largest >= ID_MOST)
        return judge_fail(format, path, seen,
                          "no vocabulary is known to be as large: correct --bits, or give --vocab");
    if (e->count >= FEW && low <= 4 * (int64_t)(largest / IDS + 1))
        return judge_fail(format, path, "their low and high halves are alike",
                          "they look like 16 bits: --bits 16");
    return OK;
}

Status token_evidence_judge(const TokenEvidence *e, const TokenFormat *format, const char *path,
                            bool has_vocab)
{
    TRY(judge_halves(e, format, path));
    TRY(judge_bytes(e, format, path, has_vocab));
    return has_vocab ? OK : judge_size(e, format, path);
}
