/* Builds the layers that model.layers lists. A layer reads the layers that its attribute `input`
 * names ("data" means the data). Without `input` it reads the layer before it, or the data if it
 * reads ids. The attribute `name` names a layer and its parameters; the default is the kind and a
 * number that is counted for each kind: conv2d1. */
#include "build.h"

#include "config/foreign.h"

#include <ctype.h>
#include <string.h>

/* The layers of one kind so far. */
typedef struct KindCount {
    /* number of layers of the kind */
    int layers;
    /* highest number in a default name of the kind */
    int number;
} KindCount;

typedef struct ListEntry {
    /* borrowed */
    const ConfigLayer *layer;
    const LayerKind *kind;
    /* the attributes `name` and `input`, borrowed; NULL if not given */
    const ConfigAttr *name, *input;
} ListEntry;

/* Adds file, line and column of an attribute to the message of the last failure, if it is
 * ERR_CONFIG. */
static Status attr_fail(const Config *config, const ConfigAttr *attr, Status status)
{
    if (status != ERR_CONFIG) return status;
    char *message = mem_text(fail_message());
    status = config_fail(config, attr->line, attr->column, "%s", message);
    mem_free(&message);
    return status;
}

/* Sets entry->kind. If the kind is unknown, fails with a message that suggests known kinds. */
static Status find_kind(const Config *config, ListEntry *entry)
{
    enum { KINDS_MAX = 64 };
    const char *names[KINDS_MAX];
    const ConfigLayer *l = entry->layer;
    int count = 0;
    for (const LayerKind *kind; count < KINDS_MAX && (kind = layer_kind_at(count)); ++count)
        names[count] = kind->name;
    entry->kind = layer_kind(l->kind);
    if (entry->kind && op_is_loss(op_info(entry->kind->op)))
        return config_fail(
            config, l->line, l->column,
            "%s is added automatically: choose it with train.loss and leave it out here", l->kind);
    if (entry->kind) return OK;
    for (int i = 0; i < count; ++i)
        if (foreign_words_match(l->kind, names[i]))
            return config_fail(config, l->line, l->column,
                               "there is no layer '%s'; did you mean '%s'?", l->kind, names[i]);
    char *foreign = foreign_text(FOREIGN_LAYER, l->kind);
    if (foreign) {
        config_fail(config, l->line, l->column, "there is no layer '%s': %s", l->kind, foreign);
        mem_free(&foreign);
        return ERR_CONFIG;
    }
    const char *near = text_nearest(l->kind, names, count);
    if (near)
        return config_fail(config, l->line, l->column, "there is no layer '%s'; did you mean '%s'?",
                           l->kind, near);
    char all[512] = "";
    for (int i = 0; i < count; ++i) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    return config_fail(config, l->line, l->column, "there is no layer '%s'; there are %s", l->kind,
                       all);
}

static Status check_name(const Config *config, const ConfigAttr *attr)
{
    const char *c = attr->value;
    bool valid = *c != '\0' && strcmp(c, "data") != 0 && strcmp(c, "loss") != 0;
    for (; *c; ++c) valid = valid && (isalnum((unsigned char)*c) || strchr("_-.", *c));
    if (valid) return OK;
    return config_fail(
        config, attr->line, attr->column,
        "'%s' cannot name a layer: use letters, digits, _ - and ., and neither data nor loss",
        attr->value);
}

static Status entry_read(const Config *config, const ConfigLayer *layer, ListEntry *entry)
{
    *entry = (ListEntry){.layer = layer};
    TRY(find_kind(config, entry));
    for (int i = 0; i < layer->attr_count; ++i) {
        const ConfigAttr *attr = &layer->attr[i];
        if (strcmp(attr->key, "input") == 0) entry->input = attr;
        if (strcmp(attr->key, "name") == 0) {
            TRY(check_name(config, attr));
            entry->name = attr;
        }
    }
    return OK;
}

/* Sets *in to the index of the node called `name`, which is one word of the attribute `input`, or
 * to NODE_INPUT for "data". */
