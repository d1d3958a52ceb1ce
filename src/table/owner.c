/* Does the work of an owner in a step: finds rows, sums their gradients and updates the rows. The
 * new value of a row depends only on its old value, its id and its gradients with their ranks, so
 * rows are processed in any order. Only sums of squares over rows need an order, which is that of
 * (shard, id). */
#include "owner.h"

#include "layers.h"

#include <stdlib.h>
#include <string.h>

/* largest number of ids that owner_answer_request gives to one call of row_store_find */
enum { IDS_TOGETHER = 256 };

void owner_init(Owner *owner, const Bag *bag, TableStore *store, uint64_t seed, int ranks,
                int this_rank)
{
    *owner = (Owner){.bag = bag,
                     .store = store,
                     .seed = seed,
                     .ranks = ranks,
                     .this_rank = this_rank,
                     .request = mem_new((size_t)ranks * sizeof *owner->request)};
    for (int r = 0; r < ranks; ++r)
        owner->request[r].count = mem_new((size_t)bag->tables * sizeof *owner->request->count);
}

void owner_fini(Owner *owner)
{
    for (int r = 0; owner->request && r < owner->ranks; ++r) mem_free(&owner->request[r].count);
    mem_free(&owner->request);
    mem_free(&owner->id);
    mem_free(&owner->value);
    mem_free(&owner->grad);
    mem_free(&owner->row);
    mem_free(&owner->update);
    mem_free(&owner->next);
    mem_free(&owner->position);
    mem_free(&owner->leaf);
    if (owner->numbers.slot) id_numbers_fini(&owner->numbers);
}

/* Enlarges the arrays so that they have memory for `ids` ids and a quarter more. */
static void grow(Owner *owner, int64_t ids)
{
    size_t most = (size_t)(ids + ids / 4), width = (size_t)owner->bag->width;
    owner->room = (int64_t)most;
    owner->id = mem_resize(owner->id, most * sizeof *owner->id);
    owner->value = mem_resize(owner->value, most * width * sizeof *owner->value);
    owner->grad =
        mem_resize(owner->grad, most * width * (size_t)bag_runs(owner->bag) * sizeof *owner->grad);
    owner->row = mem_resize(owner->row, most * sizeof *owner->row);
    owner->update = mem_resize(owner->update, most * sizeof *owner->update);
    owner->next = mem_resize(owner->next, most * sizeof *owner->next);
    owner->position = mem_resize(owner->position, most * sizeof *owner->position);
    owner->leaf = mem_resize(owner->leaf, most * sizeof *owner->leaf);
    if (owner->numbers.slot) id_numbers_fini(&owner->numbers);
    id_numbers_init(&owner->numbers, (int64_t)most);
}

void owner_place_requests(Owner *owner, const Lookup *look)
{
    int64_t all = 0, at = 0, width = owner->bag->width, runs = bag_runs(owner->bag);
    for (int r = 0; r < owner->ranks; ++r) {
        OwnerRequest *p = &owner->request[r];
        p->ids = 0;
        for (int t = 0; t < owner->bag->tables; ++t) p->ids += p->count[t];
        all += p->ids;
    }
    if (all > owner->room || !owner->room) grow(owner, all + 1);
    for (int r = 0; r < owner->ranks; ++r) {
        OwnerRequest *p = &owner->request[r];
        bool mine = r == owner->this_rank;
        int64_t first = mine ? look->begin[r] * width : 0;
        p->id = mine ? look->id + look->begin[r] : owner->id + at;
        p->value = mine ? look->value + first : owner->value + at * width;
        p->grad = mine ? look->sum + first * runs : owner->grad + at * width * runs;
        p->row = owner->row + at;
        at += p->ids;
    }
}

/* ---- rows ---- */

static void initial_values(const Owner *owner, int table, uint64_t id, float *out)
{
    const TableStore *s = &owner->store[table];
    layer_row_init(s->table->init, s->table->scale, owner->seed, s->hash, id, owner->bag->width,
                   out);
}

/* Answers ids first .. first + count - 1 of a request, which are all of table t: finds their rows
 * and writes the values. An id without a row gets the initial values of its row. */
static void answer(const Owner *owner, int t, OwnerRequest *p, int64_t first, int64_t count)
{
    int64_t width = owner->bag->width;
    row_store_find(owner->store[t].rows, p->id + first, count, p->row + first);
    for (int64_t i = first; i < first + count; ++i) {
        if (p->row[i])
            memcpy(p->value + i * width, p->row[i], (size_t)width * sizeof(float));
        else
            initial_values(owner, t, p->id[i], p->value + i * width);
    }
}

