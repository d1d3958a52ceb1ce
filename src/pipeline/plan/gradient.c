/* Chooses where a node's backward writes the gradients of its inputs: to separate memory, over dy,
 * over x, or added to the gradient that other readers of the input have already contributed to. If
 * a gradient equals dy (dx_is_dy), nothing is written, and both share memory where that is safe.
 * The storage of the first contribution to a node's gradient becomes the storage of this gradient;
 * later contributions are added in the order of the list of actions. */
#include "chunk.h"

/* Returns true if the gradient of i's input k may be written over that input. False if something
 * other than i's backward reads the input after i's forward: this chunk, the previous chunk (the
 * input may be in its slot), or the next chunk's weight-gradient pass. */
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

/* Returns true if the gradient of i's input k may be written over dy. False if dy is also the
 * gradient of another node or will become it, or if the weight-gradient pass reads dy later. */
static bool can_overwrite_dy(const Planner *p, int i, int k)
{
    const Node *node = &p->graph->node[i];
    int dy = p->gradient[i];
    if (!node->op->dx_inplace || k > 0 || dy < 0 || planner_delays_weight(p, i) ||
        p->borrows_gradient[i])
        return false;
    for (int j = 0; j < node->spec.x_count; ++j)
        if (node->op->dx_is_dy[j]) return false;
    return desc_bytes(p->graph->node[node->in[k]].op->spec.y) <= p->storage[dy].bytes;
}

/* Returns true if dy, the gradient of node i's output, may be the gradient of both `early` and
 * `late`, two inputs of i. The backward of `late` runs before the backward of `early`. dy is the
 * gradient of `late` only until the backward of `late` has run, and remains the gradient of
 * `early`. False if another reader of `late` or `early` adds its contribution to dy before or
 * during the backward of `late`; this reader may be `late` itself. False also if the backward of
 * `late` changes dy, if PASS_WEIGHT reads dy again for `late`, or if `late` is in another chunk. */
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

/* Makes dy the gradient of v, which has none yet. *keeper: the input whose gradient is dy already,
 * or NO_NODE; set to the input that keeps dy. If dy is the gradient of two inputs, the earlier node
 * keeps dy and the later node borrows it (can_lend_dy). Returns false, and changes nothing, if dy
 * is borrowed, if the weight-gradient pass will read dy, or if the two inputs must not share dy. */
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

/* Returns the storage to which i's backward writes the gradient of input k. is_first: the input has
 * no gradient yet. */
static int choose_storage(Planner *p, int i, int k, bool is_first)
{
    int v = p->graph->node[i].in[k];
    if (is_first && can_overwrite_dy(p, i, k)) return p->gradient[i];
    if (is_first && can_overwrite_x(p, i, k)) return planner_back_run(p, i)->x[k];
    return storage_new(p, desc_bytes(p->graph->node[v].op->spec.y));
}

/* Does the work of gradients_route for input k, and returns to_add[k]. keeper: as in share_dy. */
static int route(Planner *p, int i, int k, int *keeper)
{
    RunStorage *run = planner_back_run(p, i);
    const Op *op = p->graph->node[i].op;
    int v = p->graph->node[i].in[k];
    bool is_first = p->gradient[v] == STORAGE_NONE;
    if (op->dx_is_dy[k]) {
        bool shared = is_first && share_dy(p, i, v, keeper);
        return shared ? STORAGE_NONE : p->gradient[i];
    }
    run->dx_add = k == 0 && !is_first && op->dx_adds;
    int dx = run->dx_add ? p->gradient[v] : choose_storage(p, i, k, is_first);
    run->dx[k] = dx;
    storage_use(p, dx);
    if (is_first) p->gradient[v] = dx;
    return is_first || run->dx_add ? STORAGE_NONE : dx;
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
