/* Fuses neighbours that a backend runs as one operation. A node is merged into its producer only if
 * the producer has no other reader; a relu is merged into the max_pool after it only if the
 * max_pool is its only reader. */
#include "build.h"

#include <string.h>

typedef struct Fuser {
    /* graph and table: borrowed */
    Graph *graph;
    const BackendTable *table;
    /* for each node: index of the node into which it was merged and that computes its output, or
     * its own index; current_node follows these links; owned */
    int *merged_into;
    /* for each node: number of inputs that read its output; owned */
    int *uses;
    /* for each node: index of the last node that reads its output; owned */
    int *reader;
    /* for each node: true if it is part of another node now, and will be removed; owned */
    bool *merged;
} Fuser;

/* Returns the node that computes the output of `node` after all merges so far. */
static int current_node(const Fuser *f, int node)
{
    while (node >= 0 && f->merged_into[node] != node) node = f->merged_into[node];
    return node;
}

static bool can_fuse_act(const Fuser *f, const Node *node, Act act)
{
    if (node->spec.act != ACT_NONE || !(node_info(node)->acts >> act & 1)) return false;
    if (act == ACT_SILU)
        return f->table->batch_norm_silu == SUPPORTED && op_fuses_silu(&node->spec);
    return act != ACT_GELU || (f->table->dense_gelu == SUPPORTED && !node->spec.residual);
}

static bool is_max_pool(const Node *node)
{
    return node_info(node)->fuse == FUSE_RELU_BEFORE_MAX && node->spec.pool == POOL_MAX;
}

/* Merges node i into the node with index `into`, which gets node i's readers. */
static void merge(Fuser *f, int i, int into)
{
    f->merged_into[i] = into;
    f->merged[i] = true;
    f->uses[into] = f->uses[i];
    f->reader[into] = f->reader[i];
}

/* Lets the dense layer after a gelu compute the gelu's gradient along with its own (OpSpec.x_act).
 * i: an activation that is being merged into `producer`. Does nothing unless it is a gelu, a dense
 * layer is its only reader, and producer, gelu and reader are neighbours in the order of nodes. */
static void pass_act(Fuser *f, int producer, int i)
{
    Node *reader = &f->graph->node[f->reader[i]];
    if (f->graph->node[i].spec.act != ACT_GELU || f->uses[i] != 1) return;
    if (producer != i - 1 || f->reader[i] != i + 1 || node_info(reader)->fuse != FUSE_X_ACT) return;
    reader->spec.x_act = ACT_GELU;
    f->graph->node[producer].spec.act_passed = true;
}

/* Fuses an activation into the operation before it, if that operation can apply the activation
 * (OpInfo.acts). Leaves a relu that only a max_pool reads to fuse_pool, because after the pool the
 * relu has fewer values to process. */
static void fuse_act(Fuser *f, int i)
{
    Node *node = &f->graph->node[i];
    int producer = node->in[0];
    if (producer < 0 || f->uses[producer] != 1 ||
        !can_fuse_act(f, &f->graph->node[producer], node->spec.act))
        return;
    if (node->spec.act == ACT_RELU && f->uses[i] == 1 && is_max_pool(&f->graph->node[f->reader[i]]))
        return;
    f->graph->node[producer].spec.act = node->spec.act;
    pass_act(f, producer, i);
    merge(f, i, producer);
}

static bool can_fuse_add(const Fuser *f, const Node *node)
{
    if (node->spec.act != ACT_NONE || node->spec.residual) return false;
    OpResidual residual = node_info(node)->residual;
    return residual == RESIDUAL_ALWAYS ||
           (residual == RESIDUAL_BY_BACKEND && f->table->dense_residual == SUPPORTED);
}

/* Fuses an add into one of the two nodes that it reads: the later one in the order of nodes, if its
 * operation can add a second input (OpInfo.residual). That node then reads and adds the output of
 * the earlier one. */