void owner_answer_request(Owner *owner, OwnerRequest *p)
{
    int64_t at = 0;
    ++owner->requests_answered;
    owner->rows_answered += p->ids;
    for (int t = 0; t < owner->bag->tables; at += p->count[t++])
        for (int64_t i = at; i < at + p->count[t]; i += IDS_TOGETHER) {
            int64_t left = at + p->count[t] - i;
            answer(owner, t, p, i, left < IDS_TOGETHER ? left : IDS_TOGETHER);
        }
}

void owner_answer(Owner *owner)
{
    for (int r = 0; r < owner->ranks; ++r) owner_answer_request(owner, &owner->request[r]);
}

void owner_find(Owner *owner)
{
    for (int r = 0; r < owner->ranks; ++r) {
        OwnerRequest *p = &owner->request[r];
        int64_t at = 0;
        for (int t = 0; t < owner->bag->tables; at += p->count[t++])
            row_store_find(owner->store[t].rows, p->id + at, p->count[t], p->row + at);
    }
}

/* ---- sums ---- */

/* Returns the entry in owner->update, the list of rows to update, of the id with index i in a
 * request. Adds an entry if the id has none. With one rank every id is new, since the ids of a
 * request are distinct. */
static RowUpdate *row_to_update(Owner *owner, int table, const OwnerRequest *p, int64_t i)
{
    uint64_t id = p->id[i];
    int n = owner->ranks == 1 ? owner->updates
                              : id_numbers_get(&owner->numbers, table, id,
                                               row_hash(owner->store[table].hash, id));
    if (n == owner->updates) {
        ++owner->updates;
        owner->update[n] =
            (RowUpdate){.row = p->row[i], .id = id, .table = table, .first = -1, .last = -1};
    }
    return &owner->update[n];
}

/* Appends each gradient of all requests to the list of its row. */
static void list_gradients(Owner *owner)
{
    int32_t number = 0;
    int64_t floats = (int64_t)owner->bag->width * bag_runs(owner->bag);
    for (int r = 0; r < owner->ranks; ++r) {
        const OwnerRequest *p = &owner->request[r];
        int64_t at = 0;
        for (int t = 0; t < owner->bag->tables; ++t)
            for (int64_t end = at + p->count[t]; at < end; ++at, ++number) {
                RowUpdate *entry = row_to_update(owner, t, p, at);
                owner->leaf[number] = p->grad + at * floats;
                owner->position[number] = r;
                owner->next[number] = -1;
                if (entry->last >= 0) owner->next[entry->last] = number;
                if (entry->first < 0) entry->first = number;
                entry->last = number;
            }
    }
}

/* Lists the gradients of one row in the order of the tree's leaves. Writes the address of each
 * gradient to `leaf`, and the gradient's leaf number in the tree to `position`: the number in the
 * global batch of the first micro-batch of the gradient's run or, if each rank has one run, the
 * rank. Returns the number of gradients. */
static int list_sums(const Owner *owner, const RowUpdate *row, int32_t *position, float **leaf)
{
    const Bag *bag = owner->bag;
    int count = 0;
    for (int k = 0, micro = 0; k < bag_runs(bag); ++k) {
        MicroRun run = bag_runs(bag) > 1 ? deal_micro_run(bag->deal, micro, bag->micro_batches)
                                         : (MicroRun){.count = 1};
        for (int32_t n = row->first; n >= 0; n = owner->next[n]) {
            position[count] = run.first * owner->ranks + owner->position[n] * run.count;
            leaf[count++] = owner->leaf[n] + (int64_t)k * bag->width;
        }
        micro = run.first + run.count;
    }
    return count;
}

void owner_sum_gradients(Owner *owner)
{
    size_t most = (size_t)owner->ranks * (size_t)bag_runs(owner->bag);
    int32_t *position = mem_new(most * sizeof *position);
    float **leaf = mem_new(most * sizeof *leaf);
    owner->updates = 0;
    id_numbers_clear(&owner->numbers);
    list_gradients(owner);
    for (int u = 0; u < owner->updates; ++u) {
        int count = list_sums(owner, &owner->update[u], position, leaf);
        sparse_tree_sum(position, leaf, count, owner->bag->width);
        owner->update[u].grad = leaf[0];
    }
    mem_free(&position);
    mem_free(&leaf);
}

