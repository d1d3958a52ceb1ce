/* Sparse tables of a run, on workers: micro-batches with rows, and what a step does from the first
 * micro-batch to the update:
 *
 *     next(0)     distinct ids of all of the step's micro-batches ──> owners
 *                 rows <── owners            (the ids were sent during the step before)
 *     next(last)  ids of the next step are sent ahead
 *     backward    a gradient for each row of each micro-batch
 *     reduce      sums by the tree of micro-batches ──> owners, who add those of all workers
 *     update      owners update rows, and create those that are new
 *
 * In mode stale an update is made some steps later, and ids are sent two steps ahead, so that no
 * rank waits for messages: during step t owners add the gradients of t - 1, make the update of
 * t - staleness, and answer the requests of t + 1.
 *
 * Owners are either all ranks or the servers, who do their part of each line when rank 0 sends them
 * a command. Messages are MPI's, sent by the one thread that computes. */
#include "tables.h"

#include <string.h>

/* ---- making ---- */

static void store_init(Tables *t, TableStore *s, const SparseTable *of, const OptimRule *rule)
{
    *s = (TableStore){.of = of, .rule = *rule, .hash = hash_text(of->name)};
    s->state = rule->table->row_state(rule->is, of->width);
    s->floats = of->width;
    for (int i = 0; i < s->state.slots; ++i) s->floats += s->state.floats[i];
    if (t->is_owner) s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
}

/* Makes the bag whose tables begin at of[0], of at most `count` tables. */
static void bag_init(Tables *t, const SparseTable *of, int count)
{
    Bag *bag = &t->bag[t->bags];
    *bag = (Bag){.width = of->width, .of = of};
    while (bag->tables < count && of[bag->tables].node == of->node) ++bag->tables;
    if (t->is_worker) {
        const OpSpec *spec = &t->plan.graph->node[of->node].spec;
        bag->number = spec->bag;
        bag->first_field = spec->bag_first;
        bag->fields = spec->bag_fields;
        bag->table = (int)(of - t->plan.graph->table);
    }
    bag->hash = mem_new((size_t)bag->tables * sizeof *bag->hash);
    t->first[t->bags++] = t->stores;
    for (int i = 0; i < bag->tables; ++i) {
        int rule = t->is_worker ? bag->table + i : t->stores;
        bag->hash[i] = hash_text(of[i].name);
        store_init(t, &t->store[t->stores++], &of[i], &t->plan.rule[rule]);
    }
}

size_t tables_bytes(const void *user)
{
    const Tables *t = user;
    size_t bytes = 0;
    for (int i = 0; i < t->stores; ++i) bytes += row_store_bytes(t->store[i].rows);
    return bytes;
}

void tables_init(Tables *t, const SparseTable *of, int count)
{
    const TablesPlan *p = &t->plan;
    size_t room = (size_t)count + 1;
    t->is_owner = p->servers == 0 || !t->is_worker;
    t->workers = p->world->size - p->servers;
    t->owners = p->servers ? p->servers : p->world->size;
    t->first_owner = p->servers ? t->workers : 0;
    t->sorted_store = -1;
    t->begun_s = clock_s();
    t->bag = mem_new(room * sizeof *t->bag);
    t->store = mem_new(room * sizeof *t->store);
    t->first = mem_new(room * sizeof *t->first);
    t->shard_rows = mem_new(room * ROW_SHARDS * sizeof *t->shard_rows);
    for (int s = 0; s < ROW_SHARDS; ++s) t->owner[s] = (int16_t)table_owner(s, t->owners);
    for (int i = 0; i < count; i += t->bag[t->bags - 1].tables) bag_init(t, of + i, count - i);
    stream_init(t, &t->training, true);
    geo_init(t);
}

void tables_fini(Tables *t)
{
    geo_fini(t);
    async_fini(t);
    stream_fini(&t->training);
    stream_fini(&t->evaluation);
    for (int i = 0; i < t->stores; ++i) row_store_free(&t->store[i].rows);
    for (int b = 0; b < t->bags; ++b) mem_free(&t->bag[b].hash);
    contents_changed(t);
    mem_free(&t->shard_rows);
    mem_free(&t->bag);
    mem_free(&t->store);
    mem_free(&t->first);
}

