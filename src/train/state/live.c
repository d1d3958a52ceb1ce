/* Reads and writes a trainer's tensors in place, for loads and for saves during which training
 * waits. Converts tensors to plain order, the order of values in checkpoints, and back, assembles
 * them from shards and slices, and appends the rows of sparse tables. */
#include "live.h"

#include <string.h>

/* floats in a page of memory, 4 KiB */
enum { PAGE_FLOATS = 4096 / sizeof(float) };

/* Returns true if a load must give tensor i to this rank (CheckpointIo.wants). */
static bool tensor_wanted(void *user, int i)
{
    const Live *live = user;
    const Tensors *list = &live->list;
    const Trainer *t = list->trainer;
    if (i >= list->count) return sparse_io_wants(live->sparse, i - list->count);
    if (tensors_param(list, i) < 0 || tensors_unused(list, i)) return false;
    if (!tensors_sharded(list, i)) return list->slot[i] >= 0 || train_sets_params(t);
    return tensors_replica_floats(list, i, t->grid.dp_rank) > 0;
}

/* Copies to or from the backend's memory, and waits until the copy is done. */
static void copy(const Live *live, void *to, const void *from, size_t bytes)
{
    Trainer *t = live->list.trainer;
    Stream *s = t->backend->table->stream(t->backend);
    t->backend->table->copy(s, to, from, bytes);
    t->backend->table->sync(s);
}

static size_t bytes_of(const Live *live, int param)
{
    return (size_t)live->list.trainer->graph->param[param].elements * sizeof(float);
}

/* Waits for all transfers. A rank first waits for the tensors that it collects itself, as
 * world_collect_begin requires. */
static void collects_wait(void *user)
{
    Live *live = user;
    for (int local = 1; local >= 0; --local)
        for (int k = 0; k < live->collects; ++k)
            if (live->collect[k] && world_collect_is_root(live->collect[k]) == local)
                world_collect_wait(&live->collect[k]);
    live->collects = 0;
}

/* Begins to send the replicas' shards of a tensor to replica `writer`, which stores them in the
 * order of ranks. Waits for the transfer if the next tensor needs one of its buffers. */
static void collect_shards(Live *live, int i, int writer)
{
    Trainer *t = live->list.trainer;
    int dp = t->shape.dp;
    float *mine = tensors_memory(&live->list, i);
    size_t *bytes = mem_new((size_t)dp * sizeof *bytes);
    for (int r = 0; r < dp; ++r)
        bytes[r] = (size_t)tensors_replica_floats(&live->list, i, r) * sizeof(float);
    if (live->host) {
        copy(live, live->host, mine, bytes[t->grid.dp_rank]);
        mine = live->host;
    }
    bool sliced = tensors_sliced(&live->list, i);
    size_t count = (size_t)live->collects + 1;
    live->collect = mem_resize(live->collect, count * sizeof *live->collect);
    live->collect[live->collects++] = world_collect_begin(
        &t->grid.dp_world, mine, bytes, writer, sliced ? live->assembled_slice : live->whole);
    if (live->host || live->assembled_slice) collects_wait(live);
    mem_free(&bytes);
}

static void get_plain(Live *live, int i, int param, float *plain);

/* Sends the slices of a tensor-parallel group to its rank `writer`. */
static void collect_slices(Live *live, int i, int param, int writer)
{
    Trainer *t = live->list.trainer;
    int tp = t->shape.tp;
    size_t *bytes = mem_new((size_t)tp * sizeof *bytes);
    for (int r = 0; r < tp; ++r)
        bytes[r] = (size_t)param_slice_count(t->graph, param, r) * sizeof(float);
    get_plain(live, i, param, live->slice);
    world_collect(&t->grid.tp_world, live->slice, bytes, writer, live->slices);
    mem_free(&bytes);
}

