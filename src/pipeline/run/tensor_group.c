/* Chooses how slices are exchanged in the tensor-parallel group of a rank, and adds up partial
 * gradients by this exchange. NCCL exchanges slices if it connects the ranks' GPUs; otherwise they
 * are exchanged through host memory. */
#include "tensor_group.h"

#include "slice_exchange.h"

struct TensorGroup {
    const Context *context;
    /* the exchange in use: `gpus`, or the interface of `host` or of `staged`; borrowed */
    const Exchange *exchange;
    /* NULL: NCCL does not connect the ranks' GPUs; owned */
    Exchange *gpus;
    /* NULL: NCCL connects the ranks' GPUs; owned */
    HostExchange *host;
    /* NULL: operations use host memory, or NCCL is used; owned */
    StagedExchange *staged;
    /* number of floats that the ranks add up at the end of a step */
    int64_t part_floats;
    /* this rank's floats to be added up, packed, [part_floats], in the backend's memory; owned */
    float *parts;
    /* this rank's slice of the sums of `parts`, in the backend's memory; owned */
    float *slice;
};

static void part_copy(const Context *c, float *at, float *packed, int64_t count, bool back)
{
    context_copy(c, back ? at : packed, back ? packed : at, (size_t)count * sizeof *at);
}

/* Packs the floats that the group adds up or, with back = true, unpacks their sums. */
static void parts_move(const TensorGroup *g, const GradSync *sync, float *metrics, bool back)
{
    const Context *c = g->context;
    float *packed = g->parts;
    int64_t first, count;
    if (metrics) part_copy(c, metrics + METRIC_STOP, packed, METRIC_REQUESTS, back);
    packed += METRIC_REQUESTS;
    for (int i = 0; i < c->plan->graph->param_count; ++i) {
        if (!plan_group_part(c->plan, i, c->grid->dp_rank, &first, &count)) continue;
        part_copy(c, grad_sum(sync, c->plan->gradient_offset[i] + first), packed, count, back);
        packed += count;
    }
}

void tensor_group_sum(TensorGroup *g, const GradSync *sync, float *metrics)
{
    Slices all = {.ranges = 1, .items = g->part_floats, .item_elements = 1, .type = DTYPE_F32};
    parts_move(g, sync, metrics, false);
    g->exchange->reduce_scatter(g->exchange, all, g->parts, g->slice);
    g->exchange->all_gather(g->exchange, all, g->slice, g->parts);
    parts_move(g, sync, metrics, true);
}

/* ---- set-up ---- */

const Exchange *tensor_group_exchange(const TensorGroup *group)
{
    return group ? group->exchange : NULL;
}

/* Returns the hash of the positions of the elements that this rank adds up, which must be the same
 * on all ranks of a tensor-parallel group. */
static uint64_t parts_hash(const Context *c)
{
    /* the hash so far, the parameter's number, and its first element and count to add up */
    int64_t field[4] = {0};
    for (int i = 0; i < c->plan->graph->param_count; ++i) {
        if (!plan_group_part(c->plan, i, c->grid->dp_rank, &field[2], &field[3])) continue;
        field[1] = i;
        field[0] = (int64_t)hash_bytes(field, sizeof field);
    }
    return (uint64_t)field[0];
}

static Status check_parts(const Context *c)
{
    const World *world = &c->grid->tp_world;
    uint64_t which = parts_hash(c);
    uint64_t *all = mem_new((size_t)world->size * sizeof *all);
    world_allgather(world, &which, sizeof which, all);
    bool same = true;
    for (int r = 0; r < world->size; ++r) same = same && all[r] == which;
    mem_free(&all);
    if (same) return OK;
    return fail(ERR_BUG, "the %d ranks of a tensor group shard parameters differently",
                world->size);
}

static Status open_exchange(TensorGroup *g, Context *c, size_t most)
{
    const World *world = &c->grid->tp_world;
    g->gpus = gpu_exchange_new(world, most, plan_sums_by_tree(c->plan));
    g->exchange = g->gpus;
    if (g->gpus) return OK;
    TRY(host_exchange_new(&g->host, c, world));
    c->progress.group = host_exchange_channels(g->host);
    g->exchange = host_exchange_interface(g->host);
    if (c->backend->table->host_memory) return OK;
    g->staged = staged_exchange_new(c, g->exchange, most);
    g->exchange = staged_exchange_interface(g->staged);
    return OK;
}

Status tensor_group_new(TensorGroup **group, Context *c)
{
    *group = NULL;
    if (c->grid->tp_world.size == 1) return OK;
    TRY(status_agree(c->grid->world, check_parts(c)));
    TensorGroup *g = *group = mem_new(sizeof *g);
    *g = (TensorGroup){.context = c, .part_floats = plan_group_floats(c->plan, c->grid->dp_rank)};
    size_t bytes = (size_t)g->part_floats * sizeof(float);
    g->parts = context_alloc(c, bytes);
    g->slice = context_alloc(c, bytes);
    return open_exchange(g, c, plan_largest_exchange(c->plan, bytes));
}

void tensor_group_free(TensorGroup **group)
{
    TensorGroup *g = *group;
    if (!g) return;
    size_t bytes = (size_t)g->part_floats * sizeof(float);
    staged_exchange_free(&g->staged);
    host_exchange_free(&g->host);
    if (g->gpus) gpu_exchange_free(&g->gpus);
    context_release(g->context, g->parts, bytes);
    context_release(g->context, g->slice, bytes);
    mem_free(group);
}
