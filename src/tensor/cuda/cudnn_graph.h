/* A computation that cuDNN fuses into few kernels, from two tables: its tensors, of four dimensions each, and what is done to
 * them. Tensor 0 is none. */
#ifndef WEFT_TENSOR_CUDNN_GRAPH_H
#define WEFT_TENSOR_CUDNN_GRAPH_H

#include "cuda.h"

typedef enum GraphPlace {
    GRAPH_VIRTUAL, /* between two operations; never in memory */
    GRAPH_MEMORY,
    GRAPH_VALUE, /* one number, which the host gives with each run */
} GraphPlace;
typedef struct GraphTensor {
    cudnnDataType_t type;
    GraphPlace place;
    int64_t dim[4], stride[4]; /* elements */
} GraphTensor;

typedef enum GraphKind { GRAPH_POINTWISE, GRAPH_MATMUL, GRAPH_REDUCE, GRAPH_RESHAPE } GraphKind;
typedef struct GraphNode {
    GraphKind kind;
    int mode;     /* pointwise: cudnnPointwiseMode_t; reduce: cudnnReduceTensorOp_t */
    int y, in[3]; /* tensors */
    int axis;     /* of generated indices */
} GraphNode;

typedef struct Graph {
    const GraphTensor *tensor; /* [0] is not looked at */
    const GraphNode *node;
    int tensors, nodes;
} Graph;

/* For whom: this handle's GPU, or one that is only described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Borrowed. */
typedef struct GraphTarget {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device; /* where handle is NULL */
} GraphTarget;

typedef struct GraphPlan {
    cudnnBackendDescriptor_t plan, *made; /* owned: all that plan was made from, and it */
    int made_count, made_room;
    size_t workspace_bytes;
} GraphPlan;

/* The first of cuDNN's plans, fastest first, that works and repeats its bits. False where it has none: why says so. Takes about
 * a second: cuDNN compiles the kernel. Release with graph_fini in either case. */
bool graph_plan(GraphPlan *plan, const Graph *graph, GraphTarget target, char why[256]);
void graph_fini(GraphPlan *plan);

/* Queues it. uid[i]: the tensor that at[i] points to, on the device or, for a value, on the host. */
void graph_run(const GraphPlan *plan, cudnnHandle_t handle, int count, const int64_t *uid,
               void **at, void *workspace);

#endif
