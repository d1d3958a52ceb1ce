/* Appends nodes with their parameters and tables to a graph, finds which gradients are needed, and
 * counts parameters. A node can only read earlier nodes, so the order of nodes is topological. */
#include "build.h"

#include <string.h>

/* Largest number of elements of a tensor; a larger one must be a typing error in the
 * configuration. */
static const double ELEMENTS_MAX = 0x1p40;
/* Largest number of nodes. A node needs 5 to 40 KB even before the plan can check the memory limit,
 * so a list that is too long by mistake is refused early. */
enum { NODES_MAX = 65536 };

Desc graph_output(const Graph *graph, int node)
{
    if (node == NODE_INPUT) node = graph->source + NODE_INPUT;
    return node == NODE_INPUT ? graph->input : graph->node[node].spec.y;
}

int64_t graph_channels(const Graph *graph, int node)
{
    Shape s = graph_output(graph, node).shape;
    return s.dim[s.ndim == 3 ? 2 : 1];
}

int graph_find(const Graph *graph, const char *name)
{
    if (!graph->prefix) return names_find(&graph->names, graph->node, name);
    char *full = mem_format("%s%s", graph->prefix, name);
    const int found = names_find(&graph->names, graph->node, full);
    mem_free(&full);
    return found;
}

bool graph_name_taken(const Graph *graph, const char *name)
{
    return graph_find(graph, name) != GRAPH_FAILED;
}

Status draft_begin(const Graph *graph, Draft *draft, const LayerKind *kind, const char *name,
                   const int *in, int in_count)
{
    *draft = (Draft){.kind = kind, .name = name};
    if (graph->node_count >= NODES_MAX)
        return fail(ERR_CONFIG,
                    "the model has more than %d layers, the most that can be planned: make it "
                    "shallower",
                    NODES_MAX);
    if (graph_name_taken(graph, name))
        return fail(ERR_CONFIG, "two layers have the name '%s'", name);
    TRY(layer_begin(kind, &draft->spec, &draft->size));
    if (kind->inputs > 0 && in_count != kind->inputs)
        return fail(ERR_CONFIG, "%s needs %d input%s, got %d%s", kind->name, kind->inputs,
                    kind->inputs == 1 ? "" : "s", in_count,
                    kind->inputs == 1 ? "" : ": name them, as in input: [a, b]");
    const int least = kind->inputs == INPUTS_TWO_OR_MORE ? 2 : 1;
    if (kind->inputs < 0 && (in_count < least || in_count > SPEC_INPUTS))
        return fail(ERR_CONFIG, "%s needs %d to %d inputs, got %d: name them, as in input: [a, b]",
                    kind->name, least, SPEC_INPUTS, in_count);
    draft->spec.x_count = in_count;
    for (int i = 0; i < in_count; ++i) {
        draft->in[i] = in[i] == NODE_INPUT ? graph->source + NODE_INPUT : in[i];
        draft->spec.x[i] = graph_output(graph, in[i]);
    }
    if (op_info(kind->op)->reads == READS_IDS && in[0] != NODE_INPUT)
        return fail(ERR_CONFIG, "%s reads the ids of the data: its input is data", kind->name);
    draft->size.fields = graph->ids.fields;
    draft->size.id_limit = graph->ids.id_limit;
    return OK;
}

/* Fails if the output or a parameter is too large. */
static Status check_sizes(const OpSpec *spec)
{
    for (int i = -1; i < spec->w_count; ++i) {
        Shape s = i < 0 ? spec->y.shape : spec->w[i];
        double n = 1;
        for (int d = 0; d < s.ndim; ++d) n *= (double)s.dim[d];
        if (n > ELEMENTS_MAX)
            return fail(ERR_CONFIG, "%s of %.3g numbers is too large",
                        i < 0 ? "an output" : "a parameter", n);
    }
    return OK;
}

static void add_params(Graph *graph, Node *node, int index, const LayerParam info[SPEC_PARAMS])
{
    int count = graph->param_count + node->spec.w_count;
    if (count > graph->param_capacity) {
        graph->param_capacity = 2 * count;
        graph->param =
            mem_resize(graph->param, (size_t)graph->param_capacity * sizeof *graph->param);
    }
    for (int i = 0; i < node->spec.w_count; ++i) {
        node->param[i] = graph->param_count;
        graph->param[graph->param_count++] = (Param){
            .name = mem_format("%s.%s", node->name, info[i].name),
            .shape = node->spec.w[i],
            .node = index,
            .slot = i,
            .info = info[i],
            .tied_param = -1,
        };
    }
}

