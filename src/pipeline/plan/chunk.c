/* Turns a chunk of a planned graph into the action lists of its passes. Each tensor becomes a
 * storage; aliases and in-place operations share a storage. The lists run only the chunk's nodes,
 * and outputs of other chunks arrive in messages or are read in the previous chunk's slot, so
 * operations compute the same values for every cut of the graph. Every planned graph can be run, so
 * no graph is refused here. */
#include "chunk.h"

#include <stdlib.h>

static void push(Planner *p, Action action)
{
    ActionList *list = &p->chunk->pass[p->pass];
    if (list->count == p->capacity[p->pass]) {
        p->capacity[p->pass] = p->capacity[p->pass] ? 2 * p->capacity[p->pass] : 64;
        list->action =
            mem_resize(list->action, (size_t)p->capacity[p->pass] * sizeof *list->action);
    }
    list->action[list->count++] = action;
    ++p->tick;
}

static void end_pass(Planner *p)
{
    p->boundary[p->pass] = ++p->tick;
}

/* Returns the index of the run that a node's backward uses (planner_back_run). */
static int back_index(const Planner *p, int node)
{
    int i = node - p->chunk->first;
    return p->block[i] < 0 ? i : p->chunk->end - p->chunk->first + i;
}

RunStorage *planner_back_run(const Planner *p, int node)
{
    return &p->run[back_index(p, node)];
}

bool planner_owns(const Planner *p, int node)
{
    return node >= p->chunk->first && node < p->chunk->end;
}

/* ---- forward ---- */

/* Creates the storages that a run's forward writes; inplace = true: the output is written over
 * input 0. The caller has set run->x. */
static void make_outputs(Planner *p, RunStorage *run, bool inplace)
{
    const Op *op = p->graph->node[run->node].op;
    for (int k = 0; k < op->spec.x_count; ++k) storage_use(p, run->x[k]);
    run->y = op->y_is_x || inplace ? run->x[0] : storage_new(p, desc_bytes(op->spec.y));
    storage_use(p, run->y);
    if (op->saved_bytes == 0) return;
    run->saved = storage_new(p, op->saved_bytes);
    storage_use(p, run->saved);
}

static void plan_forward(Planner *p, int i)
{
    const Node *node = &p->graph->node[i];
    RunStorage *run = &p->run[i - p->chunk->first];
    for (int k = 0; k < node->spec.x_count; ++k)
        run->x[k] = node->in[k] >= 0 ? p->value[node->in[k]] : STORAGE_INPUT;
    inplace_keep_block_inputs(p, i);
    make_outputs(p, run, inplace_allowed(p, run));
    p->value[i] = run->y;
    inplace_record_output(p, i, run->y, p->reader);
    inplace_record_run(p, run);
    push(p, (Action){.kind = ACTION_FORWARD, .index = i - p->chunk->first});
}

/* ---- recomputation of a block before its backward ---- */

/* Sets again[i - from] to true for each node i of the block `from` to `to` - 1 that must run a
 * second time for the backward of the block's nodes. Also sets p->block_reader for the nodes of the
 * block. */
static void find_recomputed(Planner *p, int from, int to, bool *again)
{
    const Graph *g = p->graph;
    for (int i = from; i < to; ++i) p->block_reader[i] = NO_NODE;
    for (int i = to - 1; i >= from; --i) {
        bool back = planner_runs_backward(p, i) || planner_updates_statistics(p, i);
        if ((back && g->node[i].op->saved_bytes > 0) || planner_reads_y(p, i))
            again[i - from] = true;
        for (int k = 0; k < g->node[i].spec.x_count; ++k) {
            int in = g->node[i].in[k];
            if (in < from) continue;
            if (again[i - from] || planner_reads_x(p, i, k)) again[in - from] = true;
            if (p->block_reader[in] == NO_NODE) p->block_reader[in] = i;
        }
    }
}

