/* Builds ONNX graphs (onnx.ai, opset 17) that compute what a model computes in evaluation. The
 * function LayerKind.onnx adds the nodes of a layer with the functions declared here; the module
 * checkpoint writes the file.
 *
 *     static OnnxValue silu_onnx(const OnnxLayer *l)
 *     {
 *         return onnx_add(l, "Mul", NULL, l->x[0], onnx_add(l, "Sigmoid", "gate", l->x[0]));
 *     } */
#ifndef WEFT_LAYERS_ONNX_H
#define WEFT_LAYERS_ONNX_H

#include "tensor.h"

/* A tensor of the graph: an index into OnnxGraph.value. */
typedef int OnnxValue;
/* ONNX_NONE: no value. ONNX_LINKS: largest number of inputs, and of outputs, of a node. */
enum { ONNX_NONE = -1, ONNX_LINKS = 8 };
/* element types, with the numbers of ONNX's TensorProto */
typedef enum OnnxType { ONNX_FLOAT = 1, ONNX_INT64 = 7 } OnnxType;

/* The names of a value. */
typedef struct OnnxName {
    /* name, unique in the graph; owned */
    char *name;
    /* key under which other layers find the value, owned; NULL if layers do not share the value */
    char *key;
} OnnxName;
typedef struct OnnxNode {
    /* ONNX operator: "Conv"; borrowed */
    const char *op;
    /* name, unique in the graph; owned */
    char *name;
    int in_count, out_count;
    OnnxValue in[ONNX_LINKS], out[ONNX_LINKS];
    /* attributes, as fields of a NodeProto */
    Proto attributes;
} OnnxNode;
/* An initializer: a parameter of the model, or constant numbers. */
typedef struct OnnxTensor {
    OnnxValue value;
    OnnxType type;
    /* shape as stored; if `transposed` is true, the shape of the transposed parameter */
    Shape shape;
    /* index of the parameter, or -1 for constant numbers */
    int param;
    /* true: the parameter is stored with its two dimensions swapped */
    bool transposed;
    /* the constant numbers, owned; NULL for a parameter */
    void *data;
} OnnxTensor;
/* An ONNX graph. Begin with {0}, release with onnx_graph_fini. Nodes are in the order of the
 * calls. */
typedef struct OnnxGraph {
    int value_count, node_count, tensor_count;
    /* value, node and tensor are owned */
    OnnxName *value;
    OnnxNode *node;
    OnnxTensor *tensor;
    /* the model's input */
    OnnxValue input;
    /* true: the input is sequences of tokens, (N,T), of any length T */
    bool reads_tokens;
} OnnxGraph;
void onnx_graph_fini(OnnxGraph *graph);
/* Adds a value with this name. If another value has the name already, the new value gets NAME_2,
 * NAME_3 and so on. */
OnnxValue onnx_add_value(OnnxGraph *graph, const char *name);
/* Replaces value `from` by value `to` in the inputs and outputs of all nodes. */
void onnx_replace(OnnxGraph *graph, OnnxValue from, OnnxValue to);

/* The layer that is being exported. */
typedef struct OnnxLayer {
    OnnxGraph *graph;
    /* name, spec and param_name are borrowed */
    const char *name;
    const OpSpec *spec;
    /* inputs of the layer */
    OnnxValue x[SPEC_INPUTS];
    /* index and name of each parameter; of a tied parameter, those of the parameter to which it is
     * tied */
    int param[SPEC_PARAMS];
    const char *param_name[SPEC_PARAMS];
} OnnxLayer;

/* Adds a node for ONNX operator `op` and returns its output, named LAYER/STEP. If step is NULL, the
 * output is the layer's result and is named LAYER. Pass ONNX_NONE for an optional input that is not
 * used. */
OnnxValue onnx_add_node(const OnnxLayer *layer, const char *op, const char *step,
                        const OnnxValue *in, int in_count);
#define onnx_add(layer, op, step, ...)                                                             \
    onnx_add_node(layer, op, step, (const OnnxValue[]){__VA_ARGS__},                               \
                  (int)(sizeof((const OnnxValue[]){__VA_ARGS__}) / sizeof(OnnxValue)))
/* Adds another output, named LAYER/STEP, to the last node and returns it. */
OnnxValue onnx_add_output(const OnnxLayer *layer, const char *step);
/* These four functions add an attribute to the last node. */
void onnx_attr_int(const OnnxLayer *layer, const char *name, int64_t value);
void onnx_attr_ints(const OnnxLayer *layer, const char *name, int count, const int64_t *value);
void onnx_attr_float(const OnnxLayer *layer, const char *name, float value);
void onnx_attr_text(const OnnxLayer *layer, const char *name, const char *value);

/* Returns parameter `slot` of the layer, in plain order. */
OnnxValue onnx_param(const OnnxLayer *layer, int slot);
/* Returns parameter `slot` with its two dimensions swapped. */
OnnxValue onnx_param_transposed(const OnnxLayer *layer, int slot);
/* Adds a node for `op` that computes the layer's result from its first input and all its parameters
 * in order. */
OnnxValue onnx_with_params(const OnnxLayer *layer, const char *op);
/* Returns a constant scalar float. */
OnnxValue onnx_float(const OnnxLayer *layer, float value);
/* Returns a constant vector of `count` floats. */
OnnxValue onnx_floats(const OnnxLayer *layer, int count, const float *value);
/* Returns a constant of type int64: a vector of `count` numbers or, if count is 0, a scalar. */
OnnxValue onnx_int64s(const OnnxLayer *layer, int count, const int64_t *value);
#define onnx_vector(layer, ...)                                                                    \
    onnx_int64s(layer, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
                (const int64_t[]){__VA_ARGS__})
/* Returns the value that layers share under a key, or ONNX_NONE if none is registered yet. */
OnnxValue onnx_find_shared(const OnnxLayer *layer, const char *key);
/* Registers a value under a key and returns it. */
OnnxValue onnx_share(const OnnxLayer *layer, const char *key, OnnxValue value);
/* Returns an OnnxLayer for adding nodes that several layers share; the nodes' names begin with
 * `name`. */
OnnxLayer onnx_shared_layer(const OnnxLayer *layer, const char *name);
/* Adds a constant of rows x columns floats, named like its key, and registers it under the key.
 * Takes ownership of data (mem_new). */
OnnxValue onnx_table(const OnnxLayer *layer, const char *key, int64_t rows, int64_t columns,
                     float *data);
/* Returns the length of the layer's sequences, a vector of one int64. It is the length of the
 * model's tokens, or a constant if the sequences are the pixels of an image. */
OnnxValue onnx_sequence_length(const OnnxLayer *layer);
/* Returns the constant length of the layer's sequences; 0: it is that of the model's tokens. Values
 * that depend on the length are shared only by layers for which this is equal. */
int64_t onnx_fixed_length(const OnnxLayer *layer);

#endif
