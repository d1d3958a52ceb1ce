/* What a hook asks of the run: one JSON object on its standard output, or nothing. */
#ifndef WEFT_TRAIN_WISH_H
#define WEFT_TRAIN_WISH_H

#include "base.h"

/* plain bytes */
typedef struct Wish {
    /* 1: the run ends as done; a checkpoint is written */
    int stop, save;
    /* what optim.lr is to be from the next step on; 0: nothing is asked */
    double lr;
} Wish;
bool wish_any(const Wish *wish);
/* later's, where it says something. */
void wish_add(Wish *wish, const Wish *later);
/* {"stop": true, "save": true, "lr": 0.01}, any of them, once each; blanks alone: no wish. ERR_DATA
 * that says what is wrong, without a place. */
Status wish_read(Wish *wish, const char *text);

#endif
