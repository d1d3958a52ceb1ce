/* A computation that cuDNN fuses into few kernels, from two tables: its tensors, of four dimensions
 * each, and what is done to them. Tensor 0 is none. */
#ifndef WEFT_TENSOR_CUDNN_GRAPH_H
#define WEFT_TENSOR_CUDNN_GRAPH_H

#include "cuda.h"

/* as cuDNN calls it */
cudnnDataType_t dnn_number(DType type);

typedef enum DnnPlace {
    /* between two operations; never in memory */
    DNN_VIRTUAL,
    DNN_MEMORY,
    /* one number, which the host gives with each run */
    DNN_VALUE,
} DnnPlace;
typedef struct DnnTensor {
    cudnnDataType_t type;
    DnnPlace place;
    /* elements */
    int64_t dim[4], stride[4];
} DnnTensor;

typedef enum DnnKind {
    DNN_POINTWISE,
    DNN_MATMUL,
    DNN_REDUCE,
    DNN_RESHAPE,
    /* y = conv(x, w): tensors are NCHW and OIHW, however they lie; groups are C over w's I */
    DNN_CONV,
    /* dx = .(dy, w) */
    DNN_CONV_DATA,
    /* dw = .(x, dy) */
    DNN_CONV_WEIGHT,
} DnnKind;
typedef struct DnnNode {
    DnnKind kind;
    /* pointwise: cudnnPointwiseMode_t; reduce: cudnnReduceTensorOp_t */
    int mode;
    /* tensors */
    int y, in[3];
    /* of generated indices */
    int axis;
    /* of a convolution's height and width */
    int64_t stride[2], pad[2];
    /* a convolution: to what y has */
    bool add;
} DnnNode;

typedef struct DnnGraph {
    /* [0] is not looked at */
    const DnnTensor *tensor;
    const DnnNode *node;
    int tensors, nodes;
    /* numbers are not rounded on the way: no tensor cores for fp32 */
    bool whole;
} DnnGraph;

/* GPU that plans are made for: the handle's, or one that is only described
 * (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Borrowed. */
typedef struct DnnTarget {
    cudnnHandle_t handle;
    /* the described GPU, where handle is NULL */
    cudnnBackendDescriptor_t device;
    /* has the record of algorithms, if there is one; NULL: cuDNN's first choice */
    CudaState *state;
} DnnTarget;

static inline DnnTarget cudnn_target(CudaState *state)
{
    return (DnnTarget){state->dnn, state->described, state};
}

/* room for an engine's text */
enum { DNN_ENGINE_TEXT = 400 };
typedef struct DnnPlan {
    /* owned: all that plan was made from, and it */
    cudnnBackendDescriptor_t plan, *made;
    int made_count, made_room;
    size_t workspace_bytes;
    /* the engine and its knobs: "engine 3, knobs 2=1 5=0"; "" where no record is kept */
    char engine[DNN_ENGINE_TEXT];
} DnnPlan;

/* The recorded one of cuDNN's plans, or the fastest by time, where the target's state has a record;
 * else the first, fastest first, that works and is not marked as rounding partial sums
 * or as repeating no bits (cuDNN 9.19 does not mark sums by atomics in attention: there the graph
 * must leave it no choice). False where it has none: why says so. Takes about a second where cuDNN
 * compiles the kernel. Release with dnn_fini in either case. */
bool dnn_plan(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, char why[256]);
void dnn_fini(DnnPlan *plan);

/* Helper of dnn_plan: makes the first plan that works and repeats its bits, or, where engine is
 * given, the plan of that engine. */
bool dnn_make(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, const char *engine,
              char why[256]);
/* A plan that works and repeats its bits. */
typedef struct DnnCandidate {
    /* borrowed from a DnnPlan's list */
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
    char engine[DNN_ENGINE_TEXT];
} DnnCandidate;
/* Lists at most `most` candidates in cuDNN's order and returns their number; plan owns what they
 * are made from until dnn_fini. */
int dnn_candidates(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, DnnCandidate *candidate,
                   int most);
/* Queues a candidate, as dnn_run does a plan. */
cudnnStatus_t dnn_execute(cudnnBackendDescriptor_t plan, cudnnHandle_t handle, int count,
                          const int64_t *uid, void **at, void *workspace);

/* The state's own of this graph, made on the first call. Borrowed. NULL where there is none: why
 * says so. */
const DnnPlan *dnn_kept(CudaState *state, const DnnGraph *graph, char why[256]);
void dnn_close(CudaState *state);

/* Queues it. uid[i]: the tensor that at[i] points to, on the device or, for a value, on the
 * host. */
void dnn_run(const DnnPlan *plan, cudnnHandle_t handle, int count, const int64_t *uid, void **at,
             void *workspace);

#endif
