/* Writes a ModelProto in the form of protocol buffers. All lengths are computed before the first
 * byte is written, so that tensors can be written one by one and only the largest is in memory. */
#include "onnx_file.h"

#include "../new_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { IR_VERSION = 8, OPSET = 17 };
/* field numbers of onnx.proto */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_TEXT = 14 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, TEXT_KEY = 1, TEXT_VALUE = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_TENSOR = 5, GRAPH_IN = 11, GRAPH_OUT = 12 };
enum { NODE_IN = 1, NODE_OUT = 2, NODE_NAME = 3, NODE_OP = 4 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14, LOCATION_EXTERNAL = 1 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
/* If there is an OUT.data, tensors of at least EXTERNAL_LEAST bytes are stored in it, each at the
 * beginning of a page; smaller tensors stay in the file. */
enum { EXTERNAL_LEAST = 1024, EXTERNAL_PAGE = 4096 };

typedef struct Writer {
    /* borrowed */
    const OnnxFile *file;
    /* borrowed */
    const OnnxGraph *graph;
    /* name of OUT.data without its folder; NULL if there is no OUT.data; borrowed */
    const char *location;
    /* buffer for the largest tensor as it is read; owned */
    float *plain;
    /* buffer for the largest tensor after transposition; owned */
    float *turned;
} Writer;

static int64_t bytes_of(const OnnxTensor *t)
{
    size_t each = t->type == ONNX_INT64 ? sizeof(int64_t) : sizeof(float);
    return shape_count(t->shape) * (int64_t)each;
}

/* Returns the value's name; "" for an optional input that is not used. */
static const char *name_of(const Writer *w, OnnxValue value)
{
    return value == ONNX_NONE ? "" : w->graph->value[value].name;
}

static void put_node(const Writer *w, Proto *graph, const OnnxNode *node)
{
    Proto p = {0};
    for (int i = 0; i < node->in_count; ++i) proto_text(&p, NODE_IN, name_of(w, node->in[i]));
    for (int i = 0; i < node->out_count; ++i) proto_text(&p, NODE_OUT, name_of(w, node->out[i]));
    proto_text(&p, NODE_NAME, node->name);
    proto_text(&p, NODE_OP, node->op);
    proto_raw(&p, node->attributes.data, node->attributes.bytes);
    proto_message(graph, GRAPH_NODE, &p);
}

static void put_port(const Writer *w, Proto *graph, unsigned field, const OnnxPort *port)
{
    Proto p = {0}, type = {0}, tensor = {0}, shape = {0};
    for (int d = 0; d < port->shape.ndim; ++d) {
        Proto dim = {0};
        if (port->dim_name[d])
            proto_text(&dim, DIM_PARAM, port->dim_name[d]);
        else
            proto_int(&dim, DIM_VALUE, port->shape.dim[d]);
        proto_message(&shape, SHAPE_DIM, &dim);
    }
    proto_int(&tensor, TENSOR_ELEMENT, port->type);
    proto_message(&tensor, TENSOR_SHAPE, &shape);
    proto_message(&type, TYPE_TENSOR, &tensor);
    proto_text(&p, VALUE_NAME, name_of(w, port->value));
    proto_message(&p, VALUE_TYPE, &type);
    proto_message(graph, field, &p);
}

static void put_pair(Proto *of, unsigned field, const char *key, const char *value)
{
    Proto p = {0};
    proto_text(&p, TEXT_KEY, key);
    proto_text(&p, TEXT_VALUE, value);
    proto_message(of, field, &p);
}

static bool is_external(const Writer *w, const OnnxTensor *t)
{
    return w->location && bytes_of(t) >= EXTERNAL_LEAST;
}

static int64_t to_page(int64_t at)
{
    return (at + EXTERNAL_PAGE - 1) / EXTERNAL_PAGE * EXTERNAL_PAGE;
}

/* Writes a tensor's message up to the tensor's values. at: offset of the values in OUT.data. */
static void put_tensor(const Writer *w, Proto *p, const OnnxTensor *t, int64_t at)
{
    char number[32];
    for (int d = 0; d < t->shape.ndim; ++d) proto_int(p, TENSOR_DIM, t->shape.dim[d]);
    proto_int(p, TENSOR_TYPE, t->type);
    proto_text(p, TENSOR_NAME, name_of(w, t->value));
    if (!is_external(w, t)) {
        proto_head(p, TENSOR_RAW, (size_t)bytes_of(t));
        return;
    }
    put_pair(p, TENSOR_EXTERNAL, "location", w->location);
    snprintf(number, sizeof number, "%lld", (long long)at);
    put_pair(p, TENSOR_EXTERNAL, "offset", number);
    snprintf(number, sizeof number, "%lld", (long long)bytes_of(t));
    put_pair(p, TENSOR_EXTERNAL, "length", number);
    proto_int(p, TENSOR_LOCATION, LOCATION_EXTERNAL);
}

/* Returns the bytes before a tensor's values, beginning with the field GRAPH_TENSOR. *inside:
 * number of bytes of values that follow in the file, 0 if they are in OUT.data. *at: offset of the
 * values in OUT.data; it is moved to the offset of the next tensor. */
static Proto tensor_head(const Writer *w, const OnnxTensor *t, int64_t *inside, int64_t *at)
{
    Proto head = {0}, body = {0};
    put_tensor(w, &body, t, *at);
    *inside = is_external(w, t) ? 0 : bytes_of(t);
    if (*inside == 0) *at = to_page(*at + bytes_of(t));
    proto_head(&head, GRAPH_TENSOR, body.bytes + (size_t)*inside);
    proto_raw(&head, body.data, body.bytes);
    proto_fini(&body);
    return head;
}

/* The messages around the tensors, in the file's order. */
typedef struct Frame {
    /* fields of the model before the graph */
    Proto model;
    /* fields of the graph before its tensors */
    Proto before;
    /* fields of the graph after its tensors */
    Proto behind;
    /* fields of the model after the graph */
    Proto end;
    /* size of the file */
    int64_t bytes;
} Frame;

static void frame_fini(Frame *f)
{
    proto_fini(&f->model);
    proto_fini(&f->before);
    proto_fini(&f->behind);
    proto_fini(&f->end);
}

static int64_t tensors_bytes(const Writer *w)
{
    int64_t bytes = 0, at = 0, inside = 0;
    for (int i = 0; i < w->graph->tensor_count; ++i) {
        Proto head = tensor_head(w, &w->graph->tensor[i], &inside, &at);
        bytes += (int64_t)head.bytes + inside;
        proto_fini(&head);
    }
    return bytes;
}

/* Builds the frame. Release with frame_fini. */
static Frame frame_of(const Writer *w)
{
    Frame f = {0};
    Proto opset = {0};
    for (int i = 0; i < w->graph->node_count; ++i) put_node(w, &f.before, &w->graph->node[i]);
    proto_text(&f.before, GRAPH_NAME, "weft");
    put_port(w, &f.behind, GRAPH_IN, &w->file->in);
    for (int i = 0; i < w->file->out_count; ++i)
        put_port(w, &f.behind, GRAPH_OUT, &w->file->out[i]);
    const int64_t graph = (int64_t)(f.before.bytes + f.behind.bytes) + tensors_bytes(w);
    proto_int(&f.model, MODEL_IR, IR_VERSION);
    proto_text(&f.model, MODEL_PRODUCER, "weft");
    proto_head(&f.model, MODEL_GRAPH, (size_t)graph);
    proto_text(&opset, OPSET_DOMAIN, "");
    proto_int(&opset, OPSET_VERSION, OPSET);
    proto_message(&f.end, MODEL_OPSET, &opset);
    for (int i = 0; i < w->file->text_count; ++i)
        put_pair(&f.end, MODEL_TEXT, w->file->text[i].key, w->file->text[i].text);
    f.bytes = graph + (int64_t)(f.model.bytes + f.end.bytes);
    return f;
}

/* Gets a tensor's values in the file's layout; *values is valid until the next call. */
static Status get_values(const Writer *w, const OnnxTensor *t, const void **values)
{
    *values = t->data;
    if (t->param < 0) return OK;
    TRY(w->file->get(w->file->user, t->param, w->plain));
    *values = w->plain;
    if (!t->transposed) return OK;
    const int64_t rows = t->shape.dim[0], columns = t->shape.dim[1];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) w->turned[r * columns + c] = w->plain[c * rows + r];
    *values = w->turned;
    return OK;
}

