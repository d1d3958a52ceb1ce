/* Exports a checkpoint as an ONNX model: builds the model of the caller's configuration, lets each
 * layer add its nodes to an ONNX graph (LayerKind.onnx), and writes the graph with the checkpoint's
 * parameters. Sequences may have any length up to the model's context, unless a layer makes one
 * vector of a whole sequence. */
#include "../mismatches.h"
#include "layers/onnx.h"
#include "onnx_file.h"
#include "../stored.h"

#include <stdlib.h>
#include <string.h>

/* room for entries of metadata (add_texts) */
enum { TEXTS = 6 };

typedef struct OnnxExport {
    const OnnxModel *model;
    StoredFile file;
    /* owned */
    Graph *graph;
    OnnxGraph onnx;
    /* output of each node of the graph, [node_count]; owned */
    OnnxValue *value;
    /* metadata of the file, [text_count]; each OnnxText.text is owned */
    OnnxText text[TEXTS];
    int text_count;
} OnnxExport;

/* ---- which model ---- */

/* Checks that the file has exactly the model's parameters and running statistics; optimizer state
 * and averages are ignored. *misfits: number of tensors that do not fit. */
static Status check_params(const OnnxExport *e, const Graph *graph, int *misfits)
{
    Mismatches mismatches;
    mismatches_begin(&mismatches);
    bool *used = mem_new((size_t)e->file.count + 1);
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied_param >= 0) continue;
        const StoredTensor *t = stored_param(&e->file, p);
        if (!t) {
            mismatches_missing(&mismatches, p->name);
            continue;
        }
        used[t - e->file.tensor] = true;
        if (!shape_equal(t->shape, p->shape))
            mismatches_size(&mismatches, p->name, t->shape, p->shape);
    }
    for (int i = 0; i < e->file.count; ++i)
        if (!used[i] && checkpoint_leaf(e->file.tensor[i].path))
            mismatches_surplus(&mismatches, e->file.tensor[i].path);
    mem_free(&used);
    *misfits = mismatches_count(&mismatches);
    return mismatches_end(&mismatches, e->file.path, "does not fit the model of its configuration");
}

static Status try_classes(OnnxExport *e, int64_t classes, int *misfits)
{
    graph_free(&e->graph);
    TRY(graph_build(&e->graph, e->model->config, e->model->input, classes));
    return check_params(e, e->graph, misfits);
}

/* Orders numbers for qsort, largest first. */
static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The try with the fewest misfits so far. */
typedef struct BestTry {
    int misfits;
    Status status;
    /* message of the try; owned */
    char *why;
} BestTry;

/* Tries a number of classes. Returns true if the model has exactly the file's tensors. Otherwise,
 * if the model has fewer misfits than *best, replaces *best by this try. */
static bool fits(OnnxExport *e, int64_t classes, BestTry *best)
{
    /* value for a model that cannot be built: less than BestTry.misfits before the first try */
    int misfits = INT32_MAX - 1;
    const Status st = try_classes(e, classes, &misfits);
    if (st == OK || misfits >= best->misfits) return st == OK;
    best->misfits = misfits;
    best->status = st;
    mem_free(&best->why);
    best->why = mem_text(fail_message());
    return false;
}

/* Tries the numbers of classes for which `length` can be the first dimension of a tensor: classes =
 * length or, in a detector, classes = length / anchors - 5 with 1 to 6 anchors. */
static bool length_fits(OnnxExport *e, int64_t length, BestTry *best)
{
    enum { ANCHORS = 6 };
    if (loss_info(e->model->config)->outputs != OUTPUTS_GRIDS) return fits(e, length, best);
    for (int64_t anchors = 1; anchors <= ANCHORS; ++anchors) {
        const int64_t classes = length / anchors - BOX_CHANNELS;
        if (length % anchors == 0 && classes > 0 && fits(e, classes, best)) return true;
    }
    return false;
}

/* Finds the number of classes, or of tokens in the vocabulary. If the configuration does not set
 * it, the first dimensions of the file's tensors are tried, largest first, until the model has
 * exactly the file's tensors. If no try succeeds, the message is about the try with the fewest
 * misfits. */
static Status find_classes(OnnxExport *e)
{
    const Config *c = e->model->config;
    int misfits;
    if (c->model.classes > 0) return try_classes(e, c->model.classes, &misfits);
    if (c->model.vocab > 0) return try_classes(e, c->model.vocab, &misfits);
    int64_t *length = mem_new((size_t)(e->file.count + 1) * sizeof *length);
    BestTry best = {.misfits = INT32_MAX,
                    .status = ERR_DATA,
                    .why = mem_format("%s: holds no parameter", e->file.path)};
    bool found = false;
    for (int i = 0; i < e->file.count; ++i) length[i] = e->file.tensor[i].shape.dim[0];
    qsort(length, (size_t)e->file.count, sizeof *length, falling);
    for (int i = 0; !found && i < e->file.count; ++i)
        if (i == 0 || length[i] != length[i - 1]) found = length_fits(e, length[i], &best);
    const Status st = found ? OK : fail(best.status, "%s", best.why);
    mem_free(&best.why);
    mem_free(&length);
    return st;
}

