/* Pictures of the first sample of a test set of fields, made in each evaluation. */
#ifndef WEFT_TRAIN_EVAL_PICTURES_H
#define WEFT_TRAIN_EVAL_PICTURES_H

#include "../trainer.h"

#include "observe.h"

/* Pictures of the last evaluation; owned by the trainer. Rank 0 has them. */
struct EvalPictures {
    /* [count]; owned */
    EvalPicture *picture;
    int count;
};
typedef struct EvalPictures EvalPictures;
void eval_pictures_free(EvalPictures **pictures);

/* Makes the pictures of one evaluation. */
typedef struct PictureMaking {
    /* borrowed */
    const DataSet *set;
    /* this evaluation makes pictures */
    bool wanted;
    /* borrowed; NULL: this rank draws none */
    const Trainer *trainer;
    /* owned */
    FieldReader *reader;
    Status status;
    /* pictures as they are sent to rank 0, each a PictureHead and the bytes of a PNG; owned */
    char *bytes;
    size_t count;
} PictureMaking;
/* Prepares an evaluation. Only ranks with the model's outputs draw. making->status is the error of
 * this function and of eval_pictures_add: ERR_IO, ERR_DATA: the set cannot be read. */
void eval_pictures_init(PictureMaking *making, const Trainer *t, const DataSet *set, bool wanted);
void eval_pictures_fini(PictureMaking *making);
/* Draws the first sample of the set if the micro-batch that the executor has just evaluated has it:
 * its first train.eval_pictures targets. */
void eval_pictures_add(PictureMaking *making, const Batch *batch);
/* Sets line->picture to the pictures, on rank 0. Collective. */
void eval_pictures_line(PictureMaking *making, Trainer *t, EvalLine *line);

#endif