static void fuse_add(Fuser *f, int i)
{
    Node *node = &f->graph->node[i];
    int later = node->in[0] > node->in[1] ? node->in[0] : node->in[1];
    int other = later == node->in[0] ? node->in[1] : node->in[0];
    if (later < 0 || other == later || f->uses[later] != 1) return;
    Node *into = &f->graph->node[later];
    if (!can_fuse_add(f, into)) return;
    into->spec.residual = true;
    into->spec.x_count = 2;
    into->spec.x[1] = graph_output(f->graph, other);
    into->in[1] = other;
    merge(f, i, later);
}

/* Fuses a relu into the max_pool after it. The pool then reads the relu's input, and applies the
 * relu to its own output. */
static void fuse_pool(Fuser *f, int i)
{
    Node *pool = &f->graph->node[i];
    int producer = pool->in[0];
    if (producer < 0 || pool->spec.act != ACT_NONE || f->uses[producer] != 1) return;
    const Node *relu = &f->graph->node[producer];
    if (node_info(relu)->fuse != FUSE_ACT || relu->spec.act != ACT_RELU) return;
    pool->spec.act = ACT_RELU;
    pool->in[0] = relu->in[0];
    f->merged[producer] = true;
    if (relu->in[0] >= 0) f->reader[relu->in[0]] = i;
}

static void fuse_all(Fuser *f)
{
    for (int i = 0; i < f->graph->node_count; ++i) {
        Node *node = &f->graph->node[i];
        for (int k = 0; k < node->spec.x_count; ++k) node->in[k] = current_node(f, node->in[k]);
        OpFuse fuse = node_info(node)->fuse;
        if (fuse == FUSE_ACT)
            fuse_act(f, i);
        else if (fuse == FUSE_ADD)
            fuse_add(f, i);
        else if (is_max_pool(node))
            fuse_pool(f, i);
    }
}

/* Removes the merged nodes, and changes every index that refers to a node from the old order to the
 * new one. */
static void compact(Fuser *f)
{
    Graph *g = f->graph;
    int *new_index = mem_new((size_t)g->node_count * sizeof *new_index);
    int count = 0;
    for (int i = 0; i < g->node_count; ++i) {
        if (f->merged[i]) {
            mem_free(&g->node[i].name);
            continue;
        }
        new_index[i] = count;
        g->node[count] = g->node[i];
        for (int k = 0; k < g->node[count].spec.x_count; ++k)
            if (g->node[count].in[k] >= 0)
                g->node[count].in[k] = new_index[current_node(f, g->node[count].in[k])];
        ++count;
    }
    for (int i = 0; i < g->param_count; ++i) g->param[i].node = new_index[g->param[i].node];
    for (int i = 0; i < g->table_count; ++i) g->table[i].node = new_index[g->table[i].node];
    g->logits_node = new_index[current_node(f, g->logits_node)];
    g->loss_node = new_index[g->loss_node];
    g->node_count = count;
    graph_index_names(g);
    mem_free(&new_index);
}

Status graph_fuse(Graph *graph, const BackendTable *table)
{
    size_t n = (size_t)graph->node_count;
    for (size_t i = 0; i < n; ++i)
        if (graph->node[i].op) return fail(ERR_BUG, "graph_fuse comes before graph_plan");
    Fuser f = {.graph = graph,
               .table = table,
               .merged_into = mem_new(n * sizeof *f.merged_into),
               .uses = mem_new(n * sizeof *f.uses),
               .reader = mem_new(n * sizeof *f.reader),
               .merged = mem_new(n * sizeof *f.merged)};
    graph_count_uses(graph, f.uses);
    for (int i = 0; i < graph->node_count; ++i) {
        f.merged_into[i] = i;
        for (int k = 0; k < graph->node[i].spec.x_count; ++k)
            if (graph->node[i].in[k] >= 0) f.reader[graph->node[i].in[k]] = i;
    }
    fuse_all(&f);
    compact(&f);
    graph_set_need_dx(graph);
    mem_free(&f.merged_into);
    mem_free(&f.uses);
    mem_free(&f.reader);
    mem_free(&f.merged);
    return OK;
}
