/* Servers: ranks that own rows and compute nothing. Those who compute tell them once which tables
 * there are; then a server does its half of whatever rank 0 says, and sleeps in between. */
#include "tables.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A table, as it is told. */
typedef struct Told {
    SparseTable table;
    int rule;
} Told;

/* Of all tables that are here, in the order of stores, and of other parameters, to servers.
 * Collective. */
static void tell_tables(const Tables *t, const int *rule_number, const TableDense *dense,
                        int dense_count)
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
    world_bcast(world, &dense_count, sizeof dense_count, 0);
    world_bcast(world, (void *)(uintptr_t)dense, (size_t)dense_count * sizeof *dense, 0);
}

Status tables_new(Tables **out, const TablesPlan *plan)
{
    const Graph *g = plan->graph;
    int first = -1, count = 0;
    for (int i = 0; i < g->table_count; ++i) {
        if (!plan->here[g->table[i].node]) continue;
        if (first < 0) first = i;
        ++count;
    }
    *out = NULL;
    if (count == 0) return OK;
    Tables *t = *out = mem_new(sizeof *t);
    t->plan = *plan;
    t->plan.here = NULL;
    t->asks = true;
    tables_init(t, g->table + first, count);
    t->plan.rule = NULL;
    t->plan.config = NULL;
    async_init(t, plan->dense, plan->dense_count, plan->config);
    if (plan->servers == 0) return OK;
    tell_tables(t, plan->rule_number + first, plan->dense, plan->dense_count);
    Status st = status_agree(plan->world, OK);
    if (st == OK) return OK;
    /* servers are gone */
    tables_fini(t);
    mem_free(out);
    return st;
}

void tables_free(Tables **tables)
{
    Tables *t = *tables;
    if (!t) return;
    say(t, (Say){.kind = SAY_END});
    tables_fini(t);
    mem_free(tables);
}

void tables_watch(Tables *t)
{
    say(t, (Say){.kind = SAY_WATCH});
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
    world_bcast(world, &count, sizeof count, 0);
    TableDense *dense = mem_new((size_t)(count + 1) * sizeof *dense);
    world_bcast(world, dense, (size_t)count * sizeof *dense, 0);
    async_init(t, dense, count, config);
    mem_free(&dense);
}

/* ---- the order of requests ---- */

/* In mode async anybody may be next; with a replay it is who was then. */
typedef struct Order {
    FILE *file;
    char *path;
    bool replay;
    int bytes;
} Order;

/* for a rank that is next, while another one waits */
static const double REPLAY_PATIENCE_S = 60;
static const char ORDER_MAGIC[] = "weft order 1\n";

static Status order_open(Order *order, const ServerPlan *plan, int askers, int number)
{
    char magic[sizeof ORDER_MAGIC] = "";
    int32_t shape[2] = {askers, plan->servers}, there[2] = {0};
    *order = (Order){.replay = plan->replay, .bytes = askers > 255 ? 2 : 1};
    if (!plan->order) return OK;
    order->path = mem_format("%s/server-%d.order", plan->order, number);
    if (!plan->replay && mkdir(plan->order, 0777) != 0 && errno != EEXIST)
        return fail(ERR_IO, "%s: %s", plan->order, file_error(errno));
    order->file = fopen(order->path, plan->replay ? "rbe" : "wbxe");
    if (!order->file && errno == EEXIST)
        return fail(ERR_USAGE, "%s is there already: name another folder with run.order_log",
                    order->path);
    if (!order->file)
        return fail(plan->replay ? ERR_NOINPUT : ERR_IO, "%s: %s", order->path, file_error(errno));
    if (!plan->replay) {
        bool good = fwrite(ORDER_MAGIC, sizeof ORDER_MAGIC, 1, order->file) == 1 &&
                    fwrite(shape, sizeof shape, 1, order->file) == 1;
        return good ? OK : fail(ERR_IO, "%s: %s", order->path, file_error(errno));
    }
    bool good = fread(magic, sizeof magic, 1, order->file) == 1 &&
                memcmp(magic, ORDER_MAGIC, sizeof magic) == 0 &&
                fread(there, sizeof there, 1, order->file) == 1;
    if (!good) return fail(ERR_DATA, "%s: not an order of requests", order->path);
    if (memcmp(shape, there, sizeof shape) == 0) return OK;
    return fail(
        ERR_CONFIG,
        "%s: was written with %d ranks that compute and %d servers, now there are %d and %d",
        order->path, there[0], there[1], shape[0], shape[1]);
}

