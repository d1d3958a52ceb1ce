/* Implements mode geo. A period is the steps between two sync points. In a period each worker
 * updates local copies of rows. The first step that needs a row copies the server's values. At the
 * sync point each worker pushes the changes of its copies; a server adds the changes of all workers
 * in the order of a binary tree over the ranks, divides the sum by the number of workers, and adds
 * it to its row. Servers change rows only at sync points. Therefore results depend on the number of
 * workers and on the period, but not on the number of servers or on timing.
 *
 *      worker   request new rows .. step .. request .. step ..  push all changes, wait
 *      server   answers each request at once                    all have pushed: add, answer
 *
 * A step's new rows are requested during the step before, except at the start of a period. */
#include "tables.h"

#include "layers.h"

#include <string.h>

/* Changes that one worker has pushed for a bag. */
typedef struct Pushed {
    /* number of ids of all tables of the bag */
    int ids;
    /* number of ids of each table of the bag, [tables]; owned */
    int32_t *count;
    /* ids, grouped by table, [ids]; owned */
    uint64_t *id;
    /* changes, [ids][width]; owned */
    float *delta;
} Pushed;

/* A server's answer to one worker for a bag. */
typedef struct Answer {
    /* values of the rows; owned */
    float *value;
    /* number of floats allocated for `value` */
    int64_t room;
    /* the send of `value`, which may be in progress */
    WorldSend sending;
} Answer;

/* A worker's request for the ids of a bag that are new in the period. */
typedef struct RowRequest {
    /* the new ids; owned */
    uint64_t *id;
    /* place of each new id in the lookup; owned */
    int32_t *place;
    /* number of new ids for each (owner, table), [owners][tables]; owned */
    int32_t *count;
    /* index in `id` of each owner's first id, [owners + 1]; owned */
    int32_t *begin;
    /* send of `id` to each owner, which may be in progress, [owners]; owned */
    WorldSend *sending;
} RowRequest;

/* Replaces the stores of local rows by empty ones for a new period. */
static void begin_period(Tables *t)
{
    for (int i = 0; i < t->stores; ++i) {
        row_store_free(&t->local[i]);
        t->local[i] = row_store_new(t->store[i].hash, 2 * t->store[i].table->width, 0);
    }
}

void geo_init(Tables *t)
{
    /* Mode async uses t->answer, too. */
    if (!t->is_worker && update_mode_is_local(t->plan.mode))
        t->answer = mem_new((size_t)(t->workers * t->bags) * sizeof *t->answer);
    if (t->plan.mode != UPDATE_GEO) return;
    if (!t->is_worker) {
        t->pushed = mem_new((size_t)(t->workers * t->bags) * sizeof *t->pushed);
        return;
    }
    t->request = mem_new((size_t)t->bags * sizeof *t->request);
    for (int b = 0; b < t->bags; ++b) {
        const Lookup *look = &t->training.flight[0].look[b];
        size_t ids = (size_t)(look->micro_ids * look->micro_batches) + 1,
               owners = (size_t)t->owners;
        RowRequest *a = &t->request[b];
        a->place = mem_new(ids * sizeof *a->place);
        a->id = mem_new(ids * sizeof *a->id);
        a->count = mem_new(owners * (size_t)t->bag[b].tables * sizeof *a->count);
        a->begin = mem_new((owners + 1) * sizeof *a->begin);
        a->sending = mem_new(owners * sizeof *a->sending);
    }
    t->local = mem_new((size_t)t->stores * sizeof *t->local);
    begin_period(t);
}

static void pushed_clear(Tables *t)
{
    for (int i = 0; i < t->workers * t->bags; ++i) {
        mem_free(&t->pushed[i].count);
        mem_free(&t->pushed[i].id);
        mem_free(&t->pushed[i].delta);
    }
    t->pushed_by = 0;
}

void geo_fini(Tables *t)
{
    for (int i = 0; i < t->stores && t->local; ++i) row_store_free(&t->local[i]);
    for (int b = 0; b < t->bags && t->request; ++b) {
        RowRequest *a = &t->request[b];
        mem_free(&a->place);
        mem_free(&a->id);
        mem_free(&a->count);
        mem_free(&a->begin);
        mem_free(&a->sending);
    }
    for (int i = 0; i < t->workers * t->bags && t->answer; ++i) {
        world_send_wait(&t->answer[i].sending);
        mem_free(&t->answer[i].value);
    }
    if (t->pushed) pushed_clear(t);
    mem_free(&t->local);
    mem_free(&t->request);
    mem_free(&t->answer);
    mem_free(&t->pushed);
}

/* ---- worker ---- */

