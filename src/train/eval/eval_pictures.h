/* Pictures of the first sample of a test set of fields, made in each evaluation of a run
 * (train.eval_pictures). */
#ifndef WEFT_TRAIN_EVAL_PICTURES_H
#define WEFT_TRAIN_EVAL_PICTURES_H

#include "../trainer.h"

#include "observe.h"

/* Pictures of the last evaluation, on rank 0; owned by the trainer. */
struct EvalPictures {
    /* the pictures, [count]; owned */
    EvalPicture *picture;
    /* number of pictures */
    int count;
};
typedef struct EvalPictures EvalPictures;
void eval_pictures_free(EvalPictures **pictures);

/* Makes the pictures of one evaluation. */
typedef struct PictureMaking {
    /* borrowed */
    const DataSet *set;
    /* true: this evaluation makes pictures */
    bool wanted;
    /* NULL: this rank draws no pictures; borrowed */
    const Trainer *trainer;
    /* reads the inputs and the truth of the sample again; owned */
    FieldReader *reader;
    /* error of eval_pictures_init or eval_pictures_add */
    KeptError error;
    /* message to rank 0: for each picture a PictureHead and the bytes of its PNG; owned */
    char *message;
    /* length of the message */
    size_t message_bytes;
} PictureMaking;
/* Prepares an evaluation. wanted: true if the caller requests pictures. Only ranks with the model's
 * outputs draw. If the set cannot be read, this function and eval_pictures_add set making->error
 * to ERR_IO or ERR_DATA. */
void eval_pictures_init(PictureMaking *making, const Trainer *t, const DataSet *set, bool wanted);
void eval_pictures_fini(PictureMaking *making);
/* If the micro-batch that the executor has just evaluated contains the set's first sample, draws
 * this sample's first train.eval_pictures targets, or its label field. */
void eval_pictures_add(PictureMaking *making, const MicroBatch *batch);
/* Sets line->picture and line->pictures, on rank 0 to the pictures of all ranks, on other ranks to
 * none. Collective. */
void eval_pictures_line(PictureMaking *making, Trainer *t, EvalLine *line);

#endif
