/* Metrics of predicted fields: a row for each target, which is a variable at a level and an offset
 * in time, in the variable's units. */
#ifndef WEFT_OBSERVE_FIELD_METRICS_H
#define WEFT_OBSERVE_FIELD_METRICS_H

#include "data/field_read.h"

/* RMSE, mean absolute error and mean error (prediction - truth), in the variable's units.
 * Correlation (Pearson's, over all values). Correlation of the anomalies, which are differences
 * from the climatology: sum (p - c)(t - c) / sqrt(sum (p - c)^2 sum (t - c)^2). Skill: 1 - RMSE
 * / RMSE of another forecast: persistence, which is the last input of the same variable and
 * level, and climatology. Climatology is the mean of each pixel over the evaluated set. */
#define FIELD_METRIC_LIST(M)                                                                       \
    M(FIELD_RMSE, "rmse")                                                                          \
    M(FIELD_MAE, "mae")                                                                            \
    M(FIELD_BIAS, "bias")                                                                          \
    M(FIELD_CORRELATION, "correlation")                                                            \
    M(FIELD_ANOMALY_CORRELATION, "anomaly_correlation")                                            \
    M(FIELD_SKILL_PERSISTENCE, "skill_persistence")                                                \
    M(FIELD_SKILL_CLIMATOLOGY, "skill_climatology")
typedef enum FieldMetric { FIELD_METRIC_LIST(LIST_CONSTANT) FIELD_METRICS } FieldMetric;
/* Returns "rmse". Static. */
const char *field_metric_name(FieldMetric metric);

typedef struct FieldTargetMetrics {
    FieldLabel label;
    /* number of values that are not missing; NaN: not defined */
    int64_t values;
    double metric[FIELD_METRICS];
} FieldTargetMetrics;
typedef struct FieldMetrics {
    int targets;
    /* rows were weighted by the cosine of their latitude */
    bool latitude;
    /* Means over the targets: of the skill against persistence, or against climatology for a target
     * without persistence; and of RMSE / deviation of the truth. NaN: not defined for a target. */
    double skill, rmse;
    FieldTargetMetrics target[FIELD_CHANNELS];
} FieldMetrics;

#endif
