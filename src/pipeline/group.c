/* The ranks of a tensor group: the way by which operations exchange slices (through NCCL where it joins their GPUs, else
 * through host memory), and what the ranks owe each other at a step's end. */
#include "executor.h"

enum { ASKED = 2 }; /* METRIC_STOP and METRIC_SAVE are owed, too */

struct TensorGroup {
    const Exchange *face; /* of one of these */
    Exchange *gpus;       /* owned; NULL: not joined */
    GroupPipes *pipes;    /* owned; NULL: joined */
    Staged *staged;       /* owned; NULL: operations' memory is the pipes' */
    int64_t owed;         /* floats that ranks add up at a step's end: in the backend's memory, */
    float *parts, *slice; /* owned: those of this rank; its slice of the sums */
};

/* What of a parameter's gradient has been summed over the replicas at dp_rank. */
static bool owes(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count)
{
    if (!plan->graph->param[param].partial || plan->gradient_at[param] < 0) return false;
    plan_share(plan, param, dp_rank, first, count);
    return *count > 0;
}

static void owed_copy(Executor *e, float *at, float *packed, int64_t count, bool back)
{
    e->backend->table->copy(e->stream, back ? at : packed, back ? packed : at,
                            (size_t)count * sizeof *at);
}

static void owed_move(Executor *e, bool back)
{
    const Plan *plan = e->plan;
    float *packed = e->group->parts, *metrics = metrics_sum(e);
    int64_t first, count;
    int rank = e->grid->dp_rank;
    if (metrics) owed_copy(e, metrics + METRIC_STOP, packed, ASKED, back);
    packed += ASKED;
    for (int i = 0; i < plan->graph->param_count; ++i) {
        if (!owes(plan, i, rank, &first, &count)) continue;
        float *at = e->level[0] + plan_sum_at(plan, plan->gradient_at[i] + first, rank);
        owed_copy(e, at, packed, count, back);
        packed += count;
    }
}

void group_sum(Executor *e)
{
    TensorGroup *g = e->group;
    if (!g) return;
    Slices all = {.runs = 1, .items = g->owed, .unit = 1, .type = DTYPE_F32};
    owed_move(e, false);
    g->face->reduce(g->face, all, g->parts, g->slice);
    g->face->gather(g->face, all, g->slice, g->parts);
    owed_move(e, true);
}

/* ---- set-up ---- */

void group_progress(Executor *e)
{
    if (e->group && e->group->pipes) pipes_progress(e->group->pipes);
}

const Exchange *group_exchange(const Executor *e)
{
    return e->group ? e->group->face : NULL;
}

static int64_t owed_floats(const Plan *plan, int dp_rank)
{
    int64_t owed = ASKED, first, count;
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (owes(plan, i, dp_rank, &first, &count)) owed += count;
    return owed;
}

/* Which: the ranks of a group must owe each other the same. */
static uint64_t which_owed(const Executor *e)
{
    int64_t field[4] = {0}; /* so far, parameter, first, count */
    for (int i = 0; i < e->plan->graph->param_count; ++i) {
        if (!owes(e->plan, i, e->grid->dp_rank, &field[2], &field[3])) continue;
        field[1] = i;
        field[0] = (int64_t)hash_bytes(field, sizeof field);
    }
    return (uint64_t)field[0];
}

static Status check_owed(const Executor *e)
{
    const World *world = &e->grid->tp_world;
    uint64_t which = which_owed(e);
    uint64_t *all = mem_new((size_t)world->size * sizeof *all);
    world_gather(world, &which, sizeof which, all);
    bool same = true;
    for (int r = 0; r < world->size; ++r) same = same && all[r] == which;
    mem_free(&all);
    if (same) return OK;
    return fail(ERR_BUG, "the %d ranks of a tensor group share parameters out differently",
                world->size);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes of the largest tensor that is exchanged. */
static size_t most_exchanged(const Plan *plan, size_t owed)
{
    const Graph *g = plan->graph;
    size_t most = owed;
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        if (op_info(op->spec.kind)->talks == TALKS_ALWAYS)
            most = larger(most, larger(desc_bytes(op->spec.x[0]), desc_bytes(op->spec.y)));
        if (i == g->loss) most = larger(most, op->workspace_bytes);
    }
    return most;
}

static Status open_face(Executor *e, const World *world, size_t most)
{
    TensorGroup *g = e->group;
    g->gpus = gpu_exchange_new(world, most);
    g->face = g->gpus;
    if (g->gpus) return OK;
    TRY(pipes_new(&g->pipes, e, world));
    g->face = pipes_exchange(g->pipes);
    if (e->backend->table->host_memory) return OK;
    g->staged = staged_new(e, g->face, most);
    g->face = staged_exchange(g->staged);
    return OK;
}

Status group_new(Executor *e)
{
    const World *world = &e->grid->tp_world;
    if (world->size == 1) return OK;
    TRY(status_agree(e->grid->world, check_owed(e)));
    TensorGroup *g = e->group = mem_new(sizeof *g);
    g->owed = owed_floats(e->plan, e->grid->dp_rank);
    size_t bytes = (size_t)g->owed * sizeof(float);
    g->parts = e->backend->table->alloc(e->backend, bytes);
    g->slice = e->backend->table->alloc(e->backend, bytes);
    return open_face(e, world, most_exchanged(e->plan, bytes));
}

void group_free(Executor *e)
{
    TensorGroup *g = e->group;
    if (!g) return;
    size_t bytes = (size_t)g->owed * sizeof(float);
    staged_free(&g->staged);
    pipes_free(&g->pipes);
    if (g->gpus) gpu_exchange_free(&g->gpus);
    e->backend->table->release(e->backend, g->parts, bytes);
    e->backend->table->release(e->backend, g->slice, bytes);
    mem_free(&e->group);
}

void group_memory(Plan *plan, bool joined)
{
    int ranks = plan->shape.tp;
    size_t owed = 0;
    if (ranks == 1) return;
    for (int r = 0; r < plan->shape.dp; ++r)
        owed = larger(owed, (size_t)owed_floats(plan, r) * sizeof(float));
    size_t most = most_exchanged(plan, owed);
    plan->message_bytes += 2 * owed;
    if (plan_in_host_memory(plan))
        plan->message_bytes += pipes_bytes(ranks);
    else if (joined)
        plan->message_bytes += gpu_exchange_bytes(ranks, most);
    else
        plan->staged_bytes += 2 * most + pipes_bytes(ranks);
}
