/* Boxes that a detector finds in an evaluation, and COCO's numbers for them. Truths are the boxes
 * of the set's labels. */
#ifndef WEFT_TRAIN_DETECTIONS_H
#define WEFT_TRAIN_DETECTIONS_H

#include "../trainer.h"

#include "detect.h"

/* Boxes of the pictures that this rank evaluates. Pointers are owned unless their comment says
 * otherwise. */
typedef struct Detections {
    /* borrowed */
    const Trainer *trainer;
    /* borrowed */
    const DataSet *set;
    /* matches of found boxes with truths; NULL: the model finds no boxes, or train_collects_outputs
     * is false for this rank; then nothing is read or found */
    CocoEval *eval;
    /* truths of the set */
    DataBoxes boxes;
    /* finds the boxes of a picture in the model's outputs, and holds them until the next picture */
    DetectorBoxes *found;
    /* true: the boxes of all pictures are kept, in pixels of the pictures, for a file of results */
    bool keeps;
    /* the boxes that are kept, [kept_capacity] */
    DetectedBox *kept;
    /* number of boxes that are kept */
    int64_t kept_count;
    /* number of boxes for which `kept` has space */
    int64_t kept_capacity;
    /* truths of one picture */
    TruthBox *truth;
    KeptError error;
} Detections;
/* Divides the loss of a detector into its parts. column: means of the loss's parts for boxes and
 * for objects (LOSS_RESULTS_PARTS). The part for classes is the rest; 0 if the rest is a rounding
 * error. */
void detections_loss_parts(double loss, const double column[2], double part[LOSS_PARTS]);
/* Reads the truths of the set. keeps: true if the found boxes will be written to a file. Release
 * with detections_fini, also after an error. */
Status detections_init(Detections *detections, const Trainer *t, const DataSet *set, bool keeps);
void detections_fini(Detections *detections);
/* Finds the boxes in the micro-batch that the executor has just evaluated, and adds them. After an
 * error, which detections_line returns, does nothing. */
void detections_add(Detections *detections, const MicroBatch *batch);
/* Sets line->has_boxes to whether the model finds boxes. If it does, sets COCO's numbers over the
 * pictures of all ranks, on every rank. On rank 0 then also sets *extras->coco and writes the file
 * extras->results, if these members are not NULL. Collective on the trainer's world; all ranks
 * return the same Status. */
Status detections_line(Detections *detections, const Trainer *t, EvalLine *line,
                       const EvalExtras *extras);

#endif
