/* A thread that fills micro-batches ahead of the training. Slots form a ring: the thread fills slot
 * (filled mod slots) while filled - released < slots, loader_next takes slot (taken mod slots) once
 * taken < filled, loader_release gives slot (released mod slots) back. Both sides sleep on
 * condition variables. The thread never takes a signal meant for the program, and an error in it
 * waits until the good micro-batches before it are taken. Depends on the plan alone, never on
 * time. */
#include "data_private.h"
#include "layers.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { RUN_BYTES = 4 << 20, ALIGN_BYTES = 64 };

struct Loader {
    DataSet set;
    /* borrowed */
    const Config *config;
    LoaderPlan plan;
    Reader *reader;
    pthread_t thread;
    bool started;
    /* guards what follows up to the line */
    pthread_mutex_t mutex;
    pthread_cond_t changed_filled, changed_released;
    int64_t filled, taken, released;
    bool stop, ended;
    Status status;
    /* owned: why status */
    char *message;

    /* The thread's own: */
    int64_t epoch, step;
    /* of this replica's */
    int micro;
    uint8_t *raw;
    int64_t raw_samples;

    int slots;
    /* owned */
    Batch *slot;
    /* owned: all slots' numbers */
    char *arena;
    /* of one in it */
    size_t slot_bytes;
    /* of one sample */
    int64_t sample_floats, row_labels;
};

/* One NaN would spread to all parameters, and a relu would hide it from the loss. */
static Status not_finite(const Loader *l, const DataArray *array, int64_t sample)
{
    return fail(ERR_DATA,
                "%s: sample %lld of %s holds a value that is not a finite number; correct the data "
                "set, `weft data check` reads all of it",
                l->set.path, (long long)sample, array->name);
}

/* The label or the targets of row r, whichever there is. */
static Status row_read(Loader *l, Batch *b, int64_t r)
{
    int64_t width = l->set.target_width;
    float *target = b->targets ? b->targets + r * width : NULL;
    TRY(reader_get(l->reader, b->sample[r], NULL, b->labels ? b->labels + r : NULL, target));
    if (target && element_not_finite(ELEM_F32, target, width) >= 0)
        return not_finite(l, &l->set.y, b->sample[r]);
    return OK;
}

static Status row_augment(Loader *l, Batch *b, int64_t r, const uint8_t *raw)
{
    if (element_not_finite(l->set.x.type, raw, l->sample_floats) >= 0)
        return not_finite(l, &l->set.x, b->sample[r]);
    augment_sample(&l->set, l->config, l->plan.training, b->epoch, b->sample[r], raw,
                   b->x + r * l->sample_floats);
    return OK;
}

/* Sample i is T tokens from i * T on; its labels begin one later. Each must be in the vocabulary: a
 * row of the embedding is taken by it. */
static Status row_tokens(Loader *l, Batch *b, int64_t r)
{
    const DataArray *x = &l->set.x;
    int64_t context = l->set.context, first = b->sample[r] * context + (b->tokens ? 0 : 1);
    int64_t count = context + (b->tokens && b->labels ? 1 : 0);
    const uint8_t *label = l->raw + (b->tokens ? x->sample_bytes : 0);
    if (!b->tokens && !b->labels) return OK;
    TRY(reader_get_run(l->reader, first, count, l->raw));
    int64_t bad = element_outside(x->type, l->raw, count, l->set.vocab);
    if (bad >= 0)
        return token_fail(&l->set, first + bad,
                          element_integer(x->type, l->raw + bad * x->sample_bytes));
    if (b->tokens) element_int32(x->type, b->tokens + r * context, l->raw, context);
    if (b->labels) element_int32(x->type, b->labels + r * context, label, context);
    return OK;
}

static Status fill_tokens(Loader *l, Batch *b)
{
    for (int r = 0; r < b->rows; ++r) {
        if (r + 1 < b->rows) reader_hint(l->reader, b->sample[r + 1]);
        TRY(row_tokens(l, b, r));
    }
    return OK;
}

static Status fill_one_by_one(Loader *l, Batch *b)
{
    for (int r = 0; r < b->rows; ++r) {
        if (b->x) {
            if (r + 1 < b->rows) reader_hint(l->reader, b->sample[r + 1]);
            TRY(reader_get(l->reader, b->sample[r], l->raw, NULL, NULL));
            TRY(row_augment(l, b, r, l->raw));
        }
        TRY(row_read(l, b, r));
    }
    return OK;
}

/* Samples that follow each other: x in long reads. */
static Status fill_in_runs(Loader *l, Batch *b)
{
    for (int64_t at = 0; b->x && at < b->rows; at += l->raw_samples) {
        int64_t n = b->rows - at < l->raw_samples ? b->rows - at : l->raw_samples;
        TRY(reader_get_run(l->reader, b->sample[at], n, l->raw));
        for (int64_t i = 0; i < n; ++i)
            TRY(row_augment(l, b, at + i, l->raw + i * l->set.x.sample_bytes));
    }
    for (int r = 0; r < b->rows; ++r) TRY(row_read(l, b, r));
    return OK;
}

