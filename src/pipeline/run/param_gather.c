/* Allocates the arena of parameters and gathers shards. plan/gather.c plans which buckets are
 * gathered, when, and to which places. */
#include "param_gather.h"

#include <string.h>

static size_t local_bytes(const Context *c)
{
    return (size_t)plan_local_elements(c->plan, c->grid->dp_rank) * sizeof(float);
}

/* Returns true if this rank allocates its arena of parameters; false if it uses the Comm's. */
static bool owns_params(const Plan *plan)
{
    return !plan->zero || plan->gathers;
}

static Status open_params(const Context *c)
{
    const Plan *plan = c->plan;
    Status st = comm_params_new(c->comm, plan->gathers
                                             ? plan->gather.elements + plan->gather.frozen_elements
                                             : plan->param_elements);
    if (st == OK && plan->gathers && c->comm->params_shared)
        st = fail(ERR_BUG, "parameters are to be gathered, but are in shared memory");
    return status_agree(c->grid->world, st);
}

Status param_gather_init(ParamGather *g, const Context *context)
{
    const Plan *plan = context->plan;
    *g = (ParamGather){.context = context};
    if (plan->zero) TRY(open_params(context));
    g->params =
        owns_params(plan) ? context_alloc(context, local_bytes(context)) : context->comm->params;
    g->weights = plan->gathers ? context->comm->params : g->params;
    if (!plan->gathers) return OK;
    window_init(&g->window, plan);
    g->number = mem_new((size_t)(plan->gather.count + 1) * sizeof *g->number);
    g->repacked = mem_new((size_t)plan->graph->node_count * sizeof *g->repacked);
    return OK;
}

void param_gather_fini(ParamGather *g)
{
    if (!g->context) return;
    window_fini(&g->window);
    mem_free(&g->number);
    mem_free(&g->repacked);
    mem_free(&g->copied);
    if (owns_params(g->context->plan))
        context_release(g->context, g->params, local_bytes(g->context));
}

float *param_local(const ParamGather *g, int param, int64_t *first, int64_t *count)
{
    const Plan *plan = g->context->plan;
    int rank = g->context->grid->dp_rank;
    *first = 0;
    *count = plan->graph->param[param].elements;
    if (plan->gathers && plan->graph->param[param].frozen)
        return g->weights + plan->weight_offset[param];
    if (plan->gathers) plan_shard(plan, param, rank, first, count);
    if (*count == 0) return g->params;
    return g->params + plan_local_offset(plan, plan->param_offset[param] + *first, rank);
}

/* Gathers all parameters after an update if they are sharded but not gathered before each use: with
 * zero 1 and 2, where each replica stores all parameters, and with zero 3 if replicas share them in
 * memory. */
static void gather_shards(const Context *c)
{
    const Plan *plan = c->plan;
    Phase outer = phase_enter(PHASE_SUM);
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *chunk = &plan->chunk[k];
        for (int b = 0; b < chunk->buckets.count; ++b)
            if (chunk->buckets.offset[b] < plan->metrics_offset)
                comm_allgather_begin(c->comm, &chunk->shard[b], 0);
    }
    comm_wait(c->comm);
    phase_enter(outer);
}

/* Returns the parameter whose memory parameter number `param` has on this rank: that one, or the
 * one to which it is tied. */
static int stored_param(const Plan *plan, int param)
{
    const int tied = plan->graph->param[param].tied_param;
    const bool same = tied >= 0 && plan->param_offset[tied] == plan->param_offset[param];
    return same ? tied : param;
}

/* Adds 1 to users[p] for each copy of parameter p in the node's cache. */
static void count_copies(const Plan *plan, const Node *node, int *users)
{
    for (int w = 0; node->op->cache_is_copies && w < node->spec.w_count; ++w)
        if (node->op->copy_offset[w] >= 0) ++users[stored_param(plan, node->param[w])];
}

/* Returns whether the node's cache consists of copies, and no other node has a copy of the same
 * parameters. users: as count_copies has left it. */