/* ---- updates ---- */

void store_add(TableStore *s, size_t limit_bytes, size_t rows_bytes, const uint64_t *id,
               int64_t count, float **row, bool *is_new)
{
    size_t others = rows_bytes - row_store_bytes(s->rows);
    if (limit_bytes) row_store_set_limit(s->rows, limit_bytes > others ? limit_bytes - others : 1);
    Status st = row_store_add(s->rows, id, count, row, is_new);
    if (st != OK)
        die_as(st, "table %s: %s: use more ranks or servers, or set model.vocab", s->table->name,
               fail_message());
}

/* Creates the rows of a table's ids that had none when they were requested. In mode stale the
 * update of another step may have created such a row since; that row is then used. */
static void make_rows(Owner *owner, int table)
{
    TableStore *s = &owner->store[table];
    size_t room = (size_t)owner->updates + 1;
    uint64_t *id = mem_new(room * sizeof *id);
    float **row = mem_new(room * sizeof *row);
    bool *is_new = mem_new(room * sizeof *is_new);
    int64_t count = 0;
    for (int u = 0; u < owner->updates; ++u)
        if (owner->update[u].table == table && !owner->update[u].row)
            id[count++] = owner->update[u].id;
    if (s->table->frozen) count = 0;
    if (count > 0)
        store_add(s, owner->limit_bytes, owner->rows_bytes ? owner->rows_bytes(owner->user) : 0, id,
                  count, row, is_new);
    count = 0;
    for (int u = 0; u < owner->updates; ++u) {
        RowUpdate *entry = &owner->update[u];
        if (entry->table != table || entry->row || s->table->frozen) continue;
        entry->row = row[count];
        if (is_new[count++]) initial_values(owner, table, entry->id, entry->row);
    }
    mem_free(&is_new);
    mem_free(&id);
    mem_free(&row);
}

void owner_add(Owner *owner, float factor)
{
    for (int t = 0; t < owner->bag->tables; ++t) make_rows(owner, t);
    for (int u = 0; u < owner->updates; ++u) {
        const RowUpdate *entry = &owner->update[u];
        if (owner->store[entry->table].table->frozen) continue;
        for (int c = 0; c < owner->bag->width; ++c) entry->row[c] += entry->grad[c] * factor;
    }
}

void store_update(const TableStore *store, float *row, const float *grad, double lr,
                  double grad_scale)
{
    const OptimRule *rule = &store->rule;
    const int width = store->table->width;
    if (store->table->frozen) return;
    OptimRowArgs args = {.w = row,
                         .state = row + width,
                         .g = grad,
                         .width = width,
                         .lr = (float)((double)(float)lr * rule->lr_ratio),
                         .grad_scale = (float)grad_scale,
                         .decay = (float)rule->constants->weight_decay};
    rule->table->row_update(rule, &args);
}

void owner_update(Owner *owner, double lr, double grad_scale)
{
    for (int t = 0; t < owner->bag->tables; ++t) make_rows(owner, t);
    for (int u = 0; u < owner->updates; ++u) {
        const RowUpdate *entry = &owner->update[u];
        store_update(&owner->store[entry->table], entry->row, entry->grad, lr, grad_scale);
    }
}

/* ---- squares of gradients ---- */

/* sum of the squares of one row's gradient */
typedef struct Square {
    int32_t table, shard;
    uint64_t id;
    double sum;
} Square;

static int by_shard_and_id(const void *a, const void *b)
{
    const Square *x = a, *y = b;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void owner_squares(const Owner *owner, double *shard)
{
    Square *square = mem_new((size_t)(owner->updates + 1) * sizeof *square);
    for (int u = 0; u < owner->updates; ++u) {
        const RowUpdate *entry = &owner->update[u];
        double sum = 0;
        for (int c = 0; c < owner->bag->width; ++c)
            sum += (double)entry->grad[c] * (double)entry->grad[c];
        uint64_t mix = row_hash(owner->store[entry->table].hash, entry->id);
        square[u] =
            (Square){.table = entry->table, .shard = row_shard(mix), .id = entry->id, .sum = sum};
    }
    qsort(square, (size_t)owner->updates, sizeof *square, by_shard_and_id);
    for (int u = 0; u < owner->updates; ++u)
        shard[(int64_t)square[u].table * ROW_SHARDS + square[u].shard] += square[u].sum;
    mem_free(&square);
}
