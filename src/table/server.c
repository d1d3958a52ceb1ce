/* Runs servers: ranks that own rows and compute no layers. At the start rank 0 broadcasts the list
 * of tables. Then a server carries out the commands of rank 0 and of workers, and sleeps between
 * commands. */
#include "order.h"
#include "tables.h"

#include "base/start.h"

/* Message that describes a table to the servers; the message with the table's name follows. */
typedef struct TableMessage {
    /* the table; its pointer `name` has no meaning on the server */
    SparseTable table;
    /* number of the table's update rule, for optim_rule */
    int rule;
} TableMessage;

/* Broadcasts from rank 0 to the servers how micro-batches are dealt, all tables in the order of
 * stores, and the dense parameters. Collective. */
static void send_tables(const Tables *t, const int *rule_number, const TableDense *dense,
                        int dense_count)
{
    const World *world = t->plan.world;
    int count = t->stores, dealt[] = {t->plan.deal, t->plan.micro_batches};
    world_bcast(world, dealt, sizeof dealt, 0);
    world_bcast(world, &count, sizeof count, 0);
    for (int i = 0; i < count; ++i) {
        TableMessage message = {.table = *t->store[i].table, .rule = rule_number[i]};
        world_bcast(world, &message, sizeof message, 0);
        char *name = world_bcast_text(world, mem_text(t->store[i].table->name));
        mem_free(&name);
    }
    world_bcast(world, &dense_count, sizeof dense_count, 0);
    world_bcast(world, (void *)(uintptr_t)dense, (size_t)dense_count * sizeof *dense, 0);
}

void tables_new(Tables **out, const TablesPlan *plan)
{
    const Graph *g = plan->graph;
    int first = -1, count = 0;
    for (int i = 0; i < g->table_count; ++i) {
        if (!plan->uses_node[g->table[i].node]) continue;
        if (first < 0) first = i;
        ++count;
    }
    *out = NULL;
    if (count == 0) return;
    Tables *t = *out = mem_new(sizeof *t);
    t->plan = *plan;
    t->plan.uses_node = NULL;
    t->is_worker = true;
    tables_init(t, g->table + first, count);
    t->plan.rule = NULL;
    t->plan.config = NULL;
    async_init(t, plan->dense, plan->dense_count, plan->config);
    if (plan->servers > 0)
        send_tables(t, plan->rule_number + first, plan->dense, plan->dense_count);
}

/* On rank 0, receives the reports of stop signals that have arrived. all: true waits until every
 * server has reported. */
static void receive_stop_reports(Tables *t, bool all)
{
    bool requested;
    if (t->plan.servers == 0 || t->plan.world->rank > 0) return;
    while (t->stop_reports < t->owners &&
           world_receive_control(t->plan.world, &requested, sizeof requested, all)) {
        ++t->stop_reports;
        t->stop_requested |= requested;
    }
}

bool tables_stop_wanted(Tables *t)
{
    if (!t) return false;
    receive_stop_reports(t, false);
    return t->stop_requested;
}

void tables_free(Tables **tables)
{
    Tables *t = *tables;
    if (!t) return;
    command_servers(t, (Command){.kind = COMMAND_END});
    receive_stop_reports(t, true);
    tables_fini(t);
    mem_free(tables);
}

void tables_toggle_watchdog(Tables *t)
{
    command_servers(t, (Command){.kind = COMMAND_WATCH});
}

static void receive_tables(Tables *t, const Config *config)
{
    const World *world = t->plan.world;
    int count = 0, dealt[2];
    world_bcast(world, dealt, sizeof dealt, 0);
    t->plan.deal = (Deal)dealt[0];
    t->plan.micro_batches = dealt[1];
    world_bcast(world, &count, sizeof count, 0);
    OptimRule *rule = mem_new((size_t)count * sizeof *rule);
    t->server_tables = mem_new((size_t)count * sizeof *t->server_tables);
    for (int i = 0; i < count; ++i) {
        TableMessage message;
        world_bcast(world, &message, sizeof message, 0);
        t->server_tables[i] = message.table;
        t->server_tables[i].name = world_bcast_text(world, NULL);
        rule[i] = optim_rule(config, message.rule);
    }
    t->plan.rule = rule;
    tables_init(t, t->server_tables, count);
    t->plan.rule = NULL;
    mem_free(&rule);
    world_bcast(world, &count, sizeof count, 0);
    TableDense *dense = mem_new((size_t)(count + 1) * sizeof *dense);
    world_bcast(world, dense, (size_t)count * sizeof *dense, 0);
    async_init(t, dense, count, config);
    mem_free(&dense);
}

/* ---- serving ---- */

/* seconds for which a replay waits for the request of the rank that is next in the order, while
 * requests of other ranks have arrived */
static const double REPLAY_WAIT_S = 60;

/* Receives the next command and returns its sender. The sender is rank 0 in modes sync and stale,
 * and any rank in modes geo and async. In a replay of mode async it is the next rank in the
 * order. */
static int next_command(Tables *t, Order *order, Command *what)
{
    const World *world = t->plan.world;
    const int next = order->next;
    if (t->plan.mode != UPDATE_ASYNC)
        return world_receive(world, update_mode_is_local(t->plan.mode) ? -1 : 0, what,
                             sizeof *what);
    /* A rank that waits at a sync point sends no request before all others have reached the sync
     * point, so it cannot be next in the order. */
    bool wrong = next >= t->workers || (next >= 0 && t->waits[next]);
    if (wrong || (next >= 0 && !world_wait_for(world, next, REPLAY_WAIT_S)))
        die_as(
            ERR_DATA,
            "%s: the recorded order does not fit this run: it is of a run with other steps, data "
            "or parameters",
            order->path);
    bool control;
    int from = world_receive_any(world, next, what, sizeof *what, &control);
    if (!control) order_add(order, from);
    if (what->kind == COMMAND_SYNC_POINT && what->step >= 0 && t->waiting + 1 == t->workers)
        t->stops_replay = order_sync_point(order, what->step, what->last);
    return from;
}