static bool copies_alone(const Plan *plan, const Node *node, const int *users)
{
    bool alone = node->op->cache_is_copies;
    for (int w = 0; alone && w < node->spec.w_count; ++w)
        alone = node->op->copy_offset[w] < 0 || users[stored_param(plan, node->param[w])] == 1;
    return alone;
}

/* Returns the run of node n of chunk number c that has the node's cache. */
static const OpRun *run_of_node(const Plan *plan, const SlotMemory *memory, int c, int n)
{
    return &memory->chunk[c].slot[0].run[n - plan->chunk[c].first];
}

DType params_use_copies(ParamGather *g, const SlotMemory *memory, void **copy)
{
    const Plan *plan = g->context->plan;
    const Graph *graph = plan->graph;
    DType type = DTYPE_F32;
    memset(copy, 0, (size_t)graph->param_count * sizeof *copy);
    if (plan->zero) return type;
    int *users = mem_new((size_t)(graph->param_count + 1) * sizeof *users);
    mem_free(&g->copied);
    g->copied = mem_new((size_t)graph->node_count * sizeof *g->copied);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int n = plan->chunk[c].first; n < plan->chunk[c].end; ++n)
            count_copies(plan, &graph->node[n], users);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int n = plan->chunk[c].first; n < plan->chunk[c].end; ++n) {
            const Node *node = &graph->node[n];
            char *cache = run_of_node(plan, memory, c, n)->cache;
            g->copied[n] = copies_alone(plan, node, users);
            if (!g->copied[n]) continue;
            type = node->op->spec.y.dtype;
            for (int w = 0; w < node->spec.w_count; ++w)
                if (node->op->copy_offset[w] >= 0)
                    copy[stored_param(plan, node->param[w])] = cache + node->op->copy_offset[w];
        }
    mem_free(&users);
    return type;
}

void params_changed(ParamGather *g, const SlotMemory *memory, bool updated)
{
    const Plan *plan = g->context->plan;
    if (plan->gathers) g->window.here_count = 0;
    if (plan->zero && !plan->gathers) gather_shards(g->context);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int n = plan->chunk[c].first; n < plan->chunk[c].end; ++n) {
            const Node *node = &plan->graph->node[n];
            if (updated && g->copied && g->copied[n]) continue;
            /* gather_repack repacks gathered weights */
            if (plan->gathers && gather_bucket_of(plan, node) >= 0) continue;
            op_refresh(node->op, run_of_node(plan, memory, c, n));
        }
}

void gather_rewind(ParamGather *g, const Schedule *schedule)
{
    if (g->context->plan->gathers) window_start(&g->window, schedule);
}

/* Copies this rank's shard of a bucket to its place in the ring and begins to gather the other
 * replicas' shards. */
static void gather_bucket(ParamGather *g, int b)
{
    const Context *c = g->context;
    const ParamBucket *bucket = &c->plan->gather.bucket[b];
    int rank = c->grid->dp_rank;
    int64_t begin = bounds_at(bucket->shard, rank), count = bounds_length(bucket->shard, rank);
    int64_t shift = bucket->ring_offset - bucket->offset;
    if (count > 0)
        context_copy(c, g->weights + begin + shift,
                     g->params + plan_local_offset(c->plan, begin, rank),
                     (size_t)count * sizeof *g->params);
    g->number[b] = comm_allgather_begin(c->comm, bucket->shard, shift);
}

void gather_next(ParamGather *g)
{
    int buckets[WINDOW_MOST], count;
    const ParamUse *use = window_next(&g->window, buckets, &count);
    for (int i = 0; i < count; ++i) gather_bucket(g, buckets[i]);
    for (int i = 0; i < use->count; ++i)
        collective_wait(&g->context->progress, comm_allgather_poll, g->number[use->bucket[i]]);
}

void gather_repack(ParamGather *g, const OpRun *run, int node)
{
    const Plan *plan = g->context->plan;
    const Node *n = &plan->graph->node[node];
    int bucket = gather_bucket_of(plan, n);
    if (bucket < 0) return;
    int64_t number = g->number[bucket];
    if (n->op->cache_bytes == 0 || g->repacked[node] == number) return;
    op_refresh(n->op, run);
    g->repacked[node] = number;
}
