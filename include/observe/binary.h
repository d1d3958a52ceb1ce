/* Quality of the scores of a classifier with two classes: area under the ROC curve (exact and by
 * buckets), log loss, calibration, accuracy. Labels are 0 for negative and 1 for positive samples.
 * Pure functions; not collective. */
#ifndef WEFT_OBSERVE_BINARY_H
#define WEFT_OBSERVE_BINARY_H

#include "base.h"

/* Values of train.auc, with their names. */
#define AUC_WORDS(W) W(AUC_EXACT, "exact") W(AUC_COUNTED, "buckets")
typedef enum Auc { AUC_WORDS(LIST_CONSTANT) } Auc;
const char *auc_word(int auc);

/* Returns the fraction of (positive, negative) pairs of samples in which the positive sample has
 * the higher score; a pair of equal scores counts half. This is the Mann-Whitney statistic / (P N),
 * a quotient of integers, so the order of samples does not matter. NaN: there are no positive or no
 * negative samples, or a score is NaN. Allocates 8 bytes a sample, and sorts twice (radix sort). */
double auc_exact(const float *score, const int32_t *label, int64_t count);

/* Counters over samples. The struct is an array of BINARY_COUNTERS int64_t that ranks can sum;
 * integers may be added in any order. All counters are 0 if there are no samples. */
enum { AUC_BUCKETS = 4096 };
typedef struct BinarySums {
    /* number of samples in each bucket floor(p * AUC_BUCKETS), where p = 1 / (1 + exp(-logit)) is
     * the predicted probability */
    int64_t positive[AUC_BUCKETS + 1], negative[AUC_BUCKETS + 1];
    /* number of samples for which p >= 0.5 agrees with the label */
    int64_t right;
    /* sum of p in units of 2^-32; sum of losses -ln(probability of the label), each at most
     * BINARY_LOSS_MOST, in units of 2^-24. 5e8 samples of the largest loss do not overflow. */
    int64_t p, loss;
    /* number of logits that are NaN; the other counters leave them out */
    int64_t bad;
} BinarySums;
enum { BINARY_COUNTERS = sizeof(BinarySums) / sizeof(int64_t), BINARY_LOSS_MOST = 1 << 10 };
void binary_add(BinarySums *sums, const float *logit, const int32_t *label, int64_t count);

/* A figure is NaN if it is not defined, because there are no samples or one of the two labels does
 * not occur. If any logit is NaN, all figures from `auc` on are NaN. */
typedef struct BinaryFigures {
    int64_t samples, positives;
    /* area under the curve from buckets; lower than auc_exact while scores are still close
     * together */
    double auc;
    /* log_loss: mean of -ln(probability of the label). normalized_entropy: log_loss divided by the
     * loss of a model that always predicts the fraction of positives (He et al. 2014) */
    double log_loss, normalized_entropy;
    /* mean predicted probability / fraction of positives */
    double calibration;
    double accuracy;
} BinaryFigures;
BinaryFigures binary_figures(const BinarySums *sums);

#endif
