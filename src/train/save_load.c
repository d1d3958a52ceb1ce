/* Checkpoints of a Trainer: its tensors as checkpoint.h wants them. */
#include "init_from.h"
#include "resume.h"
#include "save_copy.h"
#include "sparse.h"
#include "sparse_io.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Tensors as they lie in memory now. */
typedef struct Live {
    Tensors list;
    /* copy of a tensor; NULL where the backend's memory is the host's */
    float *host;
    /* a tensor whose parts several ranks have; NULL where nothing is sharded */
    float *whole;
    /* In plain order, NULL where tensor parallelism divides nothing: this rank's slice of a tensor,
     * those of the group. */
    float *slice, *slices;
    /* owned: rows of sparse tables, whose tensors come behind the list's; NULL: there are none */
    SparseIo *sparse;
    /* owned: both, where there are */
    CheckpointTensor *tensor;
} Live;

static bool tensor_wanted(void *user, int i)
{
    const Live *live = user;
    const Tensors *list = &live->list;
    const Trainer *t = list->trainer;
    if (i >= list->count) return sparse_io_wants(live->sparse, i - list->count);
    if (tensors_param(list, i) < 0 || tensors_zero(list, i)) return false;
    if (!tensors_in_parts(list, i)) return list->slot[i] >= 0 || train_sets_params(t);
    return tensors_part(list, i, t->grid.dp_rank) > 0;
}

/* Into the backend's memory, or out of it. */
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

/* The replicas that have a tensor's parts send them to number `writer`. Shards lie in the order of
 * ranks. */
static void collect_parts(Live *live, int i, int writer)
{
    Trainer *t = live->list.trainer;
    int dp = t->shape.dp;
    float *mine = tensors_memory(&live->list, i);
    size_t *bytes = mem_new((size_t)dp * sizeof *bytes);
    for (int r = 0; r < dp; ++r) bytes[r] = (size_t)tensors_part(&live->list, i, r) * sizeof(float);
    if (live->host) {
        copy(live, live->host, mine, bytes[t->grid.dp_rank]);
        mine = live->host;
    }
    world_collect(&t->grid.dp_world, mine, bytes, writer, live->whole);
    mem_free(&bytes);
}

static void get_plain(Live *live, int i, int param, float *plain);

/* The ranks of a tensor group send their slices to number `writer`. */
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

/* To the one that writes it: in its own column of replicas in each place of the tensor group, then
 * within its group. */
static void tensor_collect(void *user, int i, int writer)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Trainer *t = list->trainer;
    if (i >= list->count) {
        sparse_io_collect(live->sparse, i - list->count, writer);
        return;
    }
    if (!live->whole && !live->slice) return;
    int from_stage = writer - list->tensor[i].rank_first, tp = t->shape.tp;
    int here = t->world->rank - list->tensor[i].rank_first;
    if (here < 0 || here >= t->shape.dp * tp || tensors_zero(list, i)) return;
    int param = tensors_param(list, i);
    bool sliced = tensors_sliced(list, i);
    if (!sliced && from_stage % tp != t->grid.tp_rank) return;
    if (tensors_in_parts(list, i)) collect_parts(live, i, from_stage / tp);
    if (sliced && t->grid.dp_rank == from_stage / tp)
        collect_slices(live, i, param, from_stage % tp);
}

/* What this rank has of tensor i, its parts collected, in plain order. */
static void get_plain(Live *live, int i, int param, float *plain)
{
    const Graph *g = live->list.trainer->graph;
    const Param *p = &g->param[param];
    bool collected = tensors_in_parts(&live->list, i);
    float *memory = collected ? live->whole : tensors_memory(&live->list, i);
    if (live->host && !collected) {
        copy(live, live->host, memory, bytes_of(live, param));
        memory = live->host;
    }
    op_unpack(g->node[p->node].op, p->slot, memory, plain);
}

static const float *tensor_get(void *user, int i, float *plain)
{
    Live *live = user;
    const Tensors *list = &live->list;
    const Graph *g = list->trainer->graph;
    if (i >= list->count) return sparse_io_get(live->sparse, i - list->count);
    int param = tensors_param(list, i);
    if (tensors_zero(list, i)) {
        memset(plain, 0, (size_t)shape_count(list->tensor[i].shape) * sizeof *plain);
    } else if (!tensors_sliced(list, i)) {
        get_plain(live, i, param, plain);
    } else {
        const float *slice = live->slices;
        for (int r = 0; r < g->ranks; slice += param_slice_count(g, param, r++))
            param_slice_put(g, param, r, slice, plain);
    }
    return plain;
}