int tables_store(const Tables *t, int table)
{
    for (int b = 0; t && b < t->bags; ++b) {
        int index = table - t->bag[b].table;
        if (index >= 0 && index < t->bag[b].tables) return t->first[b] + index;
    }
    return -1;
}

/* ---- micro-batches ---- */

void command_servers(const Tables *t, Command what)
{
    const World *world = t->plan.world;
    if (t->plan.servers == 0 || world->rank > 0) return;
    for (int o = 0; o < t->owners; ++o)
        /* In mode async commands have the tag of control messages, which leaves them out of the
         * order of requests. They overtake no request: all have been answered. */
        if (t->plan.mode == TABLE_ASYNC)
            world_send_control(world, t->first_owner + o, &what, sizeof what);
        else
            world_send(world, t->first_owner + o, &what, sizeof what);
}

static Command command_for(const TableStream *s, CommandKind kind, const Flight *f)
{
    return (Command){
        .kind = kind, .evaluation = s == &s->tables->evaluation, .flight = (int)(f - s->flight)};
}

/* True where a training step is local to the worker except for its new rows. */
static bool is_local(const TableStream *s)
{
    return table_mode_is_local(s->tables->plan.mode) && s == &s->tables->training;
}

/* Takes all micro-batches of a step from the source. An error is kept until the step begins, so
 * that the previous step ends as usual; other ranks are then sent no ids. */
static void take_step(TableStream *s, Flight *f, double *wait_s)
{
    Tables *t = s->tables;
    int micros = t->plan.micros, bags = t->plan.graph->bag_count;
    f->taken = true;
    f->status = OK;
    for (int i = 0; i < micros && f->status == OK; ++i) {
        const Batch *batch = NULL;
        f->status = s->inner.next(s->inner.user, &batch, wait_s);
        if (f->status == OK && !batch) f->status = fail(ERR_BUG, "the data ended inside a step");
        if (f->status != OK) break;
        f->batch[i] = *batch;
        f->batch[i].bag = f->run + i * bags;
    }
    if (f->status != OK) {
        f->why = mem_text(fail_message());
        memset(f->batch, 0, (size_t)micros * sizeof *f->batch);
    }
    for (int b = 0; b < t->bags; ++b) {
        lookup_take(&f->look[b], f->batch, (int)t->plan.fields, t->owner);
        for (int i = 0; i < micros; ++i)
            f->run[i * bags + t->bag[b].number] = lookup_run(&f->look[b], i);
    }
    if (is_local(s)) return;
    command_servers(t, command_for(s, COMMAND_IDS, f));
    stream_ids(s, f);
}

static void request_rows(TableStream *s, Flight *f)
{
    Tables *t = s->tables;
    f->requested = true;
    if (is_local(s)) {
        if (t->plan.mode == TABLE_GEO) geo_request(t, f);
        return;
    }
    command_servers(t, command_for(s, COMMAND_ROWS, f));
    stream_rows(s, f);
}

static void wait_rows(TableStream *s, Flight *f)
{
    Tables *t = s->tables;
    if (!is_local(s))
        stream_wait_rows(s);
    else if (t->plan.mode == TABLE_GEO)
        geo_rows(t, f);
    else
        async_rows(t, f);
}

static void update_oldest(TableStream *s)
{
    Flight *f = &s->flight[s->oldest];
    Command what = command_for(s, COMMAND_UPDATE, f);
    what.lr = f->lr;
    what.grad_scale = f->grad_scale;
    command_servers(s->tables, what);
    stream_update(s, f, f->lr, f->grad_scale);
    s->oldest = (s->oldest + 1) % s->flights;
    --s->pending;
}

static Flight *flight_after(const TableStream *s, int steps)
{
    return &s->flight[(s->now + steps) % s->flights];
}

