/* A request of a hook's command to the run: the command prints one JSON object, or nothing. */
#ifndef WEFT_TRAIN_HOOK_REQUEST_H
#define WEFT_TRAIN_HOOK_REQUEST_H

#include "base.h"

/* Contains no pointers, because it is broadcast as bytes. */
typedef struct HookRequest {
    /* 1: end the run after this step; a later start regards it as complete */
    int stop;
    /* 1: write a checkpoint */
    int save;
    /* optim.lr from the next step on; 0: no request */
    double lr;
} HookRequest;
/* Returns whether any field requests something. */
bool hook_request_is_set(const HookRequest *request);
/* Adds the request `later` to *request; a later learning rate replaces the earlier one. */
void hook_request_merge(HookRequest *request, const HookRequest *later);
/* Parses {"stop": true, "save": true, "lr": 0.01}; each key is optional and may occur once. A blank
 * text has no request. ERR_DATA for any other text; the message quotes it, without line and
 * column. */
Status hook_request_parse(HookRequest *request, const char *text);

#endif