/* Plans the second run of the block with nodes `from` to `to` - 1. */
static void plan_recompute(Planner *p, int from, int to)
{
    const Graph *g = p->graph;
    bool *again = mem_new((size_t)(to - from) * sizeof *again);
    find_recomputed(p, from, to, again);
    for (int i = from; i < to; ++i) {
        RunStorage *run = planner_back_run(p, i);
        for (int k = 0; k < g->node[i].spec.x_count; ++k) {
            int in = g->node[i].in[k];
            run->x[k] = in < 0 ? STORAGE_INPUT : in >= from ? p->recomputed[in] : p->value[in];
        }
        if (again[i - from]) {
            make_outputs(p, run, g->node[i].in[0] >= from && inplace_allowed(p, run));
            p->recomputed[i] = run->y;
            inplace_record_output(p, i, run->y, p->block_reader);
            push(p, (Action){.kind = ACTION_FORWARD, .index = back_index(p, i)});
        }
        inplace_record_run(p, run);
    }
    mem_free(&again);
}

/* ---- backward ---- */

/* Lists an action that copies storage `src` to the gradient of node v, or adds it there. `src`
 * contains the contribution of one reader of v. */
static void push_gradient(Planner *p, ActionKind kind, int v, int src)
{
    Desc y = p->graph->node[v].op->spec.y;
    storage_use(p, p->gradient[v]);
    storage_use(p, src);
    push(p, (Action){.kind = kind,
                     .dst = p->gradient[v],
                     .src = src,
                     .count = desc_elements(y),
                     .type = y.dtype});
}

bool planner_delays_weight(const Planner *p, int i)
{
    const Op *op = p->graph->node[i].op;
    return p->schedule->split && op->weight_may_wait && op->table->backward_weight &&
           op_has_values(&op->spec) && !op->spec.frozen;
}

static bool is_frozen(const Planner *p, int i, int k)
{
    return p->graph->param[p->graph->node[i].param[k]].frozen;
}

/* Creates a storage for the gradient of node i's parameter k. Backward writes to it instead of the
 * gradient arena. */
static void keep_gradient(Planner *p, int i, int k)
{
    int s = storage_new(p, (size_t)p->graph->node[i].op->w_elements[k] * sizeof(float));
    planner_back_run(p, i)->dw[k] = s;
    storage_use(p, s);
}

/* Gives each frozen parameter of the node a storage for its gradient, which no action reads: the
 * operation may write this gradient together with others. Does nothing if all parameters of the
 * operation are frozen and only backward_weight would write their gradients, because it does not
 * run then. */
static void discard_gradients(Planner *p, int i)
{
    const Op *op = p->graph->node[i].op;
    if (op->spec.frozen && op->weight_may_wait) return;
    for (int k = 0; k < op->spec.w_count; ++k)
        if (is_frozen(p, i, k)) keep_gradient(p, i, k);
}

/* If backward is split, gives storages to the weight gradients that cannot be delayed: they are
 * computed together with dx, and PASS_WEIGHT copies them to the gradient arena. */
static void keep_weight_gradients(Planner *p, int i)
{
    const Op *op = p->graph->node[i].op;
    if (!p->schedule->split || planner_delays_weight(p, i) || !op->table->backward_weight) return;
    if (!op_has_values(&op->spec) || op->spec.frozen) return;
    planner_back_run(p, i)->dw_waits = true;
    for (int k = 0; k < op->spec.w_count; ++k)
        if (!is_frozen(p, i, k)) keep_gradient(p, i, k);
}

/* Lists the update of running statistics for a batch norm that comes before all trained layers. No
 * gradient reaches such a batch norm, but its forward has saved the batch statistics. */
static void plan_statistics(Planner *p, int i)
{
    if (!planner_updates_statistics(p, i)) return;
    storage_use(p, planner_back_run(p, i)->saved);
    discard_gradients(p, i);
    push(p, (Action){.kind = ACTION_BACKWARD_WEIGHT, .index = back_index(p, i)});
}

static void plan_backward(Planner *p, int i)
{
    bool reached = i == p->graph->loss_node || p->gradient[i] != STORAGE_NONE;
    if (!reached || !planner_runs_backward(p, i)) {
        if (!p->schedule->split) plan_statistics(p, i);
        return;
    }
    const Node *node = &p->graph->node[i];
    RunStorage *run = planner_back_run(p, i);
    int to_add[SPEC_INPUTS];
    run->dy = p->gradient[i];
    storage_use(p, run->dy);
    storage_use(p, run->saved);
    if (node->spec.x_act != ACT_NONE && node->op->spec.need_dx[0])
        run->x_saved = planner_back_run(p, node->in[0])->saved;
    storage_use(p, run->x_saved);
    if (node->op->needs_y) storage_use(p, run->y);
    keep_weight_gradients(p, i);
    if (!planner_delays_weight(p, i)) discard_gradients(p, i);
    for (int k = 0; k < node->spec.x_count; ++k)
        if (node->op->needs_x[k]) storage_use(p, run->x[k]);
    gradients_route(p, i, to_add);
    push(p, (Action){.kind = p->schedule->split ? ACTION_BACKWARD_DATA : ACTION_BACKWARD,
                     .index = back_index(p, i)});
    for (int k = 0; k < node->spec.x_count; ++k) {
        if (to_add[k] < 0) continue;
        int v = node->in[k];
        bool is_first = p->gradient[v] == STORAGE_NONE;
        if (is_first) p->gradient[v] = storage_new(p, desc_bytes(p->graph->node[v].op->spec.y));
        push_gradient(p, is_first ? ACTION_COPY : ACTION_ADD, v, to_add[k]);
    }
}