void send_ids_command(const Tables *t, CommandKind kind, int b, int owner, const int32_t *count,
                      const uint64_t *id, Command what, WorldSend *sending)
{
    int rank = t->first_owner + owner, tables = t->bag[b].tables;
    what.kind = kind;
    what.bag = b;
    what.ids = 0;
    for (int i = 0; i < tables; ++i) what.ids += count[i];
    world_send(t->plan.world, rank, &what, sizeof what);
    world_send(t->plan.world, rank, count, (size_t)tables * sizeof *count);
    size_t bytes = (size_t)what.ids * sizeof *id;
    if (sending)
        world_send_begin(sending, t->plan.world, rank, id, bytes);
    else
        world_send(t->plan.world, rank, id, bytes);
}

/* Finds the local row of each id of the step, or adds it. Sets row[place] to the row, and
 * is_new[place] to whether the row was added now. */
static void find_local(Tables *t, int b, const Lookup *look, float **row, bool *is_new)
{
    const Bag *bag = &t->bag[b];
    int32_t place = 0;
    for (int s = 0; s < t->owners * bag->tables; ++s) {
        int table = s % bag->tables;
        int32_t n = look->count[s];
        Status st = row_store_add(t->local[t->first_store[b] + table], look->id + place, n,
                                  row + place, is_new + place);
        if (st != OK) die_as(st, "table %s: %s", bag->table[table].name, fail_message());
        place += n;
    }
}

/* Requests the rows whose is_new[place] is true from their owners. */
static void request_new_rows(Tables *t, int b, const Lookup *look, const bool *is_new)
{
    const int tables = t->bag[b].tables;
    RowRequest *a = &t->request[b];
    int32_t n = 0, place = 0;
    for (int s = 0; s < t->owners * tables; ++s) {
        if (s % tables == 0) a->begin[s / tables] = n;
        a->count[s] = 0;
        for (int32_t end = place + look->count[s]; place < end; ++place) {
            if (!is_new[place]) continue;
            a->place[n] = place;
            a->id[n++] = look->id[place];
            ++a->count[s];
        }
    }
    a->begin[t->owners] = n;
    for (int o = 0; o < t->owners; ++o)
        if (a->begin[o + 1] > a->begin[o])
            send_ids_command(t, COMMAND_PULL, b, o, a->count + o * tables, a->id + a->begin[o],
                             (Command){0}, &a->sending[o]);
}

void geo_request(Tables *t, Flight *f)
{
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        bool *is_new = mem_new(((size_t)look->numbers.count + 1) * sizeof *is_new);
        find_local(t, b, look, look->local_row, is_new);
        request_new_rows(t, b, look, is_new);
        mem_free(&is_new);
    }
}

/* Receives the new rows, and copies them to the local rows. The buffer for messages is look->sum,
 * which is free until the step's sums are computed. */
static void receive_rows(Tables *t, int b, Lookup *look)
{
    const int64_t width = t->bag[b].width;
    const size_t row = (size_t)width * sizeof(float);
    RowRequest *a = &t->request[b];
    for (int o = 0; o < t->owners; ++o) {
        const int32_t first = a->begin[o], end = a->begin[o + 1];
        if (end == first) continue;
        (void)world_receive(t->plan.world, t->first_owner + o, look->sum,
                            (size_t)(end - first) * row);
        world_send_wait(&a->sending[o]);
        for (int32_t i = first; i < end; ++i) {
            float *local = look->local_row[a->place[i]];
            memcpy(local, look->sum + (i - first) * width, row);
            memcpy(local + width, local, row);
        }
    }
}

void geo_rows(Tables *t, Flight *f)
{
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        const size_t width = (size_t)t->bag[b].width;
        receive_rows(t, b, look);
        for (int p = 0; p < look->numbers.count; ++p)
            memcpy(look->value + (size_t)p * width, look->local_row[p], width * sizeof(float));
    }
}

void geo_update(Tables *t, Flight *f, double lr, double grad_scale)
{
    for (int b = 0; b < t->bags; ++b) {
        const Lookup *look = &f->look[b];
        const Bag *bag = &t->bag[b];
        int32_t place = 0;
        for (int s = 0; s < t->owners * bag->tables; ++s) {
            const TableStore *store = &t->store[t->first_store[b] + s % bag->tables];
            for (int32_t end = place + look->count[s]; place < end; ++place)
                store_update(store, look->local_row[place], look->sum + (int64_t)place * bag->width,
                             lr, grad_scale);
        }
    }
}

