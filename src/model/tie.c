/* Ties parameters: two layers use one value, but each computes a gradient of its own. Both layers
 * must be able to store the parameter in plain order, so that they can share the stored value. */
#include "build.h"

#include <string.h>

/* Sets *index to the index of the parameter whose name is Graph.prefix followed by `name`.
 * ERR_CONFIG: it is not among the first `count` parameters. */
static Status find_param(const Graph *graph, const char *name, int count, int *index)
{
    const char *prefix = graph->prefix ? graph->prefix : "";
    const size_t chars = strlen(prefix);
    for (*index = 0; *index < count; ++*index) {
        const char *at = graph->param[*index].name;
        if (strncmp(at, prefix, chars) == 0 && strcmp(at + chars, name) == 0) return OK;
    }
    const char **names = mem_new((size_t)(count + 1) * sizeof *names);
    for (int i = 0; i < count; ++i) names[i] = graph->param[i].name;
    const char *near = text_nearest(name, names, count);
    fail(ERR_CONFIG, "no earlier parameter is named '%s'%s%s%s", name,
         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    mem_free(&names);
    return ERR_CONFIG;
}

/* Writes the names of the layers that can store a parameter in plain order, such as "dense,
 * embedding and positions", to `out`, which has `bytes` bytes, and returns `out`. */
static char *plain_layers(char *out, size_t bytes)
{
    const OpInfo *info, *last = NULL;
    size_t used = 0;
    out[0] = 0;
    for (OpKind kind = 1; (info = op_info(kind)); ++kind) {
        if (!op_plain_weight(info)) continue;
        if (last && used < bytes)
            used +=
                (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", last->name);
        last = info;
    }
    if (last && used < bytes) snprintf(out + used, bytes - used, " and %s", last->name);
    return out;
}

static Status check_pair(const Graph *graph, const Param *param, const Param *original)
{
    char a[64], b[64];
    char layers[256];
    if (!op_plain_weight(node_info(&graph->node[param->node])) ||
        !op_plain_weight(node_info(&graph->node[original->node])))
        return fail(ERR_CONFIG, "%s cannot be tied to %s: only %s layers share a parameter",
                    param->name, original->name, plain_layers(layers, sizeof layers));
    if (!shape_equal(param->shape, original->shape))
        return fail(ERR_CONFIG, "%s is %s and cannot be tied to %s, which is %s", param->name,
                    shape_text(param->shape, a), original->name, shape_text(original->shape, b));
    return OK;
}

Status graph_tie(Graph *graph, int node, int slot, const char *name)
{
    int original;
    /* the message of the failed layer remains */
    if (node == GRAPH_FAILED) return ERR_CONFIG;
    if (node < 0 || node >= graph->node_count || slot < 0 || slot >= graph->node[node].spec.w_count)
        return fail(ERR_BUG, "layer %d has no parameter %d to tie to %s", node, slot, name);
    if (graph->node[node].op) return fail(ERR_BUG, "graph_tie comes before graph_plan");
    Param *param = &graph->param[graph->node[node].param[slot]];
    TRY(find_param(graph, name, (int)(param - graph->param), &original));
    if (graph->param[original].tied_param >= 0) original = graph->param[original].tied_param;
    TRY(check_pair(graph, param, &graph->param[original]));
    param->tied_param = original;
    graph->node[node].spec.plain_weight = true;
    graph->node[graph->param[original].node].spec.plain_weight = true;
    return OK;
}

bool graph_has_one_use(const Graph *graph, int param)
{
    const Param *p = &graph->param[param];
    if (p->info.is_statistic || p->frozen || p->tied_param >= 0) return false;
    for (int i = 0; i < graph->param_count; ++i)
        if (graph->param[i].tied_param == param) return false;
    return true;
}
