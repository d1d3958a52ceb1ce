/* Builds graphs and plans from cuDNN's backend descriptors. A descriptor is created, given its
 * attributes and finalized. cuDNN's heuristics propose configurations, that is, engines with their
 * settings. After a call has failed, later calls do nothing, and Builder keeps the status of the
 * failed call until the next proposal is tried. The descriptors of a plan live as long as the
 * plan. */
#include "cudnn_graph.h"
#include "timing.h"

#include <string.h>

/* ALIGNMENT: alignment of tensors, in bytes. CONFIGS: largest number of proposals that are read
 * from a heuristic. NODES, TENSORS: largest number of operations, and of tensors, in a graph. */
enum { ALIGNMENT = 16, CONFIGS = 16, NODES = 32, TENSORS = 48 };

cudnnDataType_t dnn_type(DType type)
{
    return type == DTYPE_BF16  ? CUDNN_DATA_BFLOAT16
           : type == DTYPE_F16 ? CUDNN_DATA_HALF
                               : CUDNN_DATA_FLOAT;
}

typedef struct Builder {
    DnnPlan *plan;
    /* status of the first call that has failed; set to success again for each proposal */
    cudnnStatus_t status;
} Builder;

/* Creates a descriptor, which the plan owns. Returns NULL after a failure. */
static cudnnBackendDescriptor_t create(Builder *b, cudnnBackendDescriptorType_t type)
{
    DnnPlan *p = b->plan;
    cudnnBackendDescriptor_t descriptor = NULL;
    if (b->status == CUDNN_STATUS_SUCCESS) b->status = cudnn.descriptor_create(type, &descriptor);
    if (b->status != CUDNN_STATUS_SUCCESS) return NULL;
    if (p->descriptor_count == p->descriptor_capacity) {
        p->descriptor_capacity = p->descriptor_capacity ? 2 * p->descriptor_capacity : 64;
        p->descriptors =
            mem_resize(p->descriptors, (size_t)p->descriptor_capacity * sizeof *p->descriptors);
    }
    return p->descriptors[p->descriptor_count++] = descriptor;
}

static void set_many(Builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = cudnn.descriptor_set(of, name, type, count, value);
}

static void set(Builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, const void *value)
{
    set_many(b, of, name, type, 1, value);
}

static void set_part(Builder *b, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t part)
{
    set(b, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &part);
}

static void finalize(Builder *b, cudnnBackendDescriptor_t descriptor)
{
    if (b->status == CUDNN_STATUS_SUCCESS) b->status = cudnn.descriptor_finalize(descriptor);
}

static void get(Builder *b, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count_max, int64_t *count, void *value)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = cudnn.descriptor_get(from, name, type, count_max, count, value);
}

static cudnnBackendDescriptor_t make_tensor(Builder *b, const DnnTensor *t, int64_t uid)
{
    const int64_t alignment = ALIGNMENT;
    bool is_virtual = t->place == DNN_VIRTUAL, is_value = t->place == DNN_VALUE;
    cudnnBackendDescriptor_t d = create(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(b, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &uid);
    set(b, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &t->type);
    set(b, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
    set_many(b, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dim);
    set_many(b, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->stride);
    set(b, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &is_virtual);
    set(b, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &is_value);
    finalize(b, d);
    return d;
}

/* cuDNN's names for a kind of operation: the type of its descriptor, the type of the inner
 * descriptor with its settings, and the attributes of both. */
typedef struct KindNames {
    cudnnBackendDescriptorType_t operation, inner;
    cudnnBackendAttributeName_t inner_slot, precision, mode, alpha, beta, y, in[3];
    cudnnBackendAttributeType_t mode_type;
} KindNames;

static const KindNames kind_names[] = {
    [DNN_POINTWISE] = {.operation = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                       .inner = CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                       .inner_slot = CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                       .precision = CUDNN_ATTR_POINTWISE_MATH_PREC,
                       .mode = CUDNN_ATTR_POINTWISE_MODE,
                       .mode_type = CUDNN_TYPE_POINTWISE_MODE,
                       .y = CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                       .in = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_TDESC}},
    [DNN_MATMUL] = {.operation = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                    .inner = CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                    .inner_slot = CUDNN_ATTR_OPERATION_MATMUL_DESC,
                    .precision = CUDNN_ATTR_MATMUL_COMP_TYPE,
                    .y = CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                    .in = {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC}},
    [DNN_REDUCE] = {.operation = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                    .inner = CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                    .inner_slot = CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                    .precision = CUDNN_ATTR_REDUCTION_COMP_TYPE,
                    .mode = CUDNN_ATTR_REDUCTION_OPERATOR,
                    .mode_type = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                    .y = CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                    .in = {CUDNN_ATTR_OPERATION_REDUCTION_XDESC}},
    [DNN_RESHAPE] = {.operation = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                     .y = CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
                     .in = {CUDNN_ATTR_OPERATION_RESHAPE_XDESC}},
    [DNN_CONV] = {.operation = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                  .inner = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                  .inner_slot = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                  .precision = CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                  .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                  .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                  .y = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                  .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W}},
    [DNN_CONV_DATA] = {.operation = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       .inner = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                       .inner_slot = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       .precision = CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                       .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       .y = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W}},
    [DNN_CONV_WEIGHT] = {.operation =
                             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                         .inner = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                         .inner_slot = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                         .precision = CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                         .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                         .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                         .y = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                         .in = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}},
};

