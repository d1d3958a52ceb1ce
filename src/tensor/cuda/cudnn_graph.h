/* A graph: a computation that cuDNN fuses into few kernels, described by two tables: tensors of
 * four dimensions each, and operations (nodes) on them. Tensor number 0 means "none". A plan:
 * kernels of cuDNN for a graph, from one of its engines (cudnn_choice.c chooses it). */
#ifndef WEFT_TENSOR_CUDNN_GRAPH_H
#define WEFT_TENSOR_CUDNN_GRAPH_H

#include "cuda.h"

/* cuDNN's name of a type. */
cudnnDataType_t dnn_type(DType type);

typedef enum DnnPlace {
    /* passed between two operations inside a kernel; never in memory */
    DNN_VIRTUAL,
    DNN_MEMORY,
    /* a single number, which the host passes with each run */
    DNN_VALUE,
} DnnPlace;
typedef struct DnnTensor {
    cudnnDataType_t type;
    DnnPlace place;
    /* sizes and strides in elements */
    int64_t dim[4], stride[4];
} DnnTensor;

typedef enum DnnKind {
    DNN_POINTWISE,
    DNN_MATMUL,
    DNN_REDUCE,
    DNN_RESHAPE,
    /* y = conv(x, w): dimensions are NCHW and OIHW in any memory order; groups = C / I */
    DNN_CONV,
    /* dx from (dy, w) */
    DNN_CONV_DATA,
    /* dw from (x, dy) */
    DNN_CONV_WEIGHT,
} DnnKind;
typedef struct DnnNode {
    DnnKind kind;
    /* pointwise: a cudnnPointwiseMode_t; reduce: a cudnnReduceTensorOp_t */
    int mode;
    /* numbers of the output and input tensors */
    int y, in[3];
    /* dimension whose indices are generated (CUDNN_POINTWISE_GEN_INDEX) */
    int axis;
    /* convolution: along height and width */
    int64_t stride[2], pad[2];
    /* convolution: true: the result is added to the values in y */
    bool add;
} DnnNode;

typedef struct DnnGraph {
    /* `tensors` tensors, of which entry 0 is not read; `nodes` nodes; borrowed */
    const DnnTensor *tensor;
    const DnnNode *node;
    int tensors, nodes;
    /* true: fp32 factors must not be rounded, so engines that use tensor cores are excluded */
    bool full_precision;
} DnnGraph;

/* The GPU that plans are made for: that of `handle`, or a model that is only described. All fields
 * are borrowed. */
typedef struct DnnTarget {
    cudnnHandle_t handle;
    /* description of the GPU (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), if handle is NULL */
    cudnnBackendDescriptor_t device;
    /* the backend, whose options may have a record of algorithms; NULL: cuDNN's first choice is
     * used */
    CudaState *state;
} DnnTarget;

static inline DnnTarget cudnn_target(CudaState *state)
{
    return (DnnTarget){state->dnn, state->model_description, state};
}

/* bytes for the text of an engine */
enum { DNN_ENGINE_TEXT = 400 };
typedef struct DnnPlan {
    /* the execution plan, which is one of `descriptors` */
    cudnnBackendDescriptor_t plan;
    /* all descriptors that were created for the plan; owned */
    cudnnBackendDescriptor_t *descriptors;
    int descriptor_count, descriptor_capacity;
    size_t workspace_bytes;
    /* the engine and its knobs: "engine 3, knobs 2=1 5=0"; "" if there is no record of
     * algorithms */
    char engine[DNN_ENGINE_TEXT];
} DnnPlan;

/* Makes a plan: with the engine that the record of algorithms has for the graph; else with the
 * fastest by time, if cuda_times_algorithms(target.state); else with the first of cuDNN's proposals
 * that works and that cuDNN marks neither as nondeterministic nor as rounding partial sums. (cuDNN
 * 9.19 does not mark attention engines that add by atomics; a graph for attention must have a form
 * for which cuDNN has no such engine.) Adds a new choice to the record, if there is one; if the
 * recorded engine fails, marks its key (algorithm_record_reject) and uses cuDNN's first choice.
 * Returns false with the reason in `why` if there is no plan. Takes about a second if cuDNN
 * compiles the kernel. Release with dnn_fini in either case. */
bool dnn_plan(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, char why[256]);
void dnn_fini(DnnPlan *plan);

/* Part of dnn_plan: makes the plan of this engine or, if engine is NULL, the first one that
 * dnn_plan accepts. Returns false with the reason in `why` if there is none; dnn_fini in either
 * case. */
bool dnn_make(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, const char *engine,
              char why[256]);
/* A plan that dnn_plan accepts: it works and has a fixed order of sums. */
typedef struct DnnCandidate {
    /* borrowed from the DnnPlan that dnn_candidates filled */
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
    char engine[DNN_ENGINE_TEXT];
} DnnCandidate;
/* Lists at most `capacity` candidates in cuDNN's order and returns their number. `plan` owns their
 * descriptors until dnn_fini. */
int dnn_candidates(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, DnnCandidate *candidate,
                   int capacity);
/* Queues a candidate like dnn_run, but returns cuDNN's status. */
cudnnStatus_t dnn_execute(cudnnBackendDescriptor_t plan, cudnnHandle_t handle, int count,
                          const int64_t *uid, void **at, void *workspace);

/* Returns the backend's plan for this graph, made on the first call. Borrowed. NULL, with the
 * reason in `why`, if cuDNN has none. */
const DnnPlan *dnn_shared_plan(CudaState *state, const DnnGraph *graph, char why[256]);
void dnn_free_plans(CudaState *state);

/* Queues a plan on the handle's stream. at[i] is the address of tensor uid[i]: device memory, or
 * host memory for a DNN_VALUE. */
void dnn_run(const DnnPlan *plan, cudnnHandle_t handle, int count, const int64_t *uid, void **at,
             void *workspace);

#endif
