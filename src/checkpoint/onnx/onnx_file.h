/* Writes an OnnxGraph as a file: ModelProto of IR 8, opset 17 (onnx.proto), fields in the order of
 * their numbers. The writer does not depend on models. */
#ifndef WEFT_CHECKPOINT_ONNX_FILE_H
#define WEFT_CHECKPOINT_ONNX_FILE_H

#include "layers/onnx.h"

/* An input or output of the graph. */
typedef struct OnnxPort {
    OnnxValue value;
    OnnxType type;
    Shape shape;
    /* name of each dimension that may have any length; NULL for a dimension whose length is in
     * shape */
    const char *dim_name[SHAPE_DIMS];
} OnnxPort;
typedef struct OnnxText {
    /* borrowed */
    const char *key;
    /* owned by the caller of onnx_write */
    char *text;
} OnnxText;
typedef struct OnnxFile {
    /* borrowed */
    const OnnxGraph *graph;
    OnnxPort in, out[ONNX_LINKS];
    int out_count;
    /* metadata_props, [text_count]; borrowed, including the texts */
    int text_count;
    const OnnxText *text;
    /* If the file would have more bytes than this, tensors of at least 1 KiB have their values in
     * OUT.data. */
    int64_t most;
    /* true: an existing OUT.data may be overwritten or removed (OnnxModel) */
    bool force;
    void *user;
    /* fills `plain` with parameter `param` of the model, in row-major order */
    Status (*get)(void *user, int param, float *plain);
} OnnxFile;
/* limit of the format: a message of protocol buffers has less than 2 GiB */
enum { ONNX_MOST_BYTES = INT32_MAX };

/* Writes path.part, syncs and renames it. If path.data is needed, *external is set to true and
 * path.data is written in the same way before `path`. ERR_USAGE: path.data exists and `force` is
 * false, or it is no regular file. A path.data that is not needed is removed if `force` is true and
 * `path` existed. ERR_IO: a file cannot be written. Also returns errors of file->get. */
Status onnx_write(const char *path, const OnnxFile *file, bool *external);

#endif
