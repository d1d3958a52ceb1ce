/* Threads that prepare micro-batches ahead of the training. Slots form a ring, in which four
 * counters of slots rise:
 *
 *     released ......... taken ......... filled ......... planned
 *       (free)    in use        ready       rows handed to the threads
 *
 * A thread takes rows of slot planned - 1. When all of its rows are handed out, the next slot is
 * planned, as long as planned - released < slots. `filled` passes slots that are complete, in
 * order. loader_next returns slot (taken mod slots) once taken < filled; loader_release frees slot
 * (released mod slots). Threads sleep on condition variables and block all signals. An error is
 * reported after the good micro-batches before it: since rows are handed out in order and those
 * handed out are filled, it is that of the first bad row. The content of a micro-batch depends only
 * on the plan, never on time or the number of threads. */
#include "fill.h"
#include "layers.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { ALIGN_BYTES = 64 };

typedef struct Worker {
    struct Loader *loader;
    pthread_t thread;
    FillScratch scratch;
} Worker;

typedef struct SlotRows {
    /* handed: rows given to threads; left: rows not yet filled */
    int handed, left;
    bool whole;
} SlotRows;

/* rows of one slot for one thread */
typedef struct Task {
    int64_t number;
    int first, count;
} Task;

struct Loader {
    Fill fill;
    int worker_count, started;
    /* number of rows that a thread takes at once */
    int grain;
    /* owned */
    Worker *worker;
    /* protects the fields up to the blank line below */
    pthread_mutex_t mutex;
    pthread_cond_t changed_filled, changed_released;
    int64_t planned, filled, taken, released;
    /* last: no further slot will be planned. active: number of running threads. ended: all have
     * ended. */
    bool stop, last;
    int active;
    bool ended;
    Status status;
    /* slot number and row of the first failure; its message (owned) */
    int64_t bad_number;
    int bad_row;
    char *message;
    /* micro-batch that is planned next: epoch, step, index among this replica's micro-batches */
    int64_t epoch, step;
    int micro;
    /* owned, one per slot */
    SlotRows *rows;

    int slots;
    /* owned */
    Batch *slot;
    /* owned: memory of all slots' arrays */
    char *arena;
    /* bytes of one slot in arena */
    size_t slot_bytes;
};

/* Plans the next slot, which is free, and moves on to the next micro-batch; `last` is set after the
 * last one of an evaluation. Called under the mutex. */
static void slot_plan(Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    int at = (int)(l->planned++ % l->slots);
    Batch *b = &l->slot[at];
    fill_begin(&l->fill, b, l->epoch, l->step, p->micro_first + l->micro * (p->micro_gap + 1));
    l->rows[at] = (SlotRows){.left = b->rows};
    if (++l->micro < p->micro_count) return;
    l->micro = 0;
    if (fill_first(&l->fill, l->epoch, ++l->step) < l->fill.set.samples) return;
    l->step = 0;
    ++l->epoch;
    l->last = !p->training;
}

/* Waits for rows to fill; false: there will be no more. Called under the mutex. */
static bool task_take(Loader *l, Task *task)
{
    while (!l->stop && l->status == OK) {
        int at = (int)((l->planned + l->slots - 1) % l->slots);
        SlotRows *rows = &l->rows[at];
        int left = l->planned > 0 ? l->slot[at].rows - rows->handed : 0;
        bool empty = l->planned > 0 && !rows->whole && l->slot[at].rows == 0 && rows->handed == 0;
        if (left > 0 || empty) {
            *task = (Task){l->planned - 1, rows->handed, left < l->grain ? left : l->grain};
            rows->handed += empty ? 1 : task->count;
            return true;
        }
        if (l->last) return false;
        if (l->planned - l->released < l->slots) {
            slot_plan(l);
            pthread_cond_broadcast(&l->changed_released);
        } else {
            pthread_cond_wait(&l->changed_released, &l->mutex);
        }
    }
    return false;
}