/* Begins to send tensor i to the rank `writer`, which writes it. Its shards are sent first, within
 * each column of replicas (the same rank of each tensor-parallel group); then its slices, within
 * the writer's tensor-parallel group. CheckpointIo.collect_begin. */
static void collect_begin(void *user, int i, int writer)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Trainer *t = list->trainer;
    if (i >= list->count) {
        sparse_io_collect(live->sparse, i - list->count, writer);
        return;
    }
    if (!live->whole && !live->slice) return;
    /* ranks of the writer and of this process within the tensor's stage */
    int writer_in_stage = writer - list->tensor[i].rank_first, tp = t->shape.tp;
    int rank_in_stage = t->world->rank - list->tensor[i].rank_first;
    if (rank_in_stage < 0 || rank_in_stage >= t->shape.dp * tp || tensors_unused(list, i)) return;
    int param = tensors_param(list, i);
    bool sliced = tensors_sliced(list, i);
    if (!sliced && writer_in_stage % tp != t->grid.tp_rank) return;
    if (tensors_sharded(list, i)) collect_shards(live, i, writer_in_stage / tp);
    if (sliced && t->grid.dp_rank == writer_in_stage / tp)
        collect_slices(live, i, param, writer_in_stage % tp);
}

/* Converts this rank's tensor or slice to plain order. Its shards must have been collected. */
static void get_plain(Live *live, int i, int param, float *plain)
{
    const Graph *g = live->list.trainer->graph;
    const Param *p = &g->param[param];
    bool collected = tensors_sharded(&live->list, i);
    float *memory = !collected                       ? tensors_memory(&live->list, i)
                    : tensors_sliced(&live->list, i) ? live->assembled_slice
                                                     : live->whole;
    if (live->host && !collected) {
        copy(live, live->host, memory, bytes_of(live, param));
        memory = live->host;
    }
    op_unpack(g->node[p->node].op, p->slot, memory, plain);
}

/* Writes tensor i in plain order to plain, or returns it in other memory (CheckpointIo.get). */
static const float *tensor_get(void *user, int i, float *plain)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Graph *g = list->trainer->graph;
    if (i >= list->count) return sparse_io_get(live->sparse, i - list->count);
    int param = tensors_param(list, i);
    if (tensors_unused(list, i)) {
        memset(plain, 0, (size_t)shape_count(list->tensor[i].shape) * sizeof *plain);
    } else if (!tensors_sliced(list, i)) {
        get_plain(live, i, param, plain);
    } else {
        const float *slice = live->slices;
        for (int r = 0; r < g->tp_ranks; slice += param_slice_count(g, param, r++))
            param_slice_put(g, param, r, slice, plain);
    }
    return plain;
}

static void copy_range(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    (void)args;
    memcpy(array[1], array[0], (size_t)n * sizeof(float));
}

/* Stores a parameter that is given in plain order. If its stored form is plain order, too, all
 * threads copy it, because the memory may be touched for the first time here. */
static void pack(const Trainer *t, int param, const float *plain, float *stored)
{
    const Param *p = &t->graph->param[param];
    Op *op = t->graph->node[p->node].op;
    float *from = (float *)(uintptr_t)plain;
    if (op_stored_plain(op, p->slot))
        backend_cpu.flat->run_elements(NULL, copy_range, NULL, (float *[FLAT_ARRAYS]){from, stored},
                                       p->elements);
    else
        op_pack(op, p->slot, plain, stored);
}

/* Writes to each page of a range. Called by the threads that will compute on the range, so that the
 * operating system places its pages near them. */
static void touch_range(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    (void)args;
    for (int64_t i = 0; i < n; i += PAGE_FLOATS) array[0][i] = 0;
}

/* Returns the memory into which the file's tensor i can be read without conversion
 * (CheckpointIo.place); NULL: there is none. */