static bool is_conv(const DnnNode *n)
{
    return n->kind >= DNN_CONV;
}

/* Sets the attributes of a 2-d convolution without dilation. */
static void set_conv(Builder *b, cudnnBackendDescriptor_t d, const DnnNode *n)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t two = 2, ones[2] = {1, 1};
    set(b, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
    set(b, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &two);
    set_many(b, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    set_many(b, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, n->stride);
    set_many(b, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, n->pad);
    set_many(b, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, n->pad);
}

/* Makes the inner descriptor of an operation. Operations compute in fp32; comparisons result in
 * booleans. */
static cudnnBackendDescriptor_t make_inner(Builder *b, const DnnNode *n, cudnnDataType_t y_type)
{
    const KindNames *names = &kind_names[n->kind];
    const cudnnDataType_t type =
        y_type == CUDNN_DATA_BOOLEAN ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    const int64_t axis = n->axis;
    cudnnBackendDescriptor_t d = create(b, names->inner);
    set(b, d, names->precision, CUDNN_TYPE_DATA_TYPE, &type);
    if (names->mode_type) set(b, d, names->mode, names->mode_type, &n->mode);
    if (is_conv(n)) set_conv(b, d, n);
    if (n->kind == DNN_POINTWISE && n->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(b, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &axis);
    finalize(b, d);
    return d;
}

static cudnnBackendDescriptor_t make_node(Builder *b, const DnnGraph *graph, const DnnNode *n,
                                          const cudnnBackendDescriptor_t *tensor)
{
    const KindNames *names = &kind_names[n->kind];
    cudnnBackendDescriptor_t inner =
        n->kind == DNN_RESHAPE ? NULL : make_inner(b, n, graph->tensor[n->y].type);
    cudnnBackendDescriptor_t d = create(b, names->operation);
    if (inner) set_part(b, d, names->inner_slot, inner);
    if (is_conv(n)) {
        const float one = 1, beta = n->add;
        set(b, d, names->alpha, CUDNN_TYPE_FLOAT, &one);
        set(b, d, names->beta, CUDNN_TYPE_FLOAT, &beta);
    }
    for (int i = 0; i < 3 && n->in[i]; ++i) set_part(b, d, names->in[i], tensor[n->in[i]]);
    set_part(b, d, names->y, tensor[n->y]);
    finalize(b, d);
    return d;
}

static cudnnBackendDescriptor_t make_graph(Builder *b, const DnnGraph *graph, DnnTarget target)
{
    cudnnBackendDescriptor_t tensor[TENSORS], node[NODES];
    if (graph->tensors > TENSORS || graph->nodes > NODES)
        die("a cuDNN graph has %d tensors and %d operations; at most %d and %d are possible",
            graph->tensors, graph->nodes, TENSORS, NODES);
    for (int i = 1; i < graph->tensors; ++i) tensor[i] = make_tensor(b, &graph->tensor[i], i);
    for (int i = 0; i < graph->nodes; ++i) node[i] = make_node(b, graph, &graph->node[i], tensor);
    cudnnBackendDescriptor_t d = create(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target.handle)
        set(b, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &target.handle);
    set_many(b, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->nodes,
             node);
    finalize(b, d);
    return d;
}

/* Writes cuDNN's proposals to `config`, in the order of cuDNN's estimate, the fastest first.
 * Returns their number. */
static int64_t propose(Builder *b, cudnnBackendDescriptor_t graph, DnnTarget target,
                       cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t config[CONFIGS])
{
    int64_t count = 0;
    cudnnBackendDescriptor_t d = create(b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_part(b, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(b, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    if (!target.handle) set_part(b, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.device);
    finalize(b, d);
    for (int i = 0; i < CONFIGS; ++i) config[i] = create(b, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = cudnn.descriptor_get(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &count, config);
    return b->status == CUDNN_STATUS_SUCCESS ? count : 0;
}

/* Returns true for properties that weft never accepts (nondeterministic sums, partial sums rounded
 * to a 16-bit type) and, with full_precision = true, for tensor cores and rounded inputs. */
static bool is_excluded(cudnnBackendNumericalNote_t note, bool full_precision)
{
    switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return true;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return full_precision;
    default:
        return false;
    }
}

/* Returns true if no property of the configuration's engine is excluded, and false if the
 * properties cannot be read. */
static bool is_allowed(Builder *b, const DnnGraph *graph, cudnnBackendDescriptor_t config)
{
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    cudnnBackendDescriptor_t engine = create(b, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (b->status != CUDNN_STATUS_SUCCESS) return false;
    b->status = cudnn.descriptor_get(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = cudnn.descriptor_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                         CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                         &count, note);
    if (b->status != CUDNN_STATUS_SUCCESS) return false;
    for (int64_t i = 0; i < count; ++i)
        if (is_excluded(note[i], graph->full_precision)) return false;
    return true;
}

static bool make_plan(Builder *b, cudnnBackendDescriptor_t config, DnnTarget target)
{
    int64_t bytes = 0, count;
    cudnnBackendDescriptor_t d = create(b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target.handle)
        set(b, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &target.handle);
    else
        set_part(b, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.device);
    set_part(b, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finalize(b, d);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = cudnn.descriptor_get(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &count, &bytes);
    if (b->status != CUDNN_STATUS_SUCCESS) return false;
    b->plan->plan = d;
    b->plan->workspace_bytes = (size_t)bytes;
    return true;
}

/* Writes the text that identifies a configuration, for example "engine 3, knobs 2=1 5=0". Returns
 * false if the configuration cannot be read, or if the text is too long. */
static bool write_engine(Builder *b, cudnnBackendDescriptor_t config, char text[DNN_ENGINE_TEXT])
{
    enum { KNOBS = 64 };
    cudnnBackendDescriptor_t engine = create(b, CUDNN_BACKEND_ENGINE_DESCRIPTOR), knob[KNOBS];
    int64_t index = 0, count = 0, value = 0, one;
    cudnnBackendKnobType_t type;
    for (int i = 0; i < KNOBS; ++i) knob[i] = create(b, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    get(b, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
    get(b, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &index);
    get(b, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &count,
        knob);
    int at = snprintf(text, DNN_ENGINE_TEXT, "engine %lld%s", (long long)index,
                      count > 0 ? ", knobs" : "");
    for (int64_t i = 0; i < count && i < KNOBS; ++i) {
        get(b, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
        get(b, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value);
        if (b->status != CUDNN_STATUS_SUCCESS || at >= DNN_ENGINE_TEXT) return false;
        at += snprintf(text + at, (size_t)(DNN_ENGINE_TEXT - at), " %d=%lld", (int)type,
                       (long long)value);
    }
    return b->status == CUDNN_STATUS_SUCCESS && at < DNN_ENGINE_TEXT;
}

/* cuDNN's heuristics in the order of their use: the first proposes engines that cuDNN estimates to
 * be fast, the second engines that work for most graphs */
static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
enum { MODES = sizeof modes / sizeof *modes };

bool dnn_make(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, const char *engine,
              char why[256])
{
    *plan = (DnnPlan){0};
    Builder b = {.plan = plan};
    int64_t proposals = 0;
    bool needs_text = engine || (target.state && cuda_algorithm_record(target.state));
    cudnnBackendDescriptor_t graph_descriptor = make_graph(&b, graph, target);
    for (int k = 0; k < MODES && graph_descriptor; ++k) {
        cudnnBackendDescriptor_t config[CONFIGS];
        b.status = CUDNN_STATUS_SUCCESS;
        int64_t count = propose(&b, graph_descriptor, target, modes[k], config);
        for (int64_t i = 0; i < count; ++i) {
            b.status = CUDNN_STATUS_SUCCESS;
            if (!is_allowed(&b, graph, config[i])) continue;
            if (needs_text && !write_engine(&b, config[i], plan->engine)) continue;
            if (engine && strcmp(engine, plan->engine) != 0) continue;
            if (make_plan(&b, config[i], target)) return true;
        }
        proposals += count;
    }
    if (b.status == CUDNN_STATUS_SUCCESS)
        snprintf(why, 256, "none of its %lld engines computes this with the same bits each time",
                 (long long)proposals);
    else
        cudnn.last_error(why, 256);
    return false;
}

static bool is_listed(const DnnCandidate *candidate, int count, const char *engine)
{
    for (int i = 0; i < count; ++i)
        if (strcmp(candidate[i].engine, engine) == 0) return true;
    return false;
}

int dnn_candidates(DnnPlan *plan, const DnnGraph *graph, DnnTarget target, DnnCandidate *candidate,
                   int capacity)
{
    *plan = (DnnPlan){0};
    Builder b = {.plan = plan};
    int found = 0;
    cudnnBackendDescriptor_t graph_descriptor = make_graph(&b, graph, target);
    for (int k = 0; k < MODES && graph_descriptor; ++k) {
        cudnnBackendDescriptor_t config[CONFIGS];
        b.status = CUDNN_STATUS_SUCCESS;
        int64_t count = propose(&b, graph_descriptor, target, modes[k], config);
        for (int64_t i = 0; i < count && found < capacity; ++i) {
            DnnCandidate *next = &candidate[found];
            b.status = CUDNN_STATUS_SUCCESS;
            if (!is_allowed(&b, graph, config[i]) || !write_engine(&b, config[i], next->engine) ||
                is_listed(candidate, found, next->engine) || !make_plan(&b, config[i], target))
                continue;
            next->plan = plan->plan;
            next->workspace_bytes = plan->workspace_bytes;
            ++found;
        }
    }
    return found;
}

void dnn_fini(DnnPlan *plan)
{
    while (plan->descriptor_count > 0)
        CUDNN_CALL(cudnn.descriptor_destroy(plan->descriptors[--plan->descriptor_count]));
    mem_free(&plan->descriptors);
    *plan = (DnnPlan){0};
}

/* Creates a variant pack (cuDNN's descriptor of the addresses) for each run, because the addresses
 * of a finalized one cannot be changed. It is a host object, and making it takes a microsecond. */
cudnnStatus_t dnn_execute(cudnnBackendDescriptor_t plan, cudnnHandle_t handle, int count,
                          const int64_t *uid, void **at, void *workspace)
{
    cudnnBackendDescriptor_t pack;
    CUDNN_CALL(cudnn.descriptor_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    CUDNN_CALL(cudnn.descriptor_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                    count, uid));
    CUDNN_CALL(cudnn.descriptor_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                    CUDNN_TYPE_VOID_PTR, count, at));
    CUDNN_CALL(cudnn.descriptor_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                                    &workspace));
    CUDNN_CALL(cudnn.descriptor_finalize(pack));
    cudnnStatus_t status = cudnn.execute(handle, plan, pack);
    CUDNN_CALL(cudnn.descriptor_destroy(pack));
    return status;
}

void dnn_run(const DnnPlan *plan, cudnnHandle_t handle, int count, const int64_t *uid, void **at,
             void *workspace)
{
    cudnn_check(dnn_execute(plan->plan, handle, count, uid, at, workspace), "cudnnBackendExecute");
}
