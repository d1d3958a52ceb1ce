/* Emulates the part of cuDNN's graph API that the backend uses: descriptors with attributes. It
 * refuses attributes that are missing or set after finalizing, parts that are not finalized, shapes
 * that do not match, and missing or misaligned pointers. The first engines that it proposes are
 * nondeterministic or inaccurate. A run overwrites the workspace with NaNs. */
#include "cudnn_graph.h"
#include "queue.h"

#include <cstdlib>

#include <cstdio>

struct cudnnContext { /* same definition in cudnn.cc */
    cudaStream_t stream;
};

using namespace emulate;

namespace
{
const char *last_error = "";
cudnnStatus_t refuse(const char *why, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM)
{
    last_error = why;
    return status;
}

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return sizeof(int); /* enumerations */
    }
}

/* ---- required attributes ---- */
const std::map<int, std::vector<int>> required = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
      CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES}},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
     {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC}},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {CUDNN_ATTR_MATMUL_COMP_TYPE}},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
     {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE}},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
      CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
      CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
      CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
      CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
      CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS}},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE}},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG}},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      CUDNN_ATTR_VARIANT_PACK_WORKSPACE}},
};

std::vector<Operation> operations(const Descriptor *graph)
{
    std::vector<Operation> out;
    for (int64_t i = 0; i < graph->count(CUDNN_ATTR_OPERATIONGRAPH_OPS); ++i)
        out.emplace_back(graph->part(CUDNN_ATTR_OPERATIONGRAPH_OPS, i));
    return out;
}
/* Returns true if the real cuDNN's kernels support the widths of the heads, or if there is no
 * attention. */
bool supported(const std::vector<Operation> &all)
{
    for (const Operation &op : all)
        for (const Tensor &t : op.in)
            if (!op.is_conv() && !t.is_virtual && t.type != CUDNN_DATA_FLOAT &&
                (t.dim[3] % 8 != 0 || t.dim[3] > 256) && (t.dim[2] % 8 != 0 || t.dim[2] > 256))
                return false;
    return true;
}
int64_t workspace_bytes(const std::vector<Operation> &all)
{
    int64_t most = 0;
    for (const Operation &op : all)
        if (op.y.is_virtual && op.y.count() > most) most = op.y.count();
    return 2 * most + 256;
}
const Descriptor *graph_of(const Descriptor *plan)
{
    return plan->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
        ->part(CUDNN_ATTR_ENGINECFG_ENGINE)
        ->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

/* Engines in the order in which they are proposed, fastest first. INACCURATE, TENSOR_CORES and
 * FULL_PRECISION are deterministic; INACCURATE rounds to few bits, TENSOR_CORES to TF32. */
enum { NONDETERMINISTIC, INACCURATE, TENSOR_CORES, FULL_PRECISION };
/* Engine configurations: each engine with knob 0, and the last two engines also with knob 1. */
const struct { int64_t engine, knob; } configs[] = {
    {NONDETERMINISTIC, 0}, {INACCURATE, 0},   {TENSOR_CORES, 0},
    {FULL_PRECISION, 0},   {TENSOR_CORES, 1}, {FULL_PRECISION, 1}};
enum { CONFIGS = sizeof configs / sizeof *configs };
/* Rounds a value as the engine does when it reads the value from memory. */
float round_for_engine(int64_t engine, float value)
{
    const int lost_bits = engine == INACCURATE ? 18 : 13;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + (1u << (lost_bits - 1))) >> lost_bits << lost_bits;
    if (engine != FULL_PRECISION) memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Runs the operations. Results are written to memory only at the end, as fused kernels do. */
cudnnStatus_t execute(const std::vector<Operation> &all, const std::map<int64_t, void *> &at,
                      int64_t engine)
{
    Values values;
    for (const Operation &op : all) {
        for (const Tensor &t : op.in) {
            if (values.count(t.uid)) continue;
            if (t.is_virtual) return refuse("a virtual tensor is read before it is made");
            if (!at.count(t.uid)) return refuse("a tensor has no pointer");
            values[t.uid] = load(t, at.at(t.uid));
            for (float &v : values[t.uid])
                if (op.is_conv()) v = round_for_engine(engine, v);
        }
        if (!op.y.is_virtual && !at.count(op.y.uid)) return refuse("a tensor has no pointer");
        if (op.beta != 0) values[op.y.uid] = load(op.y, at.at(op.y.uid));
        run_operation(op, values);
    }
    for (const Operation &op : all)
        if (!op.y.is_virtual) store(op.y, at.at(op.y.uid), values.at(op.y.uid));
    return CUDNN_STATUS_SUCCESS;
}
} // namespace

