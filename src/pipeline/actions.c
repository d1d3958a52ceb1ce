/* A pass's actions on a micro-batch, one by one. Sums leave bucket by bucket while backward still runs; every action lets
 * messages and sums make progress. */
#include "executor.h"

static Op *op_of(const Executor *e, const ChunkRun *chunk, int run)
{
    return e->plan->graph->node[chunk->plan->run[run].node].op;
}

static void run_backward(Op *op, const OpRun *run)
{
    op_backward_begin(op, run);
    op_backward_weight(op, run);
    op_backward_data(op, run);
}

/* Gradients of weights that do not wait are in the slot already. */
static bool in_slot(const ChunkRun *chunk, int run)
{
    return chunk->plan->run[run].dw[0] != PLACE_NONE;
}

static void run_backward_data(Op *op, const ChunkRun *chunk, int run, const OpRun *r)
{
    op_backward_begin(op, r);
    if (in_slot(chunk, run)) op_backward_weight(op, r);
    op_backward_data(op, r);
}

/* Where parameter k of a run has its gradient in an arena. */
static float *gradient_of(const Executor *e, const ChunkRun *chunk, int run, int k, float *arena)
{
    const Node *node = &e->plan->graph->node[chunk->plan->run[run].node];
    return arena + e->plan->micro_grad_offset[node->param[k]];
}

static void run_backward_weight(Executor *e, const ChunkRun *chunk, int run, const OpRun *r,
                                float *arena)
{
    Op *op = op_of(e, chunk, run);
    if (!in_slot(chunk, run)) {
        op_backward_weight(op, r);
        return;
    }
    for (int k = 0; k < op->spec.w_count; ++k)
        e->backend->table->copy(e->stream, gradient_of(e, chunk, run, k, arena), r->dw[k],
                                (size_t)op->w_elements[k] * sizeof(float));
}

/* ---- buckets of gradients ---- */

void collective_wait(Executor *e, bool (*wait)(Comm *, int64_t), int64_t number)
{
    Phase outer = phase_enter(PHASE_SUM);
    while (!wait(e->comm, number)) {
        if (e->channels) channels_progress(e->channels);
        group_progress(e);
    }
    phase_enter(outer);
}

/* The arena that backward writes a micro-batch's gradients to. */
static float *leaf_arena(const Executor *e, int micro)
{
    if (plan_takes_turns(e->plan)) return e->comm->arena;
    return e->level[tree_step(micro, e->plan->schedule->shape.micros).write];
}

static int64_t leaf_of(const ChunkPlan *chunk, int bucket)
{
    return chunk->ring ? chunk->ring[bucket] : chunk->buckets.offset[bucket];
}

/* Waits for those that lay here before. */
static void wait_for_place(Executor *e, const ChunkPlan *chunk, int bucket)
{
    int64_t begin = leaf_of(chunk, bucket), end = begin + chunk->buckets.elements[bucket], last = 0;
    for (int c = 0; c < e->plan->chunk_count; ++c) {
        const ChunkRun *other = &e->chunk[c];
        for (int b = 0; b < other->plan->buckets.count; ++b) {
            int64_t at = leaf_of(other->plan, b);
            if (at < end && begin < at + other->plan->buckets.elements[b] &&
                other->pushed[b] > last)
                last = other->pushed[b];
        }
    }
    collective_wait(e, comm_push_wait, last);
}

/* The bucket may be written from now on. The first one brings the metrics. A micro-batch without samples must not be seen in
 * the sums: x + -0 is x for every x, while -0 + 0 is 0. */
static void bucket_open(Executor *e, const ChunkPlan *chunk, const Slot *slot, int bucket,
                        int micro)
{
    float *arena = leaf_arena(e, micro);
    float *place = arena + leaf_of(chunk, bucket);
    int64_t count = chunk->buckets.elements[bucket];
    int64_t metrics = e->plan->metrics_at - chunk->buckets.offset[bucket];
    if (plan_takes_turns(e->plan)) wait_for_place(e, chunk, bucket);
    if (slot->empty) e->backend->table->flat->fill(e->stream, place, -0.0f, count);
    if (metrics >= 0 && metrics < count) metrics_put(e, slot, micro, place + metrics);
}

/* The sum begins. Where parameters are shared out a rank needs its own share of it only. */
static void bucket_leave(Executor *e, const ChunkPlan *chunk, int bucket)
{
    if (chunk->share)
        comm_reduce_scatter_begin(e->comm,
                                  chunk->share + (size_t)bucket * ((size_t)e->plan->shape.dp + 1));
    else
        comm_allreduce_begin(e->comm, chunk->buckets.offset[bucket],
                             chunk->buckets.elements[bucket]);
}

static void bucket_join(Executor *e, const ChunkPlan *chunk, int bucket, int micro)
{
    const Buckets *buckets = &chunk->buckets;
    int micros = e->plan->schedule->shape.micros;
    TreeStep tree = tree_step(micro, micros);
    int64_t at = buckets->offset[bucket], count = buckets->elements[bucket];
    for (int j = 0; j < tree.join_count; ++j) {
        float *to = e->level[tree.to[j]] + at;
        e->backend->table->flat->add(e->stream, to, to, e->level[tree.to[j] + 1] + at, count);
    }
    if (micro == micros - 1) bucket_leave(e, chunk, bucket);
}

