/* Boxes that a detector finds in an evaluation, and COCO's numbers for them. */
#ifndef WEFT_TRAIN_DETECTIONS_H
#define WEFT_TRAIN_DETECTIONS_H

#include "../trainer.h"

#include "detect.h"

/* This rank's part; eval NULL: another rank collects, or the model finds no boxes. Owned. */
typedef struct Detections {
    const Trainer *trainer;
    const DataSet *set;
    CocoEval *eval;
    DataBoxes boxes;
    DetectorBoxes *found;
    /* boxes of all pictures, in their pixels, for a file of results */
    bool keeps;
    DetectedBox *kept;
    int64_t kept_count, kept_room;
    /* truths of one picture */
    TruthBox *truth;
    /* the first error, and its message (owned) */
    Status status;
    char *message;
} Detections;
/* Divides the loss of a detector into its parts. column: means of the loss's columns 1 and 2. */
void detections_loss_parts(double loss, const double column[2], double part[LOSS_PARTS]);
/* keeps: the boxes are written to a file later. Reads the set's labels. */
Status detections_init(Detections *detections, const Trainer *t, const DataSet *set, bool keeps);
void detections_fini(Detections *detections);
/* Adds the micro-batch that the executor has just evaluated. */
void detections_add(Detections *detections, const Batch *batch);
/* Fills in the numbers over all ranks' pictures, on every rank, and what `extras` ask for, on rank
 * 0. Collective on the trainer's world; all ranks return the same Status. */
Status detections_line(Detections *detections, const Trainer *t, EvalLine *line,
                       const EvalExtras *extras);

#endif
