/* Measures the quality of the scores of a classifier with two classes: area under the ROC curve
 * (AUC), exact or from buckets; log loss, calibration and accuracy. Labels are 0 for negative and 1
 * for positive samples. Pure functions; not collective. */
#ifndef WEFT_OBSERVE_BINARY_H
#define WEFT_OBSERVE_BINARY_H

#include "base.h"

/* Values of train.auc, with their names. */
#define AUC_WORDS(W) W(AUC_EXACT, "exact") W(AUC_COUNTED, "buckets")
typedef enum Auc { AUC_WORDS(LIST_CONSTANT) } Auc;
/* Returns the word of an Auc: "exact" or "buckets". */
const char *auc_word(int auc);

/* Returns the fraction of (positive, negative) pairs of samples in which the positive sample has
 * the higher score; a pair of equal scores counts half. This is the Mann-Whitney statistic divided
 * by the number of pairs. It is computed from integers, so the order of samples does not matter.
 * NaN: there are no positive or no negative samples, or a score is NaN. Allocates 8 bytes for each
 * sample. */
double auc_exact(const float *score, const int32_t *label, int64_t count);

/* Counters over samples. BinarySums has the layout of an array of BINARY_COUNTERS int64_t, which
 * the ranks add up; integers may be added in any order. All counters are 0 if there are no
 * samples. */
enum { AUC_BUCKETS = 4096 };
typedef struct BinarySums {
    /* number of positive and of negative samples in each bucket. The bucket of a sample is floor(p
     * * AUC_BUCKETS), where p = 1 / (1 + exp(-logit)) is the predicted probability of label 1. */
    int64_t positive[AUC_BUCKETS + 1], negative[AUC_BUCKETS + 1];
    /* number of samples for which p >= 0.5 agrees with the label */
    int64_t right;
    /* sum of p in units of 2^-32 */
    int64_t p;
    /* sum of the losses -ln(probability of the label), each at most BINARY_LOSS_MOST, in units of
     * 2^-24; 5e8 samples with the largest loss do not overflow */
    int64_t loss;
    /* number of samples whose logit is NaN; no other counter includes these samples */
    int64_t nan_count;
} BinarySums;
enum { BINARY_COUNTERS = sizeof(BinarySums) / sizeof(int64_t), BINARY_LOSS_MOST = 1 << 10 };
/* Adds `count` samples to the counters. */
void binary_add(BinarySums *sums, const float *logit, const int32_t *label, int64_t count);

/* A figure is NaN if it is not defined, because there are no samples or one of the two labels does
 * not occur. If any logit is NaN, all figures from `auc` on are NaN. */
typedef struct BinaryFigures {
    int64_t samples, positives;
    /* area under the ROC curve, computed from buckets. Samples of one bucket count as equal scores,
     * so the value is usually lower than auc_exact if many scores are close together. */
    double auc;
    /* log_loss: mean of -ln(probability of the label). normalized_entropy: log_loss divided by the
     * log loss of a model that always predicts the fraction of positive samples (He et al.
     * 2014). */
    double log_loss, normalized_entropy;
    /* mean predicted probability divided by the fraction of positive samples */
    double calibration;
    /* fraction of the samples for which p >= 0.5 agrees with the label */
    double accuracy;
} BinaryFigures;
/* Computes the figures of all samples that were added. */
BinaryFigures binary_figures(const BinarySums *sums);

#endif
