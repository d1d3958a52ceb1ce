/* Finds the distinct ids of a step's micro-batches in one pass. A hash table gives each distinct id
 * of the step a number, and seen[number] is the last micro-batch so far that has the id. Also sums
 * the gradients of rows over the micro-batches. */
#include "lookup.h"

#include <string.h>

static size_t values_bytes(const Lookup *look, int64_t rows)
{
    return (size_t)(rows * look->bag->width + 1) * sizeof(float);
}

void lookup_init(Lookup *look, const Bag *bag, int owners, int micro_batches, int64_t micro_batch,
                 int64_t id_most, bool gradients)
{
    int64_t most = micro_batch * id_most, all = most * micro_batches;
    size_t step = (size_t)all + 1;
    *look = (Lookup){.bag = bag,
                     .owners = owners,
                     .micro_batches = micro_batches,
                     .micro_batch = micro_batch,
                     .micro_ids = most,
                     .micro = mem_new((size_t)micro_batches * sizeof *look->micro),
                     .place = mem_new(step * sizeof *look->place),
                     .owner_of = mem_new(step * sizeof *look->owner_of),
                     .id = mem_new(step * sizeof *look->id),
                     .count = mem_new((size_t)(owners * bag->tables + 1) * sizeof *look->count),
                     .begin = mem_new((size_t)(owners + 1) * sizeof *look->begin),
                     .seen = mem_new(step * sizeof *look->seen),
                     .seen_row = mem_new(step * sizeof *look->seen_row)};
    id_numbers_init(&look->numbers, all);
    look->value = mem_pages_new(values_bytes(look, all));
    for (int i = 0; i < micro_batches; ++i) {
        LookupMicro *m = &look->micro[i];
        m->first = mem_new((size_t)(micro_batch * bag->fields + 1) * sizeof *m->first);
        m->row = mem_new((size_t)(most + 1) * sizeof *m->row);
        m->at = mem_new((size_t)(most + 1) * sizeof *m->at);
        if (gradients) m->grad = mem_pages_new(values_bytes(look, most));
    }
    if (!gradients) return;
    look->local_row = mem_new(step * sizeof *look->local_row);
    look->sum = mem_pages_new(values_bytes(look, all * bag_runs(bag)));
    look->leaf_begin = mem_new((step + 1) * sizeof *look->leaf_begin);
    look->leaf_micro = mem_new(step * sizeof *look->leaf_micro);
    look->leaf = mem_new(step * sizeof *look->leaf);
}

void lookup_fini(Lookup *look)
{
    if (!look->micro) return;
    int64_t all = look->micro_ids * look->micro_batches;
    for (int i = 0; i < look->micro_batches; ++i) {
        LookupMicro *m = &look->micro[i];
        mem_free(&m->first);
        mem_free(&m->row);
        mem_free(&m->at);
        if (m->grad) mem_pages_free(m->grad, values_bytes(look, look->micro_ids));
    }
    mem_pages_free(look->value, values_bytes(look, all));
    if (look->sum) mem_pages_free(look->sum, values_bytes(look, all * bag_runs(look->bag)));
    id_numbers_fini(&look->numbers);
    mem_free(&look->micro);
    mem_free(&look->place);
    mem_free(&look->owner_of);
    mem_free(&look->id);
    mem_free(&look->count);
    mem_free(&look->begin);
    mem_free(&look->seen);
    mem_free(&look->seen_row);
    mem_free(&look->local_row);
    mem_free(&look->leaf_begin);
    mem_free(&look->leaf_micro);
    mem_free(&look->leaf);
}

/* Returns the id of the row that an id of the data selects. It is the same id or, in a hashed
 * table, a hash of the id below the number of rows. Ends the job if the id is out of range. */
static uint64_t row_id(const Bag *bag, int table, uint64_t id)
{
    const SparseTable *t = &bag->table[table];
    if (!t->hashed && t->rows && id >= t->rows)
        die_as(ERR_DATA,
               "table %s: id %llu is out of range, its ids are below %llu: raise vocab, or set "
               "hashed: true",
               t->name, (unsigned long long)id, (unsigned long long)t->rows);
    if (!t->hashed) return id;
    return row_hash(bag->hash[table], id) % t->rows;
}

/* Adds one id of the data to micro-batch i, and returns the index of its row there. */
static int32_t add_id(Lookup *look, int i, int table, uint64_t data_id, const int16_t *shard_owner)
{
    const Bag *bag = look->bag;
    LookupMicro *m = &look->micro[i];
    uint64_t id = row_id(bag, table, data_id), mix = row_hash(bag->hash[table], id);
    int count = look->numbers.count;
    int32_t n = id_numbers_get(&look->numbers, table, id, mix);
    if (n == count) {
        look->owner_of[n] = shard_owner[row_shard(mix)];
        look->seen[n] = -1;
        ++look->count[look->owner_of[n] * bag->tables + table];
    }
    if (look->seen[n] != i) {
        look->seen[n] = i;
        look->seen_row[n] = m->rows;
        m->at[m->rows++] = n;
    }
    return look->seen_row[n];
}