/* Records a failure, if it is the first in order. Called under the mutex. */
static void task_failed(Loader *l, const Task *task, Status st, int row)
{
    bool first = l->status == OK || task->number < l->bad_number ||
                 (task->number == l->bad_number && row < l->bad_row);
    if (!first) return;
    l->status = st;
    l->bad_number = task->number;
    l->bad_row = row;
    mem_free(&l->message);
    l->message = mem_text(fail_message());
}

/* Fills the rows; the thread that fills the last ones completes the slot. Called with the mutex
 * held, which is released while filling. */
static void task_run(Loader *l, Worker *w, const Task *task)
{
    int at = (int)(task->number % l->slots), bad = 0;
    pthread_mutex_unlock(&l->mutex);
    Status st = fill_rows(&l->fill, &w->scratch, &l->slot[at], task->first, task->count, &bad);
    pthread_mutex_lock(&l->mutex);
    if (st != OK) {
        task_failed(l, task, st, bad);
        return;
    }
    l->rows[at].left -= task->count;
    if (l->rows[at].left > 0) return;
    pthread_mutex_unlock(&l->mutex);
    fill_end(&l->fill, &w->scratch, &l->slot[at]);
    pthread_mutex_lock(&l->mutex);
    l->rows[at].whole = true;
    while (l->filled < l->planned && l->rows[l->filled % l->slots].whole) ++l->filled;
    pthread_cond_signal(&l->changed_filled);
}

