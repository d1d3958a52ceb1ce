/* Builds a graph of ONNX nodes with unique names, in which equal constants are stored once. */
#include "layers/onnx.h"

/* numbers of AttributeProto's fields, and of the values of its field type (onnx.proto) */
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_INTS = 7 };
/* number of a field of NodeProto */
enum { NODE_ATTRIBUTE = 5 };
_Static_assert((int)ONNX_LINKS >= (int)SPEC_INPUTS && (int)ONNX_LINKS >= 1 + (int)SPEC_PARAMS,
               "a node has room for a layer's inputs and parameters");

void onnx_graph_fini(OnnxGraph *g)
{
    for (int i = 0; i < g->value_count; ++i) {
        mem_free(&g->value[i].name);
        mem_free(&g->value[i].key);
    }
    for (int i = 0; i < g->node_count; ++i) {
        mem_free(&g->node[i].name);
        proto_fini(&g->node[i].attributes);
    }
    for (int i = 0; i < g->tensor_count; ++i) mem_free(&g->tensor[i].data);
    mem_free(&g->value);
    mem_free(&g->node);
    mem_free(&g->tensor);
}

/* Returns a list of `count` elements, moved if necessary, with memory for one more element. The
 * memory doubles when count is a power of two. */
static void *grow(void *list, int count, size_t element_bytes)
{
    if (count & (count - 1)) return list;
    return mem_resize(list, (size_t)(count ? 2 * count : 1) * element_bytes);
}

/* ---- values ---- */

static bool name_is_taken(const OnnxGraph *g, const char *name)
{
    for (int i = 0; i < g->value_count; ++i)
        if (strcmp(g->value[i].name, name) == 0) return true;
    return false;
}

/* Returns the first of NAME, NAME_2, NAME_3, ... that no value has; the caller owns it. */
static char *unique_name(const OnnxGraph *g, const char *name)
{
    char *unique = mem_text(name);
    for (int n = 2; name_is_taken(g, unique); ++n) {
        mem_free(&unique);
        unique = mem_format("%s_%d", name, n);
    }
    return unique;
}

OnnxValue onnx_add_value(OnnxGraph *g, const char *name)
{
    char *unique = unique_name(g, name);
    g->value = grow(g->value, g->value_count, sizeof *g->value);
    g->value[g->value_count] = (OnnxName){.name = unique};
    return g->value_count++;
}

void onnx_replace(OnnxGraph *g, OnnxValue from, OnnxValue to)
{
    for (int i = 0; i < g->node_count; ++i)
        for (int k = 0; k < ONNX_LINKS; ++k) {
            if (g->node[i].in[k] == from) g->node[i].in[k] = to;
            if (g->node[i].out[k] == from) g->node[i].out[k] = to;
        }
}

OnnxValue onnx_find_shared(const OnnxLayer *l, const char *key)
{
    const OnnxGraph *g = l->graph;
    for (int i = 0; i < g->value_count; ++i)
        if (g->value[i].key && strcmp(g->value[i].key, key) == 0) return i;
    return ONNX_NONE;
}

OnnxValue onnx_share(const OnnxLayer *l, const char *key, OnnxValue value)
{
    l->graph->value[value].key = mem_text(key);
    return value;
}

OnnxLayer onnx_shared_layer(const OnnxLayer *l, const char *name)
{
    return (OnnxLayer){.graph = l->graph, .name = name, .spec = l->spec};
}

/* ---- nodes ---- */

/* Adds a value named LAYER/step or, if step is NULL, LAYER. */
static OnnxValue value_of(const OnnxLayer *l, const char *step)
{
    char *name = step ? mem_format("%s/%s", l->name, step) : mem_text(l->name);
    OnnxValue value = onnx_add_value(l->graph, name);
    mem_free(&name);
    return value;
}

static OnnxNode *last_node(const OnnxLayer *l)
{
    return &l->graph->node[l->graph->node_count - 1];
}

