/* What a layer is in ONNX (onnx.ai, opset 17): nodes that compute the same in evaluation. A layer
 * kind's `onnx` adds its nodes with these functions; checkpoint writes the file.
 *
 *     static OnnxValue silu_onnx(const OnnxLayer *l)
 *     {
 *         return onnx_add(l, "Mul", NULL, l->x[0], onnx_add(l, "Sigmoid", "gate", l->x[0]));
 *     }
 */
#ifndef WEFT_LAYERS_ONNX_H
#define WEFT_LAYERS_ONNX_H

#include "tensor.h"

/* A tensor of the graph, by its place in OnnxGraph.value. */
typedef int OnnxValue;
enum { ONNX_NONE = -1, ONNX_LINKS = 8 };
typedef enum OnnxType { ONNX_FLOAT = 1, ONNX_INT64 = 7 } OnnxType;

typedef struct OnnxName {
    /* owned: unique in the graph */
    char *name;
    /* owned: what it is, for whoever wants the same once more; NULL: nobody may */
    char *key;
} OnnxName;
typedef struct OnnxNode {
    /* borrowed: "Conv" */
    const char *op;
    /* owned */
    char *name;
    int in_count, out_count;
    OnnxValue in[ONNX_LINKS], out[ONNX_LINKS];
    /* its attributes, as fields of a NodeProto */
    Proto attributes;
} OnnxNode;
/* An initializer: a parameter of the model, or numbers. */
typedef struct OnnxTensor {
    OnnxValue value;
    OnnxType type;
    Shape shape;
    /* -1: numbers. turned: its two dimensions are exchanged */
    int param;
    bool turned;
    /* owned: numbers; else NULL */
    void *data;
} OnnxTensor;
/* Begin with {0}, release with onnx_graph_fini. Nodes are in the order of the calls. */
typedef struct OnnxGraph {
    int value_count, node_count, tensor_count;
    /* owned, all of them */
    OnnxName *value;
    OnnxNode *node;
    OnnxTensor *tensor;
    /* the data */
    OnnxValue input;
} OnnxGraph;
void onnx_graph_fini(OnnxGraph *graph);
/* A value of that name, or of one like it that is free. */
OnnxValue onnx_value(OnnxGraph *graph, const char *name);
/* Whatever has to do with `from` has to do with `to` instead. */
void onnx_replace(OnnxGraph *graph, OnnxValue from, OnnxValue to);

/* A layer that is being written. */
typedef struct OnnxLayer {
    OnnxGraph *graph;
    /* borrowed, all of them */
    const char *name;
    const OpSpec *spec;
    OnnxValue x[SPEC_INPUTS];
    /* of each parameter: its number, and its name; of a tied one those of the one that it is */
    int param[SPEC_PARAMS];
    const char *param_name[SPEC_PARAMS];
} OnnxLayer;

/* Adds a node and returns its output, named LAYER/step; step NULL: the layer's result, LAYER. */
OnnxValue onnx_node(const OnnxLayer *layer, const char *op, const char *step, const OnnxValue *in,
                    int in_count);
#define onnx_add(layer, op, step, ...)                                                             \
    onnx_node(layer, op, step, (const OnnxValue[]){__VA_ARGS__},                                   \
              (int)(sizeof((const OnnxValue[]){__VA_ARGS__}) / sizeof(OnnxValue)))
/* Of the last node: another output; attributes. */
OnnxValue onnx_output(const OnnxLayer *layer, const char *step);
void onnx_int(const OnnxLayer *layer, const char *name, int64_t value);
void onnx_ints(const OnnxLayer *layer, const char *name, int count, const int64_t *value);
void onnx_real(const OnnxLayer *layer, const char *name, float value);

/* Parameter `slot`, in its plain order; turned: with its two dimensions exchanged. */
OnnxValue onnx_param(const OnnxLayer *layer, int slot);
OnnxValue onnx_param_turned(const OnnxLayer *layer, int slot);
/* Adds the layer's result, made of its first input and all its parameters, in their order. */
OnnxValue onnx_with_params(const OnnxLayer *layer, const char *op);
/* Constants: a number; whole numbers, a vector of them or (count 0) one without dimensions. */
OnnxValue onnx_number(const OnnxLayer *layer, float value);
OnnxValue onnx_whole(const OnnxLayer *layer, int count, const int64_t *value);
#define onnx_vector(layer, ...)                                                                    \
    onnx_whole(layer, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),             \
               (const int64_t[]){__VA_ARGS__})
/* What several layers have in common, under a key: ONNX_NONE where it is not there yet; then
 * onnx_share says what it is. onnx_shared: a layer that names such nodes. */
OnnxValue onnx_known(const OnnxLayer *layer, const char *key);
OnnxValue onnx_share(const OnnxLayer *layer, const char *key, OnnxValue value);
OnnxLayer onnx_shared(const OnnxLayer *layer, const char *name);
/* A constant of rows x columns under such a key. Takes data over. */
OnnxValue onnx_table(const OnnxLayer *layer, const char *key, int64_t rows, int64_t columns,
                     float *data);
/* How long the sequences are, a vector of one number. */
OnnxValue onnx_length(const OnnxLayer *layer);

#endif