extern "C" {
void cudnnGetLastErrorString(char *message, size_t max)
{
    snprintf(message, max, "%s", last_error);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    auto d = new Descriptor{};
    d->type = type;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    delete static_cast<Descriptor *>(d);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    auto d = static_cast<Descriptor *>(descriptor);
    if (d->final) return refuse("set after finalize", CUDNN_STATUS_NOT_INITIALIZED);
    Attribute a{type, count, std::vector<char>(size_t(count) * size_of(type))};
    memcpy(a.bytes.data(), values, a.bytes.size());
    d->has[name] = a;
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; ++i)
        if (!d->part(name, i)->final) return refuse("a part is not finalized");
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    auto d = static_cast<Descriptor *>(descriptor);
    auto names = required.find(d->type);
    if (names == required.end()) return refuse("no such descriptor", CUDNN_STATUS_NOT_SUPPORTED);
    for (int name : names->second)
        if (!d->count(name)) return refuse("an attribute is missing");
    switch (d->type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        if (!Operation(d).fits()) return refuse("an operation's tensors do not fit");
        break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        if (d->count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) !=
            d->count(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS))
            return refuse("the numbers of pointers and tensors differ");
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        std::vector<Operation> all = operations(graph_of(d));
        if (!supported(all)) return refuse("heads of this width are not supported", CUDNN_STATUS_NOT_SUPPORTED);
        d->put<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                        {workspace_bytes(all)});
        break;
    }
    default: break;
    }
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked,
                                       int64_t *count, void *out)
{
    auto d = static_cast<Descriptor *>(descriptor);
    if (!d->final) return refuse("read before finalize", CUDNN_STATUS_NOT_INITIALIZED);
    auto parts = static_cast<Descriptor **>(out);
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        for (int64_t i = 0; i < CONFIGS && i < asked; ++i) {
            parts[i]->put<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                   {configs[i].engine});
            parts[i]->put<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
                                   {configs[i].knob});
            parts[i]->put<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                               {CUDNN_KNOB_TYPE_TILE_SIZE});
            parts[i]->number = i;
            parts[i]->put<const void *>(CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        {d->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)});
            parts[i]->put<const void *>(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        {parts[i]});
            parts[i]->final = true;
        }
        *count = CONFIGS;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        parts[0]->has = d->has;
        parts[0]->final = true;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
        auto notes = static_cast<cudnnBackendNumericalNote_t *>(out);
        int64_t engine = d->at<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
        notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        notes[1] = engine == INACCURATE ? CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION
                                   : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        *count = engine == TENSOR_CORES ? 1 : engine == FULL_PRECISION ? 0 : 2;
        return CUDNN_STATUS_SUCCESS;
    }
    default: break;
    }
    if (!d->has.count(name) || d->has[name].type != type || d->has[name].count > asked)
        return refuse("no such attribute");
    *count = d->has[name].count;
    memcpy(out, d->has[name].bytes.data(), d->has[name].bytes.size());
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
                                  cudnnBackendDescriptor_t pack_descriptor)
{
    auto plan = static_cast<Descriptor *>(plan_descriptor),
         pack = static_cast<Descriptor *>(pack_descriptor);
    if (!plan->final || !pack->final) return refuse("run before finalize");
    std::map<int64_t, void *> at;
    for (int64_t i = 0; i < pack->count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); ++i)
        at[pack->at<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] =
            pack->at<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    std::vector<Operation> all = operations(graph_of(plan));
    for (const Operation &op : all)
        for (const Tensor &t : op.in)
            if (!t.is_virtual && !t.is_value && uintptr_t(at[t.uid]) % 16 != 0)
                return refuse("a pointer is not aligned");
    /* Single numbers are read during the call, tensors in memory when the queued work runs. */
    std::map<int64_t, float> value;
    for (const Operation &op : all)
        for (const Tensor &t : op.in)
            if (t.is_value) value[t.uid] = *static_cast<const float *>(at.at(t.uid));
    size_t number = size_t(plan->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->number);
    int64_t engine = plan->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                         ->part(CUDNN_ATTR_ENGINECFG_ENGINE)
                         ->at<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    void *workspace = pack->at<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    size_t bytes = size_t(plan->at<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    emulate::enqueue(handle->stream, [=]() mutable {
        for (auto &v : value) at[v.first] = &v.second;
        if (execute(all, at, engine) != CUDNN_STATUS_SUCCESS) {
            fprintf(stderr, "emulated cuDNN: %s\n", last_error);
            abort();
        }
        memset(workspace, 0xFF, bytes);
        spend_time(number);
    });
    return CUDNN_STATUS_SUCCESS;
}
}