/* Pushes to one owner the changes of all local rows of a bag that belong to this owner. */
static void push_to(Tables *t, int b, int owner)
{
    const Bag *bag = &t->bag[b];
    int64_t room = 1, n = 0, width = bag->width;
    for (int i = 0; i < bag->tables; ++i) room += row_store_count(t->local[t->first_store[b] + i]);
    int32_t *count = mem_new((size_t)bag->tables * sizeof *count);
    uint64_t *id = mem_new((size_t)room * sizeof *id), one;
    float *delta = mem_new((size_t)(room * width) * sizeof *delta);
    for (int i = 0; i < bag->tables; ++i) {
        int64_t place = 0;
        const float *row;
        while ((row = row_store_next(t->local[t->first_store[b] + i], &place, &one))) {
            if (t->shard_owner[row_shard(row_hash(bag->hash[i], one))] != owner) continue;
            for (int64_t c = 0; c < width; ++c) delta[n * width + c] = row[c] - row[width + c];
            id[n++] = one;
            ++count[i];
        }
    }
    send_ids_command(t, COMMAND_PUSH, b, owner, count, id, (Command){0}, NULL);
    world_send(t->plan.world, t->first_owner + owner, delta, (size_t)(n * width) * sizeof *delta);
    mem_free(&count);
    mem_free(&id);
    mem_free(&delta);
}

void tables_exchange(Tables *t)
{
    char done;
    for (int b = 0; b < t->bags; ++b)
        for (int o = 0; o < t->owners; ++o) push_to(t, b, o);
    for (int o = 0; o < t->owners; ++o)
        (void)world_receive(t->plan.world, t->first_owner + o, &done, sizeof done);
    begin_period(t);
}

/* ---- server ---- */

/* Receives the numbers of ids and the ids that follow a command. The caller owns both arrays. */
static void receive_ids(const Tables *t, int from, const Command *what, int32_t **count,
                        uint64_t **id)
{
    size_t tables = (size_t)t->bag[what->bag].tables, ids = (size_t)what->ids;
    *count = mem_new(tables * sizeof **count);
    *id = mem_new((ids + 1) * sizeof **id);
    (void)world_receive(t->plan.world, from, *count, tables * sizeof **count);
    (void)world_receive(t->plan.world, from, *id, ids * sizeof **id);
}

void serve_pull(Tables *t, int from, const Command *what)
{
    int32_t *count;
    uint64_t *id;
    int64_t width = t->bag[what->bag].width;
    receive_ids(t, from, what, &count, &id);
    Answer *answer = &t->answer[from * t->bags + what->bag];
    world_send_wait(&answer->sending);
    if (what->ids * width > answer->room) {
        answer->room = what->ids * width;
        answer->value = mem_resize(answer->value, (size_t)answer->room * sizeof *answer->value);
    }
    float **row = mem_new((size_t)(what->ids + 1) * sizeof *row);
    OwnerRequest request = {
        .count = count, .ids = what->ids, .id = id, .value = answer->value, .row = row};
    owner_answer_request(&t->training.flight[0].owner[what->bag], &request);
    world_send_begin(&answer->sending, t->plan.world, from, answer->value,
                     (size_t)(what->ids * width) * sizeof *answer->value);
    mem_free(&count);
    mem_free(&id);
    mem_free(&row);
}

/* Ends a period after all workers have pushed their changes: sums the changes like gradients, adds
 * their mean to the rows, and answers the workers. */
static void end_period(Tables *t)
{
    contents_changed(t);
    for (int b = 0; b < t->bags; ++b) {
        Owner *owner = &t->training.flight[0].owner[b];
        size_t tables = (size_t)t->bag[b].tables, width = (size_t)t->bag[b].width;
        for (int a = 0; a < t->workers; ++a)
            memcpy(owner->request[a].count, t->pushed[a * t->bags + b].count,
                   tables * sizeof *owner->request->count);
        owner_place_requests(owner, NULL);
        for (int a = 0; a < t->workers; ++a) {
            const Pushed *p = &t->pushed[a * t->bags + b];
            memcpy(owner->request[a].id, p->id, (size_t)p->ids * sizeof *p->id);
            memcpy(owner->request[a].grad, p->delta, (size_t)p->ids * width * sizeof *p->delta);
        }
        owner_find(owner);
        owner_sum_gradients(owner);
        owner_add(owner, 1.0f / (float)t->workers);
    }
    pushed_clear(t);
    for (int a = 0; a < t->workers; ++a) world_send(t->plan.world, a, "", 1);
}

void serve_push(Tables *t, int from, const Command *what)
{
    Pushed *p = &t->pushed[from * t->bags + what->bag];
    size_t bytes = (size_t)what->ids * (size_t)t->bag[what->bag].width * sizeof *p->delta;
    p->ids = what->ids;
    receive_ids(t, from, what, &p->count, &p->id);
    p->delta = mem_new(bytes + 1);
    (void)world_receive(t->plan.world, from, p->delta, bytes);
    if (what->bag == t->bags - 1 && ++t->pushed_by == t->workers) end_period(t);
}
