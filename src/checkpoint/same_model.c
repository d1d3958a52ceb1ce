/* Finds two configurations whose models have the same tensors but compute different results with
 * them: other heads, windows, angles, strides or activations. Layers are compared by name; a layer
 * that only one model has is left to the comparison of tensors, and dropout is ignored, because
 * evaluation does not have it. */
#include "checkpoint.h"
#include "model.h"

#include <string.h>

enum { NAMED = 20 };

/* Attributes that change what a layer computes with the same tensors. */
#define FIELDS(_)                                                                                  \
    _(heads, s->heads)                                                                             \
    _(kv_heads, attention_kv_heads(s))                                                             \
    _(window, s->window)                                                                           \
    _(rotary, s->rotary)                                                                           \
    _(rotary_base, attention_rotary_base(s))                                                       \
    _(rope_type, s->rotary_scaling.type)                                                           \
    _(rope_factor, s->rotary_scaling.factor)                                                       \
    _(rope_original_max_position_embeddings, s->rotary_scaling.original)                           \
    _(rope_low_freq_factor, s->rotary_scaling.low_freq_factor)                                     \
    _(rope_high_freq_factor, s->rotary_scaling.high_freq_factor)                                   \
    _(rope_beta_fast, s->rotary_scaling.beta_fast)                                                 \
    _(rope_beta_slow, s->rotary_scaling.beta_slow)                                                 \
    _(rope_attention_factor, s->rotary_scaling.attention_factor)                                   \
    _(rope_mscale, s->rotary_scaling.mscale)                                                       \
    _(rope_mscale_all_dim, s->rotary_scaling.mscale_all_dim)                                       \
    _(rope_truncate, s->rotary_scaling.truncate)                                                   \
    _(eps, s->eps)                                                                                 \
    _(groups, s->groups)                                                                           \
    _(kernel, s->kernel[0] * 65536.0 + s->kernel[1])                                               \
    _(stride, s->stride[0] * 65536.0 + s->stride[1])                                               \
    _(pad, s->pad[0] * 65536.0 + s->pad[1])

#define FIELD_NAME(name, value)  #name,
#define FIELD_VALUE(name, value) (double)(value),
static const char *const field_names[] = {FIELDS(FIELD_NAME)};
enum { FIELD_COUNT = sizeof field_names / sizeof *field_names };

static void read_fields(const OpSpec *s, double out[FIELD_COUNT])
{
    const double value[] = {FIELDS(FIELD_VALUE)};
    memcpy(out, value, sizeof value);
}

static bool is_pair(int field)
{
    return !strcmp(field_names[field], "kernel") || !strcmp(field_names[field], "stride") ||
           !strcmp(field_names[field], "pad");
}

static void compare_layers(const Node *ours, const Node *theirs, TextList *list)
{
    double a[FIELD_COUNT], b[FIELD_COUNT];
    char *text = NULL;
    read_fields(&ours->spec, a);
    read_fields(&theirs->spec, b);
    if (ours->kind != theirs->kind)
        text = mem_format("%s is %s in this model and %s in the checkpoint", ours->name,
                          ours->kind->name, theirs->kind->name);
    for (int f = 0; !text && f < FIELD_COUNT; ++f) {
        if (a[f] == b[f]) continue;
        text = is_pair(f) ? mem_format("%s of %s differs", field_names[f], ours->name)
                          : mem_format("%s of %s is %.9g in this model and %.9g in the checkpoint",
                                       field_names[f], ours->name, a[f], b[f]);
    }
    if (text) text_list_add(list, text);
    mem_free(&text);
}

static const Node *find_node(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->node[i].name, name) == 0) return &graph->node[i];
    return NULL;
}

/* Builds the model of the file's own configuration for the same data; NULL: the file has no
 * configuration, or it cannot be built. Owner: the caller. */
static Graph *build_theirs(const char *path, const CheckpointMeta *meta, const Graph *ours)
{
    Config *config = NULL;
    Graph *graph = NULL;
    if (!meta->config || !*meta->config) return NULL;
    if (config_parse(&config, path, meta->config, 0, NULL) != OK ||
        graph_build_ids(&graph, config, ours->input, ours->ids, ours->classes) != OK)
        graph = NULL;
    config_free(&config);
    return graph;
}

Status checkpoint_same_model(const char *path, const CheckpointMeta *meta, const Config *config,
                             const Graph *model)
{
    Graph *ours = NULL;
    TextList list;
    Graph *theirs = build_theirs(path, meta, model);
    if (!theirs) return OK;
    Status st = graph_build_ids(&ours, config, model->input, model->ids, model->classes);
    text_list_begin(&list, NAMED);
    for (int i = 0; st == OK && i < ours->node_count; ++i) {
        const Node *node = find_node(theirs, ours->node[i].name);
        if (node && node->kind && ours->node[i].kind) compare_layers(&ours->node[i], node, &list);
    }
    const int count = list.count;
    char *text = text_list_end(&list);
    if (count)
        st = fail(ERR_DATA, "%s: its configuration gives the same tensors another meaning: %s",
                  path, text);
    mem_free(&text);
    graph_free(&ours);
    graph_free(&theirs);
    return st;
}
