/* From a planned graph to a list of actions for one micro-batch and one arena of activations. Tensors become storages with
 * a life on the action list's clock; aliases and in-place operations share one. Offsets are first-fit by size over
 * lives that meet. Assumes topological order; refuses nothing: a graph that was planned can be run. */
#include "pipeline.h"

#include "plan_internal.h"

#include <stdlib.h>

enum { NONE = -1, ALIGN = 256 };

static int storage_new(Planner *p, size_t bytes)
{
    if (p->storage_count == p->storage_room) {
        p->storage_room = p->storage_room ? 2 * p->storage_room : 64;
        p->storage = mem_resize(p->storage, (size_t)p->storage_room * sizeof *p->storage);
    }
    size_t rounded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    p->storage[p->storage_count] = (Storage){.bytes = rounded, .first = -1, .last = -1};
    return p->storage_count++;
}

static void storage_use(Planner *p, int s, int now)
{
    if (s < 0) return;
    Storage *st = &p->storage[s];
    if (st->first < 0 || now < st->first) st->first = now;
    if (now > st->last) st->last = now;
}

static void action_push(Planner *p, Action action)
{
    if (p->action_count == p->action_room) {
        p->action_room = p->action_room ? 2 * p->action_room : 64;
        p->action = mem_resize(p->action, (size_t)p->action_room * sizeof *p->action);
    }
    p->action[p->action_count++] = action;
}

/* May node i write its output over its first input's memory? Only if nobody reads any tensor there later; never over the
 * data, which is not ours. */
static bool inplace_allowed(const Planner *p, int i)
{
    const Graph *g = p->graph;
    const Op *op = g->node[i].op;
    int s = g->node[i].in[0] >= 0 ? p->node[g->node[i].in[0]].y : NONE;
    if (!op->y_inplace || op->needs_x[0] || s < 0) return false;
    if (desc_bytes(op->spec.x[0]) != desc_bytes(op->spec.y)) return false;
    for (int v = 0; v < i; ++v)
        if (p->node[v].y == s && g->node[v].op->needs_y) return false;
    for (int c = 0; c < g->node_count; ++c) {
        const Node *user = &g->node[c];
        for (int k = 0; k < user->spec.x_count; ++k) {
            if (user->in[k] < 0 || user->in[k] >= i || p->node[user->in[k]].y != s) continue;
            if (c > i || user->op->needs_x[k] || (c == i && k > 0)) return false;
        }
    }
    return true;
}

static void place_forward(Planner *p, int i)
{
    const Node *node = &p->graph->node[i];
    NodeStorage *st = &p->node[i];
    int now = p->action_count;
    for (int k = 0; k < node->spec.x_count; ++k)
        if (node->in[k] >= 0) storage_use(p, p->node[node->in[k]].y, now);
    if (node->op->y_alias)
        st->y = node->in[0] >= 0 ? p->node[node->in[0]].y : STORAGE_INPUT;
    else if (inplace_allowed(p, i))
        st->y = p->node[node->in[0]].y;
    else
        st->y = storage_new(p, desc_bytes(node->op->spec.y));
    storage_use(p, st->y, now);
    if (node->op->saved_bytes > 0) {
        st->saved = storage_new(p, node->op->saved_bytes);
        storage_use(p, st->saved, now);
    }
    action_push(p, (Action){.kind = ACTION_FORWARD, .node = i});
}

/* An action that copies or adds storage src (node i's contribution) to the gradient of node v. */
static void push_gradient(Planner *p, ActionKind kind, int v, int src)
{
    int64_t count = desc_elements(p->graph->node[v].op->spec.y);
    storage_use(p, p->node[v].dy, p->action_count);
    storage_use(p, src, p->action_count);
    action_push(
        p, (Action){.kind = kind, .node = v, .dst = p->node[v].dy, .src = src, .count = count});
}

/* Where node i's gradient for input k goes. The first contribution to a node is its gradient; later ones are added in
 * the order of the list. *alias_taken: dy's own memory has already become another node's gradient. */
