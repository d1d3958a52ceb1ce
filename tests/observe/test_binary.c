/* AUC compared with its definition over all pairs, with many equal scores; AUC by buckets compared
 * with that of the bucket numbers; other figures compared with their formulas; any order and any
 * division into parts give the same counters. */
#include "observe/binary.h"

#include "harness.h"

#include <math.h>

enum { MOST = 400 };

/* AUC over all pairs; equal scores count half. */
static double by_definition(const double *score, const int32_t *label, int n)
{
    double sum = 0, pairs = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            if (!label[i] || label[j]) continue;
            pairs += 1;
            sum += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
        }
    return sum / pairs;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-12;
}

/* levels: number of different scores, 0: all differ */
static void make(RngKey key, int n, int levels, float *score, int32_t *label)
{
    for (int i = 0; i < n; ++i) {
        float s = rng_normal(key, (uint64_t)i);
        if (levels) s = (float)((int)(rng_u32(key, (uint64_t)i) % (uint32_t)levels) - levels / 2);
        score[i] = s;
        label[i] = rng_uniform(key, (uint64_t)(MOST + i)) < 0.3f;
    }
}

static void exact(void)
{
    static float score[MOST];
    static int32_t label[MOST];
    static double wide[MOST];
    int bad = 0, defined = 0;
    for (int t = 0; t < 300; ++t) {
        int n = t < 50 ? t : 50 + (t * 37) % (MOST - 50);
        make(rng_key(1, RNG_TEST, (uint64_t)t, 0), n, (t % 5) * (t % 3), score, label);
        for (int i = 0; i < n; ++i) wide[i] = (double)score[i];
        double got = auc_exact(score, label, n);
        defined += !isnan(got);
        bad += !same(got, by_definition(wide, label, n));
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT(defined > 280);
}

/* Negative and positive scores, both zeros, infinities, the smallest number; and data without an
 * AUC. */
static void ends(void)
{
    const float score[] = {-INFINITY, -1e30f, -1e-45f, -0.0f, 0.0f, 1e-45f, 2, 3e38f, INFINITY};
    const int32_t label[] = {0, 1, 0, 1, 0, 0, 1, 1, 1}, ones[] = {1, 1}, zeros[] = {0, 0};
    double wide[9];
    for (int i = 0; i < 9; ++i) wide[i] = (double)score[i];
    CU_ASSERT(same(auc_exact(score, label, 9), by_definition(wide, label, 9)));
    CU_ASSERT_EQUAL(auc_exact((float[]){1, 2}, (int32_t[]){0, 1}, 2), 1);
    CU_ASSERT_EQUAL(auc_exact((float[]){1, 2}, (int32_t[]){1, 0}, 2), 0);
    CU_ASSERT_EQUAL(auc_exact((float[]){0.0f, -0.0f}, (int32_t[]){1, 0}, 2), 0.5);
    CU_ASSERT(isnan(auc_exact(score, ones, 2)) && isnan(auc_exact(score, zeros, 2)));
    CU_ASSERT(isnan(auc_exact(score, label, 0)));
    CU_ASSERT(isnan(auc_exact((float[]){1, NAN, 2}, (int32_t[]){0, 1, 1}, 3)));
}

/* Half a million scores of all magnitudes in any order: positives are the upper half. */
static void many(void)
{
    enum { N = 500000 };
    static float score[N];
    static int32_t label[N];
    RngKey key = rng_key(2, RNG_TEST, 0, 0);
    for (int i = 0; i < N; ++i) {
        uint32_t bits = rng_u32(key, (uint64_t)i) & ~0x40000000u;
        memcpy(&score[i], &bits, sizeof bits);
        label[i] = score[i] > 0;
    }
    CU_ASSERT_EQUAL(auc_exact(score, label, N), 1);
    for (int i = 0; i < N; ++i) label[i] = (int32_t)(rng_u32(key, (uint64_t)(N + i)) & 1);
    CU_ASSERT_DOUBLE_EQUAL(auc_exact(score, label, N), 0.5, 0.003);
}

static void buckets(void)
{
    static float logit[MOST];
    static int32_t label[MOST];
    static double bucket[MOST];
    int bad = 0;
    for (int t = 0; t < 40; ++t) {
        BinarySums sums = {0};
        make(rng_key(3, RNG_TEST, (uint64_t)t, 0), MOST, t % 4 * 3, logit, label);
        double loss = 0, p_sum = 0, positives = 0, right = 0;
        for (int i = 0; i < MOST; ++i) {
            logit[i] *= t % 2 ? 20 : 0.01f;
            double p = 1 / (1 + exp(-(double)logit[i]));
            bucket[i] = floor(p * AUC_BUCKETS);
            loss -= label[i] ? log(p) : -(double)logit[i] + log(p);
            p_sum += p;
            positives += label[i];
            right += (logit[i] >= 0) == label[i];
        }
        binary_add(&sums, logit, label, MOST);
        BinaryFigures f = binary_figures(&sums);
        double share = positives / MOST;
        double entropy = -share * log(share) - (1 - share) * log(1 - share);
        bad += !same(f.auc, by_definition(bucket, label, MOST));
        bad +=
            fabs(f.log_loss - loss / MOST) > 5e-8 || fabs(f.calibration - p_sum / positives) > 5e-8;
        bad += fabs(f.normalized_entropy - loss / MOST / entropy) > 2e-7;
        bad += f.accuracy != right / MOST || f.samples != MOST || (double)f.positives != positives;
    }
    CU_ASSERT_EQUAL(bad, 0);
}

static void undefined(void)
{
    BinarySums sums = {0};
    BinaryFigures f = binary_figures(&sums);
    CU_ASSERT(f.samples == 0 && isnan(f.auc) && isnan(f.log_loss) && isnan(f.accuracy));
    binary_add(&sums, (float[]){1, -1, INFINITY, -INFINITY}, (int32_t[]){0, 0, 0, 0}, 4);
    f = binary_figures(&sums);
    CU_ASSERT(isnan(f.auc) && isnan(f.calibration) && isnan(f.normalized_entropy));
    CU_ASSERT_EQUAL(f.accuracy, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(f.log_loss, (BINARY_LOSS_MOST + 1.6265233750364) / 4, 1e-6);
    binary_add(&sums, (float[]){1, NAN}, (int32_t[]){1, 1}, 2);
    f = binary_figures(&sums);
    CU_ASSERT(f.samples == 6 && f.positives == 1 && isnan(f.auc) && isnan(f.log_loss));
}

/* Counts backwards, and in parts that are added as ranks do. */
static void any_order(void)
{
    static float logit[MOST], back[MOST];
    static int32_t label[MOST], back_label[MOST];
    static BinarySums whole, part[3];
    make(rng_key(4, RNG_TEST, 0, 0), MOST, 0, logit, label);
    for (int i = 0; i < MOST; ++i) {
        back[MOST - 1 - i] = logit[i];
        back_label[MOST - 1 - i] = label[i];
    }
    binary_add(&whole, logit, label, MOST);
    binary_add(&part[0], back, back_label, 7);
    binary_add(&part[1], back + 7, back_label + 7, 300);
    binary_add(&part[2], back + 307, back_label + 307, MOST - 307);
    int64_t *sum = (int64_t *)&part[0];
    for (int p = 1; p < 3; ++p)
        for (int i = 0; i < BINARY_COUNTERS; ++i) sum[i] += ((int64_t *)&part[p])[i];
    CU_ASSERT_EQUAL(memcmp(&whole, &part[0], sizeof whole), 0);
    CU_ASSERT_EQUAL(auc_exact(logit, label, MOST), auc_exact(back, back_label, MOST));
}

TEST_MAIN("two classes", {"exact", exact}, {"ends", ends}, {"many", many}, {"buckets", buckets},
          {"undefined", undefined}, {"any order", any_order})
