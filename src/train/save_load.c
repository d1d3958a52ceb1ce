/* Checkpoints of a Trainer: its tensors as checkpoint.h wants them. */
#include "resume.h"

#include <math.h>
#include <string.h>

/* Parameters and running statistics, then each optimizer slot of the trained ones. A tied parameter
 * is in the file as the one it is tied to. */
typedef struct Tensors {
    Trainer *trainer;
    CheckpointTensor *tensor;
    /* copy of a tensor; NULL where the backend's memory is the host's */
    float *host;
    /* a tensor whose parts several ranks have; NULL where nothing is sharded */
    float *whole;
    /* In plain order, NULL where tensor parallelism divides nothing: this rank's slice of a tensor,
     * those of the group. */
    float *slice, *slices;
    /* slot -1: the value itself */
    int *param, *slot;
    int count;
} Tensors;

/* The parameter of this rank that has the value of tensor i: itself, or one that is tied to it; -1:
 * none. */
static int local_param(const Tensors *list, int i)
{
    const Trainer *t = list->trainer;
    int param = list->param[i];
    if (t->plan->param_offset[param] >= 0) return param;
    for (int p = 0; p < t->graph->param_count; ++p)
        if (t->graph->param[p].tied == param && t->plan->param_offset[p] >= 0) return p;
    return -1;
}

static OptimRule rule_of(const Trainer *t, int param)
{
    return optim_rule(t->config, t->rule[param]);
}

/* What the optimizer updates of a trained parameter here. */
static const OptimPiece *piece_of(const Trainer *t, int param)
{
    int range = 0;
    while (t->range_param[range] != param) ++range;
    return &t->optim->piece[range];
}

/* Is tensor i in parts on several ranks: the optimizer's, or a value that is gathered? */
static bool in_parts(const Tensors *list, int i)
{
    return list->whole && (list->slot[i] >= 0 || list->trainer->plan->gathers);
}

/* State of the rule that this configuration has no use for, as SGD's without momentum: zeros in the
 * file, nothing in memory. */
static bool is_zero(const Tensors *list, int i)
{
    const Trainer *t = list->trainer;
    return list->slot[i] >= 0 && list->slot[i] >= rule_of(t, list->param[i]).slots;
}

static bool tensor_wanted(void *user, int i)
{
    const Tensors *list = user;
    const Trainer *t = list->trainer;
    int param = local_param(list, i);
    int64_t first, count;
    if (param < 0 || is_zero(list, i)) return false;
    if (!in_parts(list, i)) return list->slot[i] >= 0 || train_sets_params(t);
    plan_shard(t->plan, param, t->grid.dp_rank, &first, &count);
    return count > 0;
}

/* Where tensor i lies in the backend's memory, or this rank's part of it. */
static float *tensor_memory(const Tensors *list, int i, int param)
{
    Trainer *t = list->trainer;
    int slot = list->slot[i];
    if (slot < 0) return executor_param(t->executor, param);
    return t->optim->state[slot] + piece_of(t, param)->state[slot];
}

/* Into the backend's memory, or out of it. */
static void copy(const Tensors *list, void *to, const void *from, size_t bytes)
{
    Trainer *t = list->trainer;
    Stream *s = t->backend->table->stream(t->backend);
    t->backend->table->copy(s, to, from, bytes);
    t->backend->table->sync(s);
}

static size_t bytes_of(const Tensors *list, int param)
{
    return (size_t)list->trainer->graph->param[param].elements * sizeof(float);
}

/* The replicas that have a tensor's parts send them to number `writer`. Shards lie in the order of
 * ranks. */
static void collect_parts(Tensors *list, int i, int param, int writer)
{
    Trainer *t = list->trainer;
    int dp = t->shape.dp;
    float *mine = tensor_memory(list, i, param);
    size_t *bytes = mem_new((size_t)dp * sizeof *bytes);
    for (int r = 0; r < dp; ++r) {
        int64_t first, count;
        plan_shard(t->plan, param, r, &first, &count);
        bytes[r] = (size_t)count * sizeof(float);
    }
    if (list->host) {
        copy(list, list->host, mine, bytes[t->grid.dp_rank]);
        mine = list->host;
    }
    world_collect(&t->grid.dp_world, mine, bytes, writer, list->whole);
    mem_free(&bytes);
}