OnnxValue onnx_add_node(const OnnxLayer *l, const char *op, const char *step, const OnnxValue *in,
                        int in_count)
{
    OnnxGraph *g = l->graph;
    OnnxNode node = {.op = op, .in_count = in_count, .out_count = 1};
    for (int k = 0; k < ONNX_LINKS; ++k) {
        node.in[k] = k < in_count ? in[k] : ONNX_NONE;
        node.out[k] = ONNX_NONE;
    }
    node.out[0] = value_of(l, step);
    node.name = mem_text(g->value[node.out[0]].name);
    g->node = grow(g->node, g->node_count, sizeof *g->node);
    g->node[g->node_count++] = node;
    return node.out[0];
}

OnnxValue onnx_add_output(const OnnxLayer *l, const char *step)
{
    OnnxValue value = value_of(l, step);
    OnnxNode *node = last_node(l);
    node->out[node->out_count++] = value;
    return value;
}

/* Sets the type of an attribute and adds it to the last node. Releases the attribute. */
static void add_attribute(const OnnxLayer *l, Proto *attribute, int type)
{
    proto_int(attribute, ATTR_TYPE, type);
    proto_message(&last_node(l)->attributes, NODE_ATTRIBUTE, attribute);
}

void onnx_attr_int(const OnnxLayer *l, const char *name, int64_t value)
{
    Proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, name);
    proto_int(&attribute, ATTR_I, value);
    add_attribute(l, &attribute, TYPE_INT);
}

void onnx_attr_ints(const OnnxLayer *l, const char *name, int count, const int64_t *value)
{
    Proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, name);
    for (int i = 0; i < count; ++i) proto_int(&attribute, ATTR_INTS, value[i]);
    add_attribute(l, &attribute, TYPE_INTS);
}

void onnx_attr_float(const OnnxLayer *l, const char *name, float value)
{
    Proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, name);
    proto_float(&attribute, ATTR_F, value);
    add_attribute(l, &attribute, TYPE_FLOAT);
}

void onnx_attr_text(const OnnxLayer *l, const char *name, const char *value)
{
    Proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, name);
    proto_text(&attribute, ATTR_S, value);
    add_attribute(l, &attribute, TYPE_STRING);
}

/* ---- initializers ---- */

static OnnxTensor *add_tensor(OnnxGraph *g, OnnxValue value, OnnxType type, Shape shape)
{
    g->tensor = grow(g->tensor, g->tensor_count, sizeof *g->tensor);
    OnnxTensor *t = &g->tensor[g->tensor_count++];
    *t = (OnnxTensor){.value = value, .type = type, .shape = shape, .param = -1};
    return t;
}

/* Returns parameter number `slot` of the layer, transposed or not. The first use decides in which
 * form the parameter is stored. Each later use in the other form adds a Transpose node. */
static OnnxValue param_value(const OnnxLayer *l, int slot, bool transposed)
{
    OnnxGraph *g = l->graph;
    Shape shape = l->spec->w[slot];
    for (int i = 0; i < g->tensor_count; ++i) {
        if (g->tensor[i].param != l->param[slot]) continue;
        if (g->tensor[i].transposed == transposed) return g->tensor[i].value;
        OnnxValue other = onnx_add(l, "Transpose", "turned", g->tensor[i].value);
        onnx_attr_ints(l, "perm", 2, (const int64_t[]){1, 0});
        return other;
    }
    if (transposed) shape = shape_of(2, shape.dim[1], shape.dim[0], 1, 1);
    OnnxTensor *t = add_tensor(g, onnx_add_value(g, l->param_name[slot]), ONNX_FLOAT, shape);
    t->param = l->param[slot];
    t->transposed = transposed;
    return t->value;
}

OnnxValue onnx_param(const OnnxLayer *l, int slot)
{
    return param_value(l, slot, false);
}

OnnxValue onnx_param_transposed(const OnnxLayer *l, int slot)
{
    return param_value(l, slot, true);
}

