/* Sets up a rank's sparse tables, and does a worker's part of one step, from the first micro-batch
 * to the update. In modes sync and stale a step consists of the following calls (geo.c and async.c
 * describe the other modes). `next` is the function of the source that returns a micro-batch;
 * reduce and update are tables_reduce and tables_update:
 *
 *     first next    rows of the step's ids <── owners; the ids were sent in the step before
 *     last next     distinct ids of the next step's micro-batches ──> owners
 *     backward      a gradient for each row of each micro-batch
 *     reduce        sums over the micro-batches ──> owners, which add those of all workers
 *     update        owners update rows, and create new ones
 *
 * In mode stale an update is made some steps later, and ids are sent two steps ahead, so that no
 * rank waits for messages. During step t owners add the gradients of step t - 1, make the update of
 * step t - staleness, and answer the requests of step t + 1.
 *
 * Owners are either all ranks or the servers. Servers carry out each line above when rank 0 sends
 * the command for it. The thread that computes also sends the messages, with MPI. */
#include "tables.h"

#include <string.h>

/* ---- set-up ---- */

static void store_init(Tables *t, TableStore *s, const SparseTable *table, const OptimRule *rule)
{
    *s = (TableStore){.table = table, .rule = *rule, .hash = hash_text(table->name)};
    s->state = rule->table->row_state(rule->constants, table->width);
    s->floats = table->width;
    for (int i = 0; i < s->state.slots; ++i) s->floats += s->state.floats[i];
    if (t->is_owner) s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
}

/* Adds a bag. Its tables are `table` and the tables after it that belong to the same node. count:
 * number of tables from `table` on. */
static void bag_init(Tables *t, const SparseTable *table, int count)
{
    Bag *bag = &t->bag[t->bags];
    *bag = (Bag){.width = table->width,
                 .table = table,
                 .deal = t->plan.deal,
                 .micro_batches = t->plan.micro_batches};
    while (bag->tables < count && table[bag->tables].node == table->node) ++bag->tables;
    if (t->is_worker) {
        const OpSpec *spec = &t->plan.graph->node[table->node].spec;
        bag->number = spec->bag;
        bag->first_field = spec->bag_first;
        bag->fields = spec->bag_fields;
        bag->first_table = (int)(table - t->plan.graph->table);
    }
    bag->hash = mem_new((size_t)bag->tables * sizeof *bag->hash);
    t->first_store[t->bags++] = t->stores;
    for (int i = 0; i < bag->tables; ++i) {
        int rule = t->is_worker ? bag->first_table + i : t->stores;
        bag->hash[i] = hash_text(table[i].name);
        store_init(t, &t->store[t->stores++], &table[i], &t->plan.rule[rule]);
    }
}

size_t tables_bytes(const void *user)
{
    const Tables *t = user;
    size_t bytes = 0;
    for (int i = 0; i < t->stores; ++i) bytes += row_store_bytes(t->store[i].rows);
    return bytes;
}

void tables_init(Tables *t, const SparseTable *table, int count)
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
    t->first_store = mem_new(room * sizeof *t->first_store);
    t->shard_rows = mem_new(room * ROW_SHARDS * sizeof *t->shard_rows);
    for (int s = 0; s < ROW_SHARDS; ++s) t->shard_owner[s] = (int16_t)table_owner(s, t->owners);
    for (int i = 0; i < count; i += t->bag[t->bags - 1].tables) bag_init(t, table + i, count - i);
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
    mem_free(&t->first_store);
}

int tables_store(const Tables *t, int table)
{
    for (int b = 0; t && b < t->bags; ++b) {
        int index = table - t->bag[b].first_table;
        if (index >= 0 && index < t->bag[b].tables) return t->first_store[b] + index;
    }
    return -1;
}

/* ---- micro-batches ---- */

void command_servers(const Tables *t, Command what)
{
    const World *world = t->plan.world;
    if (t->plan.servers == 0 || world->rank > 0) return;
    for (int o = 0; o < t->owners; ++o)
        /* In mode async commands are control messages, which the order of requests leaves out. They
         * overtake no request, since rank 0 sends them only after the owners have carried out all
         * requests. */
        if (t->plan.mode == UPDATE_ASYNC)
            world_send_control(world, t->first_owner + o, &what, sizeof what);
        else
            world_send(world, t->first_owner + o, &what, sizeof what);
}

static Command command_for(const TableStream *s, CommandKind kind, const Flight *f)
{
    return (Command){
        .kind = kind, .evaluation = s == &s->tables->evaluation, .flight = (int)(f - s->flight)};
}

/* Returns whether a step of this stream needs no collective exchange with the owners. */
static bool is_local(const TableStream *s)
{
    return update_mode_is_local(s->tables->plan.mode) && s == &s->tables->training;
}

/* Fetches all micro-batches of a step from the source, finds their ids and begins to send the ids.
 * An error is stored in the flight, and begin_step returns it later, so that the previous step ends
 * as usual. The messages of the step with the error then have no ids. */