/* ---- nodes ---- */

static Status add_layer(OnnxExport *e, int index)
{
    const Node *node = &e->graph->node[index];
    if (!node->kind->onnx)
        return fail(ERR_CONFIG,
                    "layer %s: %s has no form in ONNX, so that this model cannot be "
                    "exported",
                    node->name, node->kind->name);
    OnnxLayer l = {.graph = &e->onnx, .name = node->name, .spec = &node->spec};
    for (int k = 0; k < node->spec.x_count; ++k)
        l.x[k] = node->in[k] == NODE_INPUT ? e->onnx.input : e->value[node->in[k]];
    for (int k = 0; k < node->spec.w_count; ++k) {
        int param = node->param[k];
        if (e->graph->param[param].tied_param >= 0) param = e->graph->param[param].tied_param;
        l.param[k] = param;
        l.param_name[k] = e->graph->param[param].name;
    }
    e->value[index] = node->kind->onnx(&l);
    return OK;
}

/* Adds nodes that compute the model's input from values as the data set stores them: (scale * x -
 * mean) / std. *x: the stored values, replaced by the model's input. */
static void add_normalization(OnnxExport *e, OnnxValue *x)
{
    const DataSet *set = e->model->set;
    const OnnxLayer l = {.graph = &e->onnx, .name = "data"};
    const int ndim = e->model->input.shape.ndim;
    if (set->scale != 1.0f) *x = onnx_add(&l, "Mul", "scaled", *x, onnx_float(&l, set->scale));
    if (!set->has_stats) return;
    OnnxValue value[2];
    for (int k = 0; k < 2; ++k) {
        const float *from = k ? set->std : set->mean;
        float *copy = mem_new((size_t)set->stats_count * sizeof *copy);
        memcpy(copy, from, (size_t)set->stats_count * sizeof *copy);
        value[k] = onnx_table(&l, k ? "data/std" : "data/mean", 1, set->stats_count, copy);
        if (ndim == 4)
            value[k] = onnx_add(&l, "Unsqueeze", k ? "std_of_channels" : "mean_of_channels",
                                value[k], onnx_vector(&l, 2, 3));
    }
    *x = onnx_add(&l, "Div", "normal", onnx_add(&l, "Sub", "centred", *x, value[0]), value[1]);
}

/* ---- the file ---- */

/* Returns true if a layer makes one vector of a whole sequence; sequences then have a fixed
 * length. */
static bool fixed_length(const Graph *graph)
{
    for (int i = 0; i <= graph->logits_node; ++i) {
        const OpSpec *s = &graph->node[i].spec;
        if (s->x[0].shape.ndim == 3 && s->y.shape.ndim != 3) return true;
    }
    return false;
}

/* Sets type and shape of an input or output. The number of samples, N, may be any, and in models of
 * tokens also the length of the sequence, T, unless a layer fixes it. */
static void describe(const OnnxExport *e, OnnxPort *port, Desc desc)
{
    const bool tokens = e->model->input.dtype == DTYPE_I32;
    port->type = desc.dtype == DTYPE_I32 ? ONNX_INT64 : ONNX_FLOAT;
    port->shape = desc.shape;
    port->dim_name[0] = "N";
    if (tokens && !fixed_length(e->graph)) port->dim_name[1] = "T";
}

static void add_text(OnnxExport *e, const char *key, char *text)
{
    e->text[e->text_count++] = (OnnxText){.key = key, .text = text};
}

static char *numbers_text(const float *value, int count)
{
    char *all = mem_text("");
    for (int i = 0; i < count; ++i) {
        char *longer = mem_format("%s%s%.9g", all, i ? "," : "", (double)value[i]);
        mem_free(&all);
        all = longer;
    }
    return all;
}

/* Adds metadata: the step and, if users of the exported model have to normalize its input, scale,
 * mean and deviation of the data set, as far as they are known. */
static void add_texts(OnnxExport *e)
{
    const DataSet *set = e->model->set;
    add_text(e, "step", mem_format("%lld", (long long)e->file.meta.step));
    if (!set || e->model->normalize || e->model->input.dtype == DTYPE_I32) return;
    add_text(e, "scale", numbers_text(&set->scale, 1));
    if (!set->has_stats) return;
    add_text(e, "mean", numbers_text(set->mean, set->stats_count));
    add_text(e, "std", numbers_text(set->std, set->stats_count));
}

