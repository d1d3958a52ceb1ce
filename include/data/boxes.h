/* Labelled boxes of a data set of pictures, for the detection of objects. */
#ifndef WEFT_DATA_BOXES_H
#define WEFT_DATA_BOXES_H

#include "base.h"

/* The arrays that a set of boxes has in addition to its pictures; box_array_info (data_private.h)
 * has their names and types. */
typedef enum BoxArray {
    BOX_ARRAY_SIZE,
    BOX_ARRAY_FIT,
    BOX_ARRAY_BOXES,
    BOX_ARRAY_CLASS,
    BOX_ARRAY_START,
    BOX_ARRAY_AREA,
    BOX_ARRAY_CROWD,
    BOX_ARRAY_ID,
    BOX_ARRAY_IMAGE_ID,
    BOX_ARRAY_CATEGORY_ID,
    BOX_ARRAYS
} BoxArray;

/* All labels of a set, in memory: 53 bytes for each box, 24 for each picture (48 with `fit`). N
 * pictures, B boxes, K classes. All arrays are owned. */
typedef struct DataBoxes {
    int64_t pictures, boxes;
    int classes;
    /* (N,2): height and width of each picture, in pixels. Its boxes have the same unit. */
    int32_t *size;
    /* (N,3): place of each picture in the square image that the set stores (letterbox): pixels of
     * the square for each pixel of the picture, then left edge and top edge in pixels of the
     * square. NULL: the set stores picture files. */
    double *fit;
    /* (B,4): (x, y, width, height) in pixels; x and y are those of the top left corner */
    double *box;
    /* (B): class of each box, 0 to K - 1. data_boxes_map_classes replaces it by a class of the run,
     * or -1. */
    int32_t *class;
    /* (N+1): index of the first box of each picture, then the number of boxes */
    int64_t *start;
    /* (B): area in square pixels, for COCO's evaluation; it may be smaller than the area of the
     * box */
    double *area;
    /* (B): 1 if the box is not trained on, because it is around a group of objects or its object is
     * marked as difficult (VOC); else 0 */
    uint8_t *crowd;
    /* (B): id of the annotation in the file that was imported */
    int64_t *id;
    /* (N): id of each image in the file that was imported, ascending */
    int64_t *image_id;
    /* (K): id of each category in the file that was imported, ascending */
    int64_t *category_id;
} DataBoxes;
struct DataSet;
/* Reads the labels of a set and checks them. ERR_DATA: the labels are damaged. ERR_NOINPUT: the
 * file cannot be opened. ERR_IO: reading failed. Release with data_boxes_free. */
Status data_boxes_read(DataBoxes *boxes, const struct DataSet *set);
void data_boxes_free(DataBoxes *boxes);
/* Returns the bytes of memory that data_boxes_read allocates; 0: the set is no set of boxes. */
size_t data_boxes_bytes(const struct DataSet *set);
/* Replaces the class that each box has in the file by the class to which the set maps that class;
 * -1: the set maps it to no class. */
void data_boxes_map_classes(DataBoxes *boxes, const struct DataSet *set);
/* The place of a picture in the square that the model reads: pixel (x, y) of the picture is at
 * (left + x * scale[0], top + y * scale[1]) in pixels of the square. */
typedef struct BoxFit {
    double left, top, scale[2];
} BoxFit;
/* Returns the place of a picture of width x height pixels. */
BoxFit data_box_fit(const struct DataSet *set, int width, int height);
/* Returns the number of boxes of the picture that has the most. Boxes with DataBoxes.crowd are not
 * counted. */
int64_t data_boxes_most(const DataBoxes *boxes);

#endif
