/* Sets the widths of the layers that model.widths names. The graph is first built with the model's
 * own widths. Then its shape rules run again with the new widths, so that the models need not
 * handle this key. Decisions that depend on shapes, such as whether a shortcut has a projection,
 * are made with the model's own widths. A depthwise convolution gets the number of channels of its
 * input, and a group norm with one channel per group still has one channel per group. */
#include "build.h"

#include <string.h>

static Status unknown_layer_fail(const Graph *graph, const Config *config, const char *name)
{
    const char **names = mem_new((size_t)(graph->node_count + 1) * sizeof *names);
    int count = 0;
    for (int i = 0; i < graph->node_count; ++i)
        if (node_has_own_width(&graph->node[i])) names[count++] = graph->node[i].name;
    const char *near = text_nearest(name, names, count);
    Status status =
        config_fail_key(config, "model.widths", "there is no layer '%s'%s%s%s", name,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    mem_free(&names);
    return status;
}

static Status check_layer(const Graph *graph, const Config *config, const char *name)
{
    int i = graph_find(graph, name);
    if (i == GRAPH_FAILED) return unknown_layer_fail(graph, config, name);
    const Node *node = &graph->node[i];
    if (node_has_own_width(node)) return OK;
    return config_fail_key(
        config, "model.widths",
        "layer %s (%s) has the channels of its input, or a fixed number: name the "
        "layers before it",
        name, node->kind->name);
}

/* Returns the channels of a layer in model.widths, or `default_value`. */
static int64_t width_of(const Config *config, const char *name, int64_t default_value)
{
    const ConfigWidths *widths = &config->model.widths;
    for (int i = 0; i < widths->count; ++i)
        if (!strcmp(widths->item[i].layer, name)) return widths->item[i].channels;
    return default_value;
}

/* Runs the node's shape rule again, with its new width and the new shapes of its inputs. */
static Status infer_again(Graph *graph, const Config *config, Node *node)
{
    LayerParam info[SPEC_PARAMS];
    /* these facts are read before the shapes of the inputs change */
    bool single = node_has_single_groups(node), depthwise = node_is_depthwise(node);
    bool own_width = node_has_own_width(node);
    for (int k = 0; k < node->spec.x_count; ++k) node->spec.x[k] = graph_output(graph, node->in[k]);
    if (single) node->spec.groups = (int)node->spec.x[0].shape.dim[1];
    if (depthwise) node->size.width = node->spec.groups;
    if (own_width)
        node->size.width =
            width_of(config, graph_name_without_step(graph, node->name), node->size.width);
    Status status = layer_infer_shapes(node->kind, &node->spec, &node->size, info);
    if (status == ERR_CONFIG)
        return config_fail_key(config, "model.widths", "layer %s: %s", node->name, fail_message());
    TRY(status);
    for (int k = 0; k < node->spec.w_count; ++k) {
        Param *p = &graph->param[node->param[k]];
        p->shape = node->spec.w[k];
        p->info = info[k];
    }
    return OK;
}

static Status check_tied(const Graph *graph, const Config *config)
{
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied_param < 0 || shape_equal(p->shape, graph->param[p->tied_param].shape)) continue;
        return config_fail_key(
            config, "model.widths",
            "%s is tied to %s, but with these widths the two have different shapes", p->name,
            graph->param[p->tied_param].name);
    }
    return OK;
}

Status graph_set_widths(Graph *graph, const Config *config)
{
    const ConfigWidths *widths = &config->model.widths;
    if (widths->count == 0) return OK;
    for (int i = 0; i < widths->count; ++i) TRY(check_layer(graph, config, widths->item[i].layer));
    for (int i = 0; i < graph->node_count; ++i) TRY(infer_again(graph, config, &graph->node[i]));
    return check_tied(graph, config);
}
