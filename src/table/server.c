/* Servers: ranks that own rows and compute nothing. Those who compute tell them once which tables there
 * are; then a server does its half of whatever rank 0 says, and sleeps in between. */
#include "tables.h"

/* A table, as it is told. */
typedef struct Told {
    SparseTable table;
    int rule;
} Told;

/* Of all tables that are here, in the order of stores, to servers. Collective. */
static void tell_tables(const Tables *t, const int *rule_number)
{
    const World *world = t->plan.world;
    int count = t->stores;
    world_bcast(world, &count, sizeof count, 0);
    for (int i = 0; i < count; ++i) {
        Told told = {*t->store[i].of, rule_number[i]};
        world_bcast(world, &told, sizeof told, 0);
        char *name = world_bcast_text(world, mem_text(t->store[i].of->name));
        mem_free(&name);
    }
}

Tables *tables_new(const TablesPlan *plan)
{
    const Graph *g = plan->graph;
    int first = -1, count = 0;
    for (int i = 0; i < g->table_count; ++i) {
        if (!plan->here[g->table[i].node]) continue;
        if (first < 0) first = i;
        ++count;
    }
    if (count == 0) return NULL;
    Tables *t = mem_new(sizeof *t);
    t->plan = *plan;
    t->plan.here = NULL;
    t->asks = true;
    tables_init(t, g->table + first, count);
    t->plan.rule = NULL;
    if (plan->servers > 0) tell_tables(t, plan->rule_number + first);
    return t;
}

void tables_free(Tables **tables)
{
    Tables *t = *tables;
    if (!t) return;
    say(t, (Say){.kind = SAY_END});
    tables_fini(t);
    mem_free(tables);
}

static void hear_tables(Tables *t, const Config *config)
{
    const World *world = t->plan.world;
    int count = 0;
    world_bcast(world, &count, sizeof count, 0);
    OptimRule *rule = mem_new((size_t)count * sizeof *rule);
    t->made = mem_new((size_t)count * sizeof *t->made);
    for (int i = 0; i < count; ++i) {
        Told told;
        world_bcast(world, &told, sizeof told, 0);
        t->made[i] = told.table;
        t->made[i].name = world_bcast_text(world, NULL);
        rule[i] = optim_rule(config, told.rule);
    }
    t->plan.rule = rule;
    tables_init(t, t->made, count);
    t->plan.rule = NULL;
    mem_free(&rule);
}

/* One thing that rank 0 says, or in mode geo anybody. false: it was the last. */
static bool serve_one(Tables *t)
{
    Say what;
    int from = world_hear(t->plan.world, t->plan.mode == TABLE_GEO ? -1 : 0, &what, sizeof what);
    if (what.evaluation && !t->evaluation.tables) stream_init(t, &t->evaluation, false);
    TableStream *s = what.evaluation ? &t->evaluation : &t->training;
    Flight *f = &s->flight[what.flight];
    double *squares;
    TablesHeld *held;
    switch (what.kind) {
    case SAY_IDS:
        stream_ids(s, f);
        break;
    case SAY_ROWS:
        stream_rows(s, f);
        break;
    case SAY_GRADIENTS:
        stream_gradients(s, f);
        break;
    case SAY_SQUARES:
        squares = mem_new((size_t)t->stores * sizeof *squares);
        stream_squares(s, f, squares);
        mem_free(&squares);
        break;
    case SAY_UPDATE:
        for (int b = 0; b < t->bags; ++b) owner_update(&f->owner[b], what.lr, what.grad_scale);
        break;
    case SAY_FORGET:
        world_swap_wait(s->ids);
        break;
    case SAY_CLEAR:
        contents_clear(t);
        break;
    case SAY_COUNT:
        contents_count(t, what.part.table);
        break;
    case SAY_COLLECT:
        contents_collect(t, what.part, what.root, NULL);
        break;
    case SAY_PUT:
        contents_put(t);
        break;
    case SAY_HELD:
        held = mem_new((size_t)t->plan.world->size * sizeof *held);
        contents_held(t, held);
        mem_free(&held);
        break;
    case SAY_PULL:
        geo_pull(t, from, &what);
        break;
    case SAY_PUSH:
        geo_push(t, from, &what);
        break;
    case SAY_END:
        return false;
    }
    return true;
}

void tables_serve(const ServerPlan *plan)
{
    Tables *t = mem_new(sizeof *t);
    t->plan = (TablesPlan){.world = plan->world,
                           .servers = plan->servers,
                           .mode = (TableMode)plan->config->grid.mode,
                           .seed = (uint64_t)plan->config->run.seed,
                           .limit_bytes = plan->limit_bytes};
    hear_tables(t, plan->config);
    while (serve_one(t)) continue;
    for (int i = 0; i < t->stores; ++i) mem_free(&t->made[i].name);
    mem_free(&t->made);
    tables_fini(t);
    mem_free(&t);
}
