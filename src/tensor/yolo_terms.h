/* The formulas of the detection loss: matching, decoding, the overlap of two boxes and its
 * gradient. They are computed in double, so that a decision such as "in the left half of a cell" is
 * exact. */
#ifndef WEFT_TENSOR_YOLO_TERMS_H
#define WEFT_TENSOR_YOLO_TERMS_H

#include "tensor/boxes.h"

#include <math.h>

#ifdef __CUDACC__
#define YOLO_INLINE static __host__ __device__ inline
#else
#define YOLO_INLINE static inline
#endif

/* YOLO_GAIN_BOX, YOLO_GAIN_OBJ, YOLO_GAIN_CLASS: factors of the three parts of the loss
 * (hyp.scratch-low of YOLOv5). YOLO_RATIO: a box and an anchor match if neither has a side that is
 * this number of times as long as the other's side, or longer. */
#define YOLO_GAIN_BOX   0.05
#define YOLO_GAIN_OBJ   1.0
#define YOLO_GAIN_CLASS 0.5
#define YOLO_RATIO      4.0
/* a small number that is added to three denominators in yolo_ciou, so that none is 0 */
#define YOLO_EPS 1e-7

/* Factors of the three sums of one level in the loss of one sample, and the targets of class
 * logits. */
typedef struct YoloFactors {
    double box, object, classes;
    /* target of the logit of the box's class, with label smoothing */
    double positive;
    /* target of the logits of all other classes, with label smoothing */
    double negative;
} YoloFactors;

YOLO_INLINE double yolo_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Writes to `out` those neighbours, along one axis, of the cell of a box's centre that also have to
 * predict the box. Returns their number, at most two. The cell before is a neighbour if the centre
 * is in the first half of its cell and x > 1. The cell after is one if the centre, measured from
 * the axis's end, is in the first half of a cell and more than 1 from the end; if x is a whole
 * number, this cell is the centre's own cell. All this is as in YOLOv5. x: the centre in cells;
 * size: number of cells of the axis. */
YOLO_INLINE int yolo_neighbours(double x, int size, int out[2])
{
    const double back = size - x;
    int count = 0;
    if (x - floor(x) < 0.5 && x > 1) out[count++] = (int)floor(x) - 1;
    if (back - floor(back) < 0.5 && back > 1) out[count++] = (int)floor(x + 0.5);
    return count;
}