static void copy_range(const void *args, float *const range[FLAT_RANGES], int64_t n)
{
    (void)args;
    memcpy(range[1], range[0], (size_t)n * sizeof(float));
}

/* By all threads where nothing changes place: memory may be touched for the first time. */
static void pack(const Trainer *t, int param, const float *plain, float *stored)
{
    const Param *p = &t->graph->param[param];
    Op *op = t->graph->node[p->node].op;
    float *from = (float *)(uintptr_t)plain;
    if (op_stored_plain(op, p->slot))
        backend_cpu.flat->each(NULL, copy_range, NULL, (float *[FLAT_RANGES]){from, stored},
                               p->elements);
    else
        op_pack(op, p->slot, plain, stored);
}

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
    bool in_parts = tensors_in_parts(list, i);
    float *memory = tensors_memory(list, i);
    float *packed = live->host ? live->host : in_parts ? live->whole : memory;
    if (tensors_sliced(list, i)) {
        param_slice_get(g, param, g->rank, plain, live->slice);
        plain = live->slice;
    }
    pack(list->trainer, param, plain, packed);
    if (in_parts) {
        int64_t first, count;
        plan_shard(list->plan, param, list->trainer->grid.dp_rank, &first, &count);
        copy(live, memory, packed + first, (size_t)count * sizeof *memory);
    } else if (live->host) {
        copy(live, memory, live->host, bytes_of(live, param));
    }
}

static void live_init(Live *live, Trainer *t, bool params_only)
{
    *live = (Live){0};
    tensors_init(&live->list, t, t->plan, params_only);
    if (!t->backend->table->host_memory) live->host = mem_pages_new(t->plan->param_bytes);
    if (t->plan->zero) live->whole = mem_pages_new(tensors_largest_bytes(t));
    if (t->shape.tp > 1) {
        live->slice = mem_pages_new(tensors_largest_whole_bytes(t));
        live->slices = mem_pages_new(tensors_largest_whole_bytes(t));
    }
}

static void live_fini(Live *live)
{
    const Trainer *t = live->list.trainer;
    if (live->host) mem_pages_free(live->host, t->plan->param_bytes);
    if (live->whole) mem_pages_free(live->whole, tensors_largest_bytes(t));
    if (live->slice) mem_pages_free(live->slice, tensors_largest_whole_bytes(t));
    if (live->slices) mem_pages_free(live->slices, tensors_largest_whole_bytes(t));
    tensors_fini(&live->list);
    sparse_io_free(&live->sparse);
    mem_free(&live->tensor);
}

/* What saving and loading have in common. */
static CheckpointIo io_of(Live *live)
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
                          .collect = collects ? tensor_collect : NULL,
                          .wants = tensor_wanted};
}

/* What has to be known of samples where there is no data set. */
static void input_of(const DataSet *set, CheckpointMeta *meta)
{
    CheckpointInput *is = &meta->input;
    if (!data_kind(set)->augments) return;
    *is = (CheckpointInput){.channels = set->channels,
                            .height = set->height,
                            .width = set->width,
                            .stored_height = set->encoded ? 0 : set->stored_height,
                            .stored_width = set->encoded ? 0 : set->stored_width,
                            .classes = set->classes,
                            .turned = set->turned,
                            .bicubic = set->bicubic,
                            .stats = set->stats_count,
                            .scale = set->scale};
    memcpy(is->mean, set->mean, sizeof is->mean);
    memcpy(is->std, set->std, sizeof is->std);
}

static void meta_of(const Trainer *t, CheckpointMeta *meta)
{
    *meta = (CheckpointMeta){.step = t->step,
                             .epoch = t->step / t->steps_per_epoch,
                             .data_step = t->step % t->steps_per_epoch,
                             .seed = t->config->run.seed,
                             .best_metric = t->best_metric,
                             .evaluations = t->evaluations,
                             .lr = t->lr,
                             .stop_best = t->early.best,
                             .stop_bad = t->early.bad,
                             .hook_stop = t->hook_stop,
                             .loss_scale = t->scale.moves ? t->scale.now : 0,
                             .loss_scale_good = t->scale.good,
                             .skipped = t->skipped,
                             .config = config_text(t->config)};
    meta->version = mem_text(WEFT_VERSION);
    snprintf(meta->grid, sizeof meta->grid, "%dx%dx%d", t->shape.dp, t->shape.pp, t->shape.tp);
    meta->losses = loss_window_list(&t->losses, meta->loss);
    memcpy(meta->data_train, t->train_data, sizeof meta->data_train);
    memcpy(meta->data_test, t->test_data, sizeof meta->data_test);
    memcpy(meta->init_from, t->init_from, sizeof meta->init_from);
    snprintf(meta->best_of, sizeof meta->best_of, "%s", trainer_metric(t)->word.word);
    meta->classes = mem_text(t->classes);
    input_of(&t->train_set, meta);
}

