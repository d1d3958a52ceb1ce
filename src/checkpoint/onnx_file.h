/* Writing an OnnxGraph as a file: ModelProto of IR 8, opset 17 (onnx.proto), fields in the order of
 * their numbers. No word of models here. */
#ifndef WEFT_CHECKPOINT_ONNX_FILE_H
#define WEFT_CHECKPOINT_ONNX_FILE_H

#include "layers/onnx.h"

/* What goes in or comes out. */
typedef struct OnnxPort {
    OnnxValue value;
    OnnxType type;
    Shape shape;
    /* NULL: shape says how many; else any number of that name */
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
    OnnxPort in, out;
    /* metadata_props; texts are borrowed */
    int text_count;
    const OnnxText *text;
    /* A file of more bytes than this has the values of its tensors beside it, in OUT.data. */
    int64_t most;
    bool force;
    void *user;
    /* fills plain with the model's parameter, in its plain order */
    Status (*get)(void *user, int param, float *plain);
} OnnxFile;
enum { ONNX_MOST_BYTES = INT32_MAX };

/* Writes path.part, syncs and renames it; path.data likewise, before. *beside: there is such a
 * file. One that is there already is ERR_USAGE if it is needed and not force; if force and not
 * needed it goes, with the path that it was of. ERR_IO; what get returns. */
Status onnx_write(const char *path, const OnnxFile *file, bool *beside);

#endif