static bool is_sliced(const Tensors *list, int param)
{
    return list->slice && list->trainer->graph->param[param].cut.parts > 0;
}

static void get_plain(Tensors *list, int i, int param, float *plain);

/* The ranks of a tensor group send their slices to number `writer`. */
static void collect_slices(Tensors *list, int i, int param, int writer)
{
    Trainer *t = list->trainer;
    int tp = t->shape.tp;
    size_t *bytes = mem_new((size_t)tp * sizeof *bytes);
    for (int r = 0; r < tp; ++r)
        bytes[r] = (size_t)param_slice_count(t->graph, param, r) * sizeof(float);
    get_plain(list, i, param, list->slice);
    world_collect(&t->grid.tp_world, list->slice, bytes, writer, list->slices);
    mem_free(&bytes);
}

/* To the one that writes it: in its own column of replicas in each place of the tensor group, then
 * within its group. */
static void tensor_collect(void *user, int i, int writer)
{
    Tensors *list = user;
    const Trainer *t = list->trainer;
    int from_stage = writer - list->tensor[i].rank_first, tp = t->shape.tp;
    int here = t->world->rank - list->tensor[i].rank_first;
    if (here < 0 || here >= t->shape.dp * tp || is_zero(list, i)) return;
    int param = local_param(list, i);
    bool sliced = is_sliced(list, param);
    if (!sliced && from_stage % tp != t->grid.tp_rank) return;
    if (in_parts(list, i)) collect_parts(list, i, param, from_stage / tp);
    if (sliced && t->grid.dp_rank == from_stage / tp)
        collect_slices(list, i, param, from_stage % tp);
}

/* What this rank has of tensor i, its parts collected, in plain order. */
static void get_plain(Tensors *list, int i, int param, float *plain)
{
    const Param *p = &list->trainer->graph->param[param];
    bool collected = in_parts(list, i);
    float *memory = collected ? list->whole : tensor_memory(list, i, param);
    if (list->host && !collected) {
        copy(list, list->host, memory, bytes_of(list, param));
        memory = list->host;
    }
    op_unpack(list->trainer->graph->node[p->node].op, p->slot, memory, plain);
}

static void tensor_get(void *user, int i, float *plain)
{
    Tensors *list = user;
    const Graph *g = list->trainer->graph;
    int param = local_param(list, i);
    if (is_zero(list, i)) {
        size_t count = (size_t)shape_count(list->tensor[i].shape);
        memset(plain, 0, count * sizeof *plain);
        return;
    }
    if (!is_sliced(list, param)) {
        get_plain(list, i, param, plain);
        return;
    }
    const float *slice = list->slices;
    for (int r = 0; r < g->ranks; slice += param_slice_count(g, param, r++))
        param_slice_put(g, param, r, slice, plain);
}

static void tensor_set(void *user, int i, const float *plain)
{
    Tensors *list = user;
    const Graph *g = list->trainer->graph;
    int param = local_param(list, i);
    const Param *p = &g->param[param];
    float *memory = tensor_memory(list, i, param);
    float *packed = list->host ? list->host : in_parts(list, i) ? list->whole : memory;
    if (is_sliced(list, param)) {
        param_slice_get(g, param, g->rank, plain, list->slice);
        plain = list->slice;
    }
    op_pack(g->node[p->node].op, p->slot, plain, packed);
    if (in_parts(list, i)) {
        int64_t first, count;
        plan_shard(list->trainer->plan, param, list->trainer->grid.dp_rank, &first, &count);
        copy(list, memory, packed + first, (size_t)count * sizeof *memory);
    } else if (list->host) {
        copy(list, memory, list->host, bytes_of(list, param));
    }
}

static int stage_of(const Trainer *t, int node)
{
    int chunk = 0;
    while (node >= t->first[chunk + 1]) ++chunk;
    return schedule_stage(t->schedule, chunk);
}