/* Adds one table for all fields of a bag, or one for each field. */
static void add_tables(Graph *graph, Node *node, int index)
{
    const LayerSize *size = &node->size;
    const bool each = size->tables == TABLES_EACH;
    const int tables = each ? node->spec.bag_fields : 1;
    graph->table =
        mem_resize(graph->table, (size_t)(graph->table_count + tables) * sizeof *graph->table);
    node->spec.bag = graph->bag_count++;
    for (int f = 0; f < tables; ++f)
        graph->table[graph->table_count++] = (SparseTable){
            .name = each ? mem_format("%s.%d", node->name, f) : mem_text(node->name),
            .node = index,
            .field = each ? f : -1,
            .rows = (uint64_t)size->rows,
            .hashed = size->hashed,
            .width = node->spec.row_width,
            .init = size->init,
            .scale = size->init_std,
        };
}

/* If the kind needs another layer before this layer (LayerKind.inserted_before), adds it, named
 * NAME.KIND, and makes it the first input. */
static Status add_before(Graph *graph, Draft *draft)
{
    Draft first;
    Padding padding = {0};
    const LayerKind *kind =
        draft->kind->inserted_before ? draft->kind->inserted_before(&draft->spec, &padding) : NULL;
    if (!kind) return OK;
    char *name = mem_format("%s.%s", draft->name, kind->name);
    Status status = draft_begin(graph, &first, kind, name, draft->in, 1);
    first.spec.padding = padding;
    if (status == OK) status = draft_finish(graph, &first, &draft->in[0]);
    mem_free(&name);
    if (status == OK) draft->spec.x[0] = graph_output(graph, draft->in[0]);
    return status;
}

Status draft_finish(Graph *graph, Draft *draft, int *index)
{
    LayerParam info[SPEC_PARAMS];
    TRY(add_before(graph, draft));
    TRY(layer_infer_shapes(draft->kind, &draft->spec, &draft->size, info));
    TRY(check_sizes(&draft->spec));
    int i = graph->node_count;
    if (i == graph->node_capacity) {
        graph->node_capacity = 2 * i + 16;
        graph->node = mem_resize(graph->node, (size_t)graph->node_capacity * sizeof *graph->node);
    }
    Node *node = &graph->node[i];
    *node = (Node){.name = mem_format("%s%s", graph->prefix ? graph->prefix : "", draft->name),
                   .kind = draft->kind,
                   .size = draft->size,
                   .spec = draft->spec};
    node->spec.seed_name = hash_text(node->name);
    memcpy(node->in, draft->in, sizeof node->in);
    graph->node_count = i + 1;
    names_add(&graph->names, graph->node, i);
    add_params(graph, node, i, info);
    if (node_info(node)->reads == READS_IDS) add_tables(graph, node, i);
    *index = i;
    return OK;
}

/* Adds a layer whose attributes are the pairs of texts in `pairs`. */
static Status add_pairs(Graph *graph, const char *kind_name, const char *name, const int *in,
                        int in_count, va_list pairs, int *index)
{
    Draft draft;
    const LayerKind *kind = layer_kind(kind_name);
    if (!kind) return fail(ERR_BUG, "there is no layer '%s'", kind_name);
    TRY(draft_begin(graph, &draft, kind, name, in, in_count));
    for (const char *key; (key = va_arg(pairs, const char *));)
        TRY(layer_set_attr(kind, &draft.spec, &draft.size, key, va_arg(pairs, const char *)));
    return draft_finish(graph, &draft, index);
}

int graph_add(Graph *graph, const char *kind, const char *name, const int *in, int in_count, ...)
{
    int index = GRAPH_FAILED;
    for (int i = 0; i < in_count; ++i)
        if (in[i] == GRAPH_FAILED) return GRAPH_FAILED;
    va_list pairs;
    va_start(pairs, in_count);
    Status status = add_pairs(graph, kind, name, in, in_count, pairs, &index);
    va_end(pairs);
    if (status == OK) return index;
    char *message = mem_text(fail_message());
    fail(status, "layer %s: %s", name, message);
    mem_free(&message);
    return GRAPH_FAILED;
}

void graph_free(Graph **graph)
{
    Graph *g = *graph;
    if (!g) return;
    graph_free(&g->undivided);
    for (int i = 0; i < g->node_count; ++i) {
        op_free(&g->node[i].op);
        mem_free(&g->node[i].name);
    }
    for (int i = 0; i < g->param_count; ++i) mem_free(&g->param[i].name);
    for (int i = 0; i < g->table_count; ++i) mem_free(&g->table[i].name);
    for (int i = 0; i < g->channel_sum_count; ++i) mem_free(&g->channel_sums[i]);
    mem_free(&g->channel_sums);
    mem_free(&g->table);
    names_fini(&g->names);
    mem_free(&g->node);
    mem_free(&g->param);
    mem_free(graph);
}

void graph_count_uses(const Graph *graph, int *uses)
{
    memset(uses, 0, (size_t)graph->node_count * sizeof *uses);
    for (int i = 0; i < graph->node_count; ++i)
        for (int k = 0; k < graph->node[i].spec.x_count; ++k)
            if (graph->node[i].in[k] != NODE_INPUT) ++uses[graph->node[i].in[k]];
}

