/* Prepares micro-batches ahead of the training on several threads. The micro-batches are numbered,
 * and number i is in slot (i mod slots) of a ring. Four counters separate their states:
 *
 *     0 ........ released ........ taken ........ filled ........ planned
 *       released           in use         complete       being filled
 *
 * Threads: a thread takes rows of the micro-batch that was planned last, number planned - 1. When
 * all its rows have been taken, the next micro-batch is planned, as soon as planned - released <
 * slots. `filled` is the number of the first micro-batch that is not complete. loader_next returns
 * number `taken` once taken < filled; loader_release frees the slot of number `released`. Threads
 * sleep on condition variables. Waking a thread takes longer than filling a small micro-batch. So
 * threads that wait for a slot are not woken for each released slot. They are woken when at least
 * as many slots are unused as micro-batches are ready or being filled, or when the training waits.
 *
 * Errors: an error is reported after the complete micro-batches before it. It is the error of the
 * first bad row, because rows are taken in order, and all rows that have been taken are filled.
 * There is one exception: in evaluation a thread may read the inputs of all its rows before their
 * labels. A bad input is then reported even if an earlier row has a bad label.
 *
 * The content of a micro-batch depends only on the plan, never on time or the number of threads. */
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

/* Progress of the micro-batch in a slot. */
typedef struct SlotProgress {
    /* number of rows that threads have taken; 1 if a thread has taken a micro-batch without rows */
    int taken;
    /* number of rows that are not filled yet */
    int left;
    /* true: all rows are filled, and fill_end has returned */
    bool complete;
} SlotProgress;

/* Rows first to first + count - 1 of micro-batch `number`, for one thread. */
typedef struct Task {
    int64_t number;
    int first, count;
} Task;

struct Loader {
    Fill fill;
    int worker_count;
    /* number of threads that have been started */
    int started;
    /* largest number of rows that a thread takes at once */
    int task_rows;
    /* [worker_count], owned */
    Worker *worker;
    /* protects the fields up to the blank line below */
    pthread_mutex_t mutex;
    /* loader_next waits on it */
    pthread_cond_t changed_filled;
    /* threads wait on it for a slot, or for rows of a new micro-batch */
    pthread_cond_t changed_released;
    /* the four counters that the comment of this file describes */
    int64_t planned, filled, taken, released;
    /* true: threads must end */
    bool stop;
    /* true: the last micro-batch of the evaluation is planned; always false in training */
    bool all_planned;
    /* number of running threads */
    int active;
    /* true: all threads have ended */
    bool ended;
    /* status of the first failure in the order of rows; OK: none */
    Status status;
    /* number of the micro-batch of this failure */
    int64_t bad_number;
    /* row of this failure */
    int bad_row;
    /* message of this failure; owned */
    char *message;
    /* epoch, and step in it, of the micro-batch that is planned next */
    int64_t epoch, step;
    /* index of the micro-batch that is planned next among this replica's micro-batches of a step */
    int micro;
    /* [slots], owned */
    SlotProgress *progress;

    int slots;
    /* [slots], owned */
    MicroBatch *slot;
    /* memory of the arrays of all slots; owned */
    char *arena;
    /* number of bytes of one slot in `arena` */
    size_t slot_bytes;
};

/* Plans the next micro-batch in the next slot, which is free, and advances epoch, step and micro.
 * Called under the mutex. */
static void plan_next(Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    int at = (int)(l->planned++ % l->slots);
    MicroBatch *b = &l->slot[at];
    int micro = p->micro ? p->micro[l->micro] : p->micro_first + l->micro;
    fill_begin(&l->fill, b, l->epoch, l->step, micro);
    l->progress[at] = (SlotProgress){.left = b->rows};
    if (++l->micro < p->micro_count) return;
    l->micro = 0;
    if (fill_first_position(&l->fill, l->epoch, ++l->step) < l->fill.set.samples) return;
    l->step = 0;
    ++l->epoch;
    l->all_planned = !p->training;
}

/* Takes rows to fill; waits if there are none yet. A micro-batch without rows is taken once, so
 * that a thread completes it. Returns false if there will be no more rows. Called under the
 * mutex. */