static void *worker_run(void *user)
{
    Worker *w = user;
    Loader *l = w->loader;
    Task task;
    pthread_mutex_lock(&l->mutex);
    while (task_take(l, &task)) task_run(l, w, &task);
    if (--l->active == 0) l->ended = true;
    pthread_cond_broadcast(&l->changed_released);
    pthread_cond_signal(&l->changed_filled);
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* Checks settings that need images, and settings that need labels. */
static Status pictures_check(const Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    const Config *c = l->fill.config;
    const DataSet *set = &l->fill.set;
    const char *mixes = c->data.mixup > 0 ? "data.mixup" : "data.cutmix";
    TRY(data_set_check_size(set, c));
    if (p->training && c->data.erasing > 0 && !data_kind(set)->augments)
        return config_fail_key(c, "data.erasing", "%s holds no images; remove it", set->path);
    if (p->training && data_mixes_images(c) && !data_kind(set)->augments)
        return config_fail_key(c, mixes, "%s holds no images; remove it", set->path);
    if (p->training && data_mixes_images(c) && set->target_width > 0)
        return config_fail_key(c, mixes, "%s has targets, not labels; remove it", set->path);
    if (p->training && data_mixes_images(c) && loss_info(c)->columns != LOSS_COLUMNS_BEST)
        return config_fail_key(c, mixes, "train.loss %s does not mix labels; remove it",
                               loss_name(c));
    return OK;
}

static Status plan_check(const Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    const Config *c = l->fill.config;
    const DataSet *set = &l->fill.set;
    const int64_t first = fill_first(&l->fill, p->epoch, p->step);
    if (p->micro_batch < 1 || p->batch % p->micro_batch != 0 || p->micro_count < 1 ||
        p->slots < 2 || p->micro_first < 0 || p->micro_gap < 0 || p->step < 0 || p->epoch < 0 ||
        (p->shift != 0 && (!p->training || first < 0 || first >= set->samples)))
        return fail(ERR_BUG, "loader: impossible plan (batch %lld, micro-batch %lld, %d from %d)",
                    (long long)p->batch, (long long)p->micro_batch, p->micro_count, p->micro_first);
    if (p->training && c->data.augment && !data_kind(set)->augments)
        return config_fail_key(c, "data.augment", "%s holds no images; remove data.augment",
                               set->path);
    TRY(pictures_check(l));
    if (set->fields > 0 && p->micro_batch > INT32_MAX / 2 / (set->id_most + set->fields))
        return config_fail_key(
            c, "train.micro_batch",
            "%lld samples with up to %lld ids each are too many; make it smaller",
            (long long)p->micro_batch, (long long)set->id_most);
    if (data_kind(set)->next_token && loss_info(c)->reads != LOSS_READS_TOKENS)
        return config_fail_key(c, "train.loss", "%s holds tokens: set train.loss: softmax",
                               set->path);
    if (set->target_width > 0 && loss_info(c)->reads != LOSS_READS_TARGETS)
        return fail(ERR_DATA,
                    "%s: %s holds floats, but train.loss %s needs integer labels; set "
                    "train.loss: mse, or name the labels with data.y",
                    set->path, set->y.name, loss_name(c));
    return OK;
}

/* Points *field to the next `bytes` bytes of a slot, whose arrays lie one behind the other. at
 * NULL: only counts. */
static size_t carve(char *at, size_t used, void **field, size_t bytes)
{
    *field = at && bytes > 0 ? at + used : NULL;
    return used + (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Places a slot's arrays from `at` on; returns their bytes. */
static size_t slot_place(const Loader *l, Batch *b, char *at)
{
    const LoaderPlan *p = &l->fill.plan;
    size_t n = (size_t)p->micro_batch, x = n * (size_t)l->fill.sample_floats * sizeof(float);
    size_t tokens = n * (size_t)l->fill.set.context * sizeof(int32_t);
    size_t labels = n * (size_t)l->fill.row_labels * sizeof(int32_t);
    size_t targets = n * (size_t)l->fill.set.target_width * sizeof(float), used = 0;
    bool text = data_kind(&l->fill.set)->next_token;
    void *column[8];
    size_t ids = p->no_x ? 0 : n * (size_t)l->fill.set.id_most * sizeof *b->ids;
    size_t fields = p->no_x ? 0 : n * (size_t)l->fill.set.fields;
    if (fields > 0 && ids == 0) ids = sizeof *b->ids;
    used = carve(at, used, &column[0], text || p->no_x ? 0 : x);
    used = carve(at, used, &column[1], text && !p->no_x ? tokens : 0);
    used = carve(at, used, &column[2], p->no_y ? 0 : labels);
    used = carve(at, used, &column[3], p->no_y ? 0 : targets);
    used = carve(at, used, &column[4], n * sizeof *b->sample);
    used = carve(at, used, &column[5], p->no_y || !l->fill.mixes ? 0 : labels);
    used = carve(at, used, &column[6], ids);
    used = carve(at, used, &column[7], fields ? (fields + 1) * sizeof *b->id_first : 0);
    b->x = column[0];
    b->tokens = column[1];
    b->labels = column[2];
    b->targets = column[3];
    b->sample = column[4];
    b->labels_other = column[5];
    b->ids = column[6];
    b->id_first = column[7];
    return used;
}

static void slots_new(Loader *l)
{
    Fill *f = &l->fill;
    bool tokens = data_kind(&f->set)->next_token;
    f->sample_floats = f->set.channels * f->set.height * f->set.width;
    f->row_labels = tokens ? f->set.context : f->set.target_width > 0 ? 0 : 1;
    l->slots = f->plan.slots;
    l->slot = mem_new((size_t)l->slots * sizeof *l->slot);
    l->rows = mem_new((size_t)l->slots * sizeof *l->rows);
    l->slot_bytes = slot_place(l, &l->slot[0], NULL);
    l->arena = backend_host_new(f->plan.backend, (size_t)l->slots * l->slot_bytes);
    for (int i = 0; i < l->slots; ++i)
        slot_place(l, &l->slot[i], l->arena + (size_t)i * l->slot_bytes);
}

/* A single thread takes whole micro-batches; several threads take single pictures, or shares of a
 * micro-batch. */
static void workers_new(Loader *l)
{
    const Fill *f = &l->fill;
    int64_t share = f->plan.micro_batch / (4 * (int64_t)l->worker_count);
    l->grain = l->worker_count == 1        ? (int)f->plan.micro_batch
               : f->resamples || share < 1 ? 1
                                           : (int)share;
    l->worker = mem_new((size_t)l->worker_count * sizeof *l->worker);
    for (int i = 0; i < l->worker_count; ++i) {
        l->worker[i].loader = l;
        fill_scratch_init(&l->worker[i].scratch, f);
    }
}

static Status threads_start(Loader *l)
{
    l->active = l->worker_count;
    for (; l->started < l->worker_count; ++l->started) {
        Worker *w = &l->worker[l->started];
        int rc = thread_begin(&w->thread, worker_run, w);
        if (rc == 0) continue;
        return fail(ERR_IO,
                    "a thread of the loader cannot be started: %s; raise the limit (ulimit -u), or "
                    "set a smaller data.workers",
                    strerror(rc));
    }
    return OK;
}

static Status loader_open(Loader *l)
{
    Fill *f = &l->fill;
    const LoaderPlan *p = &f->plan;
    TRY(plan_check(l));
    TRY(reader_new_part(&f->reader, &f->set, !p->no_x || data_kind(&f->set)->next_token, !p->no_y));
    int64_t steps = data_steps_per_epoch(f->set.samples, p->batch);
    bool wraps = p->training && p->shift == 0;
    l->epoch = p->epoch + (wraps ? p->step / steps : 0);
    l->step = wraps ? p->step % steps : p->step;
    l->last = !p->training && l->step >= steps;
    f->shuffle = data_shuffle_plan(&f->set, f->config);
    f->resamples = data_needs_picture_work(&f->set, f->config);
    f->mixes = p->training && data_mixes_images(f->config);
    l->worker_count = p->workers > 1 ? p->workers : 1;
    slots_new(l);
    workers_new(l);
    return threads_start(l);
}

int data_workers(const DataSet *set, const Config *config, int cores)
{
    enum { MOST = 16 };
    if (config->data.workers > 0) return (int)config->data.workers;
    if (!data_needs_picture_work(set, config) || cores < 4) return 1;
    return cores / 2 < MOST ? cores / 2 : MOST;
}

Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan)
{
    Loader *l = mem_new(sizeof *l);
    l->fill.set = *set;
    l->fill.config = config;
    l->fill.plan = plan;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed_filled, NULL);
    pthread_cond_init(&l->changed_released, NULL);
    *loader = l;
    Status st = loader_open(l);
    if (st != OK) loader_free(loader);
    return st;
}

void loader_free(Loader **loader)
{
    Loader *l = *loader;
    if (!l) return;
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_broadcast(&l->changed_released);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < l->started; ++i) pthread_join(l->worker[i].thread, NULL);
    for (int i = 0; l->worker && i < l->worker_count; ++i) fill_scratch_fini(&l->worker[i].scratch);
    if (l->arena)
        backend_host_free(l->fill.plan.backend, l->arena, (size_t)l->slots * l->slot_bytes);
    mem_free(&l->slot);
    mem_free(&l->rows);
    mem_free(&l->worker);
    mem_free(&l->message);
    reader_free(&l->fill.reader);
    pthread_cond_destroy(&l->changed_filled);
    pthread_cond_destroy(&l->changed_released);
    pthread_mutex_destroy(&l->mutex);
    mem_free(loader);
}

