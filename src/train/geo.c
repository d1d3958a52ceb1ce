/* Mode geo. Between borders a rank's gradients are summed over its own micro-batches only: its
 * communicator is of one rank. At a border, of each parameter: new = old + (sum over ranks of what it
 * has changed) / ranks, the sum by the tree of ranks; tables do the same with the rows that were
 * touched (table/geo.c). */
#include "geo.h"

#include "sparse.h"

#include <string.h>

typedef struct Asked {
    int stop, save, wish;
} Asked;

struct Geo {
    /* over the ranks that compute; its arena has the parameters' changes */
    Comm *comm;
    int64_t count;
    /* owned: parameters at the last border */
    float *old;
    Asked asked;
};

/* ---- what it is not combined with ---- */

static Status check_rules(const Trainer *t)
{
    for (int i = 0; i < optim_rule_count(t->config); ++i) {
        OptimRule rule = optim_rule(t->config, i);
        if (strcmp(rule.table->word.word, "sgd") == 0 && rule.slots == 0) continue;
        return config_fail_key(t->config, i == 0 ? "optim.name" : "optim.groups",
                               "grid.mode: geo adds what ranks have changed, which is defined for "
                               "sgd without momentum: %s%s has state",
                               rule.table->word.word,
                               strcmp(rule.table->word.word, "sgd") == 0 ? " with momentum" : "");
    }
    return OK;
}

Status geo_check(const Trainer *t)
{
    const Config *c = t->config;
    const struct {
        bool wrong;
        const char *key, *why;
    } not_with[] = {
        {c->grid.servers == 0, "grid.mode",
         "geo needs servers that hold the tables: set "
         "grid.servers"},
        {t->shape.pp > 1, "grid.pp", "mode geo has ranks that each compute the whole model: set 1"},
        {t->shape.tp > 1, "grid.tp", "mode geo has ranks that each compute the whole model: set 1"},
        {c->grid.zero > 0, "grid.zero", "in mode geo each rank has parameters of its own: set 0"},
        {c->optim.clip > 0, "optim.clip", "there is no gradient of all ranks in mode geo"},
        {c->train.on_bad != ON_BAD_STOP, "train.on_bad", "mode geo can only stop"},
        {c->checkpoint.every_steps % c->grid.geo_steps != 0, "checkpoint.every_steps",
         "checkpoints are made where ranks meet: make it a multiple of grid.geo_steps"},
    };
    if (c->grid.mode != TABLE_GEO) return OK;
    for (size_t i = 0; i < sizeof not_with / sizeof *not_with; ++i)
        if (not_with[i].wrong) return config_fail_key(c, not_with[i].key, "%s", not_with[i].why);
    if (t->micros < t->shape.dp)
        return config_fail_key(c, "train.micro_batch",
                               "%d micro-batches of a batch do not give each of %d ranks one: make "
                               "it smaller",
                               t->micros, t->shape.dp);
    return check_rules(t);
}

/* ---- a run ---- */

Status geo_make(Trainer *t)
{
    if (sparse_mode(t) != TABLE_GEO) return OK;
    struct Geo *g = t->geo = mem_new(sizeof *g);
    g->count = t->plan->param_elements;
    g->old = mem_new((size_t)(g->count + 1) * sizeof *g->old);
    return comm_new(&g->comm, &t->grid.dp_world, t->backend, t->config->grid.transport, g->count);
}

void geo_free(Trainer *t)
{
    if (!t->geo) return;
    comm_free(&t->geo->comm);
    mem_free(&t->geo->old);
    mem_free(&t->geo);
}

void geo_begin(Trainer *t)
{
    struct Geo *g = t->geo;
    if (g) memcpy(g->old, executor_params(t->executor), (size_t)g->count * sizeof *g->old);
}

bool geo_border(const Trainer *t, int64_t step)
{
    return !t->geo || step % t->config->grid.geo_steps == 0 || step % t->steps_per_epoch == 0 ||
           step == t->steps;
}

int64_t geo_samples(const Trainer *t, int64_t batch_samples, int *micros)
{
    int64_t share = t->micros_local * t->micro_batch, first = t->grid.dp_rank * share;
    int64_t left = batch_samples - first, mine = left < 0 ? 0 : left < share ? left : share;
    *micros = (int)((mine + t->micro_batch - 1) / t->micro_batch);
    return mine;
}

static void exchange(Trainer *t)
{
    struct Geo *g = t->geo;
    float *now = executor_params(t->executor), *change = g->comm->arena;
    float part = 1.0f / (float)t->shape.dp;
    for (int64_t i = 0; i < g->count; ++i) change[i] = now[i] - g->old[i];
    comm_allreduce_begin(g->comm, 0, g->count);
    comm_wait(g->comm);
    for (int64_t i = 0; i < g->count; ++i) now[i] = g->old[i] + change[i] * part;
    memcpy(g->old, now, (size_t)g->count * sizeof *now);
    executor_params_changed(t->executor);
    tables_exchange(t->tables);
}

/* What any rank was asked to do since the last border. */
static void share_asked(Trainer *t, StepResult *result)
{
    struct Geo *g = t->geo;
    const World *world = &t->grid.dp_world;
    Asked *all = mem_new((size_t)world->size * sizeof *all);
    world_gather(world, &g->asked, sizeof g->asked, all);
    for (int r = 0; r < world->size; ++r) {
        result->stop_asked = result->stop_asked || all[r].stop;
        result->save_asked = result->save_asked || all[r].save;
        result->wish_asked = result->wish_asked || all[r].wish;
    }
    g->asked = (Asked){0};
    mem_free(&all);
}

void geo_end_step(Trainer *t, StepResult *result)
{
    struct Geo *g = t->geo;
    if (!g) return;
    if (result->bad)
        die_as(
            ERR_DATA,
            "step %lld: the loss of this rank's share is %g; lower optim.lr, or look at the data "
            "with `weft data check`; the newest checkpoint stays as it is",
            (long long)t->step, result->bad_loss);
    g->asked.stop |= result->stop_asked;
    g->asked.save |= result->save_asked;
    g->asked.wish |= result->wish_asked;
    result->stop_asked = result->save_asked = result->wish_asked = false;
    if (!geo_border(t, t->step)) return;
    exchange(t);
    share_asked(t, result);
}
