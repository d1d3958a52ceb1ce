/* Metrics of predicted fields, for each target. A target is a variable at a level and an offset in
 * time. src/train/eval/field_scores.c computes them: add_target adds the pixels of a sample to
 * sums, and fill_target computes the metrics from the sums. */
#ifndef WEFT_OBSERVE_FIELD_METRICS_H
#define WEFT_OBSERVE_FIELD_METRICS_H

#include "data/field_read.h"

/* The metrics of a target. p is the prediction, t the truth, and c the climatology, which is the
 * mean of each pixel over the evaluated set. Sums and means over pixels use the weights of the
 * pixels (FieldWeights in data/field_read.h). rmse, mae and bias are in the variable's units:
 *     rmse                   square root of the mean of (p - t)^2
 *     mae                    mean of |p - t|
 *     bias                   mean of p - t
 *     correlation            Pearson's, of p and t over all values
 *     anomaly_correlation    sum (p - c)(t - c) / sqrt(sum (p - c)^2 sum (t - c)^2)
 *     skill_persistence      1 - RMSE / RMSE of persistence, which predicts that the last input of
 *                            the same variable and level does not change
 *     skill_climatology      1 - RMSE / RMSE of c
 * To add a metric, add a row here and its formula to fill_target. */
#define FIELD_METRIC_LIST(M)                                                                       \
    M(FIELD_RMSE, "rmse")                                                                          \
    M(FIELD_MAE, "mae")                                                                            \
    M(FIELD_BIAS, "bias")                                                                          \
    M(FIELD_CORRELATION, "correlation")                                                            \
    M(FIELD_ANOMALY_CORRELATION, "anomaly_correlation")                                            \
    M(FIELD_SKILL_PERSISTENCE, "skill_persistence")                                                \
    M(FIELD_SKILL_CLIMATOLOGY, "skill_climatology")
typedef enum FieldMetric { FIELD_METRIC_LIST(LIST_CONSTANT) FIELD_METRICS } FieldMetric;
/* Returns the name of a metric, for example "rmse". Static. */
const char *field_metric_name(FieldMetric metric);

typedef struct FieldTargetMetrics {
    FieldChannelName label;
    /* number of pixels that count, over all samples: those whose truth is not missing and whose
     * weight is not 0 */
    int64_t values;
    /* value of each metric; NaN: not defined */
    double metric[FIELD_METRICS];
} FieldTargetMetrics;
typedef struct FieldMetrics {
    int targets;
    /* true: rows of pixels were weighted by the cosine of their latitude */
    bool latitude;
    /* Means over the targets. skill: the skill against persistence or, for a target without
     * persistence, against climatology. normalized_rmse: RMSE divided by the standard deviation of
     * the truth. Targets for which the metric is not defined, such as one that does not vary, are
     * left out. NaN: it is not defined for any target. */
    double skill, normalized_rmse;
    /* metrics of each target, [targets] of them set */
    FieldTargetMetrics target[FIELD_CHANNELS];
} FieldMetrics;

#endif
