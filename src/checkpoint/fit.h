/* Collects all differences between the tensors of a file and those of a model, for one message. */
#ifndef WEFT_CHECKPOINT_FIT_H
#define WEFT_CHECKPOINT_FIT_H

#include "model.h"

typedef struct Fit {
    TextList missing, sizes, surplus;
    /* false: a tensor of another size has, in the file, a larger dimension than in the model or
     * another number of dimensions */
    bool none_larger;
    /* owned: "conv1: 8", name and channels of the first layer with fewer channels in the file; NULL
     * if there is none */
    char *narrow_layer;
} Fit;
void fit_begin(Fit *fit);
/* Add the tensor at `path`. The message names it without "/params/" or "/buffers/". */
void fit_missing(Fit *fit, const char *path);
/* stored: shape in the file; wanted: shape in the model */
void fit_size(Fit *fit, const char *path, Shape stored, Shape wanted);
void fit_surplus(Fit *fit, const char *path);
/* Returns the number of tensors that have been added. */
int fit_count(const Fit *fit);
/* Releases fit. If tensors were added, fails with ERR_DATA: "PATH: WHY; missing in the file: a, b;
 * of another size: c (3 in the file, 4 in the model); not in this model: d". If the file has fewer
 * channels and nothing else differs, the message suggests model.widths. */
Status fit_end(Fit *fit, const char *path, const char *why);

#endif