YOLO_INLINE int yolo_clamp(int i, int size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

/* Maximum number of matches of one anchor with one box: the cell of the box's centre, two more
 * cells in its row, and two in its column. */
enum { YOLO_SLOTS = 5 };

/* Returns whether the box's width divided by the anchor's, and the box's height divided by the
 * anchor's, are between 1 / YOLO_RATIO and YOLO_RATIO, both excluded. */
YOLO_INLINE bool yolo_sides_match(const BoxGrid *g, const float *box, int anchor)
{
    const double w = (double)box[BOX_W] * g->columns, h = (double)box[BOX_H] * g->rows;
    const double aw = g->anchor[anchor][0], ah = g->anchor[anchor][1];
    return w > 0 && h > 0 && w < YOLO_RATIO * aw && aw < YOLO_RATIO * w && h < YOLO_RATIO * ah &&
           ah < YOLO_RATIO * h;
}

/* Writes match number `slot` of a box and an anchor whose sides match. Returns false if the box and
 * the anchor have no match with that number. */
YOLO_INLINE bool yolo_match_slot(const BoxGrid *g, const float *box, int anchor, int slot,
                                 BoxMatch *m)
{
    const double x = (double)box[BOX_X] * g->columns, y = (double)box[BOX_Y] * g->rows;
    int columns[2], rows[2], column = (int)floor(x), row = (int)floor(y);
    const int in_row = yolo_neighbours(x, g->columns, columns);
    const int in_column = yolo_neighbours(y, g->rows, rows);
    if (slot > in_row + in_column) return false;
    if (slot > 0 && slot <= in_row) column = columns[slot - 1];
    if (slot > in_row) row = rows[slot - in_row - 1];
    m->anchor = anchor;
    m->column = yolo_clamp(column, g->columns);
    m->row = yolo_clamp(row, g->rows);
    m->x = x - m->column;
    m->y = y - m->row;
    m->w = (double)box[BOX_W] * g->columns;
    m->h = (double)box[BOX_H] * g->rows;
    return true;
}

/* Returns the factors of a level's sums in the loss of one sample, times `scale`, and the targets.
 * matches: number of matches on the level in a batch of `batch` samples; places: number of cells
 * times anchors; area: pixels of a picture. */
YOLO_INLINE YoloFactors yolo_factors(int levels, int level, int classes, double matches,
                                     double batch, double places, double area, double smoothing,
                                     double scale)
{
    /* the gains were tuned for pictures of 640 x 640 pixels, 80 classes and 3 levels */
    const double gain = 3.0 / levels, share = matches > 0 ? scale * gain * batch / matches : 0;
    /* weights of the levels' object parts, if there are three levels */
    const double three[3] = {4.0, 1.0, 0.4};
    /* the same for any other number of levels */
    const double others[BOX_LEVELS] = {4.0, 1.0, 0.25, 0.06, 0.02};
    const double weight = levels == 3 ? three[level] : others[level];
    YoloFactors f;
    f.box = share * YOLO_GAIN_BOX;
    /* the gain is proportional to the number of classes K, and the mean over the classes divides by
     * K, so K cancels */
    f.classes = classes > 1 ? share * YOLO_GAIN_CLASS / 80.0 : 0;
    f.object = scale * gain * YOLO_GAIN_OBJ * (area / (640.0 * 640.0)) * weight / places;
    f.positive = 1 - smoothing / 2;
    f.negative = smoothing / 2;
    return f;
}

/* The prediction (centre p, size s) and the target (centre q, size t) along one axis. */
typedef struct YoloAxis {
    /* length of the intersection, at least 0, and its derivatives by p and by s */
    double inside, inside_p, inside_s;
    /* length of the smallest interval that contains both, and its derivatives by p and by s */
    double hull, hull_p, hull_s;
} YoloAxis;

/* Returns 1 if a < b, 0 if a > b, and one half if they are equal. */
YOLO_INLINE double yolo_less(double a, double b)
{
    return a < b ? 1 : a > b ? 0 : 0.5;
}

YOLO_INLINE YoloAxis yolo_axis(double p, double s, double q, double t)
{
    const double low = p - s / 2, high = p + s / 2, low2 = q - t / 2, high2 = q + t / 2;
    /* ends: 1 if the intersection ends where the prediction ends, 0 if it ends where the target
     * ends, 0.5 if both coincide; begins: the same for the beginning */
    const double ends = yolo_less(high, high2), begins = yolo_less(low2, low);
    YoloAxis a;
    a.inside = fmin(high, high2) - fmax(low, low2);
    a.inside_p = ends - begins;
    a.inside_s = (ends + begins) / 2;
    if (a.inside < 0) a.inside = a.inside_p = a.inside_s = 0;
    a.hull = fmax(high, high2) - fmin(low, low2);
    a.hull_p = begins - ends;
    a.hull_s = (2 - ends - begins) / 2;
    return a;
}

/* Returns the complete IoU (Zheng et al. 2020) of a prediction p (x, y, w, h) with a match: IoU -
 * d^2 / c^2 - alpha v. grad: set to its derivatives by x, y, w and h, with alpha as a constant;
 * NULL: not wanted. */
YOLO_INLINE double yolo_ciou(const double p[4], const BoxMatch *m, double *grad)
{
    const double pi = 3.14159265358979323846, four = 4 / (pi * pi);
    const YoloAxis ax = yolo_axis(p[0], p[2], m->x, m->w), ay = yolo_axis(p[1], p[3], m->y, m->h);
    const double inter = ax.inside * ay.inside;
    const double both = p[2] * p[3] + m->w * m->h - inter + YOLO_EPS, iou = inter / both;
    const double c2 = ax.hull * ax.hull + ay.hull * ay.hull + YOLO_EPS;
    const double dx = m->x - p[0], dy = m->y - p[1], d2 = dx * dx + dy * dy;
    const double angle = atan(m->w / m->h) - atan(p[2] / p[3]), v = four * angle * angle;
    const double alpha = v / (v - iou + (1 + YOLO_EPS));
    if (grad) {
        /* derivatives by x, y, w and h: inter_d of `inter`, area_d of the prediction's area, hull_d
         * of c2 / 2, angle_d of `angle`, distance_d of d2 */
        const double inter_d[4] = {ax.inside_p * ay.inside, ay.inside_p * ax.inside,
                                   ax.inside_s * ay.inside, ay.inside_s * ax.inside};
        const double area_d[4] = {0, 0, p[3], p[2]};
        const double hull_d[4] = {ax.hull * ax.hull_p, ay.hull * ay.hull_p, ax.hull * ax.hull_s,
                                  ay.hull * ay.hull_s};
        const double square = p[2] * p[2] + p[3] * p[3];
        const double angle_d[4] = {0, 0, -p[3] / square, p[2] / square};
        const double distance_d[4] = {-2 * dx, -2 * dy, 0, 0};
        for (int i = 0; i < 4; ++i)
            grad[i] = inter_d[i] / both - iou / both * (area_d[i] - inter_d[i]) -
                      distance_d[i] / c2 + d2 / c2 * (2 * hull_d[i] / c2) -
                      alpha * 2 * four * angle * angle_d[i];
    }
    return iou - (d2 / c2 + v * alpha);
}

/* Computes the predicted box, in cells, from the logits t (of x, y, w, h) of an anchor in a cell. x
 * and y are measured from the cell's top left corner. slope: set to the derivatives of the four
 * numbers by their logits; NULL: not wanted. */
YOLO_INLINE void yolo_decode(const float t[4], const double anchor[2], double box[4], double *slope)
{
    for (int i = 0; i < 4; ++i) {
        const double s = yolo_sigmoid(t[i]);
        box[i] = i < 2 ? 2 * s - 0.5 : anchor[i - 2] * 4 * s * s;
        if (slope) slope[i] = (i < 2 ? 2 : anchor[i - 2] * 8 * s) * s * (1 - s);
    }
}

#endif