static void plan_weight(Planner *p, int i)
{
    RunStorage *run = planner_back_run(p, i);
    const Op *op = p->graph->node[i].op;
    if (run->dy == STORAGE_NONE) {
        plan_statistics(p, i);
        return;
    }
    if (!op->table->backward_weight || op->spec.w_count == 0 || op->spec.frozen) return;
    if (planner_delays_weight(p, i)) {
        storage_use(p, run->dy);
        for (int k = 0; k < op->spec.x_count; ++k)
            if (op->needs_x[k]) storage_use(p, run->x[k]);
        if (op->needs_y) storage_use(p, run->y);
        storage_use(p, run->saved);
        discard_gradients(p, i);
    }
    for (int k = 0; k < op->spec.w_count; ++k)
        if (!is_frozen(p, i, k)) storage_use(p, run->dw[k]);
    push(p, (Action){.kind = ACTION_BACKWARD_WEIGHT, .index = back_index(p, i)});
}

/* If node i is the last one of a recomputed block: plans the recomputation, which runs before the
 * backward of i. */
static void begin_block(Planner *p, int i)
{
    const int *block = p->block;
    int first = p->chunk->first, at = i - first, from = at;
    bool last = i + 1 == p->chunk->end || block[at + 1] != block[at];
    if (block[at] < 0 || !last) return;
    while (from > 0 && block[from - 1] == block[at]) --from;
    plan_recompute(p, first + from, i + 1);
}

/* Orders openings by node, last nodes first; for qsort. */
static int by_opening(const void *a, const void *b)
{
    const Opening *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? 1 : -1;
    return x->bucket - y->bucket;
}

/* Calls `plan` for the nodes in reverse order. buckets = true: also lists the actions that open
 * buckets and those that end them; a bucket is complete after the node of its first tensor. */
static void list_gradients(Planner *p, void (*plan)(Planner *, int), bool buckets)
{
    const Graph *g = p->graph;
    const Buckets *b = &p->chunk->buckets;
    int bucket = 0, opened = 0;
    for (int i = p->chunk->end - 1; i >= p->chunk->first; --i) {
        for (; buckets && opened < b->count && p->opening[opened].node >= i; ++opened)
            push(p, (Action){.kind = ACTION_WAIT_FOR_BUCKET, .index = p->opening[opened].bucket});
        if (plan == plan_backward) begin_block(p, i);
        plan(p, i);
        for (; buckets && bucket < b->count; ++bucket) {
            int tensor = b->first_tensor[bucket];
            if (tensor >= 0 && g->param[tensor].node < i) break;
            push(p, (Action){.kind = ACTION_BUCKET, .index = bucket});
        }
    }
}

/* ---- boundaries ---- */

/* Creates storages for the tensors of a message that arrives before the pass. early = true: other
 * tasks may run between the message and the pass, so the tensors are in the slot. Between two
 * chunks on one stage no message is sent. Instead, the forward of the later chunk begins with a
 * copy of the activations that the later chunk does not read in the earlier chunk's slot. The
 * backward of the later chunk ends with a copy of the gradients to the earlier chunk. */
static void receive_message(Planner *p, const Message *message, int *storage, bool early)
{
    for (int i = 0; i < message->count; ++i) {
        int s = storage_new(p, message->tensor[i].bytes);
        p->storage[s].kept = p->messages_wait || early;
        storage[message->tensor[i].node] = s;
        storage_use(p, s);
    }
    ++p->tick;
}

/* Marks as used the tensors of a message that is sent after the pass. late = true: other tasks may
 * run between the pass and the message, so the tensors are in the slot. */
