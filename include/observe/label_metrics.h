/* Metrics of predicted label fields, from a confusion matrix of pixels: a row for each class. */
#ifndef WEFT_OBSERVE_LABEL_METRICS_H
#define WEFT_OBSERVE_LABEL_METRICS_H

#include "data/fields.h"

typedef struct LabelClassMetrics {
    /* name, or number of the class */
    char name[FIELD_CLASS_NAME];
    /* pixels that have this label, and pixels that were predicted as this class */
    int64_t pixels, predicted;
    /* With n of them in both: n / (pixels + predicted - n), and 2 n / (pixels + predicted); NaN:
     * the class is neither in the truth nor in the prediction. */
    double iou, dice;
} LabelClassMetrics;
typedef struct LabelMetrics {
    int classes;
    /* pixels that have a label */
    int64_t pixels;
    /* Fraction of those pixels whose class is predicted; means over the classes that are not
     * NaN. NaN: no pixel has a label. */
    double accuracy, iou, dice;
    LabelClassMetrics item[FIELD_CLASSES];
} LabelMetrics;
/* Fills in all but the names. confusion: pixels, (label, predicted class), int64[classes][classes].
 */
void label_metrics_fill(LabelMetrics *metrics, int classes, const int64_t *confusion);

#endif
