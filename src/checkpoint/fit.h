/* All tensors of a file that do not fit those of a model, in one message. */
#ifndef WEFT_CHECKPOINT_FIT_H
#define WEFT_CHECKPOINT_FIT_H

#include "model.h"

typedef struct Fit {
    TextList missing, sizes, surplus;
    /* true where no tensor is larger in the file than in the model */
    bool narrower;
    /* owned: "conv1: 8", the first layer with fewer channels in the file; NULL: there is none */
    char *narrow;
} Fit;
void fit_begin(Fit *fit);
/* Each is named by its path, without "/params/" and "/buffers/". */
void fit_missing(Fit *fit, const char *path);
/* there: shape in the file; here: shape in the model */
void fit_size(Fit *fit, const char *path, Shape there, Shape here);
void fit_surplus(Fit *fit, const char *path);
/* Number of tensors that have been named. */
int fit_count(const Fit *fit);
/* Ends the message. ERR_DATA where a tensor has been named: "PATH: WHY; missing there: a, b; of
 * another size: c (3 there, 4 here); not in this model: d". Where the file has fewer channels and
 * nothing else is wrong, model.widths is named. */
Status fit_end(Fit *fit, const char *path, const char *why);

#endif
