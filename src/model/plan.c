/* Plans every node's operation, in the order of nodes. If an operation prefers another layout of an
 * input, a reorder node is inserted before it; readers that prefer the same layout share one
 * reorder. After all nodes are planned, the parameters get their offsets in the arena. */
#include "build.h"

#include <string.h>

/* largest number of attempts to plan a node */
enum { LAYOUT_ROUNDS_MAX = 4 };

typedef struct Planner {
    /* borrowed; its nodes move to `node` when they are planned */
    Graph *graph;
    /* borrowed */
    Backend *backend;
    /* planned nodes and reorders, in their new order, [capacity]; owned */
    Node *node;
    /* names of the planned nodes; owned */
    NodeNames names;
    int count, capacity;
    /* The reorders of an output are a linked list; a link is a node's new index + 1, or 0 at the
     * end. newest[i + 1] is the link to the newest reorder of node i's output, newest[0] that of
     * the data. [capacity + 1]; owned */
    int *newest;
    /* earlier[r]: if node r is a reorder, link to the reorder of the same output that was added
     * before it; [capacity]; owned */
    int *earlier;
} Planner;

/* Appends a node to p->node and, if it is a reorder, to the list of its input's reorders. */
static Node *push(Planner *p, Node node)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        p->node = mem_resize(p->node, (size_t)p->capacity * sizeof *p->node);
        p->newest = mem_resize(p->newest, (size_t)(p->capacity + 1) * sizeof *p->newest);
        p->earlier = mem_resize(p->earlier, (size_t)p->capacity * sizeof *p->earlier);
    }
    /* a node without a kind is a reorder */
    int *head = &p->newest[node.in[0] - NODE_INPUT];
    p->earlier[p->count] = node.kind ? 0 : *head;
    if (!node.kind) *head = p->count + 1;
    p->newest[p->count + 1] = 0;
    p->node[p->count] = node;
    names_add(&p->names, p->node, p->count);
    return &p->node[p->count++];
}

static Desc output_of(const Planner *p, int node)
{
    return node == NODE_INPUT ? p->graph->input : p->node[node].spec.y;
}

/* Puts the layer's name before the message of the last failure, and returns `status`. */
static Status layer_fail(Status status, const char *name)
{
    char *message = mem_text(fail_message());
    fail(status, "layer %s: %s", name, message);
    mem_free(&message);
    return status;
}

/* Returns a name for a reorder of the producer's output: "bn1.reorder16" if the new layout has
 * blocks of 16, or "data.bf16" if the element type changes. If that name is taken, a number is
 * added. The caller owns the text. */
static char *reorder_name(const Planner *p, int producer, Desc preferred)
{
    bool same_type = preferred.dtype == output_of(p, producer).dtype;
    char layout[32];
    snprintf(layout, sizeof layout, "reorder%d", preferred.block);
    char *base = mem_format("%s.%s", producer == NODE_INPUT ? "data" : p->node[producer].name,
                            same_type ? layout : dtype_name(preferred.dtype));
    char *name = mem_text(base);
    for (int number = 2; names_find(&p->names, p->node, name) != GRAPH_FAILED; ++number) {
        mem_free(&name);
        name = mem_format("%s_%d", base, number);
    }
    mem_free(&base);
    return name;
}

/* Sets *index to a reorder node that gives the producer's output in the layout `preferred`. Adds
 * the node if it does not exist yet. */
static Status reorder_for(Planner *p, int producer, Desc preferred, bool need_dx, int *index)
{
    for (int i = p->newest[producer - NODE_INPUT]; i > 0; i = p->earlier[i - 1])
        if (desc_equal(p->node[i - 1].spec.y, preferred)) {
            *index = i - 1;
            return OK;
        }
    Node node = {.name = reorder_name(p, producer, preferred), .in = {producer}};
    node.spec = reorder_spec(output_of(p, producer), preferred);
    node.spec.need_dx[0] = need_dx;
    Desc ignored[SPEC_INPUTS] = {node.spec.x[0]};
    Status status = op_new(&node.op, p->backend, &node.spec, ignored);
    if (status != OK) {
        status = layer_fail(status, node.name);
        mem_free(&node.name);
        return status;
    }
    node.spec = node.op->spec;
    *index = p->count;
    push(p, node);
    return OK;
}

/* Plans a node. While its operation prefers other layouts of its inputs, inserts reorders and plans
 * it again. */
