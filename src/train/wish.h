/* A request of a hook to the run: one JSON object on its standard output, or nothing. */
#ifndef WEFT_TRAIN_WISH_H
#define WEFT_TRAIN_WISH_H

#include "base.h"

/* Plain bytes, so that it can be broadcast. */
typedef struct Wish {
    /* 1: end the run as complete; 1: write a checkpoint */
    int stop, save;
    /* optim.lr from the next step on; 0: no request */
    double lr;
} Wish;
bool wish_any(const Wish *wish);
/* Merges a later request into the first one. */
void wish_add(Wish *wish, const Wish *later);
/* Parses {"stop": true, "save": true, "lr": 0.01}: any of the keys, each at most once; blank text
 * is no request. Returns ERR_DATA with a message about the text, without its place. */
Status wish_read(Wish *wish, const char *text);

#endif
