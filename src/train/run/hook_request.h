/* A request of a hook to the run: one JSON object on its standard output, or nothing. */
#ifndef WEFT_TRAIN_HOOK_REQUEST_H
#define WEFT_TRAIN_HOOK_REQUEST_H

#include "base.h"

/* Plain bytes, so that it can be broadcast. */
typedef struct HookRequest {
    /* 1: end the run as complete; 1: write a checkpoint */
    int stop, save;
    /* optim.lr from the next step on; 0: no request */
    double lr;
} HookRequest;
bool hook_request_any(const HookRequest *request);
/* Merges a later request into the first one. */
void hook_request_merge(HookRequest *request, const HookRequest *later);
/* Parses {"stop": true, "save": true, "lr": 0.01}: any of the keys, each at most once; blank text
 * is no request. Returns ERR_DATA with a message about the text, without its place. */
Status hook_request_parse(HookRequest *request, const char *text);

#endif
