/* Boxes from which a detector learns: the target boxes of a micro-batch, and the matching of a box
 * with the cells and anchors of a level (YOLOv5 v6 and v7: Jocher et al. 2022). Matches depend only
 * on labels, anchors and grids, so they can be counted before any prediction is made. Also computes
 * the box that a cell predicts from its logits. No function has side effects. */
#ifndef WEFT_TENSOR_BOXES_H
#define WEFT_TENSOR_BOXES_H

#include "tensor/op_spec.h"

/* The target boxes of one micro-batch of n samples, in the backend's memory; borrowed. Padding
 * samples have no boxes. */
typedef struct BoxTargets {
    /* sample i has the boxes start[i] .. start[i + 1] - 1, int32[n + 1] */
    const int32_t *start;
    /* the boxes, one after the other, float[start[n]][BOX_NUMBERS] */
    const float *box;
    /* number of matches on each level in the whole global batch, then the number of real samples in
     * the global batch, int64[levels + 1] */
    const int64_t *match_counts;
} BoxTargets;
/* Numbers of a box: class; centre (x, y) and size (w, h) as fractions of the picture's width and
 * height. */
enum { BOX_CLASS, BOX_X, BOX_Y, BOX_W, BOX_H, BOX_NUMBERS };
/* Number of channels of an anchor before those of its classes: x, y, w, h, object. */
enum { BOX_CHANNELS = 5 };

/* BOX_LEVELS: largest number of levels of a detector. BOX_MATCHES: largest number of matches of one
 * box on one level. Each anchor has up to 5: the box's own cell, and up to two more along each axis
 * (yolo_match). */
enum { BOX_LEVELS = 5, BOX_MATCHES = 5 * ANCHORS_MOST };

/* One level of a detector: a grid of cells, each with the same anchors. */
typedef struct BoxGrid {
    int columns, rows, anchors;
    /* width and height of each anchor, in cells */
    double anchor[ANCHORS_MOST][2];
} BoxGrid;
/* A cell and an anchor that must predict a box. x, y, w and h are in cells; x and y are measured
 * from the cell's top left corner and are in -0.5 .. 1.5. */
typedef struct BoxMatch {
    int anchor, column, row;
    double x, y, w, h;
} BoxMatch;

/* Returns the probability of a logit, 1 / (1 + e^-logit). */
double yolo_probability(double logit);
/* Computes the box that a cell predicts, from the four logits of one of its anchors. box: (x, y, w,
 * h) in cells; x and y are measured from the cell's top left corner. */
void yolo_predict(const float logit[4], const double anchor[2], double box[4]);
/* Returns the grid of input `level` of a detection loss. */
BoxGrid box_grid(const OpSpec *loss, int level);
/* Returns the number of classes of a detection loss. */
int64_t box_classes(const OpSpec *loss);
/* Writes the matches of one box of BoxTargets on a level, and returns their number. An anchor
 * matches if the box's width divided by the anchor's, and the box's height divided by the anchor's,
 * are between 1/4 and 4, both excluded; a side of 0 never matches. For such an anchor the cell of
 * the box's centre matches. Let cx be the distance of the centre from the grid's left edge, in
 * cells, and fx its fraction. The left neighbour of the cell also matches if fx < 0.5 and cx > 1.
 * The right neighbour also matches if fx > 0.5 and cx + 1 < columns. If fx is 0 and cx + 1 <
 * columns, the cell itself matches a second time, as in YOLOv5. The same rules apply to rows, with
 * the upper and the lower neighbour. */
int yolo_match(const BoxGrid *grid, const float box[BOX_NUMBERS], BoxMatch match[BOX_MATCHES]);
/* Returns the number of matches of `count` boxes on a level. box: the boxes,
 * float[count][BOX_NUMBERS]. */
int64_t yolo_count(const BoxGrid *grid, const float *box, int64_t count);

#endif
