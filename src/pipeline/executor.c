/* The memory a plan runs in. All pointers are computed once, when the executor is made; a micro-batch only sets what belongs
 * to it (data, labels, the gradient arena it writes). */
#include "executor.h"

static void *arena_new(Executor *e, size_t bytes)
{
    return bytes ? e->backend->table->alloc(e->backend, bytes) : NULL;
}

static void arena_free(Executor *e, void *arena, size_t bytes)
{
    if (arena) e->backend->table->release(e->backend, arena, bytes);
}

void *executor_place(const Executor *e, const ChunkRun *chunk, const Slot *slot, int64_t place)
{
    if (place < 0) return NULL;
    if (place >= PLACE_BEFORE) return slot->before ? slot->before + (place - PLACE_BEFORE) : NULL;
    int64_t kept = (int64_t)chunk->plan->kept_bytes;
    return place < kept ? slot->memory + place : e->scratch + (place - kept);
}

/* Fixes everything of a run that no micro-batch changes. */
static void bind_run(Executor *e, const ChunkRun *chunk, const Slot *slot, int i)
{
    const Graph *g = e->plan->graph;
    const RunPlace *at = &chunk->plan->run[i];
    const Node *node = &g->node[at->node];
    OpRun *run = &slot->run[i];
    for (int k = 0; k < node->spec.x_count; ++k) {
        run->x[k] = executor_place(e, chunk, slot, at->x[k]);
        run->dx[k] = executor_place(e, chunk, slot, at->dx[k]);
    }
    run->dx_add = at->dx_add;
    run->y = executor_place(e, chunk, slot, at->y);
    run->dy = executor_place(e, chunk, slot, at->dy);
    run->saved = executor_place(e, chunk, slot, at->saved);
    run->x_saved = executor_place(e, chunk, slot, at->x_saved);
    run->cache = e->cache ? e->cache + e->plan->cache[at->node] : NULL;
    run->workspace = e->workspace;
    run->exchange = group_exchange(e);
    run->seed = e->options.seed;
    for (int k = 0; k < node->spec.w_count; ++k) {
        run->w[k] = e->weights + e->plan->weight_at[node->param[k]];
        run->dw[k] = executor_place(e, chunk, slot, at->dw[k]);
    }
}

/* Memory order: the slots of each chunk, then what all share. */
static void bind_chunks(Executor *e)
{
    const Plan *plan = e->plan;
    char *at = e->activations;
    e->chunk = mem_new((size_t)plan->chunk_count * sizeof *e->chunk);
    for (int c = 0; c < plan->chunk_count; ++c) {
        ChunkRun *chunk = &e->chunk[c];
        *chunk = (ChunkRun){.plan = &plan->chunk[c],
                            .values_in = -1,
                            .values_out = -1,
                            .gradients_in = -1,
                            .gradients_out = -1};
        chunk->slot = mem_new((size_t)chunk->plan->slots * sizeof *chunk->slot);
        chunk->pushed = mem_new((size_t)(chunk->plan->buckets.count + 1) * sizeof *chunk->pushed);
        for (int s = 0; s < chunk->plan->slots; ++s, at += chunk->plan->kept_bytes)
            chunk->slot[s].memory = at;
    }
    e->scratch = at;
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int s = 0; s < plan->chunk[c].slots; ++s) {
            Slot *slot = &e->chunk[c].slot[s];
            slot->run = mem_new((size_t)plan->chunk[c].run_count * sizeof *slot->run);
            for (int i = 0; i < plan->chunk[c].run_count; ++i) bind_run(e, &e->chunk[c], slot, i);
        }
}

/* Of one arena of partial sums. */
static size_t level_bytes(const Executor *e)
{
    return (size_t)plan_sum_elements(e->plan, e->grid->dp_rank) * sizeof(float);
}

/* The first arena of this executor's own; those before it are the Comm's. */
static size_t own_levels(const Executor *e)
{
    return plan_takes_turns(e->plan) ? 0 : 1;
}