static void load_step(TableStream *s, Flight *f, double *wait_s)
{
    Tables *t = s->tables;
    int micro_batches = t->plan.micro_batches, bags = t->plan.graph->bag_count;
    f->loaded = true;
    f->status = OK;
    for (int i = 0; i < micro_batches && f->status == OK; ++i) {
        const MicroBatch *batch = NULL;
        f->status = s->inner.next(s->inner.user, &batch, wait_s);
        if (f->status == OK && !batch) f->status = fail(ERR_BUG, "the data ended inside a step");
        if (f->status != OK) break;
        f->batch[i] = *batch;
        f->batch[i].bag = f->bag_input + i * bags;
    }
    if (f->status != OK) {
        f->error = mem_text(fail_message());
        memset(f->batch, 0, (size_t)micro_batches * sizeof *f->batch);
    }
    for (int b = 0; b < t->bags; ++b) {
        lookup_find_ids(&f->look[b], f->batch, (int)t->plan.fields, t->shard_owner);
        for (int i = 0; i < micro_batches; ++i)
            f->bag_input[i * bags + t->bag[b].number] = lookup_bag_input(&f->look[b], i);
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
        if (t->plan.mode == UPDATE_GEO) geo_request(t, f);
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
    else if (t->plan.mode == UPDATE_GEO)
        geo_rows(t, f);
    else
        async_rows(t, f);
}

/* Makes the oldest deferred update. */
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

/* Returns the flight of the step that is `steps` after the current one. */
static Flight *flight_after(const TableStream *s, int steps)
{
    return &s->flight[(s->current + steps) % s->flights];
}

static Status begin_step(TableStream *s, double *wait_s)
{
    Tables *t = s->tables;
    s->current = (s->current + 1) % s->flights;
    Flight *f = &s->flight[s->current];
    if (!f->loaded) load_step(s, f, wait_s);
    f->loaded = false;
    s->handed_out = 0;
    if (f->status != OK) return fail(f->status, "%s", f->error);
    if (!f->requested) request_rows(s, f);
    f->requested = false;
    wait_rows(s, f);
    if (t->plan.staleness == 0 || s != &t->training || t->sync_point) return OK;
    /* Mode stale, at the beginning of step t. Step t + 1 reads rows after the update of step t -
     * staleness. So this update is made now, and then the rows of step t + 1 are requested, which
     * arrive while step t is computed. */
    Flight *ahead = flight_after(s, 1);
    if (s->pending == t->plan.staleness) update_oldest(s);
    if (!ahead->loaded) load_step(s, ahead, wait_s);
    request_rows(s, ahead);
    return OK;
}

static Status next(void *user, const MicroBatch **batch, double *wait_s)
{
    TableStream *s = user;
    if (s->handed_out == s->tables->plan.micro_batches) TRY(begin_step(s, wait_s));
    *batch = &s->flight[s->current].batch[s->handed_out++];
    bool last = s->handed_out == s->tables->plan.micro_batches;
    for (int i = 1; i <= s->ahead && last; ++i)
        if (!flight_after(s, i)->loaded) load_step(s, flight_after(s, i), wait_s);
    /* Mode geo: rows on servers change only at sync points, so the rows of the next step can be
     * requested now. */
    bool unchanged = s->tables->plan.mode == UPDATE_GEO && is_local(s) && !s->tables->sync_point;
    if (last && unchanged && !flight_after(s, 1)->requested) request_rows(s, flight_after(s, 1));
    return OK;
}

static void release(void *user)
{
    TableStream *s = user;
    s->inner.release(s->inner.user);
}

int tables_micro_batches_out(const TablesPlan *plan)
{
    return (1 + table_steps_ahead(plan->staleness)) * plan->micro_batches + 1;
}

BatchSource tables_source(Tables *t, const BatchSource *inner)
{
    t->training.inner = *inner;
    return (BatchSource){.user = &t->training, .next = next, .release = release};
}

/* Every rank has begun the same exchanges, so waiting for all messages in progress ends. */
void tables_forget(Tables *t)
{
    TableStream *s = &t->training;
    if (!is_local(s)) command_servers(t, (Command){.kind = COMMAND_FORGET});
    for (int i = 0; i < s->flights && is_local(s); ++i)
        if (s->flight[i].requested) wait_rows(s, &s->flight[i]);
    stream_settle(s);
    s->pending = 0;
    for (int i = 0; i < s->flights; ++i) {
        s->flight[i].loaded = s->flight[i].requested = false;
        mem_free(&s->flight[i].error);
    }
    s->handed_out = t->plan.micro_batches;
}

BatchSource tables_evaluation(Tables *t, const BatchSource *inner)
{
    if (!t->evaluation.tables) stream_init(t, &t->evaluation, false);
    t->evaluation.inner = *inner;
    t->evaluation.handed_out = t->plan.micro_batches;
    return (BatchSource){.user = &t->evaluation, .next = next, .release = release};
}

/* ---- gradients ---- */

void tables_reduce(Tables *t)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->current];
    if (is_local(s)) {
        for (int b = 0; b < t->bags; ++b) lookup_sum_gradients(&f->look[b]);
        return;
    }
    command_servers(t, command_for(s, COMMAND_GRADIENTS, f));
    stream_gradients(s, f);
}

void tables_grad_squares(Tables *t, double *out)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->current];
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
    Flight *f = &s->flight[s->current];
    if (is_local(s)) {
        geo_update(t, f, lr, grad_scale);
        return;
    }
    f->lr = lr;
    f->grad_scale = grad_scale;
    if (s->pending++ == 0) s->oldest = s->current;
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