static Status put_proto(NewFile *out, const Proto *message)
{
    return new_file_put(out, message->data, message->bytes);
}

/* Pads OUT.data to a page and appends the values. */
static Status put_external(NewFile *data_file, const void *values, int64_t bytes)
{
    static const char zeros[EXTERNAL_PAGE];
    TRY(new_file_put(data_file, zeros, (size_t)(to_page(data_file->bytes) - data_file->bytes)));
    return new_file_put(data_file, values, (size_t)bytes);
}

static Status put_tensors(const Writer *w, NewFile *out, NewFile *data_file)
{
    int64_t at = 0, inside = 0;
    for (int i = 0; i < w->graph->tensor_count; ++i) {
        const OnnxTensor *t = &w->graph->tensor[i];
        const void *values = NULL;
        Proto head = tensor_head(w, t, &inside, &at);
        Status st = put_proto(out, &head);
        proto_fini(&head);
        TRY(st);
        TRY(get_values(w, t, &values));
        TRY(inside ? new_file_put(out, values, (size_t)inside)
                   : put_external(data_file, values, bytes_of(t)));
    }
    return OK;
}

static Status put_model(const Writer *w, const Frame *f, NewFile *out, NewFile *data_file)
{
    TRY(put_proto(out, &f->model));
    TRY(put_proto(out, &f->before));
    TRY(put_tensors(w, out, data_file));
    TRY(put_proto(out, &f->behind));
    return put_proto(out, &f->end);
}

