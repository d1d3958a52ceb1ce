/* Handles the steps in flight, and their messages in modes sync and stale and in the evaluations of
 * all modes. Workers and owners call the same functions in the same order, so all ranks begin the
 * same exchanges. A function waits for an exchange when it needs its data, or when a later step
 * needs the memory. */
#include "tables.h"

#include <string.h>

/* ---- set-up ---- */

static void flight_init(Tables *t, Flight *f, bool gradients)
{
    const TablesPlan *p = &t->plan;
    size_t micro_batches = (size_t)p->micro_batches, bags = (size_t)t->bags;
    *f = (Flight){0};
    if (t->is_worker) {
        f->batch = mem_new(micro_batches * sizeof *f->batch);
        f->bag_input = mem_new(micro_batches * (size_t)p->graph->bag_count * sizeof *f->bag_input);
        f->look = mem_new(bags * sizeof *f->look);
    }
    if (t->is_owner) f->owner = mem_new(bags * sizeof *f->owner);
    for (int b = 0; b < t->bags; ++b) {
        const Bag *bag = &t->bag[b];
        if (t->is_worker)
            lookup_init(&f->look[b], bag, t->owners, p->micro_batches, p->micro_batch, p->id_most,
                        gradients);
        if (!t->is_owner) continue;
        owner_init(&f->owner[b], bag, &t->store[t->first_store[b]], p->seed, t->workers,
                   t->is_worker ? p->world->rank : -1);
        f->owner[b].limit_bytes = p->limit_bytes;
        f->owner[b].rows_bytes = tables_bytes;
        f->owner[b].user = t;
    }
}

static void flight_fini(const Tables *t, Flight *f)
{
    for (int b = 0; b < t->bags; ++b) {
        if (f->look) lookup_fini(&f->look[b]);
        if (f->owner) owner_fini(&f->owner[b]);
    }
    mem_free(&f->batch);
    mem_free(&f->bag_input);
    mem_free(&f->look);
    mem_free(&f->owner);
    mem_free(&f->error);
}

int table_steps_ahead(int staleness)
{
    return staleness > 0 ? 2 : 1;
}

/* The steps in memory are the current one, the steps whose ids are sent ahead, and the steps with
 * deferred updates. */
int table_steps_in_memory(int staleness)
{
    return 1 + table_steps_ahead(staleness) + staleness;
}

void stream_init(Tables *t, TableStream *s, bool gradients)
{
    const World *world = t->plan.world;
    /* A server sleeps while it waits for messages; a worker polls. */
    bool sleeps = !t->is_worker;
    size_t bags = (size_t)t->bags;
    *s = (TableStream){.tables = t,
                       .flights = gradients ? table_steps_in_memory(t->plan.staleness) : 1,
                       .ahead = gradients ? table_steps_ahead(t->plan.staleness) : 0,
                       .handed_out = t->plan.micro_batches,
                       .ids = world_sparse_new(world, sleeps),
                       .rows = mem_new(bags * sizeof *s->rows),
                       .gradients = mem_new(bags * sizeof *s->gradients),
                       .to = mem_new((size_t)world->size * sizeof *s->to),
                       .from = mem_new((size_t)world->size * sizeof *s->from)};
    s->flight = mem_new((size_t)s->flights * sizeof *s->flight);
    for (int i = 0; i < s->flights; ++i) flight_init(t, &s->flight[i], gradients);
    for (int b = 0; b < t->bags; ++b) {
        s->rows[b] = world_alltoall_new(world, sleeps);
        s->gradients[b] = world_alltoall_new(world, sleeps);
    }
}

void stream_fini(TableStream *s)
{
    if (!s->tables) return;
    for (int i = 0; i < s->flights; ++i) flight_fini(s->tables, &s->flight[i]);
    for (int b = 0; b < s->tables->bags; ++b) {
        world_alltoall_free(&s->rows[b]);
        world_alltoall_free(&s->gradients[b]);
    }
    world_sparse_free(&s->ids);
    mem_free(&s->out);
    mem_free(&s->rows);
    mem_free(&s->gradients);
    mem_free(&s->flight);
    mem_free(&s->to);
    mem_free(&s->from);
}

/* ---- messages ---- */