/* Adds output k of the file. Its value is input k of the loss, after a softmax if one is
 * requested. */
static void add_output(OnnxExport *e, OnnxFile *out, int k)
{
    const Node *loss = &e->graph->node[e->graph->loss_node];
    const OnnxLayer l = {.graph = &e->onnx, .name = "softmax"};
    OnnxValue logits = e->value[loss->in[k]];
    if (e->model->softmax) {
        logits = onnx_add(&l, "Softmax", NULL, logits);
        onnx_attr_int(&l, "axis", e->graph->node[loss->in[k]].spec.y.shape.ndim == 4 ? 1 : -1);
    } else if (logits == out->in.value) {
        /* a copy, because onnx_replace would rename the file's input, too */
        logits = onnx_add(&l, "Identity", NULL, logits);
    }
    onnx_replace(&e->onnx, logits, out->out[k].value);
    describe(e, &out->out[k], e->graph->node[loss->in[k]].spec.y);
}

/* Adds the layers up to the logits, and names the file's input and outputs. */
static Status add_layers(OnnxExport *e, OnnxFile *out)
{
    const OnnxModel *m = e->model;
    const bool tokens = m->input.dtype == DTYPE_I32;
    e->onnx.input = onnx_add_value(&e->onnx, tokens ? "tokens" : "x");
    e->onnx.reads_tokens = tokens;
    out->in.value = e->onnx.input;
    OnnxValue x = e->onnx.input;
    out->out_count = e->graph->node[e->graph->loss_node].spec.x_count;
    for (int k = 0; k < out->out_count; ++k) {
        const char *one = m->softmax ? "probabilities" : "logits";
        char *name = out->out_count > 1 ? mem_format("%s.%d", one, k) : mem_text(one);
        out->out[k].value = onnx_add_value(&e->onnx, name);
        mem_free(&name);
    }
    if (m->normalize) add_normalization(e, &x);
    e->onnx.input = x;
    e->value = mem_new((size_t)e->graph->node_count * sizeof *e->value);
    for (int i = 0; i <= e->graph->logits_node; ++i) TRY(add_layer(e, i));
    for (int k = 0; k < out->out_count; ++k) add_output(e, out, k);
    return OK;
}

static Status get(void *user, int param, float *plain)
{
    OnnxExport *e = user;
    return stored_read(&e->file, stored_param(&e->file, &e->graph->param[param]), plain);
}

static Status check_options(const OnnxModel *m)
{
    if (m->softmax && loss_info(m->config)->results != LOSS_RESULTS_RANK)
        return fail(
            ERR_CONFIG,
            "a model with train.loss %s gives no logits of classes: its export does not end "
            "in a softmax",
            loss_name(m->config));
    if (m->normalize && m->input.dtype == DTYPE_I32)
        return fail(ERR_CONFIG, "tokens have no mean and deviation to normalise by");
    if (m->normalize && !m->set)
        return fail(ERR_CONFIG, "the data's mean and deviation are not known");
    return OK;
}

static Status export(OnnxExport *e, const char *out, OnnxExported *made)
{
    OnnxFile file = {
        .graph = &e->onnx, .text = e->text, .user = e, .get = get, .force = e->model->force};
    file.most = e->model->bytes_max > 0 ? e->model->bytes_max : ONNX_MOST_BYTES;
    TRY(check_options(e->model));
    TRY(find_classes(e));
    TRY(checkpoint_check_layers(e->file.path, &e->file.meta, e->model->config, e->graph));
    TRY(add_layers(e, &file));
    add_texts(e);
    file.text_count = e->text_count;
    describe(e, &file.in, e->model->input);
    TRY(onnx_write(out, &file, &made->external));
    made->nodes = e->onnx.node_count;
    made->classes = e->graph->classes;
    return OK;
}

Status checkpoint_export_onnx(const char *from, const char *out, const OnnxModel *model,
                              OnnxExported *made)
{
    OnnxExport e = {.model = model};
    CheckpointMeta meta = {0};
    int averaged = 0;
    *made = (OnnxExported){0};
    Status st = stored_open(&e.file, from);
    if (st == OK) st = stored_list(&e.file);
    if (st == OK && model->averages) averaged = stored_use_averages(&e.file);
    /* only for the status: export reads e.file.meta */
    if (st == OK) st = stored_meta(&e.file, &meta);
    checkpoint_meta_fini(&meta);
    if (st == OK) st = export(&e, out, made);
    made->averaged = averaged;
    for (int i = 0; i < e.text_count; ++i) mem_free(&e.text[i].text);
    onnx_graph_fini(&e.onnx);
    graph_free(&e.graph);
    mem_free(&e.value);
    stored_close(&e.file);
    return st;
}
