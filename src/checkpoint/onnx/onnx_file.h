/* Writes an OnnxGraph as a file: ModelProto of IR 8, opset 17 (onnx.proto), fields in the order of
 * their numbers. This file knows nothing of models. */
#ifndef WEFT_CHECKPOINT_ONNX_FILE_H
#define WEFT_CHECKPOINT_ONNX_FILE_H

#include "layers/onnx.h"

/* An input or output of the graph. */
typedef struct OnnxPort {
    OnnxValue value;
    OnnxType type;
    Shape shape;
    /* names of dimensions of any length; NULL: the length is in shape */
    const char *dim_name[SHAPE_DIMS];
} OnnxPort;
typedef struct OnnxText {
    /* borrowed: key; owned: text */
    const char *key;
    char *text;
} OnnxText;
typedef struct OnnxFile {
    /* borrowed */
    const OnnxGraph *graph;
    OnnxPort in, out[ONNX_LINKS];
    int out_count;
    /* metadata_props; texts are borrowed */
    int text_count;
    const OnnxText *text;
    /* A file of more bytes than this stores the values of its tensors separately in OUT.data. */
    int64_t most;
    bool force;
    void *user;
    /* fills plain with parameter `param` of the model, in row-major order */
    Status (*get)(void *user, int param, float *plain);
} OnnxFile;
enum { ONNX_MOST_BYTES = INT32_MAX };

/* Writes path.part, syncs and renames it, and does so with path.data first where it is needed
 * (*external: true). An existing path.data is ERR_USAGE where it is needed and force is false;
 * where it is not needed, force is true and path existed, it is removed. ERR_IO; errors of get. */
Status onnx_write(const char *path, const OnnxFile *file, bool *external);

#endif