static void exchange_clear(TableStream *s)
{
    size_t ranks = (size_t)s->tables->plan.world->size;
    memset(s->to, 0, ranks * sizeof *s->to);
    memset(s->from, 0, ranks * sizeof *s->from);
}

/* Returns the part of an array, indexed by place, that belongs to owner o. id_bytes: bytes of the
 * array for each id. */
static MemoryRange slice(const Lookup *look, int o, void *array, size_t id_bytes)
{
    size_t first = (size_t)look->begin[o], end = (size_t)look->begin[o + 1];
    return (MemoryRange){(char *)array + first * id_bytes, (end - first) * id_bytes};
}

/* Writes the message of ids for owner o to `to`: the numbers of ids for all tables, bag by bag,
 * then the ids, bag by bag. Returns the end of the message. */
static char *pack_ids(const Tables *t, const Flight *f, int o, char *to)
{
    for (int b = 0; b < t->bags; ++b) {
        size_t tables = (size_t)t->bag[b].tables, bytes = tables * sizeof(int32_t);
        memcpy(to, f->look[b].count + (size_t)o * tables, bytes);
        to += bytes;
    }
    for (int b = 0; b < t->bags; ++b) {
        const Lookup *look = &f->look[b];
        MemoryRange ids = slice(look, o, look->id, sizeof *look->id);
        memcpy(to, ids.at, ids.bytes);
        to += ids.bytes;
    }
    return to;
}

/* Fills s->to with a message of ids for each owner, other than this rank, that has rows of the
 * step. */
static void pack_id_messages(TableStream *s, const Flight *f)
{
    const Tables *t = s->tables;
    const size_t counts = (size_t)t->stores * sizeof(int32_t);
    size_t room = (size_t)t->owners * counts + 1;
    for (int b = 0; b < t->bags; ++b) room += (size_t)f->look[b].numbers.count * sizeof(uint64_t);
    if (room > s->out_room) {
        s->out_room = room + room / 4;
        s->out = mem_resize(s->out, s->out_room);
    }
    char *message = s->out;
    for (int o = 0; o < t->owners; ++o) {
        int32_t ids = 0;
        for (int b = 0; b < t->bags; ++b) ids += f->look[b].begin[o + 1] - f->look[b].begin[o];
        if (ids == 0 || t->first_owner + o == t->plan.world->rank) continue;
        char *end = pack_ids(t, f, o, message);
        s->to[t->first_owner + o] = (MemoryRange){message, (size_t)(end - message)};
        message = end;
    }
}

/* Copies the numbers of ids of bag b from the messages of all workers to the owner's requests.
 * from: message of each rank, [ranks of world]. */
static void copy_counts(const TableStream *s, const Flight *f, int b, const MemoryRange *from)
{
    const Tables *t = s->tables;
    const size_t tables = (size_t)t->bag[b].tables, bytes = tables * sizeof(int32_t);
    for (int a = 0; a < t->workers; ++a) {
        int32_t *count = f->owner[b].request[a].count;
        if (t->is_worker && a == t->plan.world->rank)
            memcpy(count, f->look[b].count + (size_t)a * tables, bytes);
        else if (from[a].bytes > 0)
            memcpy(count, (char *)from[a].at + (size_t)t->first_store[b] * sizeof *count, bytes);
        else
            memset(count, 0, bytes);
    }
}

/* Waits for the exchange of ids that is in progress. Owners then store the ids in their
 * requests. */
static void wait_for_ids(TableStream *s)
{
    const Tables *t = s->tables;
    const Flight *f = s->ids_of;
    s->ids_of = NULL;
    if (!f) return;
    const MemoryRange *from = world_sparse_wait(s->ids);
    for (int b = 0; b < t->bags && f->owner; ++b) {
        copy_counts(s, f, b, from);
        owner_place_requests(&f->owner[b], f->look ? &f->look[b] : NULL);
    }
    for (int a = 0; a < t->workers && f->owner; ++a) {
        if (from[a].bytes == 0) continue;
        const char *id = (char *)from[a].at + (size_t)t->stores * sizeof(int32_t);
        for (int b = 0; b < t->bags; ++b) {
            const OwnerRequest *request = &f->owner[b].request[a];
            size_t bytes = (size_t)request->ids * sizeof *request->id;
            memcpy(request->id, id, bytes);
            id += bytes;
        }
    }
}