/* The micro-batches of all replicas' turn join their shares' sums. */
static void bucket_push(Executor *e, ChunkRun *chunk, int bucket, int micro)
{
    const ChunkPlan *plan = chunk->plan;
    size_t b = (size_t)bucket, dp = (size_t)e->plan->shape.dp;
    CommPush push = {.bound = plan->share + b * (dp + 1),
                     .shift = plan->ring[b] - plan->buckets.offset[b],
                     .level = e->level,
                     .at = plan->held[b * dp + (size_t)e->grid->dp_rank],
                     .first = micro * e->plan->shape.dp,
                     .leaves = e->plan->schedule->shape.micros * e->plan->shape.dp};
    chunk->pushed[b] = comm_push_begin(e->comm, &push);
}

static void bucket_done(Executor *e, ChunkRun *chunk, int bucket, int micro)
{
    if (plan_takes_turns(e->plan))
        bucket_push(e, chunk, bucket, micro);
    else
        bucket_join(e, chunk->plan, bucket, micro);
}

/* ---- actions, one by one ---- */

static void add_gradient(Executor *e, const Action *a, void *dst, const void *src)
{
    const FlatTable *flat = e->backend->table->flat;
    if (a->type == DTYPE_BF16)
        flat->add_bf16(e->stream, dst, dst, src, a->count);
    else if (a->type == DTYPE_F16)
        flat->add_f16(e->stream, dst, dst, src, a->count);
    else
        flat->add(e->stream, dst, dst, src, a->count);
}

static void run_action(Executor *e, const ChunkRun *chunk, Slot *slot, const Action *a,
                       float *arena)
{
    const OpRun *run = &slot->run[a->index];
    void *dst = executor_place(e, chunk, slot, a->dst);
    const void *src = executor_place(e, chunk, slot, a->src);
    if (e->plan->fetches && action_reads_values(e->plan, chunk->plan, a))
        values_renew(e, run, chunk->plan->run[a->index].node);
    switch (a->kind) {
    case ACTION_FORWARD:
        op_forward(op_of(e, chunk, a->index), run);
        break;
    case ACTION_BACKWARD:
        run_backward(op_of(e, chunk, a->index), run);
        break;
    case ACTION_BACKWARD_DATA:
        run_backward_data(op_of(e, chunk, a->index), chunk, a->index, run);
        break;
    case ACTION_BACKWARD_WEIGHT:
        run_backward_weight(e, chunk, a->index, run, arena);
        break;
    case ACTION_ADD:
        add_gradient(e, a, dst, src);
        break;
    case ACTION_COPY:
        e->backend->table->copy(e->stream, dst, src, (size_t)a->count * dtype_bytes(a->type));
        break;
    case ACTION_VALUES:
    case ACTION_OPEN:
    case ACTION_BUCKET:
        break;
    }
}

void actions_bind(Executor *e, ChunkRun *chunk, Slot *slot, int micro)
{
    float *arena = leaf_arena(e, micro);
    for (int i = 0; i < chunk->plan->run_count; ++i) {
        if (in_slot(chunk, i)) continue;
        int w_count = op_of(e, chunk, i)->spec.w_count;
        for (int k = 0; k < w_count; ++k) slot->run[i].dw[k] = gradient_of(e, chunk, i, k, arena);
    }
}

bool action_asks_others(const Executor *e, const ChunkRun *chunk, Pass pass, int micro, int action)
{
    const Action *a = &chunk->plan->pass[pass].action[action];
    bool last = micro == e->plan->schedule->shape.micros - 1;
    switch (a->kind) {
    case ACTION_VALUES:
        return true;
    case ACTION_OPEN:
        return plan_takes_turns(e->plan);
    case ACTION_BUCKET:
        return plan_takes_turns(e->plan) || (last && e->comm->size > 1);
    case ACTION_ADD:
    case ACTION_COPY:
        return false;
    default:
        return op_asks_ranks(&op_of(e, chunk, a->index)->spec);
    }
}

void actions_run(Executor *e, ChunkRun *chunk, Slot *slot, Pass pass, int micro, int from, int to)
{
    float *arena = leaf_arena(e, micro);
    for (int i = from; i < to; ++i) {
        const Action *a = &chunk->plan->pass[pass].action[i];
        if (a->kind == ACTION_OPEN) {
            bucket_open(e, chunk->plan, slot, a->index, micro);
            continue;
        }
        if (a->kind == ACTION_VALUES)
            values_use(e);
        else if (a->kind == ACTION_BUCKET)
            bucket_done(e, chunk, a->index, micro);
        else if (!slot->empty)
            run_action(e, chunk, slot, a, arena);
        comm_progress(e->comm);
        if (e->channels) channels_progress(e->channels);
        group_progress(e);
    }
}
