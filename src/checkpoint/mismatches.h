/* Collects all differences between the tensors of a file and those of a model, for one message. */
#ifndef WEFT_CHECKPOINT_MISMATCHES_H
#define WEFT_CHECKPOINT_MISMATCHES_H

#include "model.h"

typedef struct Mismatches {
    /* tensors that only the model has */
    TextList missing;
    /* tensors that have another size in the file than in the model */
    TextList sizes;
    /* tensors that only the file has */
    TextList surplus;
    /* true: no tensor of another size has a larger dimension in the file than in the model, and all
     * have the same number of dimensions in both */
    bool none_larger;
    /* name of the first layer with fewer channels in the file, and the number of its channels
     * there: "conv1: 8"; NULL if there is no such layer; owned */
    char *narrow_layer;
} Mismatches;
void mismatches_begin(Mismatches *list);
/* Adds the tensor at `path`, which only the model has. Messages name it without "/params/" or
 * "/buffers/". */
void mismatches_missing(Mismatches *list, const char *path);
/* Adds the tensor at `path`, whose shape is `stored` in the file and `wanted` in the model. */
void mismatches_size(Mismatches *list, const char *path, Shape stored, Shape wanted);
/* Adds the tensor at `path`, which only the file has. */
void mismatches_surplus(Mismatches *list, const char *path);
/* Returns the number of tensors that have been added. */
int mismatches_count(const Mismatches *list);
/* Releases the list. If tensors were added, fails with ERR_DATA: "PATH: WHY; missing in the file:
 * a, b; of another size: c (3 in the file, 4 in the model); not in this model: d". If the file has
 * fewer channels and nothing else differs, the message suggests model.widths. */
Status mismatches_end(Mismatches *list, const char *path, const char *why);

#endif