/* Sets x_shared of nodes whose first input is also read by a later node. */
static void find_shared_inputs(Graph *graph)
{
    /* read[i + 1]: a later node reads node i's output; read[0]: a later node reads the data */
    bool *read = mem_new((size_t)(graph->node_count + 1) * sizeof *read);
    for (int i = graph->node_count - 1; i >= 0; --i) {
        Node *node = &graph->node[i];
        node->spec.x_shared = read[node->in[0] - NODE_INPUT];
        for (int k = 0; k < node->spec.x_count; ++k) read[node->in[k] - NODE_INPUT] = true;
    }
    mem_free(&read);
}

bool node_is_trained(const Graph *graph, const Node *node)
{
    for (int k = 0; k < node->spec.w_count; ++k) {
        const Param *p = &graph->param[node->param[k]];
        if (!p->info.is_statistic && !p->frozen) return true;
    }
    for (int k = 0; node_info(node)->reads == READS_IDS && k < graph->table_count; ++k)
        if (&graph->node[graph->table[k].node] == node && !graph->table[k].frozen) return true;
    return false;
}

/* The gradient of an input is needed if the node that computes the input is trained, or if a node
 * on whose output that node depends is trained. */
void graph_set_need_dx(Graph *graph)
{
    /* needed[i]: the gradient of node i's output is needed */
    bool *needed = mem_new((size_t)(graph->node_count + 1) * sizeof *needed);
    for (int i = 0; i < graph->node_count; ++i) {
        Node *node = &graph->node[i];
        node->spec.frozen = op_has_values(&node->spec);
        for (int k = 0; k < node->spec.w_count; ++k)
            node->spec.frozen = node->spec.frozen && graph->param[node->param[k]].frozen;
        for (int k = 0; node_info(node)->reads == READS_IDS && k < graph->table_count; ++k)
            if (graph->table[k].node == i && !graph->table[k].frozen) node->spec.frozen = false;
        needed[i] = node_is_trained(graph, node);
        for (int k = 0; k < node->spec.x_count; ++k) {
            node->spec.need_dx[k] = node->in[k] != NODE_INPUT && needed[node->in[k]];
            needed[i] = needed[i] || node->spec.need_dx[k];
        }
    }
    mem_free(&needed);
    find_shared_inputs(graph);
}

void graph_close_act_boundaries(const Graph *graph, bool *closed)
{
    memset(closed, 0, (size_t)(graph->node_count + 1) * sizeof *closed);
    /* Nodes behind the boundary before node i: the lowest index of a node whose output one of them
     * needs in its own chunk. */
    int lowest = graph->node_count;
    for (int i = graph->node_count - 1; i >= 0; --i) {
        const Node *node = &graph->node[i];
        if (node->spec.x_act != ACT_NONE && node->in[0] < lowest) lowest = node->in[0];
        closed[i] = lowest < i;
    }
}

bool graph_is_output(const Graph *graph, int node)
{
    const Node *loss = &graph->node[graph->loss_node];
    for (int k = 0; k < loss->spec.x_count; ++k) {
        int in = loss->in[k];
        /* a node without a kind is a reorder */
        while (in != node && in >= 0 && !graph->node[in].kind) in = graph->node[in].in[0];
        if (in == node) return true;
    }
    return node == graph->logits_node;
}

const Graph *graph_undivided(const Graph *graph)
{
    return graph->undivided ? graph->undivided : graph;
}

/* Returns the number of elements of the frozen, or of the trained, parameters of the undivided
 * graph. */
static int64_t count_elements(const Graph *graph, bool frozen)
{
    const Graph *g = graph_undivided(graph);
    int64_t n = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!p->info.is_statistic && p->tied_param < 0 && p->frozen == frozen)
            n += shape_count(p->shape);
    }
    return n;
}

int64_t graph_table_value_count(const Graph *graph, bool frozen)
{
    int64_t n = 0;
    for (int i = 0; i < graph->table_count; ++i)
        if (graph->table[i].frozen == frozen)
            n += (int64_t)graph->table[i].rows * graph->table[i].width;
    return n;
}

int64_t graph_trained_elements(const Graph *graph)
{
    return count_elements(graph, false);
}

int64_t graph_param_elements(const Graph *graph)
{
    return graph_trained_elements(graph) + count_elements(graph, true);
}

double node_macs(const Node *node)
{
    const OpInfo *info = node_info(node);
    return info->macs ? info->macs(&node->spec) : 0;
}

double graph_sample_macs(const Graph *graph)
{
    const Graph *g = graph_undivided(graph);
    double macs = 0;
    for (int i = 0; i < g->node_count; ++i) macs += node_macs(&g->node[i]);
    return macs / (double)g->input.shape.dim[0];
}