Status loader_next(Loader *loader, const Batch **batch, double *wait_s)
{
    Loader *l = loader;
    Status st = OK;
    *batch = NULL;
    pthread_mutex_lock(&l->mutex);
    /* Waiting would be a deadlock: this thread waits for a slot to be filled, the loader for one to
     * be released. */
    bool all_out = l->taken - l->released >= l->slots;
    bool waits = !all_out && l->taken == l->filled && !l->ended;
    double begun = waits ? clock_s() : 0;
    while (!all_out && l->taken == l->filled && !l->ended)
        pthread_cond_wait(&l->changed_filled, &l->mutex);
    if (waits && wait_s) *wait_s += clock_s() - begun;
    if (!all_out && l->taken < l->filled)
        *batch = &l->slot[l->taken++ % l->slots];
    else if (!all_out)
        st = l->status;
    pthread_mutex_unlock(&l->mutex);
    if (all_out)
        return fail(ERR_BUG, "loader: all %d micro-batches are out, none was released", l->slots);
    return st == OK ? OK : fail(st, "%s", l->message);
}

void loader_release(Loader *loader)
{
    Loader *l = loader;
    pthread_mutex_lock(&l->mutex);
    if (l->released == l->taken) die("loader: a micro-batch is released, but none is out");
    ++l->released;
    pthread_cond_broadcast(&l->changed_released);
    pthread_mutex_unlock(&l->mutex);
}