static float *tensor_place(void *user, int i)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Graph *g = list->trainer->graph;
    if (i >= list->count || live->host) return NULL;
    const Param *p = &g->param[tensors_param(list, i)];
    bool stored_as_in_file = !tensors_sharded(list, i) && !tensors_sliced(list, i) &&
                             op_stored_plain(g->node[p->node].op, p->slot);
    float *memory = stored_as_in_file ? tensors_memory(list, i) : NULL;
    if (memory)
        backend_cpu.flat->run_elements(NULL, touch_range, NULL, (float *[FLAT_ARRAYS]){memory},
                                       p->elements);
    return memory;
}

/* Stores tensor i, which is given in plain order, in this rank's memory (CheckpointIo.set). */
static void tensor_set(void *user, int i, const float *plain)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Graph *g = list->trainer->graph;
    if (i >= list->count) {
        sparse_io_set(live->sparse, i - list->count, plain);
        return;
    }
    int param = tensors_param(list, i);
    bool sharded = tensors_sharded(list, i);
    float *memory = tensors_memory(list, i);
    if (plain == memory) return;
    float *packed = live->host ? live->host : sharded ? live->whole : memory;
    if (tensors_sliced(list, i)) {
        param_slice_get(g, param, g->tp_rank, plain, live->slice);
        plain = live->slice;
    }
    pack(list->trainer, param, plain, packed);
    if (sharded) {
        int64_t first, count;
        plan_shard(list->plan, param, list->trainer->grid.dp_rank, &first, &count);
        copy(live, memory, packed + first, (size_t)count * sizeof *memory);
    } else if (live->host) {
        copy(live, memory, live->host, bytes_of(live, param));
    }
}

void live_init(Live *live, Trainer *t, bool params_only)
{
    *live = (Live){0};
    tensors_init(&live->list, t, t->plan, params_only);
    if (!t->backend->table->host_memory) live->host = mem_pages_new(t->plan->param_bytes);
    if (t->plan->zero) live->whole = mem_pages_new(tensors_largest_bytes(t));
    if (t->plan->zero && t->shape.tp > 1)
        live->assembled_slice = mem_pages_new(tensors_largest_bytes(t));
    if (t->shape.tp > 1) {
        live->slice = mem_pages_new(tensors_largest_whole_bytes(t));
        live->slices = mem_pages_new(tensors_largest_whole_bytes(t));
    }
}

void live_fini(Live *live)
{
    const Trainer *t = live->list.trainer;
    if (live->host) mem_pages_free(live->host, t->plan->param_bytes);
    if (live->whole) mem_pages_free(live->whole, tensors_largest_bytes(t));
    if (live->assembled_slice) mem_pages_free(live->assembled_slice, tensors_largest_bytes(t));
    if (live->slice) mem_pages_free(live->slice, tensors_largest_whole_bytes(t));
    if (live->slices) mem_pages_free(live->slices, tensors_largest_whole_bytes(t));
    mem_free(&live->collect);
    tensors_fini(&live->list);
    sparse_io_free(&live->sparse);
    mem_free(&live->tensor);
}

CheckpointIo live_io(Live *live)
{
    size_t params = (size_t)live->list.count, rows = (size_t)sparse_io_count(live->sparse);
    if (live->sparse) {
        live->tensor = mem_new((params + rows) * sizeof *live->tensor);
        memcpy(live->tensor, live->list.tensor, params * sizeof *live->tensor);
        memcpy(live->tensor + params, sparse_io_tensors(live->sparse), rows * sizeof *live->tensor);
    }
    bool collects = live->whole || live->slice || live->sparse;
    return (CheckpointIo){.count = (int)(params + rows),
                          .tensor = live->sparse ? live->tensor : live->list.tensor,
                          .user = live,
                          .get = tensor_get,
                          .set = tensor_set,
                          .place = tensor_place,
                          .collect_begin = collects ? collect_begin : NULL,
                          .collect_wait = collects ? collects_wait : NULL,
                          .wants = tensor_wanted};
}