static void route_gradient(Planner *p, int i, int k, int now, bool *alias_taken)
{
    const Node *node = &p->graph->node[i];
    int v = node->in[k], own = p->node[i].dy;
    NodeStorage *target = &p->node[v];
    bool first = target->dy == NONE;
    size_t bytes = desc_bytes(p->graph->node[v].op->spec.y);
    if (node->op->dx_alias[k]) {
        if (first && !*alias_taken) {
            target->dy = own;
            *alias_taken = true;
        } else {
            if (first) target->dy = storage_new(p, bytes);
            push_gradient(p, first ? ACTION_COPY : ACTION_ADD, v, own);
        }
        return;
    }
    bool any_alias = false;
    for (int j = 0; j < node->spec.x_count; ++j) any_alias |= node->op->dx_alias[j];
    bool inplace = first && k == 0 && node->op->dx_inplace && own >= 0 && !any_alias &&
                   bytes <= p->storage[own].bytes;
    int dx = inplace ? own : storage_new(p, bytes);
    storage_use(p, dx, now);
    p->node[i].dx[k] = dx;
    if (first)
        target->dy = dx;
    else
        push_gradient(p, ACTION_ADD, v, dx);
}

static bool has_backward(const Planner *p, int i)
{
    const Node *node = &p->graph->node[i];
    if (i != p->graph->loss && p->node[i].dy == NONE) return false;
    if (node->op->table->backward_weight && node->spec.w_count > 0) return true;
    for (int k = 0; k < node->spec.x_count; ++k)
        if (node->in[k] >= 0 && node->op->spec.need_dx[k]) return true;
    return false;
}

static void place_backward(Planner *p, int i)
{
    if (!has_backward(p, i)) return;
    const Node *node = &p->graph->node[i];
    NodeStorage *st = &p->node[i];
    int now = p->action_count;
    action_push(p, (Action){.kind = ACTION_BACKWARD, .node = i});
    storage_use(p, st->dy, now);
    storage_use(p, st->saved, now);
    if (node->op->needs_y) storage_use(p, st->y, now);
    bool alias_taken = false;
    for (int k = 0; k < node->spec.x_count; ++k) {
        if (node->in[k] < 0) continue;
        if (node->op->needs_x[k]) storage_use(p, p->node[node->in[k]].y, now);
        if (node->op->spec.need_dx[k]) route_gradient(p, i, k, now, &alias_taken);
    }
}

static int by_size(const void *a, const void *b)
{
    const Storage *x = *(Storage *const *)a, *y = *(Storage *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1;
}

/* First-fit, largest first, among those whose lives meet. Returns the arena's size. */
static size_t storages_place(Planner *p)
{
    Storage **order = mem_new((size_t)p->storage_count * sizeof *order + 1);
    size_t top = 0;
    for (int i = 0; i < p->storage_count; ++i) order[i] = &p->storage[i];
    qsort(order, (size_t)p->storage_count, sizeof *order, by_size);
    for (int i = 0; i < p->storage_count; ++i) {
        int64_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < i; ++j) {
                const Storage *o = order[j];
                bool meet = o->first <= order[i]->last && order[i]->first <= o->last;
                if (meet && at < o->offset + (int64_t)o->bytes &&
                    o->offset < at + (int64_t)order[i]->bytes) {
                    at = o->offset + (int64_t)o->bytes;
                    moved = true;
                }
            }
        }
        order[i]->offset = at;
        if ((size_t)at + order[i]->bytes > top) top = (size_t)at + order[i]->bytes;
    }
    mem_free(&order);
    return top;
}

static int64_t offset_of(const Planner *p, int64_t s)
{
    return s == STORAGE_INPUT ? PLACE_INPUT : s < 0 ? PLACE_NONE : p->storage[s].offset;
}

static void buckets_of(Planner *p, Plan *plan, size_t bucket_bytes)
{
    const Graph *g = p->graph;
    int64_t *offset = mem_new((size_t)(g->param_count + 1) * sizeof *offset);
    for (int i = 0; i < g->param_count; ++i) offset[i] = g->param[i].offset;
    buckets_init(&plan->buckets, offset, g->param_count, g->arena_elements + METRIC_PAD,
                 bucket_bytes);
    mem_free(&offset);
}