static bool task_take(Loader *l, Task *task)
{
    while (!l->stop && l->status == OK) {
        int at = (int)((l->planned + l->slots - 1) % l->slots);
        SlotProgress *progress = &l->progress[at];
        int left = l->planned > 0 ? l->slot[at].rows - progress->taken : 0;
        bool empty =
            l->planned > 0 && !progress->complete && l->slot[at].rows == 0 && progress->taken == 0;
        if (left > 0 || empty) {
            *task =
                (Task){l->planned - 1, progress->taken, left < l->task_rows ? left : l->task_rows};
            progress->taken += empty ? 1 : task->count;
            return true;
        }
        if (l->all_planned) return false;
        if (l->planned - l->released < l->slots) {
            plan_next(l);
            pthread_cond_broadcast(&l->changed_released);
        } else {
            pthread_cond_wait(&l->changed_released, &l->mutex);
        }
    }
    return false;
}

/* Records a failure unless one with an earlier row is recorded. Called under the mutex. */
static void record_failure(Loader *l, const Task *task, Status st, int row)
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

/* Fills the rows of a task; the thread that fills the last rows of a micro-batch completes it.
 * Called under the mutex, which is released while rows are filled. */
static void task_run(Loader *l, Worker *w, const Task *task)
{
    int at = (int)(task->number % l->slots), bad = 0;
    pthread_mutex_unlock(&l->mutex);
    Status st = fill_rows(&l->fill, &w->scratch, &l->slot[at], task->first, task->count, &bad);
    pthread_mutex_lock(&l->mutex);
    if (st != OK) {
        record_failure(l, task, st, bad);
        return;
    }
    l->progress[at].left -= task->count;
    if (l->progress[at].left > 0) return;
    pthread_mutex_unlock(&l->mutex);
    fill_end(&l->fill, &w->scratch, &l->slot[at]);
    pthread_mutex_lock(&l->mutex);
    l->progress[at].complete = true;
    while (l->filled < l->planned && l->progress[l->filled % l->slots].complete) ++l->filled;
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

/* Checks data.erasing, data.mixup and data.cutmix, which need images. The last two also need
 * labels, and a loss that mixes labels. */
static Status check_image_keys(const Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    const Config *c = l->fill.config;
    const DataSet *set = &l->fill.set;
    const char *mixes = c->data.mixup > 0 ? "data.mixup" : "data.cutmix";
    TRY(data_set_check_size(set, c));
    if (p->training && c->data.erasing > 0 && !data_has_images(set))
        return config_fail_key(c, "data.erasing", "%s holds no images; remove it", set->path);
    if (p->training && data_mixes_images(c) && !data_has_images(set))
        return config_fail_key(c, mixes, "%s holds no images; remove it", set->path);
    if (p->training && data_mixes_images(c) && set->target_width > 0)
        return config_fail_key(c, mixes, "%s has targets, not labels; remove it", set->path);
    if (p->training && data_mixes_images(c) && loss_info(c)->results != LOSS_RESULTS_RANK)
        return config_fail_key(c, mixes, "train.loss %s does not mix labels; remove it",
                               loss_name(c));
    return OK;
}

static Status check_plan(const Loader *l)
{
    const LoaderPlan *p = &l->fill.plan;
    const Config *c = l->fill.config;
    const DataSet *set = &l->fill.set;
    const int64_t first = fill_first_position(&l->fill, p->epoch, p->step);
    if (p->micro_batch < 1 || p->batch % p->micro_batch != 0 || p->micro_count < 1 ||
        p->slots < 2 || p->micro_first < 0 || p->step < 0 || p->epoch < 0 ||
        (p->shift != 0 && (!p->training || first < 0 || first >= set->samples)))
        return fail(ERR_BUG, "loader: impossible plan (batch %lld, micro-batch %lld, %d from %d)",
                    (long long)p->batch, (long long)p->micro_batch, p->micro_count, p->micro_first);
    if (p->training && c->data.augment && !data_has_images(set))
        return config_fail_key(c, "data.augment", "%s holds no images; remove data.augment",
                               set->path);
    TRY(check_image_keys(l));
    if (data_has_boxes(set) && loss_info(c)->reads != LOSS_READS_BOXES)
        return config_fail_key(c, "train.loss", "%s is a set of boxes: set train.loss: yolo",
                               set->path);
    if (data_has_boxes(set)) return OK;
    if (set->fields > 0 && p->micro_batch > INT32_MAX / 2 / (set->ids_per_sample_max + set->fields))
        return config_fail_key(
            c, "train.micro_batch",
            "%lld samples with up to %lld ids each are too many; make it smaller",
            (long long)p->micro_batch, (long long)set->ids_per_sample_max);
    if (data_has_tokens(set) && loss_info(c)->reads != LOSS_READS_TOKENS)
        return config_fail_key(c, "train.loss", "%s holds tokens: set train.loss: softmax",
                               set->path);
    if (loss_info(c)->reads == LOSS_READS_BOXES)
        return fail(ERR_DATA, "%s: has no boxes, which train.loss %s needs", set->path,
                    loss_name(c));
    if (set->target_width > 0 && loss_info(c)->reads != LOSS_READS_TARGETS)
        return fail(ERR_DATA,
                    "%s: %s holds floats, but train.loss %s needs integer labels: set "
                    "train.loss to one for numbers, or name the labels with data.y",
                    set->path, set->y.name, loss_name(c));
    return OK;
}

/* Places an array of `bytes` bytes at base + *used, adds its size, rounded up to ALIGN_BYTES, to
 * *used, and returns its address. Returns NULL for an array without bytes. If base is NULL it only
 * adds up sizes, and returns NULL. */
static void *allot(char *base, size_t *used, size_t bytes)
{
    void *array = base && bytes > 0 ? base + *used : NULL;
    *used += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return array;
}

/* Places the arrays of a batch one after the other from `base` on, and returns their size in bytes.
 * base NULL: only computes the size. */
static size_t slot_allot(const Loader *l, MicroBatch *b, char *base)
{
    const Fill *f = &l->fill;
    const bool skips_inputs = f->plan.skips_inputs, skips_labels = f->plan.skips_labels,
               tokens = data_has_tokens(&f->set);
    const size_t rows = (size_t)f->plan.micro_batch;
    size_t x = skips_inputs || tokens ? 0 : rows * (size_t)f->sample_floats;
    size_t labels = skips_labels ? 0 : rows * (size_t)f->sample_labels;
    size_t fields = skips_inputs ? 0 : rows * (size_t)f->set.fields;
    size_t ids = skips_inputs ? 0 : rows * (size_t)f->set.ids_per_sample_max, used = 0;
    if (fields > 0 && ids == 0) ids = 1;
    b->x = allot(base, &used, x * sizeof *b->x);
    b->tokens =
        allot(base, &used,
              skips_inputs || !tokens ? 0 : rows * (size_t)f->set.context * sizeof *b->tokens);
    b->labels = allot(base, &used, labels * sizeof *b->labels);
    b->targets = allot(base, &used,
                       skips_labels ? 0 : rows * (size_t)f->set.target_width * sizeof *b->targets);
    b->weights_stride = f->weights_vary ? f->set.target_width : 0;
    b->target_weights =
        allot(base, &used, rows * (size_t)b->weights_stride * sizeof *b->target_weights);
    if (f->weights) b->target_weights = f->weights;
    b->sample = allot(base, &used, rows * sizeof *b->sample);
    b->labels_other = allot(base, &used, f->mixes_images ? labels * sizeof *b->labels_other : 0);
    b->ids = allot(base, &used, ids * sizeof *b->ids);
    const size_t boxes = f->matches ? rows + 1 : 0, box_most = (size_t)f->box_most;
    b->box_start = allot(base, &used, boxes * sizeof *b->box_start);
    b->box_row = allot(base, &used, boxes * box_most * BOX_NUMBERS * sizeof *b->box_row);
    b->matches = allot(base, &used, boxes ? (BOX_LEVELS + 1) * sizeof *b->matches : 0);
    b->id_first = allot(base, &used, fields > 0 ? (fields + 1) * sizeof *b->id_first : 0);
    return used;
}

static void slots_new(Loader *l)
{
    Fill *f = &l->fill;
    f->sample_floats = f->set.channels * f->set.height * f->set.width;
    f->sample_labels = data_labels_per_sample(&f->set);
    l->slots = f->plan.slots;
    l->slot = mem_new((size_t)l->slots * sizeof *l->slot);
    l->progress = mem_new((size_t)l->slots * sizeof *l->progress);
    l->slot_bytes = slot_allot(l, &l->slot[0], NULL);
    l->arena = backend_host_new(f->plan.backend, (size_t)l->slots * l->slot_bytes);
    for (int i = 0; i < l->slots; ++i)
        slot_allot(l, &l->slot[i], l->arena + (size_t)i * l->slot_bytes);
}

/* Allocates the threads' memory and sets task_rows. A single thread takes whole micro-batches. With
 * several threads a task is one row if pictures need PictureConverter, else about 1 /
 * TASKS_PER_WORKER of a thread's share of a micro-batch. */
static void workers_new(Loader *l)
{
    enum { TASKS_PER_WORKER = 4 };
    const Fill *f = &l->fill;
    int64_t part = f->plan.micro_batch / (TASKS_PER_WORKER * (int64_t)l->worker_count);
    l->task_rows = part < 1 || f->needs_picture_converter ? 1 : (int)part;
    if (l->worker_count == 1) l->task_rows = (int)f->plan.micro_batch;
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
    TRY(check_plan(l));
    TRY(reader_new_part(&f->reader, &f->set, !p->skips_inputs || data_has_tokens(&f->set),
                        !p->skips_labels));
    if (p->chunks.at) field_reader_share(reader_fields(f->reader), &p->chunks);
    int64_t steps = data_steps_per_epoch(f->set.samples, p->batch);
    bool may_skip_epochs = p->training && p->shift == 0;
    l->epoch = p->epoch + (may_skip_epochs ? p->step / steps : 0);
    l->step = may_skip_epochs ? p->step % steps : p->step;
    l->all_planned = !p->training && l->step >= steps;
    f->shuffle = data_shuffle_plan(&f->set, f->config);
    f->needs_picture_converter = data_needs_picture_converter(&f->set, f->config);
    if (data_has_boxes(&f->set)) TRY(fill_boxes_init(f));
    TRY(fill_weights_init(f));
    f->mixes_images = p->training && data_mixes_images(f->config);
    l->worker_count = p->workers > 1 ? p->workers : 1;
    slots_new(l);
    workers_new(l);
    return threads_start(l);
}

int data_workers(const DataSet *set, const Config *config, int cores)
{
    enum {
        /* largest default number of threads for pictures */
        DEFAULT_MAX = 16,
        /* default number of threads for fields, which mostly wait for the file system */
        FIELDS = 4
    };
    if (config->data.workers > 0) return (int)config->data.workers;
    if (data_has_fields(set)) return FIELDS;
    if (!data_needs_picture_converter(set, config) || cores < 4) return 1;
    return cores / 2 < DEFAULT_MAX ? cores / 2 : DEFAULT_MAX;
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
    mem_free(&l->progress);
    mem_free(&l->worker);
    mem_free(&l->message);
    fill_boxes_fini(&l->fill);
    fill_weights_fini(&l->fill);
    reader_free(&l->fill.reader);
    pthread_cond_destroy(&l->changed_filled);
    pthread_cond_destroy(&l->changed_released);
    pthread_mutex_destroy(&l->mutex);
    mem_free(loader);
}

/* Returns whether threads that wait for a slot should be woken: a slot is unused, and at least as
 * many slots are unused as micro-batches are ready or being filled. Called under the mutex. */
static bool should_wake(const Loader *l)
{
    const int64_t unused = l->slots - (l->planned - l->released), ahead = l->planned - l->taken;
    return unused > 0 && unused >= ahead;
}

Status loader_next(Loader *loader, const MicroBatch **batch, double *wait_s)
{
    Loader *l = loader;
    Status st = OK;
    *batch = NULL;
    pthread_mutex_lock(&l->mutex);
    /* If all slots are in use, waiting would be a deadlock: the threads wait for a release. */
    bool all_in_use = l->taken - l->released >= l->slots;
    bool waits = !all_in_use && l->taken == l->filled && !l->ended;
    double begun = waits ? clock_s() : 0;
    if (waits) pthread_cond_broadcast(&l->changed_released);
    while (!all_in_use && l->taken == l->filled && !l->ended)
        pthread_cond_wait(&l->changed_filled, &l->mutex);
    if (waits && wait_s) *wait_s += clock_s() - begun;
    if (!all_in_use && l->taken < l->filled)
        *batch = &l->slot[l->taken++ % l->slots];
    else if (!all_in_use)
        st = l->status;
    const bool wakes = should_wake(l);
    pthread_mutex_unlock(&l->mutex);
    if (wakes) pthread_cond_broadcast(&l->changed_released);
    if (all_in_use)
        return fail(ERR_BUG, "loader: all %d micro-batches are in use, none was released",
                    l->slots);
    return st == OK ? OK : fail(st, "%s", l->message);
}

int64_t loader_unpacked_chunks(const Loader *loader)
{
    const FieldReader *fields = reader_fields(loader->fill.reader);
    return fields ? field_reader_unpacked(fields) : 0;
}

void loader_release(Loader *loader)
{
    Loader *l = loader;
    pthread_mutex_lock(&l->mutex);
    if (l->released == l->taken) die("loader: a micro-batch is released, but none is in use");
    ++l->released;
    const bool wakes = should_wake(l);
    pthread_mutex_unlock(&l->mutex);
    if (wakes) pthread_cond_broadcast(&l->changed_released);
}