/* Clears what the rows beyond `rows` held the last time around: `each` values a row. */
static void pad_floats(const Loader *l, const Batch *b, float *at, int64_t each)
{
    int64_t rest = (l->plan.micro_batch - b->rows) * each;
    if (at) memset(at + b->rows * each, 0, (size_t)rest * sizeof *at);
}

static void pad_integers(const Loader *l, const Batch *b, int32_t *at, int64_t each)
{
    int64_t rest = (l->plan.micro_batch - b->rows) * each;
    if (at) memset(at + b->rows * each, 0, (size_t)rest * sizeof *at);
}

static void pad(const Loader *l, Batch *b)
{
    pad_floats(l, b, b->x, l->sample_floats);
    pad_integers(l, b, b->tokens, l->set.context);
    pad_integers(l, b, b->labels, l->row_labels);
    pad_floats(l, b, b->targets, l->set.target_width);
    for (int64_t r = b->rows; r < l->plan.micro_batch; ++r) b->sample[r] = -1;
}

/* Which samples: position `first` of this epoch and those after it. */
static void choose_samples(const Loader *l, Batch *b, int64_t first)
{
    uint64_t seed = (uint64_t)l->config->run.seed;
    for (int r = 0; r < b->rows; ++r)
        b->sample[r] =
            l->plan.training ? sampler_at(l->set.samples, seed, b->epoch, first + r) : first + r;
}

static Status slot_fill(Loader *l, Batch *b)
{
    const LoaderPlan *p = &l->plan;
    b->epoch = l->epoch;
    b->step = l->step;
    b->micro = p->micro_first + l->micro * (p->micro_gap + 1);
    int64_t first = l->step * p->batch + b->micro * p->micro_batch, left = l->set.samples - first;
    if (b->micro >= p->batch / p->micro_batch) left = 0;
    b->rows = (int)(left < 0 ? 0 : left < p->micro_batch ? left : p->micro_batch);
    pad(l, b);
    choose_samples(l, b, first);
    if (data_kind(&l->set)->next_token) return fill_tokens(l, b);
    return p->training ? fill_one_by_one(l, b) : fill_in_runs(l, b);
}

/* To the next micro-batch; false after the last one of an evaluation. */
static bool advance(Loader *l)
{
    if (++l->micro < l->plan.micro_count) return true;
    l->micro = 0;
    if (++l->step < data_steps_per_epoch(l->set.samples, l->plan.batch)) return true;
    l->step = 0;
    ++l->epoch;
    return l->plan.training;
}