static void send_message(Planner *p, const Message *message, const int *storage, bool late)
{
    for (int i = 0; i < message->count; ++i) {
        int s = storage[message->tensor[i].node];
        if ((p->messages_wait || late) && s >= 0) p->storage[s].kept = true;
        storage_use(p, s);
    }
    ++p->tick;
}

/* Makes this chunk read its incoming activations in the previous chunk's slot. Exceptions are
 * activations that the previous chunk itself reads in the slot of the chunk before it. */
static void read_in_previous_slot(Planner *p)
{
    const Message *in = &p->chunk->activations_in, *out = &p->previous->activations_out;
    for (int i = 0; i < in->count; ++i) {
        Storage *s = &p->storage[p->value[in->tensor[i].node]];
        s->in_previous = out->tensor[i].offset < OFFSET_BEFORE;
        if (s->in_previous) s->offset = OFFSET_BEFORE + out->tensor[i].offset;
    }
}

/* Marks the activations that the next chunk reads in this chunk's slot as used at this tick. */
static void keep_outputs_for_next(Planner *p)
{
    const Message *out = &p->chunk->activations_out;
    for (int i = 0; i < out->count; ++i) {
        int s = p->value[out->tensor[i].node];
        p->storage[s].read_by_next = true;
        storage_use(p, s);
    }
}

static void place_message(const Planner *p, Message *message, const int *storage)
{
    for (int i = 0; i < message->count; ++i)
        message->tensor[i].offset = storage_offset(p, storage[message->tensor[i].node]);
}

/* ---- the whole chunk ---- */

static void list_passes(Planner *p)
{
    ChunkPlan *c = p->chunk;
    const Graph *g = p->graph;
    bool same_stage = schedule_shares_stage(p->schedule, c->chunk);
    receive_message(p, &c->activations_in, p->value, false);
    for (int i = 0; i < c->activations_in.count; ++i) {
        int node = c->activations_in.tensor[i].node;
        inplace_record_output(p, node, p->value[node], p->reader);
    }
    if (p->previous) read_in_previous_slot(p);
    for (int i = c->first; i < c->end; ++i) plan_forward(p, i);
    if (planner_owns(p, g->loss_node)) {
        const Node *loss = &g->node[g->loss_node];
        for (int k = 0; k < loss->spec.x_count; ++k) storage_use(p, p->value[loss->in[k]]);
        storage_use(p, p->value[g->loss_node]);
    }
    send_message(p, &c->activations_out, p->value, same_stage);
    end_pass(p);
    p->pass = PASS_BACKWARD;
    receive_message(p, &c->gradients_in, p->gradient, same_stage);
    if (same_stage) keep_outputs_for_next(p);
    list_gradients(p, plan_backward, !p->schedule->split);
    send_message(p, &c->gradients_out, p->gradient, false);
    end_pass(p);
    p->pass = PASS_WEIGHT;
    if (p->schedule->split) list_gradients(p, plan_weight, true);
    if (p->schedule->split && same_stage) keep_outputs_for_next(p);
    end_pass(p);
}

static void fill_runs(const Planner *p, bool recompute)
{
    ChunkPlan *c = p->chunk;
    c->run_count = recompute ? 2 * (c->end - c->first) : c->end - c->first;
    c->run = mem_new((size_t)(c->run_count + 1) * sizeof *c->run);
    for (int i = 0; i < c->run_count; ++i) {
        const RunStorage *from = &p->run[i];
        RunOffsets *to = &c->run[i];
        *to = (RunOffsets){.node = from->node,
                           .y = storage_offset(p, from->y),
                           .dy = storage_offset(p, from->dy),
                           .saved = storage_offset(p, from->saved),
                           .x_saved = storage_offset(p, from->x_saved),
                           .dx_add = from->dx_add,
                           .dw_waits = from->dw_waits};
        for (int k = 0; k < SPEC_INPUTS; ++k) {
            to->x[k] = storage_offset(p, from->x[k]);
            to->dx[k] = storage_offset(p, from->dx[k]);
        }
        for (int k = 0; k < SPEC_PARAMS; ++k) to->dw[k] = storage_offset(p, from->dw[k]);
    }
}

