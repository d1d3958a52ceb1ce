/* Metrics of predicted label fields, for each class, from a confusion matrix of pixels. */
#ifndef WEFT_OBSERVE_LABEL_METRICS_H
#define WEFT_OBSERVE_LABEL_METRICS_H

#include "data/fields.h"

typedef struct LabelClassMetrics {
    /* name of the class, or its number if it has no name */
    char name[FIELD_CLASS_NAME];
    /* pixels: number of pixels that have this label; predicted: number of pixels that were
     * predicted as this class */
    int64_t pixels, predicted;
    /* iou = n / (pixels + predicted - n) and dice = 2 n / (pixels + predicted), where n is the
     * number of pixels that have this label and were predicted as this class. NaN: the class is
     * neither in the truth nor in the prediction. */
    double iou, dice;
} LabelClassMetrics;
typedef struct LabelMetrics {
    int classes;
    /* number of pixels that have a label */
    int64_t pixels;
    /* accuracy: fraction of the pixels with a label whose class is predicted correctly. iou, dice:
     * means over the classes for which they are defined. NaN: no pixel has a label. */
    double accuracy, iou, dice;
    /* metrics of each class, [classes] of them set */
    LabelClassMetrics item[FIELD_CLASSES];
} LabelMetrics;
/* Computes all fields of *metrics except the names of the classes. confusion: number of pixels by
 * label and predicted class, [label][predicted class], [classes][classes]. */
void label_metrics_fill(LabelMetrics *metrics, int classes, const int64_t *confusion);

#endif