OnnxValue onnx_with_params(const OnnxLayer *l, const char *op)
{
    OnnxValue in[1 + SPEC_PARAMS] = {l->x[0]};
    for (int i = 0; i < l->spec->w_count; ++i) in[1 + i] = onnx_param(l, i);
    return onnx_add_node(l, op, NULL, in, 1 + l->spec->w_count);
}

OnnxValue onnx_float(const OnnxLayer *l, float value)
{
    char key[64];
    snprintf(key, sizeof key, "constant/%.9g", (double)value);
    OnnxValue known = onnx_find_shared(l, key);
    if (known != ONNX_NONE) return known;
    OnnxTensor *t =
        add_tensor(l->graph, onnx_add_value(l->graph, key), ONNX_FLOAT, shape_of(0, 1, 1, 1, 1));
    t->data = mem_new(sizeof value);
    memcpy(t->data, &value, sizeof value);
    return onnx_share(l, key, t->value);
}

OnnxValue onnx_floats(const OnnxLayer *l, int count, const float *value)
{
    enum { NUMBER = 24 };
    const size_t room = (size_t)(count + 1) * NUMBER, bytes = (size_t)count * sizeof *value;
    char *key = mem_new(room);
    size_t used = (size_t)snprintf(key, room, "constant/floats");
    for (int i = 0; i < count; ++i)
        used +=
            (size_t)snprintf(key + used, room - used, "%c%.9g", i ? ',' : '/', (double)value[i]);
    OnnxValue known = onnx_find_shared(l, key);
    if (known == ONNX_NONE) {
        OnnxTensor *t = add_tensor(l->graph, onnx_add_value(l->graph, key), ONNX_FLOAT,
                                   shape_of(1, count, 1, 1, 1));
        t->data = mem_new(bytes);
        memcpy(t->data, value, bytes);
        known = onnx_share(l, key, t->value);
    }
    mem_free(&key);
    return known;
}

OnnxValue onnx_int64s(const OnnxLayer *l, int count, const int64_t *value)
{
    const int numbers = count ? count : 1;
    enum { NUMBER = 24 };
    const size_t room = (size_t)(numbers + 1) * NUMBER;
    char *key = mem_new(room);
    size_t used = (size_t)snprintf(key, room, "constant/int64");
    for (int i = 0; i < numbers; ++i)
        used += (size_t)snprintf(key + used, room - used, "%c%lld",
                                 i       ? ','
                                 : count ? '/'
                                         : ' ',
                                 (long long)value[i]);
    OnnxValue known = onnx_find_shared(l, key);
    if (known == ONNX_NONE) {
        OnnxTensor *t = add_tensor(l->graph, onnx_add_value(l->graph, key), ONNX_INT64,
                                   shape_of(count ? 1 : 0, count, 1, 1, 1));
        t->data = mem_new((size_t)numbers * sizeof *value);
        memcpy(t->data, value, (size_t)numbers * sizeof *value);
        known = onnx_share(l, key, t->value);
    }
    mem_free(&key);
    return known;
}

OnnxValue onnx_table(const OnnxLayer *l, const char *key, int64_t rows, int64_t columns,
                     float *data)
{
    OnnxTensor *t = add_tensor(l->graph, onnx_add_value(l->graph, key), ONNX_FLOAT,
                               shape_of(2, rows, columns, 1, 1));
    t->data = data;
    return onnx_share(l, key, t->value);
}

int64_t onnx_fixed_length(const OnnxLayer *l)
{
    return l->graph->reads_tokens ? 0 : l->spec->x[0].shape.dim[1];
}

OnnxValue onnx_sequence_length(const OnnxLayer *l)
{
    if (onnx_fixed_length(l) > 0) return onnx_vector(l, onnx_fixed_length(l));
    OnnxValue known = onnx_find_shared(l, "length");
    if (known != ONNX_NONE) return known;
    const OnnxLayer shared = onnx_shared_layer(l, "length");
    OnnxValue length = onnx_add(&shared, "Shape", NULL, l->graph->input);
    onnx_attr_int(&shared, "end", 2);
    onnx_attr_int(&shared, "start", 1);
    return onnx_share(l, "length", length);
}