/* Whom to hear next; -1: anybody. */
static int order_next(Order *order)
{
    uint16_t rank = 0;
    if (!order->replay || !order->file) return -1;
    if (fread(&rank, (size_t)order->bytes, 1, order->file) == 1) return rank;
    die_as(ERR_DATA, "%s: ends before the run does: it is another run's", order->path);
}

static void order_add(Order *order, int from)
{
    uint16_t rank = (uint16_t)from;
    if (order->replay || !order->file) return;
    if (fwrite(&rank, (size_t)order->bytes, 1, order->file) != 1)
        die_as(ERR_IO, "%s: %s", order->path, file_error(errno));
}

static void order_close(Order *order)
{
    if (order->file && fclose(order->file) != 0) log_warn("%s: %s", order->path, file_error(errno));
    mem_free(&order->path);
}

static void watch(Tables *t, const ServerPlan *plan)
{
    const WatchdogOptions options = {.hang_s = plan->config->train.hang_s};
    if (t->watchdog)
        watchdog_free(&t->watchdog);
    else
        t->watchdog = watchdog_new(plan->job, &options);
}

/* One thing that rank 0 says, or in mode geo anybody. false: it was the last. */
static bool serve_one(Tables *t, const ServerPlan *plan, Order *order)
{
    Say what;
    int next = table_mode_is_local(t->plan.mode) ? order_next(order) : 0;
    /* it may wait for others, whom the order has behind it */
    bool wrong = next >= t->askers || (next >= 0 && t->met_by && t->met_by[next]);
    if (next >= 0 && order->file)
        wrong = wrong || !world_awaits(t->plan.world, next, REPLAY_PATIENCE_S);
    if (wrong)
        die_as(ERR_DATA, "%s: not the order of this run: other steps, data or parameters",
               order->path);
    int from = world_hear(t->plan.world, next, &what, sizeof what);
    order_add(order, from);
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
        stream_update(s, f, what.lr, what.grad_scale);
        break;
    case SAY_FORGET:
        stream_settle(s);
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
    case SAY_WATCH:
        watch(t, plan);
        break;
    case SAY_PULL:
        geo_pull(t, from, &what);
        break;
    case SAY_PUSH:
        geo_push(t, from, &what);
        break;
    case SAY_END:
        return false;
    default:
        async_serve(t, from, &what);
    }
    return true;
}

Status tables_serve(const ServerPlan *plan)
{
    Tables *t = mem_new(sizeof *t);
    Order order = {0};
    t->plan = (TablesPlan){.world = plan->world,
                           .servers = plan->servers,
                           .mode = (TableMode)plan->config->grid.mode,
                           .staleness = table_staleness(plan->config),
                           .seed = (uint64_t)plan->config->run.seed,
                           .limit_bytes = plan->limit_bytes};
    hear_tables(t, plan->config);
    Status st = order_open(&order, plan, t->askers, plan->world->rank - t->first_owner);
    st = status_agree(plan->world, st);
    beat_serve();
    beat_mark_plain("what ranks ask", false);
    while (st == OK && serve_one(t, plan, &order)) continue;
    order_close(&order);
    for (int i = 0; i < t->stores; ++i) mem_free(&t->made[i].name);
    mem_free(&t->made);
    tables_fini(t);
    mem_free(&t);
    return st;
}