/* ---- saving ---- */

struct TrainSave {
    Trainer *trainer;
    CheckpointMeta meta;
    CheckpointIo io;
    /* owned: where it goes, and a second name that it gets or NULL */
    char *path, *also;
    /* of what training waits for */
    Live live;
    /* Rounds of the copy: which is next. After them: save, NULL before. */
    int level, round;
    CheckpointSave *save;
    /* A thread unpacks slices; and what it and the rounds took. */
    bool threaded;
    pthread_t thread;
    atomic_bool busy;
    double seconds;
};

static void *unpack_slices(void *user)
{
    TrainSave *s = user;
    const double begun = clock_s();
    save_copy_unpack(s->trainer->copy);
    s->seconds += clock_s() - begun;
    atomic_store(&s->busy, false);
    return NULL;
}

static void unpack_begin(TrainSave *s)
{
    atomic_store(&s->busy, true);
    s->threaded = thread_begin(&s->thread, unpack_slices, s) == 0;
    if (!s->threaded) unpack_slices(s);
}

/* Past levels that have no more rounds; behind the last one the file is begun. */
static void go_on(TrainSave *s)
{
    SaveCopy *copy = s->trainer->copy;
    while (s->level < SAVE_COPY_LEVELS && s->round == save_copy_rounds(copy, s->level)) {
        s->round = 0;
        if (++s->level == SAVE_COPY_LEVELS || s->trainer->shape.tp == 1) continue;
        unpack_begin(s);
        return;
    }
    if (s->level == SAVE_COPY_LEVELS)
        s->save = checkpoint_save_begin(s->trainer->world, s->path, &s->meta, &s->io, true);
}

void train_make_room(Trainer *t)
{
    if (t->saves_beside && !t->copy) t->copy = save_copy_new(t);
}

TrainSave *train_save_begin(Trainer *t, const TrainSaveTo *to)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    TrainSave *s = mem_new(sizeof *s);
    const double begun = clock_s();
    s->trainer = t;
    s->path = mem_text(to->path);
    s->also = mem_text(to->also);
    meta_of(t, &s->meta);
    train_make_room(t);
    if (t->copy && !to->waits) {
        if (!t->copied) save_copy_take(t->copy);
        save_copy_begin(t->copy);
        t->copy_lent = true;
        t->copied = false;
        s->io = save_copy_io(t->copy);
    } else {
        live_init(&s->live, t, false);
        s->live.sparse = sparse_io_saving(t);
        s->io = io_of(&s->live);
    }
    if (to->hooks) s->io.hooks = *to->hooks;
    s->io.also = s->also;
    s->seconds = clock_s() - begun;
    if (t->copy_lent)
        go_on(s);
    else
        s->save = checkpoint_save_begin(t->world, s->path, &s->meta, &s->io, false);
    phase_enter(outer);
    return s;
}

bool train_save_busy(const TrainSave *s)
{
    return atomic_load(&s->busy) || (s->save && checkpoint_save_busy(s->save));
}

bool train_save_collects(const TrainSave *s)
{
    return !s->save && !s->threaded;
}

static void collect_next(TrainSave *s)
{
    const double begun = clock_s();
    if (s->threaded) pthread_join(s->thread, NULL);
    s->threaded = false;
    if (s->round < save_copy_rounds(s->trainer->copy, s->level))
        save_copy_collect(s->trainer->copy, s->level, s->round++);
    s->seconds += clock_s() - begun;
    go_on(s);
}

Status train_save_next(TrainSave *s, bool *done)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Status st = OK;
    *done = false;
    if (s->save)
        st = checkpoint_save_next(s->save, done);
    else
        collect_next(s);
    phase_enter(outer);
    return st;
}

double train_save_seconds(const TrainSave *s)
{
    return s->seconds + (s->save ? checkpoint_save_seconds(s->save) : 0);
}