static void place_actions(const Planner *p)
{
    for (int pass = 0; pass < PASSES; ++pass)
        for (int i = 0; i < p->chunk->pass[pass].count; ++i) {
            Action *a = &p->chunk->pass[pass].action[i];
            if (a->kind != ACTION_ADD && a->kind != ACTION_COPY) continue;
            a->dst = storage_offset(p, (int)a->dst);
            a->src = storage_offset(p, (int)a->src);
        }
}

static RunStorage run_none(int node)
{
    RunStorage run = {.node = node,
                      .y = STORAGE_NONE,
                      .dy = STORAGE_NONE,
                      .saved = STORAGE_NONE,
                      .x_saved = STORAGE_NONE};
    for (int k = 0; k < SPEC_INPUTS; ++k) run.x[k] = run.dx[k] = STORAGE_NONE;
    for (int k = 0; k < SPEC_PARAMS; ++k) run.dw[k] = STORAGE_NONE;
    return run;
}

/* Allocates and fills p's arrays. block: for each node of the graph its block, or NULL if nothing
 * is recomputed. */
static void planner_init(Planner *p, const int *block)
{
    size_t nodes = (size_t)p->graph->node_count;
    p->value = mem_new(nodes * sizeof *p->value);
    p->gradient = mem_new(nodes * sizeof *p->gradient);
    int count = p->chunk->end - p->chunk->first;
    p->recomputed = mem_new(nodes * sizeof *p->recomputed);
    p->borrows_gradient = mem_new(nodes * sizeof *p->borrows_gradient);
    p->run = mem_new((size_t)(2 * count + 1) * sizeof *p->run);
    p->block = mem_new((size_t)(count + 1) * sizeof *p->block);
    for (size_t i = 0; i < nodes; ++i)
        p->value[i] = p->gradient[i] = p->recomputed[i] = STORAGE_NONE;
    for (int i = 0; i < count; ++i) {
        p->run[i] = p->run[count + i] = run_none(p->chunk->first + i);
        p->block[i] = block ? block[p->chunk->first + i] : -1;
    }
    p->reader = mem_new(nodes * sizeof *p->reader);
    p->block_reader = mem_new(nodes * sizeof *p->block_reader);
    p->previous_reader = mem_new((size_t)(count + 1) * sizeof *p->previous_reader);
    inplace_find_readers(p);
    const ChunkPlan *c = p->chunk;
    p->opening = mem_new((size_t)(c->buckets.count + 1) * sizeof *p->opening);
    for (int b = 0; b < c->buckets.count; ++b) p->opening[b] = (Opening){c->opening_node[b], b};
    qsort(p->opening, (size_t)c->buckets.count, sizeof *p->opening, by_opening);
    planner_drop_blocks(p);
}

static bool message_is_placed(const Message *message)
{
    for (int i = 0; i < message->count; ++i)
        if (message->tensor[i].offset == OFFSET_NONE) return false;
    return true;
}

Status chunk_plan(ChunkPlan *c, const ChunkPlan *previous, const Graph *graph,
                  const Schedule *schedule, bool messages_wait, const int *block)
{
    Planner p = {.graph = graph,
                 .schedule = schedule,
                 .chunk = c,
                 .previous = previous,
                 .messages_wait = messages_wait};
    boundary_activations(&c->activations_in, graph, c->first);
    boundary_gradients(&c->gradients_out, graph, c->first);
    boundary_activations(&c->activations_out, graph, c->end);
    boundary_gradients(&c->gradients_in, graph, c->end);
    planner_init(&p, block);
    list_passes(&p);
    storages_lay(&p);
    fill_runs(&p, block != NULL);
    place_actions(&p);
    place_message(&p, &c->activations_in, p.value);
    place_message(&p, &c->activations_out, p.value);
    place_message(&p, &c->gradients_in, p.gradient);
    place_message(&p, &c->gradients_out, p.gradient);
    mem_free(&p.storage);
    mem_free(&p.value);
    mem_free(&p.gradient);
    mem_free(&p.run);
    mem_free(&p.recomputed);
    mem_free(&p.borrows_gradient);
    mem_free(&p.block);
    mem_free(&p.reader);
    mem_free(&p.block_reader);
    mem_free(&p.previous_reader);
    mem_free(&p.opening);
    if (message_is_placed(&c->activations_in) && message_is_placed(&c->activations_out) &&
        message_is_placed(&c->gradients_in) && message_is_placed(&c->gradients_out))
        return OK;
    return fail(ERR_BUG, "chunk %d: a tensor that crosses its boundary has no place", c->chunk);
}
