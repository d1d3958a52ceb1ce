/* Metrics of predicted label fields, from a confusion matrix of pixels: a row for each class. */
#ifndef WEFT_OBSERVE_LABEL_METRICS_H
#define WEFT_OBSERVE_LABEL_METRICS_H

#include "data/fields.h"

typedef struct LabelClassMetrics {
    /* name of the class, or its number if it has no name */
    char name[FIELD_CLASS_NAME];
    /* number of pixels that have this label, and of pixels that were predicted as this class */
    int64_t pixels, predicted;
    /* With n the number of pixels that have this label and were predicted as this class: iou = n /
     * (pixels + predicted - n), dice = 2 n / (pixels + predicted). NaN: the class is neither in the
     * truth nor in the prediction. */
    double iou, dice;
} LabelClassMetrics;
typedef struct LabelMetrics {
    int classes;
    /* number of pixels that have a label */
    int64_t pixels;
    /* accuracy: fraction of those pixels whose class is predicted correctly. iou, dice: means over
     * the classes in which they are defined. NaN: no pixel has a label. */
    double accuracy, iou, dice;
    LabelClassMetrics item[FIELD_CLASSES];
} LabelMetrics;
/* Computes all fields except the names. confusion[label][predicted class]: number of pixels,
 * [classes][classes]. */
void label_metrics_fill(LabelMetrics *metrics, int classes, const int64_t *confusion);

#endif