void train_save_free(TrainSave **save)
{
    TrainSave *s = *save;
    if (!s) return;
    if (s->threaded) pthread_join(s->thread, NULL);
    checkpoint_save_free(&s->save);
    checkpoint_meta_fini(&s->meta);
    if (s->live.list.trainer) live_fini(&s->live);
    s->trainer->copy_lent = false;
    mem_free(&s->also);
    mem_free(&s->path);
    mem_free(save);
}

Status train_save(Trainer *t, const char *path)
{
    TrainSave *s = train_save_begin(t, &(TrainSaveTo){.path = path, .waits = true});
    Status st = OK;
    for (bool done = false; !done;) st = train_save_next(s, &done);
    train_save_free(&s);
    return st;
}

/* ---- loading ---- */

static void restore_scale(LossScale *scale, const CheckpointMeta *meta)
{
    if (!scale->moves || meta->loss_scale <= 0) return;
    scale->now = meta->loss_scale;
    scale->good = meta->loss_scale_good;
}

/* By another figure, or on other test data, nothing compares; but the curve has gone on by these.
 */
static void take_evaluations(Trainer *t, const CheckpointMeta *meta)
{
    bool same = resume_same_test(t, meta) && resume_same_best(t, meta);
    bool counted = meta->evaluations > 0;
    t->best_metric = same ? meta->best_metric : (double)NAN;
    t->evaluations = meta->evaluations;
    t->lr = counted ? meta->lr : lr_state();
    t->lr.lr = meta->lr.lr;
    t->early = counted && same ? (EarlyStop){meta->stop_best, meta->stop_bad} : early_stop();
    t->hook_stop = meta->hook_stop;
}

Status train_load(Trainer *t, const char *path, bool params_only)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Live live;
    CheckpointMeta meta = {0};
    live_init(&live, t, params_only);
    Status st = sparse_io_loading(t, path, params_only, &live.sparse);
    CheckpointIo io = io_of(&live);
    io.params_only = params_only;
    io.at_once = true;
    if (st == OK) {
        sparse_io_set_begin(live.sparse);
        st = checkpoint_load(t->world, path, &meta, &io);
        sparse_io_set_end(live.sparse);
    }
    t->copied = false;
    if (st == OK) {
        executor_settle(t->executor);
        /* the next step opens one at the new place */
        sparse_close_loader(t);
        t->step = meta.step;
        t->optim->step = meta.step - meta.skipped;
        t->skipped = meta.skipped;
        loss_window_init(&t->losses, meta.loss, meta.losses);
        restore_scale(&t->scale, &meta);
        take_evaluations(t, &meta);
        memcpy(t->init_from, meta.init_from, sizeof t->init_from);
        executor_params_changed(t->executor);
    }
    checkpoint_meta_fini(&meta);
    live_fini(&live);
    phase_enter(outer);
    return st;
}

/* Where the parameters come from, for the checkpoints of this run. */
static Status match_init(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                         int count, int *from)
{
    const Live *live = user;
    Trainer *t = live->list.trainer;
    const CheckpointIo io = {.tensor = live->list.tensor, .count = live->list.count};
    const char *path = t->config->model.init_from;
    char *anew = NULL;
    TRY(init_match(t->config, &io, stored, count, from, &anew));
    int taken = 0;
    uint64_t hash = 0;
    for (int i = 0; i < io.count; ++i) {
        if (from[i] < 0) continue;
        const uint64_t pair[2] = {hash, stored[from[i]].hash};
        hash = hash_bytes(pair, sizeof pair);
        ++taken;
    }
    snprintf(t->init_from, sizeof t->init_from, "%.900s, step %lld, %d tensors, xxh64 %016llx",
             path, (long long)meta->step, taken, (unsigned long long)hash);
    log_info("beginning with %s%s%s", t->init_from, *anew ? "; anew: " : "", anew);
    mem_free(&anew);
    return OK;
}

Status train_init_from(Trainer *t)
{
    const char *path = t->config->model.init_from;
    if (!path || !*path) return OK;
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Live live;
    live_init(&live, t, true);
    CheckpointIo io = io_of(&live);
    io.params_only = true;
    io.at_once = true;
    io.match = match_init;
    Status st = checkpoint_load(t->world, path, NULL, &io);
    world_bcast(t->world, t->init_from, sizeof t->init_from, 0);
    if (st == OK) executor_params_changed(t->executor);
    t->copied = false;
    live_fini(&live);
    phase_enter(outer);
    return st;
}