static void *loader_run(void *user)
{
    Loader *l = user;
    bool more = l->plan.training || l->step < data_steps_per_epoch(l->set.samples, l->plan.batch);
    pthread_mutex_lock(&l->mutex);
    while (more && !l->stop) {
        if (l->filled - l->released >= l->slots) {
            pthread_cond_wait(&l->changed_released, &l->mutex);
            continue;
        }
        Batch *b = &l->slot[l->filled % l->slots];
        pthread_mutex_unlock(&l->mutex);
        Status st = slot_fill(l, b);
        more = st == OK && advance(l);
        pthread_mutex_lock(&l->mutex);
        if (st == OK) ++l->filled;
        l->status = st;
        if (st != OK) l->message = mem_text(fail_message());
        pthread_cond_signal(&l->changed_filled);
    }
    l->ended = true;
    pthread_cond_signal(&l->changed_filled);
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

static Status plan_check(const Loader *l)
{
    const LoaderPlan *p = &l->plan;
    const Config *c = l->config;
    if (p->micro_batch < 1 || p->batch % p->micro_batch != 0 || p->micro_count < 1 ||
        p->slots < 2 || p->micro_first < 0 || p->micro_gap < 0 || p->step < 0 || p->epoch < 0)
        return fail(ERR_BUG, "loader: impossible plan (batch %lld, micro-batch %lld, %d from %d)",
                    (long long)p->batch, (long long)p->micro_batch, p->micro_count, p->micro_first);
    if (p->training && c->data.augment && !data_kind(&l->set)->augments)
        return config_fail_key(c, "data.augment", "%s holds no images; remove data.augment",
                               l->set.path);
    if (data_kind(&l->set)->next_token && c->train.loss != LOSS_SOFTMAX)
        return config_fail_key(c, "train.loss", "%s holds tokens: set train.loss: softmax",
                               l->set.path);
    if (l->set.target_width > 0 && c->train.loss == LOSS_SOFTMAX)
        return fail(ERR_DATA,
                    "%s: %s holds floats, but train.loss softmax needs integer labels; set "
                    "train.loss: mse, or name the labels with data.y",
                    l->set.path, l->set.y.name);
    return OK;
}

/* Room for what one read brings: a run of samples in evaluation, else one; of tokens, T + 1 of
 * them. */
static void raw_new(Loader *l)
{
    int64_t n = l->plan.micro_batch, bytes = l->set.x.sample_bytes, run = RUN_BYTES / bytes;
    l->raw_samples = l->plan.training || run < 1 ? 1 : run < n ? run : n;
    if (data_kind(&l->set)->next_token) l->raw_samples = l->set.context + 1;
    l->raw = mem_new((size_t)(l->raw_samples * bytes));
}

/* Points *field to the next n elements of a slot, whose arrays lie one behind the other; NULL at:
 * counts only. */
static size_t carve(char *at, size_t used, void **field, size_t bytes)
{
    *field = at && bytes > 0 ? at + used : NULL;
    return used + (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Where a slot's arrays lie from `at` on; returns how many bytes they take. */
static size_t slot_place(const Loader *l, Batch *b, char *at)
{
    const LoaderPlan *p = &l->plan;
    size_t n = (size_t)p->micro_batch, x = n * (size_t)l->sample_floats * sizeof(float);
    size_t tokens = n * (size_t)l->set.context * sizeof(int32_t);
    size_t labels = n * (size_t)l->row_labels * sizeof(int32_t);
    size_t targets = n * (size_t)l->set.target_width * sizeof(float), used = 0;
    bool text = data_kind(&l->set)->next_token;
    void *column[5];
    used = carve(at, used, &column[0], text || p->no_x ? 0 : x);
    used = carve(at, used, &column[1], text && !p->no_x ? tokens : 0);
    used = carve(at, used, &column[2], p->no_y ? 0 : labels);
    used = carve(at, used, &column[3], p->no_y ? 0 : targets);
    used = carve(at, used, &column[4], n * sizeof *b->sample);
    b->x = column[0];
    b->tokens = column[1];
    b->labels = column[2];
    b->targets = column[3];
    b->sample = column[4];
    return used;
}

static void slots_new(Loader *l)
{
    bool tokens = data_kind(&l->set)->next_token;
    l->sample_floats = l->set.channels * l->set.height * l->set.width;
    l->row_labels = tokens ? l->set.context : l->set.target_width > 0 ? 0 : 1;
    l->slots = l->plan.slots;
    l->slot = mem_new((size_t)l->slots * sizeof *l->slot);
    l->slot_bytes = slot_place(l, &l->slot[0], NULL);
    l->arena = backend_host_new(l->plan.backend, (size_t)l->slots * l->slot_bytes);
    for (int i = 0; i < l->slots; ++i)
        slot_place(l, &l->slot[i], l->arena + (size_t)i * l->slot_bytes);
    if (tokens || !l->plan.no_x) raw_new(l);
}

static Status thread_start(Loader *l)
{
    int rc = thread_begin(&l->thread, loader_run, l);
    if (rc != 0)
        return fail(ERR_IO,
                    "the loader's thread cannot be started: %s; raise the limit (ulimit -u)",
                    strerror(rc));
    l->started = true;
    return OK;
}

static Status loader_open(Loader *l)
{
    TRY(plan_check(l));
    TRY(reader_new_part(&l->reader, &l->set, !l->plan.no_x || data_kind(&l->set)->next_token,
                        !l->plan.no_y));
    int64_t steps = data_steps_per_epoch(l->set.samples, l->plan.batch);
    l->epoch = l->plan.epoch + (l->plan.training ? l->plan.step / steps : 0);
    l->step = l->plan.training ? l->plan.step % steps : l->plan.step;
    slots_new(l);
    return thread_start(l);
}

Status loader_new(Loader **loader, const DataSet *set, const Config *config, LoaderPlan plan)
{
    Loader *l = mem_new(sizeof *l);
    l->set = *set;
    l->config = config;
    l->plan = plan;
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
    if (l->started) {
        pthread_mutex_lock(&l->mutex);
        l->stop = true;
        pthread_cond_signal(&l->changed_released);
        pthread_mutex_unlock(&l->mutex);
        pthread_join(l->thread, NULL);
    }
    if (l->arena) backend_host_free(l->plan.backend, l->arena, (size_t)l->slots * l->slot_bytes);
    mem_free(&l->slot);
    mem_free(&l->raw);
    mem_free(&l->message);
    reader_free(&l->reader);
    pthread_cond_destroy(&l->changed_filled);
    pthread_cond_destroy(&l->changed_released);
    pthread_mutex_destroy(&l->mutex);
    mem_free(loader);
}

/* Under the mutex: waits until there is a micro-batch to take, or will be none. */
static void wait_filled(Loader *l, double *wait_s)
{
    if (l->taken < l->filled || l->ended) return;
    double begun = clock_s();
    while (l->taken == l->filled && !l->ended) pthread_cond_wait(&l->changed_filled, &l->mutex);
    if (wait_s) *wait_s += clock_s() - begun;
}

Status loader_next(Loader *loader, const Batch **batch, double *wait_s)
{
    Loader *l = loader;
    Status st = OK;
    *batch = NULL;
    pthread_mutex_lock(&l->mutex);
    /* we would wait for the thread, it for a slot */
    bool all_out = l->taken - l->released >= l->slots;
    if (!all_out) wait_filled(l, wait_s);
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
    pthread_cond_signal(&l->changed_released);
    pthread_mutex_unlock(&l->mutex);
}