static size_t held_bytes(const Executor *e)
{
    return (size_t)plan_held_elements(e->plan, e->grid->dp_rank) * sizeof(float);
}

/* Else they are the Comm's values. */
static bool own_params(const Plan *plan)
{
    return !plan->zero || plan->fetches;
}

static void alloc_arenas(Executor *e)
{
    const Plan *plan = e->plan;
    e->params = own_params(plan) ? arena_new(e, held_bytes(e)) : e->comm->values;
    e->weights = plan->fetches ? e->comm->values : e->params;
    e->level[0] = e->comm->arena;
    for (size_t k = own_levels(e); k < plan->sum_levels; ++k)
        e->level[k] = arena_new(e, level_bytes(e));
    e->activations = arena_new(e, plan->activation_bytes);
    e->cache = arena_new(e, plan->cache_bytes);
    e->workspace = arena_new(e, plan->workspace_bytes);
}

static Status check(const Executor *e)
{
    const ScheduleShape *shape = &e->plan->schedule->shape;
    if (e->comm->arena_elements < e->plan->leaf_elements)
        return fail(ERR_BUG, "the communicator's arena is smaller than the gradients");
    if (e->plan->zero && e->comm->size != e->grid->shape.dp)
        return fail(ERR_BUG, "the communicator is not of the replicas that share parameters out");
    if (shape->stages != e->grid->shape.pp || e->plan->stage != e->grid->pp_rank)
        return fail(ERR_BUG, "the plan is not of this rank's stage");
    return OK;
}

static Status values_open(Executor *e)
{
    const Plan *plan = e->plan;
    Status st =
        comm_values_new(e->comm, plan->fetches ? plan->fetch.elements : plan->value_elements);
    if (st == OK && plan->fetches && e->comm->values_shared)
        st = fail(ERR_BUG, "values are fetched from memory that is shared");
    return status_agree(e->grid->world, st);
}

static int captures_count(const Executor *e)
{
    return e->plan->schedule->count[e->plan->stage] * e->held_room;
}

/* Other forms of values that are fetched are made when they are there: not the same work at every step. */
static void captures_new(Executor *e)
{
    if (!e->backend->options.replay || e->plan->fetches) return;
    e->captures = mem_new((size_t)captures_count(e) * sizeof *e->captures);
}

static void captures_free(Executor *e)
{
    for (int i = 0; e->captures && i < captures_count(e); ++i) {
        Captures *s = &e->captures[i];
        for (int k = 0; k < s->count; ++k) capture_drop(&s->capture[k], e->backend);
        mem_free(&s->capture);
    }
    mem_free(&e->captures);
}

static Status set_up(Executor *e)
{
    const Graph *g = e->plan->graph;
    ScheduleShape shape = e->plan->schedule->shape;
    TRY(status_agree(e->grid->world, check(e)));
    if (e->plan->zero) TRY(values_open(e));
    int64_t columns = shape_count(g->node[g->loss].op->spec.y.shape);
    e->columns_per_sample = columns / g->input.shape.dim[0];
    e->columns_host = mem_new((size_t)columns * sizeof(float));
    alloc_arenas(e);
    TRY(status_agree(e->grid->world, group_new(e)));
    bind_chunks(e);
    metrics_new(e);
    values_new(e);
    TRY(status_agree(e->grid->world,
                     schedule_forward(&e->evaluation, shape, e->plan->schedule->stage_of)));
    e->evaluation_last = mem_new((size_t)shape.micros * sizeof *e->evaluation_last);
    e->held_room = tasks_hold(e->evaluation, e->plan->stage, e->evaluation_last);
    if (e->plan->batches_out > e->held_room) e->held_room = e->plan->batches_out;
    if (!e->backend->table->host_memory) e->held_room += DATA_AHEAD;
    held_new(e);
    captures_new(e);
    return messages_new(e);
}