static Status find_input(const Graph *graph, const Config *config, const ConfigAttr *attr,
                         const char *name, int *in)
{
    *in = NODE_INPUT;
    if (strcmp(name, "data") == 0) return OK;
    *in = graph_find(graph, name);
    if (*in != GRAPH_FAILED) return OK;
    const char **names = mem_new((size_t)(graph->node_count + 1) * sizeof *names);
    for (int i = 0; i < graph->node_count; ++i) names[i] = graph->node[i].name;
    names[graph->node_count] = "data";
    const char *near = text_nearest(name, names, graph->node_count + 1);
    Status status =
        config_fail(config, attr->line, attr->column, "input: no earlier layer is named '%s'%s%s%s",
                    name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    mem_free(&names);
    return status;
}

/* Sets in[0] to in[*count - 1] to the nodes that the attribute `input` names. Without this
 * attribute there is one input: the node before the layer, or the data for the first layer and for
 * layers that read ids. */
static Status read_inputs(const Graph *graph, const Config *config, const ListEntry *entry,
                          int in[SPEC_INPUTS], int *count)
{
    const ConfigAttr *attr = entry->input;
    const bool data =
        graph->node_count == graph->source || op_info(entry->kind->op)->reads == READS_IDS;
    *count = 1;
    in[0] = data ? NODE_INPUT : graph->node_count - 1;
    if (!attr) return OK;
    char *text = mem_text(attr->value), *rest = text;
    Status status = OK;
    *count = 0;
    for (char *word; status == OK && (word = strsep(&rest, ","));) {
        word += strspn(word, " ");
        word[strcspn(word, " ")] = '\0';
        if (*count == SPEC_INPUTS)
            status = config_fail(config, attr->line, attr->column, "input: at most %d layers",
                                 SPEC_INPUTS);
        else
            status = find_input(graph, config, attr, word, &in[(*count)++]);
    }
    mem_free(&text);
    return status;
}

/* Returns the next free name of conv2d1, conv2d2, ...; the caller owns the text. Names never become
 * free again, so the search begins after the highest number used so far. */
static char *default_name(const Graph *graph, const LayerKind *kind, KindCount *count)
{
    int number = count->layers > count->number ? count->layers : count->number;
    char *name = mem_format("%s%d", kind->name, ++number);
    while (graph_name_taken(graph, name)) {
        mem_free(&name);
        name = mem_format("%s%d", kind->name, ++number);
    }
    count->number = number;
    return name;
}

static Status entry_build(Graph *graph, const Config *config, const ListEntry *entry,
                          const char *name)
{
    const ConfigLayer *l = entry->layer;
    const ConfigAttr here = {.line = l->line, .column = l->column};
    int in[SPEC_INPUTS], count, index;
    Draft draft;
    TRY(read_inputs(graph, config, entry, in, &count));
    Status status = draft_begin(graph, &draft, entry->kind, name, in, count);
    if (status != OK) return attr_fail(config, entry->name ? entry->name : &here, status);
    for (int i = 0; i < l->attr_count; ++i) {
        const ConfigAttr *attr = &l->attr[i];
        if (attr == entry->name || attr == entry->input) continue;
        status = layer_set_attr(entry->kind, &draft.spec, &draft.size, attr->key, attr->value);
        if (status != OK) return attr_fail(config, attr, status);
    }
    status = draft_finish(graph, &draft, &index);
    return status == OK ? OK : attr_fail(config, &here, status);
}

/* Adds one layer. counts: one for each kind, in the order of layer_kind_at. */
static Status entry_add(Graph *graph, const Config *config, const ConfigLayer *layer,
                        KindCount *counts)
{
    ListEntry entry;
    TRY(entry_read(config, layer, &entry));
    KindCount *count = counts;
    for (int i = 0; layer_kind_at(i) != entry.kind; ++i) ++count;
    char *name = entry.name ? mem_text(entry.name->value) : default_name(graph, entry.kind, count);
    Status status = entry_build(graph, config, &entry, name);
    ++count->layers;
    mem_free(&name);
    return status;
}

/* Returns whether the loss reads the layer: whether model.outputs names it or, if that key is
 * empty, whether it is the last layer. */
static bool is_output(const Graph *graph, const Config *config, int node)
{
    const char *name = graph_name_without_step(graph, graph->node[node].name);
    const char *at = config->model.outputs;
    const size_t length = strlen(name);
    if (!*at) return node == graph->node_count - 1;
    for (; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length])) return true;
    }
    return false;
}

/* Fails if a layer's output is read neither by another layer nor by the loss. node[i]: index of the
 * node of entry i in model.layers. */
static Status check_uses(const Graph *graph, const Config *config, const int *node)
{
    int *uses = mem_new((size_t)graph->node_count * sizeof *uses);
    Status status = OK;
    graph_count_uses(graph, uses);
    for (int i = 0; i < config->model.layer_count && status == OK; ++i)
        if (!uses[node[i]] && !is_output(graph, config, node[i]))
            status = config_fail(config, config->model.layer[i].line, config->model.layer[i].column,
                                 "no layer reads the output of %s", graph->node[node[i]].name);
    mem_free(&uses);
    return status;
}

Status graph_add_list(Graph *graph, const Config *config, int *last)
{
    int kinds = 0;
    while (layer_kind_at(kinds)) ++kinds;
    KindCount *counts = mem_new((size_t)kinds * sizeof *counts);
    int *node = mem_new((size_t)config->model.layer_count * sizeof *node);
    Status status = OK;
    for (int i = 0; i < config->model.layer_count && status == OK; ++i) {
        status = entry_add(graph, config, &config->model.layer[i], counts);
        node[i] = graph->node_count - 1;
    }
    *last = graph->node_count - 1;
    if (status == OK) status = check_uses(graph, config, node);
    mem_free(&node);
    mem_free(&counts);
    return status;
}