static Status begin_step(TableStream *s, double *wait_s)
{
    Tables *t = s->tables;
    s->now = (s->now + 1) % s->flights;
    Flight *f = &s->flight[s->now];
    if (!f->taken) take_step(s, f, wait_s);
    f->taken = false;
    s->handed_out = 0;
    if (f->status != OK) return fail(f->status, "%s", f->why);
    if (!f->requested) request_rows(s, f);
    f->requested = false;
    wait_rows(s, f);
    if (t->plan.staleness == 0 || s != &t->training || t->sync_point) return OK;
    /* while this step is computed: makes the update that the next step has to see, and requests the
     * next step's rows */
    Flight *ahead = flight_after(s, 1);
    if (s->pending == t->plan.staleness) update_oldest(s);
    if (!ahead->taken) take_step(s, ahead, wait_s);
    request_rows(s, ahead);
    return OK;
}

static Status next(void *user, const Batch **batch, double *wait_s)
{
    TableStream *s = user;
    if (s->handed_out == s->tables->plan.micros) TRY(begin_step(s, wait_s));
    *batch = &s->flight[s->now].batch[s->handed_out++];
    bool last = s->handed_out == s->tables->plan.micros;
    for (int i = 1; i <= s->ahead && last; ++i)
        if (!flight_after(s, i)->taken) take_step(s, flight_after(s, i), wait_s);
    /* Rows on servers change only at sync points, so those of the next step can be requested
     * now. */
    bool same = s->tables->plan.mode == TABLE_GEO && is_local(s) && !s->tables->sync_point;
    if (last && same && !flight_after(s, 1)->requested) request_rows(s, flight_after(s, 1));
    return OK;
}

static void release(void *user)
{
    TableStream *s = user;
    s->inner.release(s->inner.user);
}

int tables_micros_out(const TablesPlan *plan)
{
    return (1 + table_steps_ahead(plan->staleness)) * plan->micros + 1;
}

BatchSource tables_source(Tables *t, const BatchSource *inner)
{
    t->training.inner = *inner;
    return (BatchSource){.user = &t->training, .next = next, .release = release};
}

/* Messages in progress arrive, since all ranks have sent theirs. */
void tables_forget(Tables *t)
{
    TableStream *s = &t->training;
    if (!is_local(s)) command_servers(t, (Command){.kind = COMMAND_FORGET});
    for (int i = 0; i < s->flights && is_local(s); ++i)
        if (s->flight[i].requested) wait_rows(s, &s->flight[i]);
    stream_settle(s);
    s->pending = 0;
    for (int i = 0; i < s->flights; ++i) {
        s->flight[i].taken = s->flight[i].requested = false;
        mem_free(&s->flight[i].why);
    }
    s->handed_out = t->plan.micros;
}

BatchSource tables_evaluation(Tables *t, const BatchSource *inner)
{
    if (!t->evaluation.tables) stream_init(t, &t->evaluation, false);
    t->evaluation.inner = *inner;
    t->evaluation.handed_out = t->plan.micros;
    return (BatchSource){.user = &t->evaluation, .next = next, .release = release};
}

/* ---- gradients ---- */

void tables_reduce(Tables *t)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    if (is_local(s)) {
        for (int b = 0; b < t->bags; ++b) lookup_join(&f->look[b]);
        return;
    }
    command_servers(t, command_for(s, COMMAND_GRADIENTS, f));
    stream_gradients(s, f);
}

void tables_grad_squares(Tables *t, double *out)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    double *square = mem_new((size_t)t->stores * sizeof *square);
    command_servers(t, command_for(s, COMMAND_SQUARES, f));
    stream_squares(s, f, square);
    for (int i = 0; i < t->plan.graph->table_count; ++i) {
        int store = tables_store(t, i);
        out[i] = store < 0 ? 0 : square[store];
    }
    mem_free(&square);
}

void tables_update(Tables *t, double lr, double grad_scale)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    if (is_local(s)) {
        geo_update(t, f, lr, grad_scale);
        return;
    }
    f->lr = lr;
    f->grad_scale = grad_scale;
    if (s->pending++ == 0) s->oldest = s->now;
    if (t->plan.staleness == 0) update_oldest(s);
}

void tables_set_sync_point(Tables *t, bool at_sync_point)
{
    t->sync_point = at_sync_point;
}

void tables_apply_deferred(Tables *t)
{
    while (t->training.pending > 0) update_oldest(&t->training);
}