void stream_wait_rows(TableStream *s)
{
    for (int b = 0; b < s->tables->bags; ++b) world_alltoall_wait(s->rows[b]);
    s->rows_of = NULL;
}

/* Waits for the exchange of gradients that is in progress. Owners then add the gradients. */
static void wait_for_gradients(TableStream *s)
{
    Flight *f = s->gradients_of;
    for (int b = 0; b < s->tables->bags && f; ++b) {
        world_alltoall_wait(s->gradients[b]);
        if (f->owner) owner_sum_gradients(&f->owner[b]);
    }
    s->gradients_of = NULL;
}

/* Begins to send the ids of a step; stream_rows waits for them. First waits for exchanges that use
 * the same memory. */
void stream_ids(TableStream *s, Flight *f)
{
    wait_for_ids(s);
    if (s->rows_of == f) stream_wait_rows(s);
    if (s->gradients_of == f) wait_for_gradients(s);
    exchange_clear(s);
    if (f->look) pack_id_messages(s, f);
    s->ids_of = f;
    world_sparse_begin(s->ids, s->to);
}

/* Begins to send the rows of a step. Owners write the values of the requested rows and send them to
 * the workers. */
void stream_rows(TableStream *s, Flight *f)
{
    const Tables *t = s->tables;
    wait_for_ids(s);
    stream_wait_rows(s);
    s->rows_of = f;
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = f->look ? &f->look[b] : NULL;
        Owner *owner = f->owner ? &f->owner[b] : NULL;
        size_t row = (size_t)t->bag[b].width * sizeof(float);
        exchange_clear(s);
        if (owner) owner_answer(owner);
        for (int a = 0; a < t->workers && owner; ++a)
            s->to[a] = (MemoryRange){owner->request[a].value, (size_t)owner->request[a].ids * row};
        for (int o = 0; o < t->owners && look; ++o)
            s->from[t->first_owner + o] = slice(look, o, look->value, row);
        world_alltoall_begin(s->rows[b], s->to, s->from);
    }
}

/* Begins to send the sums of gradients of a step from the workers to the owners. */
void stream_gradients(TableStream *s, Flight *f)
{
    const Tables *t = s->tables;
    wait_for_gradients(s);
    s->gradients_of = f;
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = f->look ? &f->look[b] : NULL;
        Owner *owner = f->owner ? &f->owner[b] : NULL;
        size_t row = (size_t)(t->bag[b].width * bag_runs(&t->bag[b])) * sizeof(float);
        exchange_clear(s);
        if (look) lookup_sum_gradients(look);
        for (int o = 0; o < t->owners && look; ++o)
            s->to[t->first_owner + o] = slice(look, o, look->sum, row);
        for (int a = 0; a < t->workers && owner; ++a)
            s->from[a] = (MemoryRange){owner->request[a].grad, (size_t)owner->request[a].ids * row};
        world_alltoall_begin(s->gradients[b], s->to, s->from);
    }
}

void stream_update(TableStream *s, Flight *f, double lr, double grad_scale)
{
    if (s->gradients_of == f) wait_for_gradients(s);
    contents_changed(s->tables);
    for (int b = 0; b < s->tables->bags && f->owner; ++b)
        owner_update(&f->owner[b], lr, grad_scale);
}

void stream_settle(TableStream *s)
{
    wait_for_ids(s);
    stream_wait_rows(s);
    wait_for_gradients(s);
}

/* Sets out[i] to the sum of squares of the gradient of store i. The owner of a shard computes the
 * sum of the shard; all ranks then add the sums of the shards in order. Collective. */
void stream_squares(TableStream *s, Flight *f, double *out)
{
    const Tables *t = s->tables;
    int64_t shards = (int64_t)t->stores * ROW_SHARDS;
    if (s->gradients_of == f) wait_for_gradients(s);
    double *shard = mem_new((size_t)shards * sizeof *shard);
    for (int b = 0; b < t->bags && f->owner; ++b)
        owner_squares(&f->owner[b], shard + (int64_t)t->first_store[b] * ROW_SHARDS);
    world_allreduce_disjoint(t->plan.world, shard, shards);
    for (int i = 0; i < t->stores; ++i) {
        out[i] = 0;
        for (int k = 0; k < ROW_SHARDS; ++k) out[i] += shard[i * ROW_SHARDS + k];
    }
    mem_free(&shard);
}
