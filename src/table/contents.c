/* What is in the tables, for checkpoints and reports. */
#include "tables.h"

#include <stdlib.h>
#include <string.h>

TableStore *tables_store(const Tables *t, int table)
{
    for (int b = 0; t && b < t->bags; ++b) {
        int own = table - t->bag[b].table;
        if (own >= 0 && own < t->bag[b].tables) return &t->store[t->first[b] + own];
    }
    return NULL;
}

int64_t tables_rows(const Tables *t, int table)
{
    const TableStore *s = tables_store(t, table);
    return s ? row_store_count(s->rows) : 0;
}

size_t tables_bytes(const Tables *t)
{
    size_t bytes = 0;
    for (int i = 0; i < t->stores; ++i) bytes += row_store_bytes(t->store[i].rows);
    return bytes;
}

void tables_clear(Tables *t)
{
    for (int i = 0; i < t->stores; ++i) {
        TableStore *s = &t->store[i];
        row_store_free(&s->rows);
        s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
    }
}

bool tables_owns(const Tables *t, int table, int shard)
{
    return tables_store(t, table) && t->owner[shard] == t->plan.world->rank;
}

int tables_floats(const Tables *t, int table)
{
    return tables_store(t, table)->floats;
}

RowState tables_state(const Tables *t, int table)
{
    return tables_store(t, table)->state;
}

typedef struct Entry {
    uint64_t id;
    const float *row;
} Entry;

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const Entry *)a)->id, y = ((const Entry *)b)->id;
    return x < y ? -1 : x > y;
}

/* Into their shards first, then each shard by id. */
static void sort_rows(const TableStore *s, const int64_t *first, Entry *entry)
{
    int64_t *next = mem_new(ROW_SHARDS * sizeof *next), place = 0;
    uint64_t id;
    memcpy(next, first, ROW_SHARDS * sizeof *next);
    for (const float *row; (row = row_store_next(s->rows, &place, &id));)
        entry[next[row_shard(row_mix(s->hash, id))]++] = (Entry){id, row};
    for (int k = 0; k < ROW_SHARDS; ++k)
        qsort(entry + first[k], (size_t)(first[k + 1] - first[k]), sizeof *entry, by_id);
    mem_free(&next);
}

void tables_list(const Tables *t, int table, TableRows *rows)
{
    const TableStore *s = tables_store(t, table);
    *rows = (TableRows){0};
    if (!s) return;
    int64_t count = row_store_count(s->rows), place = 0;
    uint64_t id;
    while (row_store_next(s->rows, &place, &id)) ++rows->first[row_shard(row_mix(s->hash, id)) + 1];
    for (int k = 0; k < ROW_SHARDS; ++k) rows->first[k + 1] += rows->first[k];
    Entry *entry = mem_new((size_t)(count + 1) * sizeof *entry);
    sort_rows(s, rows->first, entry);
    rows->id = mem_new((size_t)(count + 1) * sizeof *rows->id);
    rows->row = mem_new((size_t)(count + 1) * sizeof *rows->row);
    for (int64_t i = 0; i < count; ++i) {
        rows->id[i] = entry[i].id;
        rows->row[i] = entry[i].row;
    }
    mem_free(&entry);
}

void table_rows_fini(TableRows *rows)
{
    mem_free(&rows->id);
    mem_free(&rows->row);
}

Status tables_put(Tables *t, int table, const uint64_t *id, int64_t count, float **row)
{
    return row_store_add(tables_store(t, table)->rows, id, count, row, NULL);
}