/* Backward in reverse order; a bucket is whole once the node of its first tensor has been passed. */
static void list_backward(Planner *p, const Plan *plan)
{
    const Graph *g = p->graph;
    int bucket = 0;
    for (int i = g->node_count - 1; i >= 0; --i) {
        place_backward(p, i);
        for (; bucket < plan->buckets.count; ++bucket) {
            int tensor = plan->buckets.first_tensor[bucket];
            if (g->param_count > 0 && g->param[tensor].node < i) break;
            action_push(p, (Action){.kind = ACTION_BUCKET, .node = bucket});
        }
    }
}

static void planner_finish(Planner *p, Plan *plan)
{
    const Graph *g = p->graph;
    plan->activation_bytes = storages_place(p);
    plan->place = mem_new((size_t)g->node_count * sizeof *plan->place);
    plan->cache = mem_new((size_t)g->node_count * sizeof *plan->cache);
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        NodePlace *place = &plan->place[i];
        place->y = offset_of(p, p->node[i].y);
        place->dy = offset_of(p, p->node[i].dy);
        place->saved = offset_of(p, p->node[i].saved);
        for (int k = 0; k < OP_INPUTS; ++k) place->dx[k] = offset_of(p, p->node[i].dx[k]);
        plan->cache[i] = plan->cache_bytes;
        plan->cache_bytes += (op->cache_bytes + ALIGN - 1) / ALIGN * ALIGN;
        if (op->workspace_bytes > plan->workspace_bytes)
            plan->workspace_bytes = op->workspace_bytes;
    }
    for (int i = 0; i < p->action_count; ++i) {
        Action *a = &p->action[i];
        if (a->kind != ACTION_ADD && a->kind != ACTION_COPY) continue;
        a->dst = offset_of(p, a->dst);
        a->src = offset_of(p, a->src);
    }
    plan->action = p->action;
    plan->action_count = p->action_count;
}

Status plan_new(Plan **out, const Graph *graph, int micros_local, size_t bucket_bytes)
{
    Plan *plan = mem_new(sizeof *plan);
    Planner p = {.graph = graph, .node = mem_new((size_t)graph->node_count * sizeof *p.node)};
    for (int i = 0; i < graph->node_count; ++i) {
        p.node[i] = (NodeStorage){.y = NONE, .dy = NONE, .saved = NONE};
        for (int k = 0; k < OP_INPUTS; ++k) p.node[i].dx[k] = NONE;
    }
    plan->graph = graph;
    buckets_of(&p, plan, bucket_bytes);
    for (int i = 0; i < graph->node_count; ++i) place_forward(&p, i);
    plan->forward_count = p.action_count;
    list_backward(&p, plan);
    storage_use(&p, p.node[graph->loss].y, p.action_count);
    storage_use(&p, p.node[graph->logits].y, plan->forward_count);
    planner_finish(&p, plan);
    plan->param_bytes = (size_t)graph->arena_elements * sizeof(float);
    plan->gradient_bytes = (size_t)(graph->arena_elements + METRIC_PAD) * sizeof(float);
    plan->sum_levels = (size_t)tree_levels(micros_local);
    mem_free(&p.storage);
    mem_free(&p.node);
    *out = plan;
    return OK;
}

void plan_free(Plan **plan)
{
    if (!*plan) return;
    buckets_fini(&(*plan)->buckets);
    mem_free(&(*plan)->action);
    mem_free(&(*plan)->place);
    mem_free(&(*plan)->cache);
    mem_free(plan);
}

static void print_bytes(FILE *out, const char *what, double bytes)
{
    char text[32];
    fprintf(out, "  %-22s %12s\n", what, text_bytes(bytes, text));
}

void plan_print(const Plan *plan, FILE *out)
{
    fprintf(out, "memory of one rank\n");
    print_bytes(out, "parameters", (double)plan->param_bytes);
    print_bytes(out, "gradients", (double)(plan->gradient_bytes * plan->sum_levels));
    print_bytes(out, "activations", (double)plan->activation_bytes);
    print_bytes(out, "weights, other layouts", (double)plan->cache_bytes);
    print_bytes(out, "workspace", (double)plan->workspace_bytes);
    fprintf(out, "actions of a micro-batch: %d forward, %d in all; %d gradient buckets\n",
            plan->forward_count, plan->action_count, plan->buckets.count);
}
