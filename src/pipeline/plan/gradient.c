/* Chooses where a node's backward writes the gradients of its inputs: to separate memory, or over
 * dy, over x, or onto the gradient that other readers have contributed to. The first contribution
 * to a node becomes its gradient; later ones are added in the order of the list. */
#include "chunk.h"

/* True if the gradient of i's input k may be written over that input. It may not if the input is
 * read after i's forward by this chunk, by the previous chunk (in whose slot it may lie), or by the
 * next chunk's weight-gradient pass. */
static bool can_overwrite_x(const Planner *p, int i, int k)
{
    const Node *node = &p->graph->node[i];
    int s = planner_back_run(p, i)->x[k];
    if (!node->op->dx_over_x || k > 0 || s < 0 || planner_delays_weight(p, i) ||
        !planner_owns(p, node->in[k]))
        return false;
    const Storage *x = &p->storage[s];
    if (x->in_previous || (p->schedule->split && x->read_by_next)) return false;
    if (x->back_first < i || x->input_last > i) return false;
    return desc_bytes(p->graph->node[node->in[k]].op->spec.y) <= x->bytes;
}

/* True if the gradient of i's input k may be written over dy. It may not if dy is borrowed from, or
 * will become, another node's gradient. */
static bool can_overwrite_dy(const Planner *p, int i, int k)
{
    const Node *node = &p->graph->node[i];
    int dy = p->gradient[i];
    if (!node->op->dx_inplace || k > 0 || dy < 0 || planner_delays_weight(p, i) ||
        p->borrows_gradient[i])
        return false;
    for (int j = 0; j < node->spec.x_count; ++j)
        if (node->op->dx_alias[j]) return false;
    return desc_bytes(p->graph->node[node->in[k]].op->spec.y) <= p->storage[dy].bytes;
}

/* dy becomes the gradient of node `early`. Returns true if it may also serve as the gradient of
 * `late` until late's backward, which runs first. It may not if anything changes it until then:
 * another reader of late or early (late must not be a reader of early), or late itself. */
static bool can_lend_dy(const Planner *p, int i, int early, int late)
{
    const Node *node = p->graph->node;
    if (!planner_owns(p, late) || planner_delays_weight(p, late)) return false;
    if (node[late].op->table->backward_begin && node[late].spec.act != ACT_NONE) return false;
    const int *before = p->previous_reader[i - p->chunk->first];
    for (int k = 0; k < node[i].spec.x_count; ++k)
        if ((node[i].in[k] == early || node[i].in[k] == late) && before[k] >= late) return false;
    return true;
}

/* Makes dy the gradient of v, which has none yet, and returns true if that is possible. It is not
 * if dy is borrowed or the weight-gradient pass will read it. *keeper: input of which dy is the
 * gradient already, or NO_NODE; with two inputs the earlier node keeps it. */
static bool share_dy(Planner *p, int i, int v, int *keeper)
{
    if (p->borrows_gradient[i] || planner_delays_weight(p, i)) return false;
    int early = v;
    if (*keeper != NO_NODE) {
        int late = v < *keeper ? *keeper : v;
        early = v < *keeper ? v : *keeper;
        if (!can_lend_dy(p, i, early, late)) return false;
        p->borrows_gradient[late] = true;
    }
    p->gradient[v] = p->gradient[i];
    *keeper = early;
    return true;
}

/* Returns the storage to which i's gradient for input k is written. */
static int choose_storage(Planner *p, int i, int k, bool first)
{
    int v = p->graph->node[i].in[k];
    if (first && can_overwrite_dy(p, i, k)) return p->gradient[i];
    if (first && can_overwrite_x(p, i, k)) return planner_back_run(p, i)->x[k];
    return storage_new(p, desc_bytes(p->graph->node[v].op->spec.y));
}

/* gradients_route for one input. */
static int route(Planner *p, int i, int k, int *keeper)
{
    RunStorage *run = planner_back_run(p, i);
    const Op *op = p->graph->node[i].op;
    int v = p->graph->node[i].in[k];
    bool first = p->gradient[v] == STORAGE_NONE;
    if (op->dx_alias[k]) {
        bool shared = first && share_dy(p, i, v, keeper);
        return shared ? STORAGE_NONE : p->gradient[i];
    }
    run->dx_add = k == 0 && !first && op->dx_adds;
    int dx = run->dx_add ? p->gradient[v] : choose_storage(p, i, k, first);
    run->dx[k] = dx;
    storage_use(p, dx);
    if (first) p->gradient[v] = dx;
    return first || run->dx_add ? STORAGE_NONE : dx;
}

void gradients_route(Planner *p, int i, int to_add[SPEC_INPUTS])
{
    const Node *node = &p->graph->node[i];
    int keeper = NO_NODE;
    for (int k = 0; k < node->spec.x_count; ++k) {
        bool wanted = node->in[k] >= 0 && node->op->spec.need_dx[k];
        to_add[k] = wanted ? route(p, i, k, &keeper) : STORAGE_NONE;
    }
}
