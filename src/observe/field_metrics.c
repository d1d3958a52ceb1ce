/* Writes metrics of fields as text, JSON and TensorBoard's scalars. */
#include "observer.h"

#include <math.h>
#include <string.h>

const char *field_metric_name(FieldMetric metric)
{
    static const char *const name[] = {FIELD_METRIC_LIST(LIST_NAME)};
    return name[metric];
}

void field_metrics_put(const FieldMetrics *fields, Json *json)
{
    json_real(json, "eval_skill", fields->skill);
    json_real(json, "eval_rmse", fields->normalized_rmse);
    json_bool(json, "latitude_weights", fields->latitude);
    json_array(json, "fields");
    for (int i = 0; i < fields->targets; ++i) {
        const FieldTargetMetrics *t = &fields->target[i];
        json_object(json, NULL);
        json_text(json, "variable", t->label.variable);
        if (!isnan(t->label.level)) json_real(json, "level", t->label.level);
        json_text(json, "lead", t->label.lead);
        json_text(json, "units", t->label.units);
        json_int(json, "values", t->values);
        for (int k = 0; k < FIELD_METRICS; ++k)
            json_real(json, field_metric_name((FieldMetric)k), t->metric[k]);
        json_end(json);
    }
    json_end(json);
}

/* Returns the RMSE of the variable of target number `target`, over all targets of this variable
 * (all levels and leads). Returns NaN if an earlier target has the same variable, so that each
 * variable is shown once. */
static double variable_rmse(const FieldMetrics *fields, int target)
{
    const char *name = fields->target[target].label.variable;
    double squares = 0, values = 0;
    for (int i = 0; i < fields->targets; ++i) {
        const FieldTargetMetrics *t = &fields->target[i];
        const double rmse = t->metric[FIELD_RMSE];
        if (strcmp(t->label.variable, name) != 0) continue;
        if (i < target) return NAN;
        if (t->values == 0) continue;
        squares += rmse * rmse * (double)t->values;
        values += (double)t->values;
    }
    return sqrt(squares / values);
}

void field_metrics_text(const FieldMetrics *fields, char *out, size_t room)
{
    enum { SHOWN = 4 };
    int shown = 0;
    size_t at = (size_t)snprintf(out, room, ", skill %.4f", text_nan_without_sign(fields->skill));
    for (int i = 0; i < fields->targets && at < room; ++i) {
        const FieldChannelName *label = &fields->target[i].label;
        const double rmse = variable_rmse(fields, i);
        if (isnan(rmse)) continue;
        if (shown++ == SHOWN) {
            snprintf(out + at, room - at, ", ...");
            return;
        }
        at += (size_t)snprintf(out + at, room - at, "%s%.40s %.4g%s%.20s",
                               shown == 1 ? ", RMSE " : ", ", label->variable, rmse,
                               *label->units ? " " : "", label->units);
    }
}

/* Appends a scalar unless it is NaN. */
static void scalar(AppendFile *events, const char *tag, int64_t step, double time_s, double value)
{
    if (!isnan(value)) event_file_scalar(events, tag, step, time_s, (float)value);
}

void field_metrics_scalars(const FieldMetrics *fields, AppendFile *events, int64_t step,
                           double time_s)
{
    scalar(events, "eval/skill", step, time_s, fields->skill);
    scalar(events, "eval/rmse", step, time_s, fields->normalized_rmse);
    for (int i = 0; i < fields->targets; ++i)
        for (int k = 0; k < FIELD_METRICS; ++k) {
            char tag[200];
            snprintf(tag, sizeof tag, "%s/%.150s", field_metric_name((FieldMetric)k),
                     fields->target[i].label.name);
            scalar(events, tag, step, time_s, fields->target[i].metric[k]);
        }
}