static void add_micro(Lookup *look, int i, const MicroBatch *b, int fields,
                      const int16_t *shard_owner)
{
    const Bag *bag = look->bag;
    LookupMicro *m = &look->micro[i];
    int32_t count = 0, *first = m->first;
    m->rows = 0;
    for (int64_t n = 0; n < b->rows; ++n)
        for (int f = 0; f < bag->fields; ++f) {
            *first++ = count;
            if (!b->ids) continue;
            const int32_t *at = &b->id_first[n * fields + bag->first_field + f];
            int table = bag->tables > 1 ? f : 0;
            for (int32_t k = at[0]; k < at[1]; ++k)
                m->row[count++] = add_id(look, i, table, b->ids[k], shard_owner);
        }
    *first = count;
}

void lookup_find_ids(Lookup *look, const MicroBatch *batch, int fields, const int16_t *shard_owner)
{
    const Bag *bag = look->bag;
    int slices = look->owners * bag->tables;
    id_numbers_clear(&look->numbers);
    memset(look->count, 0, (size_t)slices * sizeof *look->count);
    for (int i = 0; i < look->micro_batches; ++i)
        add_micro(look, i, &batch[i], fields, shard_owner);
    int32_t *next = mem_new((size_t)(slices + 1) * sizeof *next);
    for (int s = 0; s < slices; ++s) next[s + 1] = next[s] + look->count[s];
    for (int r = 0; r <= look->owners; ++r) look->begin[r] = next[r * bag->tables];
    for (int n = 0; n < look->numbers.count; ++n) {
        int32_t at = next[look->owner_of[n] * bag->tables + look->numbers.table[n]]++;
        look->place[n] = at;
        look->id[at] = look->numbers.id[n];
    }
    mem_free(&next);
    for (int i = 0; i < look->micro_batches; ++i) {
        LookupMicro *m = &look->micro[i];
        for (int r = 0; r < m->rows; ++r) m->at[r] = look->place[m->at[r]];
    }
}

BagInput lookup_bag_input(const Lookup *look, int i)
{
    const LookupMicro *m = &look->micro[i];
    return (BagInput){.first = m->first,
                      .row = m->row,
                      .rows = m->rows,
                      .value = look->value,
                      .at = m->at,
                      .grad = m->grad};
}

/* Sorts the gradients by (place, micro-batch). */
static void sort_gradients(Lookup *look)
{
    int rows = look->numbers.count;
    int32_t *begin = look->leaf_begin;
    memset(begin, 0, (size_t)(rows + 2) * sizeof *begin);
    for (int i = 0; i < look->micro_batches; ++i)
        for (int r = 0; r < look->micro[i].rows; ++r) ++begin[look->micro[i].at[r] + 2];
    for (int p = 0; p < rows; ++p) begin[p + 2] += begin[p + 1];
    for (int i = 0; i < look->micro_batches; ++i) {
        const LookupMicro *m = &look->micro[i];
        for (int r = 0; r < m->rows; ++r) {
            int32_t at = begin[m->at[r] + 1]++;
            look->leaf_micro[at] = i;
            look->leaf[at] = m->grad + (int64_t)r * look->bag->width;
        }
    }
}

/* Adds one row's gradients in one run of micro-batches, and writes the sum to `sum`. at: index in
 * look->leaf of the row's first gradient in this run or a later one; end: index after the row's
 * last gradient. If the run has no gradient, the sum is -0, since adding -0 changes no bits.
 * Returns the index of the first gradient after the run. */
static int32_t sum_run(Lookup *look, MicroRun run, int32_t at, int32_t end, float *sum)
{
    int width = look->bag->width;
    int32_t first = at;
    for (; at < end && look->leaf_micro[at] < run.first + run.count; ++at)
        look->leaf_micro[at] -= run.first;
    sparse_tree_sum(look->leaf_micro + first, look->leaf + first, at - first, width);
    for (int c = 0; c < width; ++c) sum[c] = at > first ? look->leaf[first][c] : -0.0f;
    return at;
}

void lookup_sum_gradients(Lookup *look)
{
    float *sum = look->sum;
    sort_gradients(look);
    for (int p = 0; p < look->numbers.count; ++p) {
        int32_t at = look->leaf_begin[p], end = look->leaf_begin[p + 1];
        for (int micro = 0; micro < look->micro_batches; sum += look->bag->width) {
            MicroRun run = deal_micro_run(look->bag->deal, micro, look->micro_batches);
            at = sum_run(look, run, at, end, sum);
            micro = run.first + run.count;
        }
    }
}

/* Assumes that an owner receives as many ids as a worker sends. */
size_t tables_buffer_bytes(int width, int64_t ids, int staleness, int runs)
{
    const size_t arrays = 8 * sizeof(int32_t) + 2 * sizeof(uint64_t) + 2 * sizeof(float *),
                 id_numbers = sizeof(uint64_t) + 4 * sizeof(int32_t),
                 row = (size_t)width * sizeof(float);
    /* step, evaluation, owner: bytes for one id in a step's flight, in an evaluation, and at the
     * owner */
    size_t step = arrays + id_numbers + (2 + (size_t)runs) * row,
           evaluation = arrays + id_numbers + row;
    /* ids with their numbers, rows and gradients, and the messages of ids to and from the owner */
    size_t owner = 8 * sizeof(uint64_t) + sizeof(float *) + (1 + (size_t)runs) * row;
    return (size_t)ids * ((size_t)table_steps_in_memory(staleness) * step + evaluation + owner);
}
