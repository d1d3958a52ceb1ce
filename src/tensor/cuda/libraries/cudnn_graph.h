/* Graphs and plans of cuDNN. A graph is a computation that cuDNN fuses into few kernels. Two tables
 * describe it: tensors of four dimensions each, and operations (nodes) on the tensors. Tensor
 * number 0 means "none". An engine is one of the algorithms that cuDNN has for a graph; it has
 * settings (knobs). A plan is an engine with its settings and its kernels, ready to run.
 * cudnn_choice.c chooses the engine. */
#ifndef WEFT_TENSOR_CUDNN_GRAPH_H
#define WEFT_TENSOR_CUDNN_GRAPH_H

#include "../cuda.h"

/* Returns cuDNN's name of a type. */
cudnnDataType_t dnn_type(DType type);

typedef enum DnnPlace {
    /* passed between two operations inside a kernel; never in memory */
    DNN_VIRTUAL,
    /* in device memory */
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
    /* y = conv(x, w); dimensions are NCHW and OIHW, in any memory order; the number of groups is C
     * / I */
    DNN_CONV,
    /* dx from (dy, w) */
    DNN_CONV_DATA,
    /* dw from (x, dy) */
    DNN_CONV_WEIGHT,
} DnnKind;
typedef struct DnnNode {
    DnnKind kind;
    /* DNN_POINTWISE: a cudnnPointwiseMode_t; DNN_REDUCE: a cudnnReduceTensorOp_t */
    int mode;
    /* y: number of the output tensor; in: numbers of the input tensors */
    int y, in[3];
    /* CUDNN_POINTWISE_GEN_INDEX: the dimension whose indices are generated */
    int axis;
    /* convolutions: stride and padding along height and width */
    int64_t stride[2], pad[2];
    /* convolutions; true: the result is added to the values in y */
    bool add;
} DnnNode;

typedef struct DnnGraph {
    /* the tensors, [tensors]; entry 0 is not read; borrowed */
    const DnnTensor *tensor;
    /* the operations, [nodes]; borrowed */
    const DnnNode *node;
    int tensors, nodes;
    /* true: fp32 factors must not be rounded, so engines that use tensor cores are excluded */
    bool full_precision;
} DnnGraph;

/* The GPU for which plans are made: the GPU of `handle`, or a model of GPU that is only described.
 * All fields are borrowed. */
typedef struct DnnTarget {
    /* cuDNN's handle; NULL: there is no GPU */
    cudnnHandle_t handle;
    /* description of the model of GPU (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) if `handle` is NULL */
    cudnnBackendDescriptor_t device;
    /* the backend's state, whose options may have a record of algorithms; NULL: cuDNN's first
     * choice is used */
    CudaState *state;
} DnnTarget;

static inline DnnTarget cudnn_target(CudaState *state)
{
    return (DnnTarget){state->dnn, state->gpu_description, state};
}

/* bytes for the text of an engine */
enum { DNN_ENGINE_TEXT = 400 };
typedef struct DnnPlan {
    /* the execution plan, an entry of `descriptors` */
    cudnnBackendDescriptor_t plan;
    /* all descriptors that were created for the plan, [descriptor_count]; owned */
    cudnnBackendDescriptor_t *descriptors;
    int descriptor_count, descriptor_capacity;
    size_t workspace_bytes;
    /* the engine and its settings, for example "engine 3, knobs 2=1 5=0"; "" if there is no record
     * of algorithms */
    char engine[DNN_ENGINE_TEXT];
} DnnPlan;

/* Makes a plan with the engine that the record of algorithms has for the graph. If the record has
 * no engine for it, uses the fastest engine by time if cuda_times_algorithms(target.state) returns
 * true, else cuDNN's first choice; then adds the choice to the record. If the recorded engine
 * fails, marks its key (algorithm_record_reject) and uses cuDNN's first choice. Without a record,
 * uses cuDNN's first choice. It is the first of cuDNN's proposals that works, that cuDNN marks
 * neither as nondeterministic nor as rounding partial sums, and that fits graph->full_precision.
 * cuDNN 9.19 does not mark attention engines that add by atomics, so a graph for attention must
 * have a form for which cuDNN has no such engine. Returns false if there is no plan, with the
 * reason in `why`. Takes about a second if cuDNN compiles the kernel. Release with dnn_fini, also
 * after false. */
bool dnn_plan(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, char why[256]);
void dnn_fini(DnnPlan *plan);

/* Makes a plan with the engine `engine`, a text as in DnnPlan.engine. If `engine` is NULL, uses
 * cuDNN's first choice (dnn_plan). Returns false if there is no such plan, with the reason in
 * `why`. Release with dnn_fini, also after false. */
bool dnn_make(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, const char *engine,
              char why[256]);
/* A plan that dnn_plan may choose: it works and has a fixed order of sums. */
typedef struct DnnCandidate {
    /* the execution plan; borrowed from the DnnPlan that dnn_candidates has filled */
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
    char engine[DNN_ENGINE_TEXT];
} DnnCandidate;
/* Lists at most `capacity` candidates in cuDNN's order, and returns their number. `plan` owns the
 * descriptors of the candidates until dnn_fini. */
int dnn_candidates(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, DnnCandidate *candidate,
                   int capacity);
/* Queues an execution plan as dnn_run does, but returns cuDNN's status. */
cudnnStatus_t dnn_execute(cudnnBackendDescriptor_t plan, cudnnHandle_t handle, int count,
                          const int64_t *uid, void **at, void *workspace);

/* Returns the backend's plan for the graph, which the first call makes; borrowed. Returns NULL if
 * cuDNN has no plan, with the reason in `why`. */
const DnnPlan *dnn_shared_plan(CudaState *state, const DnnGraph *graph, char why[256]);
/* Frees all plans of dnn_shared_plan. */
void dnn_free_plans(CudaState *state);

/* Queues a plan on the handle's stream. at[i]: address of the tensor with number uid[i], [count];
 * it is device memory, or host memory for a DNN_VALUE. */
void dnn_run(const DnnPlan *plan, cudnnHandle_t handle, int count, const int64_t *uid, void **at,
             void *workspace);

#endif
