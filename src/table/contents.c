/* Gives access to all rows, for checkpoints and reports: removes, counts and stores rows, collects
 * them in sorted order, and gathers the owners' reports. */
#include "tables.h"

#include <stdlib.h>
#include <string.h>

bool tables_is_used(const Tables *t, int table)
{
    return tables_store(t, table) >= 0;
}

int tables_floats(const Tables *t, int table)
{
    return t->store[tables_store(t, table)].floats;
}

void contents_clear(Tables *t)
{
    for (int i = 0; i < t->stores && t->is_owner; ++i) {
        TableStore *s = &t->store[i];
        row_store_free(&s->rows);
        s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
    }
    contents_changed(t);
}

void tables_clear(Tables *t)
{
    command_servers(t, (Command){.kind = COMMAND_CLEAR});
    contents_clear(t);
}

/* ---- counting and collecting rows ---- */

typedef struct Entry {
    uint64_t id;
    const float *row;
} Entry;

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const Entry *)a)->id, y = ((const Entry *)b)->id;
    return x < y ? -1 : x > y;
}

/* Writes the ids and rows of a store to `entry`, sorted by (shard, id). first: index of each
 * shard's first entry, [ROW_SHARDS + 1]. */
static void sort_rows(const TableStore *s, const int64_t *first, Entry *entry)
{
    int64_t *next = mem_new(ROW_SHARDS * sizeof *next), place = 0;
    uint64_t id;
    memcpy(next, first, ROW_SHARDS * sizeof *next);
    for (const float *row; (row = row_store_next(s->rows, &place, &id));)
        entry[next[row_shard(row_hash(s->hash, id))]++] = (Entry){id, row};
    for (int k = 0; k < ROW_SHARDS; ++k)
        qsort(entry + first[k], (size_t)(first[k + 1] - first[k]), sizeof *entry, by_id);
    mem_free(&next);
}

void contents_changed(Tables *t)
{
    t->sorted_store = -1;
    mem_free(&t->sorted.id);
    mem_free(&t->sorted.row);
}

/* Fills t->sorted with the rows of store number `store`. */
static void list_rows(Tables *t, int store)
{
    const TableStore *s = &t->store[store];
    SortedRows *rows = &t->sorted;
    int64_t count = row_store_count(s->rows), place = 0;
    uint64_t id;
    memset(rows->first, 0, sizeof rows->first);
    while (row_store_next(s->rows, &place, &id))
        ++rows->first[row_shard(row_hash(s->hash, id)) + 1];
    for (int k = 0; k < ROW_SHARDS; ++k) rows->first[k + 1] += rows->first[k];
    Entry *entry = mem_new((size_t)(count + 1) * sizeof *entry);
    sort_rows(s, rows->first, entry);
    rows->id = mem_resize(rows->id, (size_t)(count + 1) * sizeof *rows->id);
    rows->row = mem_resize(rows->row, (size_t)(count + 1) * sizeof *rows->row);
    for (int64_t i = 0; i < count; ++i) {
        rows->id[i] = entry[i].id;
        rows->row[i] = entry[i].row;
    }
    mem_free(&entry);
    t->sorted_store = store;
}

/* Counts the rows of a store in each shard on all owners, writes the numbers to t->shard_rows, and
 * marks t->sorted as out of date. Collective. */
void contents_count(Tables *t, int store)
{
    int64_t *rows = t->shard_rows + store * ROW_SHARDS;
    t->sorted_store = -1;
    memset(rows, 0, ROW_SHARDS * sizeof *rows);
    if (t->is_owner) {
        const TableStore *s = &t->store[store];
        int64_t place = 0;
        uint64_t id;
        while (row_store_next(s->rows, &place, &id)) ++rows[row_shard(row_hash(s->hash, id))];
    }
    world_allreduce(t->plan.world, rows, ROW_SHARDS);
}

void tables_count(Tables *t, int table, int64_t *shard)
{
    int store = tables_store(t, table);
    command_servers(t, (Command){.kind = COMMAND_COUNT, .part = {.table = store}});
    contents_count(t, store);
    memcpy(shard, t->shard_rows + store * ROW_SHARDS, ROW_SHARDS * sizeof *shard);
}

/* Does what tables_collect does, but part.table is the index of a store. contents_count must have
 * counted its rows since they last changed. Collective. */
void contents_collect(Tables *t, TablePart part, int root, void *out)
{
    const World *world = t->plan.world;
    size_t row = part.float_count ? (size_t)part.float_count * sizeof(float) : sizeof(uint64_t);
    size_t *bytes = mem_new((size_t)world->size * sizeof *bytes);
    const int64_t *rows = t->shard_rows + part.table * ROW_SHARDS;
    for (int k = part.first; k < part.end; ++k)
        bytes[t->first_owner + t->shard_owner[k]] += (size_t)rows[k] * row;
    char *mine = mem_new(bytes[world->rank] + 1), *to = mine;
    if (t->is_owner && t->sorted_store != part.table) list_rows(t, part.table);
    const SortedRows *s = &t->sorted;
    for (int64_t i = s->first[part.first]; t->is_owner && i < s->first[part.end]; ++i, to += row)
        memcpy(to, part.float_count ? (const void *)(s->row[i] + part.float_first) : &s->id[i],
               row);
    world_collect(world, mine, bytes, root, out);
    mem_free(&mine);
    mem_free(&bytes);
}