static Status plan_node(Planner *p, Node *node)
{
    for (int round = 0; round < LAYOUT_ROUNDS_MAX; ++round) {
        Desc preferred[SPEC_INPUTS] = {0};
        bool accepted = true;
        for (int k = 0; k < node->spec.x_count; ++k)
            preferred[k] = node->spec.x[k] = output_of(p, node->in[k]);
        Status status = op_new(&node->op, p->backend, &node->spec, preferred);
        if (status != OK) return layer_fail(status, node->name);
        for (int k = 0; k < node->spec.x_count; ++k) {
            if (desc_equal(preferred[k], node->spec.x[k])) continue;
            accepted = false;
            TRY(reorder_for(p, node->in[k], preferred[k], node->spec.need_dx[k], &node->in[k]));
        }
        const Node *producer = node->in[0] < 0 ? NULL : &p->node[node->in[0]];
        if (accepted && node->spec.x_act != ACT_NONE && !(producer && producer->spec.act_passed))
            return fail(ERR_BUG,
                        "layer %s does not read the layer whose activation was passed to it",
                        node->name);
        if (accepted) return OK;
        op_free(&node->op);
    }
    return fail(ERR_BUG, "layer %s accepts no layout of its inputs", node->name);
}

/* Plans all nodes, and changes every index that refers to a node from the old order to the new one.
 * *done: number of nodes that were moved to p->node. */
static Status plan_nodes(Planner *p, int *done)
{
    Graph *g = p->graph;
    int *new_index = mem_new((size_t)g->node_count * sizeof *new_index);
    Status status = OK;
    for (*done = 0; *done < g->node_count && status == OK; ++*done) {
        Node node = g->node[*done];
        for (int k = 0; k < node.spec.x_count; ++k)
            if (node.in[k] >= 0) node.in[k] = new_index[node.in[k]];
        status = plan_node(p, &node);
        if (status == OK) node.spec = node.op->spec;
        new_index[*done] = p->count;
        push(p, node);
    }
    if (status == OK) {
        for (int i = 0; i < g->param_count; ++i) g->param[i].node = new_index[g->param[i].node];
        for (int i = 0; i < g->table_count; ++i) g->table[i].node = new_index[g->table[i].node];
        g->logits_node = new_index[g->logits_node];
        g->loss_node = new_index[g->loss_node];
    }
    mem_free(&new_index);
    return status;
}

/* Fails if a parameter and its original (Param.tied_param) are stored in different orders, which is
 * possible if nodes pack them (OpTable.pack). Packs the same array with both nodes and compares the
 * results. In an array of up to 2^24 elements almost all values are distinct, so that different
 * orders are found. */
static Status check_order(const Graph *g, const Param *param)
{
    const Param *original = &g->param[param->tied_param];
    const Node *const node[] = {&g->node[param->node], &g->node[original->node]};
    const int64_t n = shape_count(param->shape);
    if (!node[0]->spec.shared_weight || !node[0]->op->table->pack) return OK;
    float *plain = mem_new((size_t)n * sizeof *plain), *stored[2];
    for (int64_t i = 0; i < n; ++i)
        plain[i] = (float)(i % (1 << 22) + 1) + 0.25F * (float)(i >> 22);
    for (int k = 0; k < 2; ++k) {
        stored[k] = mem_new((size_t)param->elements * sizeof *stored[k]);
        op_pack(node[k]->op, param->slot, plain, stored[k]);
    }
    const bool same = !memcmp(stored[0], stored[1], (size_t)param->elements * sizeof(float));
    for (int k = 0; k < 2; ++k) mem_free(&stored[k]);
    mem_free(&plain);
    if (same) return OK;
    return fail(ERR_BUG, "%s and %s are tied, but stored in different orders", param->name,
                original->name);
}

/* Sets the offsets and numbers of elements of all parameters. A tied parameter has the offset of
 * its original (Param.tied_param). */
static Status set_offsets(Graph *g)
{
    int64_t end = 0;
    for (int i = 0; i < g->param_count; ++i) {
        Param *param = &g->param[i];
        const Param *original = param->tied_param >= 0 ? &g->param[param->tied_param] : NULL;
        param->offset = original ? original->offset : end;
        param->elements = g->node[param->node].op->w_elements[param->slot];
        if (original && param->elements != original->elements)
            return fail(ERR_BUG, "%s and %s are tied, but stored with different sizes", param->name,
                        original->name);
        if (original) TRY(check_order(g, param));
        if (!original) end += arena_align(param->elements);
    }
    g->arena_elements = end;
    return OK;
}

Status graph_plan(Graph *graph, Backend *backend)
{
    int done;
    for (int i = 0; i < graph->node_count; ++i)
        if (graph->node[i].op) return fail(ERR_BUG, "graph_plan was called twice");
    Planner p = {.graph = graph, .backend = backend, .newest = mem_new(sizeof *p.newest)};
    Status status = plan_nodes(&p, &done);
    /* After a failure the remaining nodes are moved unplanned, so that graph_free finds every node
     * once. */
    for (; done < graph->node_count; ++done) push(&p, graph->node[done]);
    mem_free(&p.newest);
    mem_free(&p.earlier);
    mem_free(&graph->node);
    names_fini(&graph->names);
    graph->node = p.node;
    graph->names = p.names;
    graph->node_count = p.count;
    graph->node_capacity = p.capacity;
    return status == OK ? set_offsets(graph) : status;
}
