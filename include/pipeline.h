/* pipeline: from a planned graph to one arena of activations and a list of actions, and the loop that runs the list. A
 * plan is read-only data: it can be printed and measured without running. Not collective, but where a Comm is handed in:
 * then all its ranks run the same list. */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "data.h"
#include "model.h"
#include "parallel.h"

typedef enum ActionKind {
    ACTION_FORWARD,  /* node's forward */
    ACTION_BACKWARD, /* node's backward_begin, _weight, _data */
    ACTION_COPY,     /* dst = src */
    ACTION_ADD,      /* dst += src: a gradient with several consumers, in node order */
    ACTION_BUCKET, /* the joins of this micro-batch for bucket `node`; after the last one the sum begins */
} ActionKind;
typedef struct Action {
    ActionKind kind;
    int node; /* node, or bucket */
    int64_t dst, src,
        count; /* ACTION_COPY, ACTION_ADD: byte offsets in the activation arena, floats */
} Action;

enum { PLACE_NONE = -1, PLACE_INPUT = -2 };
/* Where a node's tensors lie in the activation arena: byte offsets, PLACE_NONE where there is none, PLACE_INPUT where it is
 * the data itself. Liveness decides: tensors that
 * are never alive together share memory. */
typedef struct NodePlace {
    int64_t y, dy, saved, dx[OP_INPUTS];
} NodePlace;

typedef struct Plan {
    const Graph *graph;              /* borrowed */
    int forward_count, action_count; /* the first forward_count actions are the forward pass */
    Action *action;                  /* owned: one micro-batch */
    NodePlace *place;                /* owned, one a node */
    size_t *cache;                   /* owned, offsets in the cache arena, one a node */
    size_t activation_bytes, cache_bytes, workspace_bytes;
    size_t param_bytes, gradient_bytes, sum_levels; /* gradient_bytes: of one arena */
    Buckets buckets;                                /* owned */
} Plan;

/* A step's sums over all ranks. They are floats: counts are exact up to 2^24. */
enum {
    METRIC_LOSS, /* sum over the loss's rows: samples, or tokens */
    METRIC_ROWS, /* how many */
    METRIC_TOP1, /* right ones */
    METRIC_TOP5,
    METRIC_MICROS, /* micro-batches that held a sample */
    METRIC_SIGNAL, /* what ranks want to tell each other at a step's end: see executor_signal */
    METRIC_COUNT,
    METRIC_PAD = 16
};
/* The gradient arena: the parameters' gradients, running statistics' batch values, and METRIC_PAD floats of metrics at
 * its end (offset arena_elements), all summed by the same tree. */

/* micros_local: micro-batches a step on this rank, for the arenas of partial sums. Owner: the caller; graph is borrowed. */
Status plan_new(Plan **plan, const Graph *graph, int micros_local, size_t bucket_bytes);
void plan_free(Plan **plan);
void plan_print(const Plan *plan, FILE *out);

/* The memory a plan runs in, and the loop over its actions. */
typedef struct Executor Executor;
typedef struct ExecutorOptions {
    int micros; /* local micro-batches a step */
    uint64_t seed;
} ExecutorOptions;
/* comm: its arena is gradient arena 0. Owner: the caller. */
Status executor_new(Executor **executor, const Plan *plan, Backend *backend, Comm *comm,
                    ExecutorOptions options);
void executor_free(Executor **executor);
float *executor_params(Executor *executor); /* the parameter arena; borrowed */
/* Call after the parameters changed. */
void executor_refresh(Executor *executor);
/* One training micro-batch: forward, backward, joins; the last of a step begins the sums. step keys the dropout;
 * scale is 1/(samples of the global batch). */
void executor_train(Executor *executor, const Batch *batch, int micro, uint64_t step, float scale);
/* After the last micro-batch: waits for the sums, moves the running statistics, and gives the step's METRIC_COUNT sums
 * over all ranks (host, borrowed until the next step). Collective. */
const float *executor_finish(Executor *executor);
float *
executor_grads(Executor *executor); /* gradient arena 0, summed after executor_finish; borrowed */
/* Adds value to METRIC_SIGNAL of the coming step, so that all ranks learn its sum at the same step's end. */
void executor_signal(Executor *executor, float value);
/* Forward only, with running statistics. columns: (rows, LOSS_COLUMNS) per-sample results, host, borrowed until the next. */
const float *executor_eval(Executor *executor, const Batch *batch);

#endif
