/* Computes the quality of scores for two classes. With P positives and N negatives, AUC = sum / (2
 * P N): each positive adds 2 to the sum for each negative with a lower score, and 1 for each
 * negative with an equal score. auc_exact sorts positives and negatives separately and merges them;
 * binary_figures uses the numbers of samples in the buckets of BinarySums. */
#include "observe/binary.h"

#include <math.h>
#include <string.h>

/* an integer of 128 bits, because 2 P N and the sum may exceed 64 bits */
__extension__ typedef unsigned __int128 Wide;

const char *auc_word(int auc)
{
    static const char *const word[] = {AUC_WORDS(LIST_NAME)};
    return word[auc];
}

/* Returns the AUC. twice: twice the number of pairs in which the positive scores higher, where a
 * pair of equal scores counts half. */
static double auc_of_pairs(Wide twice, int64_t positives, int64_t negatives)
{
    if (positives == 0 || negatives == 0) return NAN;
    return (double)twice / (double)(2 * (Wide)positives * (Wide)negatives);
}

/* ---- exact AUC ---- */

/* The radix sort divides a key into DIGITS digits of DIGIT_BITS bits. VALUES: number of values of a
 * digit. */
enum { DIGIT_BITS = 11, DIGITS = 3, VALUES = 1 << DIGIT_BITS };

/* Maps a float that is not NaN to an integer. The integers have the order of the floats; 0 and -0
 * give the same integer. */
static uint32_t key_of(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Sorts `key` by a radix sort, which begins with the lowest digit. `other` is scratch of the same
 * size. */
static void sort_keys(uint32_t *key, uint32_t *other, int64_t count)
{
    uint32_t *const home = key;
    for (int d = 0; d < DIGITS; ++d) {
        int64_t first[VALUES + 1] = {0};
        const int shift = d * DIGIT_BITS;
        for (int64_t i = 0; i < count; ++i) ++first[(key[i] >> shift & (VALUES - 1)) + 1];
        for (int v = 0; v < VALUES; ++v) first[v + 1] += first[v];
        for (int64_t i = 0; i < count; ++i) other[first[key[i] >> shift & (VALUES - 1)]++] = key[i];
        uint32_t *sorted = other;
        other = key;
        key = sorted;
    }
    if (key != home) memcpy(home, key, (size_t)count * sizeof *key);
}

/* Returns twice the number of pairs in which the positive scores higher; a pair of equal scores
 * counts half. Both arrays of keys are sorted. */
static Wide twice_pairs(const uint32_t *positive, int64_t positives, const uint32_t *negative,
                        int64_t negatives)
{
    Wide twice = 0;
    int64_t below = 0, up_to = 0;
    for (int64_t i = 0; i < positives; ++i) {
        while (below < negatives && negative[below] < positive[i]) ++below;
        while (up_to < negatives && negative[up_to] <= positive[i]) ++up_to;
        twice += (Wide)(below + up_to);
    }
    return twice;
}

double auc_exact(const float *score, const int32_t *label, int64_t count)
{
    uint32_t *key = mem_new((size_t)count * sizeof *key),
             *other = mem_new((size_t)count * sizeof *key);
    int64_t positives = 0, negatives = 0;
    bool bad = false;
    for (int64_t i = 0; i < count; ++i) {
        bad = bad || isnan(score[i]);
        if (label[i])
            key[positives++] = key_of(score[i]);
        else
            key[count - ++negatives] = key_of(score[i]);
    }
    sort_keys(key, other, positives);
    sort_keys(key + positives, other, negatives);
    Wide twice = twice_pairs(key, positives, key + positives, negatives);
    mem_free(&key);
    mem_free(&other);
    return bad ? NAN : auc_of_pairs(twice, positives, negatives);
}

/* ---- figures from counters ---- */

void binary_add(BinarySums *sums, const float *logit, const int32_t *label, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        double z = (double)logit[i], small = exp(-fabs(z)), p = (z < 0 ? small : 1) / (1 + small);
        if (isnan(z)) {
            ++sums->nan_count;
            continue;
        }
        bool positive = label[i] != 0;
        double loss = log1p(small) + ((z > 0) != positive ? fabs(z) : 0);
        ++(positive ? sums->positive : sums->negative)[(int)(p * AUC_BUCKETS)];
        sums->right += (p >= 0.5) == positive;
        sums->p += llrint(p * 0x1p32);
        sums->loss += llrint(fmin(loss, BINARY_LOSS_MOST) * 0x1p24);
    }
}

BinaryFigures binary_figures(const BinarySums *sums)
{
    Wide twice = 0;
    int64_t positives = 0, negatives = 0;
    for (int i = 0; i <= AUC_BUCKETS; ++i) {
        twice += (Wide)sums->positive[i] * (Wide)(2 * negatives + sums->negative[i]);
        positives += sums->positive[i];
        negatives += sums->negative[i];
    }
    double n = (double)(positives + negatives), base = (double)positives / n;
    BinaryFigures f = {
        .samples = positives + negatives + sums->nan_count,
        .positives = positives,
        .auc = auc_of_pairs(twice, positives, negatives),
        .log_loss = (double)sums->loss * 0x1p-24 / n,
        .calibration = positives ? (double)sums->p * 0x1p-32 / (double)positives : NAN,
        .accuracy = (double)sums->right / n,
    };
    f.normalized_entropy = f.log_loss / -(base * log(base) + (1 - base) * log1p(-base));
    if (positives == 0 || negatives == 0) f.normalized_entropy = NAN;
    if (sums->nan_count)
        f.auc = f.log_loss = f.normalized_entropy = f.calibration = f.accuracy = NAN;
    return f;
}