static Status begin_order(Tables *t, const ServerPlan *plan, const Command *what, Order *order)
{
    const World *world = t->plan.world;
    char *run_text = world_bcast_text(world, NULL);
    int64_t renamed = 0;
    OrderPlan order_plan = {.folder = plan->order,
                            .replay = plan->replay,
                            .workers = t->workers,
                            .servers = plan->servers,
                            .number = world->rank - t->first_owner,
                            .step = what->step,
                            .params_hash = what->params_hash,
                            .run_text = run_text};
    Status st = status_agree(world, order_open(order, &order_plan, &renamed));
    world_allreduce(world, &renamed, 1);
    mem_free(&run_text);
    return st;
}

Status tables_begin(Tables *t, int64_t step, uint64_t params_hash, const char *run_text)
{
    const World *world = t->plan.world;
    int64_t renamed = 0;
    command_servers(t, (Command){.kind = COMMAND_BEGIN, .step = step, .params_hash = params_hash});
    char *text = world_bcast_text(world, world->rank == 0 ? mem_text(run_text) : NULL);
    mem_free(&text);
    Status st = status_agree(world, OK);
    world_allreduce(world, &renamed, 1);
    if (renamed > 0)
        log_warn("run.order_log: renamed %lld file%s of an earlier start, with a number at the end "
                 "of the name",
                 (long long)renamed, renamed == 1 ? "" : "s");
    return st;
}

/* Notifies rank 0 whether this server has received a stop signal. */
static void report_stop(Tables *t, bool requested)
{
    ++t->stop_reports;
    world_send_control(t->plan.world, 0, &requested, sizeof requested);
}

/* Starts the watchdog, or frees it if it runs. */
static void watch(Tables *t, const ServerPlan *plan)
{
    const WatchdogOptions options = {.hang_s = plan->config->train.hang_s};
    if (t->watchdog)
        watchdog_free(&t->watchdog);
    else
        t->watchdog = watchdog_new(plan->job, &options);
    start_end(true);
}

/* Takes part in the sum of squares of the gradients of a step's rows; workers use the result. */
static void sum_squares(Tables *t, TableStream *s, Flight *f)
{
    double *squares = mem_new((size_t)t->stores * sizeof *squares);
    stream_squares(s, f, squares);
    mem_free(&squares);
}

/* Takes part in the reports of all owners; rank 0 uses them. */
static void report_contents(Tables *t)
{
    OwnerReport *report = mem_new((size_t)t->plan.world->size * sizeof *report);
    contents_report(t, report);
    mem_free(&report);
}

/* Receives a command and carries it out. Returns false if it was the last command. COMMAND_BEGIN
 * sets *status to the result of opening the order file. */
static bool serve_one(Tables *t, const ServerPlan *plan, Order *order, Status *status)
{
    Command what;
    int from = next_command(t, order, &what);
    if (what.evaluation && !t->evaluation.tables) stream_init(t, &t->evaluation, false);
    TableStream *s = what.evaluation ? &t->evaluation : &t->training;
    Flight *f = &s->flight[what.flight];
    switch (what.kind) {
    case COMMAND_IDS:
        stream_ids(s, f);
        break;
    case COMMAND_ROWS:
        stream_rows(s, f);
        break;
    case COMMAND_GRADIENTS:
        stream_gradients(s, f);
        break;
    case COMMAND_SQUARES:
        sum_squares(t, s, f);
        break;
    case COMMAND_UPDATE:
        stream_update(s, f, what.lr, what.grad_scale);
        break;
    case COMMAND_FORGET:
        stream_settle(s);
        break;
    case COMMAND_CLEAR:
        contents_clear(t);
        break;
    case COMMAND_COUNT:
        contents_count(t, what.part.table);
        break;
    case COMMAND_COLLECT:
        contents_collect(t, what.part, what.root, NULL);
        break;
    case COMMAND_PUT:
        contents_put(t);
        break;
    case COMMAND_REPORT:
        report_contents(t);
        break;
    case COMMAND_WATCH:
        watch(t, plan);
        break;
    case COMMAND_PULL:
        serve_pull(t, from, &what);
        break;
    case COMMAND_PUSH:
        serve_push(t, from, &what);
        break;
    case COMMAND_BEGIN:
        *status = begin_order(t, plan, &what, order);
        break;
    case COMMAND_END:
        return false;
    default:
        async_serve(t, from, &what);
    }
    return true;
}

Status tables_serve(const ServerPlan *plan)
{
    Tables *t = mem_new(sizeof *t);
    Order order = {.next = -1};
    Status st = OK;
    t->plan = (TablesPlan){.world = plan->world,
                           .servers = plan->servers,
                           .mode = (UpdateMode)plan->config->grid.mode,
                           .staleness = table_staleness(plan->config),
                           .seed = (uint64_t)plan->config->run.seed,
                           .limit_bytes = plan->limit_bytes};
    receive_tables(t, plan->config);
    beat_set_server();
    beat_mark_plain("serving requests of ranks", false);
    while (serve_one(t, plan, &order, &st))
        if (t->stop_reports == 0 && stop_wanted()) report_stop(t, true);
    if (t->stop_reports == 0) report_stop(t, false);
    Status closed = order_close(&order);
    for (int i = 0; i < t->stores; ++i) mem_free(&t->server_tables[i].name);
    mem_free(&t->server_tables);
    tables_fini(t);
    mem_free(&t);
    return st == OK ? closed : st;
}