static void tensors_add(Tensors *list, int param, int slot)
{
    const Trainer *t = list->trainer;
    const Param *p = &t->graph->param[param];
    int ranks = t->shape.dp * t->shape.tp;
    char *path = slot >= 0
                     ? mem_format("/optim/%s/%s", rule_of(t, param).table->slot_name[slot], p->name)
                     : mem_format("/%s/%s", p->info.buffer ? "buffers" : "params", p->name);
    list->tensor[list->count] =
        (CheckpointTensor){.path = path,
                           .shape = graph_whole(t->graph)->param[param].shape,
                           .rank_first = stage_of(t, p->node) * ranks,
                           .rank_count = ranks};
    list->param[list->count] = param;
    list->slot[list->count++] = slot;
}

static size_t largest_bytes(const Trainer *t)
{
    size_t largest = 1;
    for (int i = 0; i < t->graph->param_count; ++i)
        if ((size_t)t->graph->param[i].elements > largest)
            largest = (size_t)t->graph->param[i].elements;
    return largest * sizeof(float);
}

static size_t largest_whole_bytes(const Trainer *t)
{
    const Graph *g = graph_whole(t->graph);
    size_t largest = 1;
    for (int i = 0; i < g->param_count; ++i)
        if ((size_t)shape_count(g->param[i].shape) > largest)
            largest = (size_t)shape_count(g->param[i].shape);
    return largest * sizeof(float);
}

/* Which there are, and no memory for them. */
static void tensors_list(Tensors *list, const Trainer *t, bool params_only)
{
    int slots = params_only ? 0 : OPTIM_SLOTS, params = t->graph->param_count;
    size_t most = (size_t)params * (size_t)(slots + 1) + 1;
    *list = (Tensors){.trainer = (Trainer *)(uintptr_t)t,
                      .tensor = mem_new(most * sizeof *list->tensor),
                      .param = mem_new(most * sizeof *list->param),
                      .slot = mem_new(most * sizeof *list->slot)};
    for (int slot = -1; slot < slots; ++slot)
        for (int i = 0; i < params; ++i) {
            bool buffer = t->graph->param[i].info.buffer;
            bool has = slot < 0 || (!buffer && slot < rule_of(t, i).table->slots);
            if (t->graph->param[i].tied < 0 && has) tensors_add(list, i, slot);
        }
}

static void tensors_init(Tensors *list, Trainer *t, bool params_only)
{
    tensors_list(list, t, params_only);
    if (!t->backend->table->host_memory) list->host = mem_pages_new(t->plan->param_bytes);
    if (t->plan->zero) list->whole = mem_pages_new(largest_bytes(t));
    if (t->shape.tp > 1) {
        list->slice = mem_pages_new(largest_whole_bytes(t));
        list->slices = mem_pages_new(largest_whole_bytes(t));
    }
}

static void tensors_fini(Tensors *list)
{
    for (int i = 0; i < list->count; ++i) {
        char *path = (char *)(uintptr_t)list->tensor[i].path;
        mem_free(&path);
    }
    mem_free(&list->tensor);
    mem_free(&list->param);
    mem_free(&list->slot);
    if (list->host) mem_pages_free(list->host, list->trainer->plan->param_bytes);
    if (list->whole) mem_pages_free(list->whole, largest_bytes(list->trainer));
    if (list->slice) mem_pages_free(list->slice, largest_whole_bytes(list->trainer));
    if (list->slices) mem_pages_free(list->slices, largest_whole_bytes(list->trainer));
}

/* What saving and loading have in common. */
static CheckpointIo io_of(Tensors *list)
{
    return (CheckpointIo){.count = list->count,
                          .tensor = list->tensor,
                          .user = list,
                          .get = tensor_get,
                          .set = tensor_set,
                          .collect = list->whole || list->slice ? tensor_collect : NULL,
                          .wants = tensor_wanted};
}