/* Writes the file and, if data_path is not NULL, the file for values at data_path. */
static Status write_files(const Writer *w, const Frame *f, const char *path, const char *data_path)
{
    NewFile out = {.fd = -1}, data_file = {.fd = -1};
    Status st = data_path ? new_file_begin(&data_file, data_path) : OK;
    if (st == OK) st = new_file_begin(&out, path);
    if (st == OK) st = put_model(w, f, &out, &data_file);
    if (data_path) st = new_file_end(&data_file, st);
    return new_file_end(&out, st);
}

static size_t largest_bytes(const OnnxGraph *graph)
{
    int64_t largest = sizeof(float);
    for (int i = 0; i < graph->tensor_count; ++i) {
        const OnnxTensor *t = &graph->tensor[i];
        if (t->param >= 0 && bytes_of(t) > largest) largest = bytes_of(t);
    }
    return (size_t)largest;
}

/* Removes the OUT.data of an earlier export, which the new file does not need. */
static void drop_data(const char *data_path, const char *path)
{
    if (unlink(data_path) == 0)
        log_info("removed %s, which %s no longer needs", data_path, path);
    else if (errno != ENOENT)
        log_warn("%s: cannot be removed: %s; %s no longer needs it", data_path, strerror(errno),
                 path);
}

Status onnx_write(const char *path, const OnnxFile *file, bool *external)
{
    Writer w = {.file = file, .graph = file->graph};
    Frame f = frame_of(&w);
    char *data_path = mem_format("%s.data", path);
    const bool replaces = file->force && access(path, F_OK) == 0;
    *external = f.bytes > file->most;
    if (*external) {
        const char *slash = strrchr(data_path, '/');
        w.location = slash ? slash + 1 : data_path;
        frame_fini(&f);
        f = frame_of(&w);
    }
    w.plain = mem_new(largest_bytes(w.graph));
    w.turned = mem_new(largest_bytes(w.graph));
    Status st = *external || file->force ? file_check_writable(data_path, file->force) : OK;
    if (st == OK) st = write_files(&w, &f, path, *external ? data_path : NULL);
    if (st == OK && replaces && !*external) drop_data(data_path, path);
    frame_fini(&f);
    mem_free(&data_path);
    mem_free(&w.plain);
    mem_free(&w.turned);
    return st;
}
