/* How good the scores of a classifier of two classes are: area under the ROC curve, exactly and by
 * buckets, log loss, calibration, accuracy. Labels: 0, and 1 for a positive one. Pure functions;
 * not collective. */
#ifndef WEFT_OBSERVE_BINARY_H
#define WEFT_OBSERVE_BINARY_H

#include "base.h"

/* train.auc */
#define AUC_WORDS(W) W(AUC_EXACT, "exact") W(AUC_COUNTED, "buckets")
typedef enum Auc { AUC_WORDS(LIST_CONSTANT) } Auc;
const char *auc_word(int auc);

/* The share of pairs of a positive and a negative one in which the positive one has the higher
 * score, equal scores counting half: the Mann-Whitney statistic / (P N). It is a quotient of whole
 * numbers, so that the order of samples does not matter. NaN: there are no positive or no negative
 * ones, or a score is no number. Takes 8 bytes a sample, and two sorts by digits. */
double auc_exact(const float *score, const int32_t *label, int64_t count);

/* Counters over samples, which may be added in any order: whole numbers, so that any number of
 * ranks has the same. All zero: no samples. An array of BINARY_COUNTERS of int64_t. */
enum { AUC_BUCKETS = 4096 };
typedef struct BinarySums {
    /* by floor(p AUC_BUCKETS), p = 1 / (1 + exp(-logit)) */
    int64_t positive[AUC_BUCKETS + 1], negative[AUC_BUCKETS + 1];
    /* p >= 0.5 agrees with the label */
    int64_t right;
    /* sums of p in 2^-32, of losses (at most BINARY_LOSS_MOST each) in 2^-24: room for 5e8 samples
     * of the most */
    int64_t p, loss;
    /* logits that are no number, and in nothing else */
    int64_t bad;
} BinarySums;
enum { BINARY_COUNTERS = sizeof(BinarySums) / sizeof(int64_t), BINARY_LOSS_MOST = 1 << 10 };
void binary_add(BinarySums *sums, const float *logit, const int32_t *label, int64_t count);

/* NaN: not defined, for there are no samples, or none of one label; all of them, where a logit was
 * bad. */
typedef struct BinaryFigures {
    int64_t samples, positives;
    /* by buckets: less than exact where scores have hardly moved apart */
    double auc;
    /* mean of -log of the label's probability, natural; in parts of what the positives' share alone
     * gives (normalised entropy, He et al. 2014) */
    double log_loss, normalized_entropy;
    /* mean p / mean label */
    double calibration;
    double accuracy;
} BinaryFigures;
BinaryFigures binary_figures(const BinarySums *sums);

#endif