void tables_collect(Tables *t, TablePart part, int root, void *out)
{
    part.table = tables_store(t, part.table);
    command_servers(t, (Command){.kind = COMMAND_COLLECT, .root = root, .part = part});
    contents_collect(t, part, root, out);
}

/* ---- storing rows ---- */

/* Header of a message. Two messages follow, with `count` ids and with their rows. If count is -1,
 * none follow, and this worker sends no more rows. */
typedef struct PutHead {
    int32_t store;
    int64_t count;
} PutHead;

static void put(Tables *t, int store, const uint64_t *id, const float *row, int64_t count)
{
    TableStore *s = &t->store[store];
    float **at = mem_new((size_t)(count + 1) * sizeof *at);
    store_add(s, t->plan.limit_bytes, tables_bytes(t), id, count, at, NULL);
    for (int64_t i = 0; i < count; ++i)
        memcpy(at[i], row + i * s->floats, (size_t)s->floats * sizeof *row);
    mem_free(&at);
}

/* On a server, stores the rows that workers send, until all workers have called tables_put_end. */
void contents_put(Tables *t)
{
    const World *world = t->plan.world;
    for (int ended = 0; ended < t->workers;) {
        PutHead head;
        int from = world_receive(world, -1, &head, sizeof head);
        if (head.count < 0) {
            ++ended;
            continue;
        }
        size_t count = (size_t)head.count, floats = (size_t)t->store[head.store].floats;
        uint64_t *id = mem_new(count * sizeof *id);
        float *row = mem_new(count * floats * sizeof *row);
        (void)world_receive(world, from, id, count * sizeof *id);
        (void)world_receive(world, from, row, count * floats * sizeof *row);
        put(t, head.store, id, row, head.count);
        mem_free(&id);
        mem_free(&row);
    }
    world_barrier(world);
}

void tables_put_begin(Tables *t)
{
    command_servers(t, (Command){.kind = COMMAND_PUT});
}

/* Stores rows of one owner. Without servers they are rows of this rank, and go to its own stores;
 * with servers they are sent to the owner. */
static void put_to(Tables *t, int owner, int store, const uint64_t *id, const float *row,
                   int64_t count)
{
    const World *world = t->plan.world;
    int rank = t->first_owner + owner;
    PutHead head = {.store = store, .count = count};
    size_t bytes = (size_t)count * (size_t)t->store[store].floats * sizeof *row;
    if (count == 0) return;
    if (t->is_owner) {
        put(t, store, id, row, count);
        return;
    }
    world_send(world, rank, &head, sizeof head);
    world_send(world, rank, id, (size_t)count * sizeof *id);
    world_send(world, rank, row, bytes);
}

void tables_put(Tables *t, int table, const uint64_t *id, const float *row, int64_t count)
{
    int store = tables_store(t, table), floats = t->store[store].floats;
    uint64_t *ids = mem_new((size_t)(count + 1) * sizeof *ids);
    float *rows = mem_new((size_t)(count * floats + 1) * sizeof *rows);
    int first = t->is_owner ? t->plan.world->rank : 0, end = t->is_owner ? first + 1 : t->owners;
    for (int o = first; o < end; ++o) {
        int64_t n = 0;
        for (int64_t i = 0; i < count; ++i) {
            if (t->shard_owner[row_shard(row_hash(t->store[store].hash, id[i]))] != o) continue;
            ids[n] = id[i];
            memcpy(rows + n++ * floats, row + i * floats, (size_t)floats * sizeof *row);
        }
        put_to(t, o, store, ids, rows, n);
    }
    mem_free(&ids);
    mem_free(&rows);
}

void tables_put_end(Tables *t)
{
    PutHead end = {.count = -1};
    for (int o = 0; o < t->owners && !t->is_owner; ++o)
        world_send(t->plan.world, t->first_owner + o, &end, sizeof end);
    if (t->plan.servers > 0) world_barrier(t->plan.world);
}

/* ---- reports ---- */

/* Gathers the reports of all ranks to report[ranks of world]. The reports of ranks that own nothing
 * have no rows. Requests of evaluations are not counted. Collective. */
void contents_report(Tables *t, OwnerReport *report)
{
    OwnerReport mine = {.up_s = clock_s() - t->begun_s, .slept_s = world_slept_s()};
    for (int i = 0; i < t->stores && t->is_owner; ++i) {
        mine.rows += row_store_count(t->store[i].rows);
        mine.bytes += row_store_bytes(t->store[i].rows);
    }
    for (int i = 0; i < t->training.flights && t->is_owner; ++i)
        for (int b = 0; b < t->bags; ++b) {
            mine.requests += t->training.flight[i].owner[b].requests_answered;
            mine.rows_requested += t->training.flight[i].owner[b].rows_answered;
        }
    world_allgather(t->plan.world, &mine, sizeof mine, report);
}

int tables_report(Tables *t, OwnerReport **report)
{
    OwnerReport *all = mem_new((size_t)t->plan.world->size * sizeof *all);
    command_servers(t, (Command){.kind = COMMAND_REPORT});
    contents_report(t, all);
    memmove(all, all + t->first_owner, (size_t)t->owners * sizeof *all);
    *report = all;
    return t->owners;
}
