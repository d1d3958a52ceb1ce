/* Checkpoints of a Trainer: its tensors as checkpoint.h wants them, and what must agree for a run to go on. */
#include "train.h"

#include "resume.h"

#include <math.h>
#include <string.h>

/* Parameters and running statistics, then each optimizer slot of the trained ones. */
typedef struct Tensors {
    Trainer *trainer;
    CheckpointTensor *tensor;
    float *host;       /* copy of the arena in use; NULL where the backend's memory is the host's */
    int *param, *slot; /* slot -1: the value itself */
    int count;
} Tensors;

static float *arena_of(Trainer *t, int slot)
{
    return slot < 0 ? executor_params(t->executor) : t->optim->state[slot];
}

static void tensor_get(void *user, int i, float *plain)
{
    Tensors *list = user;
    Trainer *t = list->trainer;
    const Param *p = &t->graph->param[list->param[i]];
    float *arena = arena_of(t, list->slot[i]);
    if (list->host) {
        Stream *s = t->backend->table->stream(t->backend);
        t->backend->table->copy(s, list->host + p->offset, arena + p->offset,
                                (size_t)p->elements * sizeof *arena);
        t->backend->table->sync(s);
        arena = list->host;
    }
    param_get(t->graph, list->param[i], arena, plain);
}

static void tensor_set(void *user, int i, const float *plain)
{
    Tensors *list = user;
    Trainer *t = list->trainer;
    const Param *p = &t->graph->param[list->param[i]];
    float *arena = arena_of(t, list->slot[i]);
    param_set(t->graph, list->param[i], plain, list->host ? list->host : arena);
    if (!list->host) return;
    Stream *s = t->backend->table->stream(t->backend);
    t->backend->table->copy(s, arena + p->offset, list->host + p->offset,
                            (size_t)p->elements * sizeof *arena);
    t->backend->table->sync(s);
}

static void tensors_add(Tensors *list, int param, int slot)
{
    const Trainer *t = list->trainer;
    const Param *p = &t->graph->param[param];
    char *path = slot >= 0 ? mem_format("/optim/%s/%s", t->optim->table->slot_name[slot], p->name)
                           : mem_format("/%s/%s", p->info.buffer ? "buffers" : "params", p->name);
    list->tensor[list->count] = (CheckpointTensor){.path = path, .shape = p->shape};
    list->param[list->count] = param;
    list->slot[list->count++] = slot;
}

static void tensors_init(Tensors *list, Trainer *t, bool params_only)
{
    int slots = params_only ? 0 : t->optim->table->slots, params = t->graph->param_count;
    size_t most = (size_t)params * (size_t)(slots + 1) + 1;
    *list = (Tensors){.trainer = t,
                      .tensor = mem_new(most * sizeof *list->tensor),
                      .param = mem_new(most * sizeof *list->param),
                      .slot = mem_new(most * sizeof *list->slot)};
    if (!t->backend->table->host_memory) list->host = mem_pages_new(t->plan->param_bytes);
    for (int slot = -1; slot < slots; ++slot)
        for (int i = 0; i < params; ++i)
            if (slot < 0 || !t->graph->param[i].info.buffer) tensors_add(list, i, slot);
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
}

Status train_save(Trainer *t, const char *path)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Tensors list;
    tensors_init(&list, t, false);
    CheckpointMeta meta = {.step = t->step,
                           .epoch = t->step / t->steps_per_epoch,
                           .data_step = t->step % t->steps_per_epoch,
                           .seed = t->config->run.seed,
                           .best_metric = t->best_metric,
                           .config = config_text(t->config)};
    meta.version = mem_text(WEFT_VERSION);
    snprintf(meta.grid, sizeof meta.grid, "%dx1x1", t->world->size);
    CheckpointIo io = {.count = list.count,
                       .tensor = list.tensor,
                       .user = &list,
                       .get = tensor_get,
                       .set = tensor_set};
    Status st = checkpoint_save(t->world, path, &meta, &io);
    checkpoint_meta_fini(&meta);
    tensors_fini(&list);
    phase_enter(outer);
    return st;
}

Status train_load(Trainer *t, const char *path, bool params_only)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Tensors list;
    CheckpointMeta meta = {0};
    tensors_init(&list, t, params_only);
    CheckpointIo io = {.count = list.count,
                       .tensor = list.tensor,
                       .user = &list,
                       .get = tensor_get,
                       .set = tensor_set,
                       .params_only = params_only};
    Status st = checkpoint_load(t->world, path, &meta, &io);
    if (st == OK) {
        loader_free(&t->loader); /* the next step opens one at the new place */
        t->step = meta.step;
        t->optim->step = meta.step;
        t->best_metric = meta.best_metric;
        executor_refresh(t->executor);
    }
    checkpoint_meta_fini(&meta);
    tensors_fini(&list);
    phase_enter(outer);
    return st;
}

/* ---- may this run go on from that checkpoint? ---- */

/* Keys that do not change the numbers: where and how a run is done, and what it says. */
static void neutral(Config *c, const Config *now)
{
    c->grid = now->grid;
    c->checkpoint = now->checkpoint;
    c->run.trace = now->run.trace;
    c->train.device = now->train.device;
    c->train.eval_every = now->train.eval_every;
    c->train.log_every = now->train.log_every;
    c->train.threads = now->train.threads;
    c->data.prefetch = now->data.prefetch;
}

/* A line of a resolved configuration as "section.key: value"; section is the last line that was not indented. */
static void line_text(char *out, size_t room, const char *section, const char *line)
{
    int indent = (int)strspn(line, " "), length = (int)strcspn(line, "\n");
    int head = (int)strcspn(section, ":\n");
    if (indent == 0)
        snprintf(out, room, "%.*s", length, line);
    else
        snprintf(out, room, "%.*s.%.*s", head, section, length - indent, line + indent);
}

/* First line in which the two texts differ, into a and b. */
static bool first_difference(const char *x, const char *y, char *a, char *b, size_t room)
{
    const char *section = x;
    while (*x && *y) {
        size_t nx = strcspn(x, "\n"), ny = strcspn(y, "\n");
        if (*x != ' ') section = x;
        if (nx != ny || memcmp(x, y, nx) != 0) {
            line_text(a, room, section, x);
            line_text(b, room, section, y);
            return true;
        }
        x += nx + (x[nx] != 0);
        y += ny + (y[ny] != 0);
    }
    return false;
}

Status resume_check(const Config *config, const char *path)
{
    CheckpointMeta meta = {0};
    Config *old = NULL;
    TRY(checkpoint_read_meta(path, &meta));
    Status st = config_parse(&old, path, meta.config ? meta.config : "", 0, NULL);
    checkpoint_meta_fini(&meta);
    TRY(st);
    Config same = *old;
    neutral(&same, config);
    char *x = config_text(&same), *y = config_text(config), a[160], b[160];
    if (first_difference(x, y, a, b, sizeof a))
        st = fail(
            ERR_CONFIG,
            "%s was written with `%s`, the configuration now says `%s`: choose another run.name "
            "(with checkpoint.resume=%s it begins from there)",
            path, a, b, path);
    mem_free(&x);
    mem_free(&y);
    config_free(&old);
    return st;
}