static void meta_of(const Trainer *t, CheckpointMeta *meta)
{
    *meta = (CheckpointMeta){.step = t->step,
                             .epoch = t->step / t->steps_per_epoch,
                             .data_step = t->step % t->steps_per_epoch,
                             .seed = t->config->run.seed,
                             .best_metric = t->best_metric,
                             .loss_scale = t->scale.moves ? t->scale.now : 0,
                             .loss_scale_good = t->scale.good,
                             .skipped = t->skipped,
                             .config = config_text(t->config)};
    meta->version = mem_text(WEFT_VERSION);
    snprintf(meta->grid, sizeof meta->grid, "%dx%dx%d", t->shape.dp, t->shape.pp, t->shape.tp);
    meta->losses = loss_window_list(&t->losses, meta->loss);
    memcpy(meta->data_train, t->train_data, sizeof meta->data_train);
    memcpy(meta->data_test, t->test_data, sizeof meta->data_test);
}

struct TrainSave {
    Tensors list;
    CheckpointMeta meta;
    CheckpointIo io;
    CheckpointSave *save;
};

/* room NULL: nothing is copied. */
static TrainSave *save_begin(Trainer *t, const char *path, const CheckpointHooks *hooks,
                             float *room)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    TrainSave *s = mem_new(sizeof *s);
    tensors_init(&s->list, t, false);
    meta_of(t, &s->meta);
    s->io = io_of(&s->list);
    if (hooks) s->io.hooks = *hooks;
    s->save = checkpoint_save_begin(t->world, path, &s->meta, &s->io, room);
    phase_enter(outer);
    return s;
}

void train_make_room(Trainer *t)
{
    if (!t->saves_beside || t->room) return;
    t->room_bytes = train_room_bytes(t, t->grid.pp_rank);
    t->room = mem_pages_new(t->room_bytes + 1);
    memset(t->room, 0, t->room_bytes);
}

TrainSave *train_save_begin(Trainer *t, const char *path, const CheckpointHooks *hooks)
{
    train_make_room(t);
    return save_begin(t, path, hooks, t->room);
}

bool train_save_busy(const TrainSave *s)
{
    return checkpoint_save_busy(s->save);
}

Status train_save_next(TrainSave *s, bool *done)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Status st = checkpoint_save_next(s->save, done);
    phase_enter(outer);
    return st;
}

double train_save_seconds(const TrainSave *s)
{
    return checkpoint_save_seconds(s->save);
}

void train_save_free(TrainSave **save)
{
    TrainSave *s = *save;
    if (!s) return;
    checkpoint_save_free(&s->save);
    checkpoint_meta_fini(&s->meta);
    tensors_fini(&s->list);
    mem_free(save);
}

Status train_save(Trainer *t, const char *path)
{
    TrainSave *s = save_begin(t, path, NULL, NULL);
    Status st = OK;
    for (bool done = false; !done;) st = train_save_next(s, &done);
    train_save_free(&s);
    return st;
}

size_t train_room_bytes(const Trainer *t, int stage)
{
    Tensors list;
    int ranks = t->shape.dp * t->shape.tp;
    tensors_list(&list, t, false);
    CheckpointIo io = {.count = list.count, .tensor = list.tensor};
    size_t bytes = checkpoint_room_bytes(&io, ranks * t->shape.pp, stage * ranks, ranks);
    tensors_fini(&list);
    return bytes;
}

static void restore_scale(LossScale *scale, const CheckpointMeta *meta)
{
    if (!scale->moves || meta->loss_scale <= 0) return;
    scale->now = meta->loss_scale;
    scale->good = meta->loss_scale_good;
}

Status train_load(Trainer *t, const char *path, bool params_only)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Tensors list;
    CheckpointMeta meta = {0};
    tensors_init(&list, t, params_only);
    CheckpointIo io = io_of(&list);
    io.params_only = params_only;
    Status st = checkpoint_load(t->world, path, &meta, &io);
    if (st == OK) {
        executor_settle(t->executor);
        /* the next step opens one at the new place */
        loader_free(&t->loader);
        t->step = meta.step;
        t->optim->step = meta.step - meta.skipped;
        t->skipped = meta.skipped;
        loss_window_init(&t->losses, meta.loss, meta.losses);
        restore_scale(&t->scale, &meta);
        t->best_metric = resume_same_test(t, &meta) ? meta.best_metric : (double)NAN;
        executor_params_changed(t->executor);
    }
    checkpoint_meta_fini(&meta);
    tensors_fini(&list);
    phase_enter(outer);
    return st;
}