Status executor_new(Executor **out, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options)
{
    Executor *e = mem_new(sizeof *e);
    *e = (Executor){
        .plan = plan, .grid = grid, .backend = backend, .comm = comm, .options = options};
    e->stream = backend->table->stream(backend);
    Status st = set_up(e);
    if (st != OK) executor_free(&e);
    *out = e;
    return st;
}

void executor_free(Executor **executor)
{
    Executor *e = *executor;
    if (!e) return;
    const Plan *plan = e->plan;
    messages_free(e);
    group_free(e);
    captures_free(e);
    held_free(e);
    metrics_free(e);
    values_free(e);
    for (int c = 0; e->chunk && c < plan->chunk_count; ++c) {
        for (int s = 0; s < plan->chunk[c].slots; ++s) mem_free(&e->chunk[c].slot[s].run);
        mem_free(&e->chunk[c].slot);
        mem_free(&e->chunk[c].pushed);
    }
    if (own_params(plan)) arena_free(e, e->params, held_bytes(e));
    for (size_t k = own_levels(e); k < plan->sum_levels; ++k)
        arena_free(e, e->level[k], level_bytes(e));
    arena_free(e, e->activations, plan->activation_bytes);
    arena_free(e, e->cache, plan->cache_bytes);
    arena_free(e, e->workspace, plan->workspace_bytes);
    if (e->evaluation) schedule_free(&e->evaluation);
    mem_free(&e->evaluation_last);
    mem_free(&e->chunk);
    mem_free(&e->columns_host);
    mem_free(&e->logits_host);
    mem_free(executor);
}

float *executor_params(Executor *e)
{
    return e->params;
}

/* What this rank holds of it. */
static float *find_value(const Executor *e, int param, int64_t *first, int64_t *count)
{
    const Plan *plan = e->plan;
    int rank = e->grid->dp_rank;
    *first = 0;
    *count = plan->graph->param[param].elements;
    if (plan->fetches) plan_share(plan, param, rank, first, count);
    if (*count == 0) return e->params;
    return e->params + plan_held_at(plan, plan->value_at[param] + *first, rank);
}

float *executor_value(Executor *e, int param)
{
    int64_t first, count;
    return find_value(e, param, &first, &count);
}

void executor_set_value(Executor *e, int param, const float *stored)
{
    int64_t first, count;
    float *mine = find_value(e, param, &first, &count);
    e->backend->table->copy(e->stream, mine, stored + first, (size_t)count * sizeof *mine);
    e->backend->table->sync(e->stream);
}

float *executor_grads(Executor *e)
{
    return e->level[0];
}

void executor_ask(Executor *e, bool stop, bool save)
{
    e->asked[0] = stop;
    e->asked[1] = save;
}

static void gather_shares(Executor *e)
{
    size_t boundaries = (size_t)e->plan->shape.dp + 1;
    Phase outer = phase_enter(PHASE_SUM);
    for (int c = 0; c < e->plan->chunk_count; ++c) {
        const ChunkPlan *chunk = &e->plan->chunk[c];
        for (int b = 0; b < chunk->buckets.count; ++b)
            if (chunk->buckets.offset[b] < e->plan->metrics_at)
                comm_allgather_begin(e->comm, chunk->share + (size_t)b * boundaries, 0);
    }
    comm_wait(e->comm);
    phase_enter(outer);
}

void executor_refresh(Executor *e)
{
    bool fetches = e->plan->fetches;
    if (fetches) values_forget(e);
    if (e->plan->zero && !fetches) gather_shares(e);
    for (int c = 0; c < e->plan->chunk_count; ++c)
        for (int i = 0; i < e->plan->chunk[c].run_count; ++i) {
            Op *op = e->plan->graph->node[e->plan->chunk[c].run[i].node].op;
            if (fetches && op->spec.w_count) continue; /* when they come (values.c) */
            op_refresh(op, &e->chunk[c].slot[0].run[i]);
        }
}
