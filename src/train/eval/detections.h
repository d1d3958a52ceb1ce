/* Boxes that a detector finds in an evaluation, and COCO's numbers for them. Truths are the boxes
 * of the set's labels. */
#ifndef WEFT_TRAIN_DETECTIONS_H
#define WEFT_TRAIN_DETECTIONS_H

#include "../trainer.h"

#include "detect.h"

/* Boxes of the pictures that this rank evaluates. eval is NULL if the model finds no boxes, or
 * train_collects_outputs is false for this rank; then nothing is read or found. Pointers are owned
 * unless their comment says otherwise. */
typedef struct Detections {
    /* borrowed */
    const Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    /* matches of found boxes with truths */
    CocoEval *eval;
    /* truths of the set */
    DataBoxes boxes;
    /* finds the boxes of a picture in the model's outputs, and holds them until the next picture */
    DetectorBoxes *found;
    /* true: the boxes of all pictures are kept, in pixels of the pictures, for a file of results */
    bool keeps;
    DetectedBox *kept;
    int64_t kept_count, kept_capacity;
    /* truths of one picture */
    TruthBox *truth;
    /* the first error, and its message (owned) */
    Status status;
    char *message;
} Detections;
/* Divides the loss of a detector into its parts. column: means of the loss's parts for boxes and
 * for objects (LOSS_COLUMNS_PARTS). The part for classes is the rest; 0 if the rest is a rounding
 * error. */
void detections_loss_parts(double loss, const double column[2], double part[LOSS_PARTS]);
/* Reads the truths of the set. keeps: true if the found boxes will be written to a file. Release
 * with detections_fini, also after an error. */
Status detections_init(Detections *detections, const Trainer *t, const DataSet *set, bool keeps);
void detections_fini(Detections *detections);
/* Adds the micro-batch that the executor has just evaluated. After an error, which
 * detections_line returns, it does nothing. */
void detections_add(Detections *detections, const Batch *batch);
/* Sets line->boxes and, if the model finds boxes, COCO's numbers over the pictures of all ranks, on
 * every rank. On rank 0 also sets *extras->coco and writes the file extras->results, if these are
 * not NULL. Collective on the trainer's world; all ranks return the same Status. */
Status detections_line(Detections *detections, const Trainer *t, EvalLine *line,
                       const EvalExtras *extras);

#endif
