/* Computes metrics of label fields from the confusion matrix, and writes them as text, JSON and
 * TensorBoard's scalars. */
#include "observer.h"

#include <math.h>

void label_metrics_fill(LabelMetrics *m, int classes, const int64_t *confusion)
{
    int64_t right = 0;
    int defined = 0;
    m->classes = classes;
    m->pixels = 0;
    m->iou = m->dice = 0;
    for (int c = 0; c < classes; ++c) {
        LabelClassMetrics *k = &m->item[c];
        const int64_t both = confusion[c * classes + c];
        k->pixels = k->predicted = 0;
        for (int i = 0; i < classes; ++i) {
            k->pixels += confusion[c * classes + i];
            k->predicted += confusion[i * classes + c];
        }
        const int64_t sum = k->pixels + k->predicted;
        k->iou = sum > 0 ? (double)both / (double)(sum - both) : (double)NAN;
        k->dice = sum > 0 ? (double)(2 * both) / (double)sum : (double)NAN;
        m->pixels += k->pixels;
        right += both;
        if (sum == 0) continue;
        ++defined;
        m->iou += k->iou;
        m->dice += k->dice;
    }
    m->iou = defined > 0 ? m->iou / defined : (double)NAN;
    m->dice = defined > 0 ? m->dice / defined : (double)NAN;
    m->accuracy = m->pixels > 0 ? (double)right / (double)m->pixels : (double)NAN;
}

void label_metrics_put(const LabelMetrics *labels, Json *json)
{
    json_real(json, "eval_accuracy", labels->accuracy);
    json_real(json, "eval_iou", labels->iou);
    json_real(json, "eval_dice", labels->dice);
    json_array(json, "labels");
    for (int i = 0; i < labels->classes; ++i) {
        const LabelClassMetrics *k = &labels->item[i];
        json_object(json, NULL);
        json_text(json, "class", k->name);
        json_int(json, "pixels", k->pixels);
        json_int(json, "predicted", k->predicted);
        json_real(json, "iou", k->iou);
        json_real(json, "dice", k->dice);
        json_end(json);
    }
    json_end(json);
}

void label_metrics_text(const LabelMetrics *labels, char *out, size_t room)
{
    enum { SHOWN = 4 };
    size_t at = (size_t)snprintf(out, room, ", IoU %.4f (", text_nan_without_sign(labels->iou));
    for (int i = 0; i < labels->classes && i < SHOWN; ++i)
        at += (size_t)snprintf(out + at, room - at, "%s%.40s %.4g", i ? ", " : "",
                               labels->item[i].name, text_nan_without_sign(labels->item[i].iou));
    snprintf(out + at, room - at, "%s), accuracy %.2f %%", labels->classes > SHOWN ? ", ..." : "",
             100 * text_nan_without_sign(labels->accuracy));
}

/* Appends a scalar unless it is NaN. */
static void scalar(AppendFile *events, const char *tag, int64_t step, double time_s, double value)
{
    if (!isnan(value)) event_file_scalar(events, tag, step, time_s, (float)value);
}

void label_metrics_scalars(const LabelMetrics *labels, AppendFile *events, int64_t step,
                           double time_s)
{
    char tag[FIELD_CLASS_NAME + 8];
    scalar(events, "eval/accuracy", step, time_s, labels->accuracy);
    scalar(events, "eval/iou", step, time_s, labels->iou);
    scalar(events, "eval/dice", step, time_s, labels->dice);
    for (int i = 0; i < labels->classes; ++i) {
        const LabelClassMetrics *k = &labels->item[i];
        snprintf(tag, sizeof tag, "iou/%s", k->name);
        scalar(events, tag, step, time_s, k->iou);
        snprintf(tag, sizeof tag, "dice/%s", k->name);
        scalar(events, tag, step, time_s, k->dice);
    }
}
