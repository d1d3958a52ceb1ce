/* Sparse tables of a run. What a step does, from the first micro-batch to the update:
 *
 *     next(0)       ids of all of the step's micro-batches, each once ──> their owners
 *                   rows <── owners            (the ids have come while the step before ran)
 *     next(last)    ids of the next step are sent ahead
 *     backward      a gradient for each row of each micro-batch
 *     reduce        their sums, by the tree of micro-batches ──> owners, who add those of the ranks
 *     update        owners change rows, and make those that are new
 *
 * Every rank is an owner, of a run of shards. Messages are MPI's, from the one thread that computes. */
#include "tables.h"

#include <string.h>

/* ---- making ---- */

static void store_init(Tables *t, TableStore *s, const SparseTable *of, const OptimRule *rule)
{
    *s = (TableStore){.of = of, .rule = *rule, .hash = hash_text(of->name)};
    s->state = rule->table->row_state(rule->is, of->width);
    s->floats = of->width;
    for (int i = 0; i < s->state.slots; ++i) s->floats += s->state.floats[i];
    s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
}

/* The bag whose tables begin with number `first`. */
static void bag_init(Tables *t, int first)
{
    const Graph *g = t->plan.graph;
    const SparseTable *of = &g->table[first];
    const OpSpec *spec = &g->node[of->node].spec;
    Bag *bag = &t->bag[t->bags];
    *bag = (Bag){.number = spec->bag,
                 .first_field = spec->bag_first,
                 .fields = spec->bag_fields,
                 .table = first,
                 .width = of->width,
                 .of = of};
    while (first + bag->tables < g->table_count && of[bag->tables].node == of->node) ++bag->tables;
    bag->hash = mem_new((size_t)bag->tables * sizeof *bag->hash);
    t->first[t->bags++] = t->stores;
    for (int i = 0; i < bag->tables; ++i) {
        bag->hash[i] = hash_text(of[i].name);
        store_init(t, &t->store[t->stores++], &of[i], &t->plan.rule[first + i]);
    }
}

static void flight_init(Tables *t, Flight *f, bool gradients)
{
    const TablesPlan *p = &t->plan;
    size_t micros = (size_t)p->micros, bags = (size_t)t->bags;
    *f = (Flight){.batch = mem_new(micros * sizeof *f->batch),
                  .run = mem_new(micros * (size_t)p->graph->bag_count * sizeof *f->run),
                  .look = mem_new(bags * sizeof *f->look),
                  .owner = mem_new(bags * sizeof *f->owner)};
    for (int b = 0; b < t->bags; ++b) {
        lookup_init(&f->look[b], &t->bag[b], p->world->size, p->micros, p->micro_batch, p->id_most,
                    gradients);
        owner_init(&f->owner[b], &t->bag[b], &t->store[t->first[b]], p->seed, p->world->size,
                   p->world->rank);
    }
}

static void flight_fini(const Tables *t, Flight *f)
{
    for (int b = 0; f->look && b < t->bags; ++b) {
        lookup_fini(&f->look[b]);
        owner_fini(&f->owner[b]);
    }
    mem_free(&f->batch);
    mem_free(&f->run);
    mem_free(&f->look);
    mem_free(&f->owner);
    mem_free(&f->why);
}

static void stream_init(Tables *t, TableStream *s, bool gradients)
{
    const World *world = t->plan.world;
    *s = (TableStream){.tables = t,
                       .flights = gradients ? 2 : 1,
                       .given = t->plan.micros,
                       .ids = world_swap_new(world),
                       .rows = world_swap_new(world),
                       .to = mem_new((size_t)world->size * sizeof *s->to),
                       .from = mem_new((size_t)world->size * sizeof *s->from)};
    for (int i = 0; i < s->flights; ++i) flight_init(t, &s->flight[i], gradients);
}

static void stream_fini(TableStream *s)
{
    if (!s->tables) return;
    for (int i = 0; i < s->flights; ++i) flight_fini(s->tables, &s->flight[i]);
    world_swap_free(&s->ids);
    world_swap_free(&s->rows);
    mem_free(&s->to);
    mem_free(&s->from);
}

Tables *tables_new(const TablesPlan *plan)
{
    const Graph *g = plan->graph;
    int here = 0;
    for (int i = 0; i < g->table_count; ++i) here += plan->here[g->table[i].node];
    if (here == 0) return NULL;
    Tables *t = mem_new(sizeof *t);
    t->plan = *plan;
    t->bag = mem_new((size_t)here * sizeof *t->bag);
    t->store = mem_new((size_t)here * sizeof *t->store);
    t->first = mem_new((size_t)here * sizeof *t->first);
    for (int s = 0; s < ROW_SHARDS; ++s) t->owner[s] = (int16_t)table_owner(s, plan->world->size);
    for (int i = 0; i < g->table_count; ++i) {
        bool begins = i == 0 || g->table[i].node != g->table[i - 1].node;
        if (begins && plan->here[g->table[i].node]) bag_init(t, i);
    }
    stream_init(t, &t->training, true);
    return t;
}

void tables_free(Tables **tables)
{
    Tables *t = *tables;
    if (!t) return;
    stream_fini(&t->training);
    stream_fini(&t->evaluation);
    for (int i = 0; i < t->stores; ++i) row_store_free(&t->store[i].rows);
    for (int b = 0; b < t->bags; ++b) mem_free(&t->bag[b].hash);
    mem_free(&t->bag);
    mem_free(&t->store);
    mem_free(&t->first);
    mem_free(tables);
}

/* ---- messages ---- */

static void swap_rows(TableStream *s, WorldSwap *swap)
{
    world_swap_begin(swap, s->to, s->from);
    world_swap_wait(swap);
}

/* How many ids of each table each rank asks of each, then the ids themselves, which are waited for
 * later. */
static void send_ids(TableStream *s, Flight *f)
{
    Tables *t = s->tables;
    int me = t->plan.world->rank;
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        Owner *owner = &f->owner[b];
        size_t tables = (size_t)t->bag[b].tables;
        for (int r = 0; r < t->plan.world->size; ++r) {
            int32_t *count = look->count + (size_t)r * tables;
            s->to[r] = (WorldPart){count, tables * sizeof *count};
            s->from[r] = (WorldPart){owner->part[r].count, tables * sizeof *count};
            if (r == me) memcpy(owner->part[r].count, count, tables * sizeof *count);
        }
        swap_rows(s, s->rows);
        owner_fit(owner, look);
        for (int r = 0; r < t->plan.world->size; ++r) {
            int32_t ids = look->begin[r + 1] - look->begin[r];
            OwnerPart *part = &owner->part[r];
            s->to[r] = (WorldPart){look->id + look->begin[r], (size_t)ids * sizeof *look->id};
            s->from[r] = (WorldPart){part->id, (size_t)part->ids * sizeof *part->id};
        }
        world_swap_begin(s->ids, s->to, s->from);
        if (b + 1 < t->bags) world_swap_wait(s->ids);
    }
}

/* Owners write the values of rows, which go to those who asked. */
static void bring_rows(TableStream *s, Flight *f)
{
    Tables *t = s->tables;
    world_swap_wait(s->ids);
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        Owner *owner = &f->owner[b];
        size_t row = (size_t)t->bag[b].width * sizeof(float);
        owner_answer(owner);
        for (int r = 0; r < t->plan.world->size; ++r) {
            size_t ids = (size_t)(look->begin[r + 1] - look->begin[r]);
            OwnerPart *part = &owner->part[r];
            float *to = look->value + (int64_t)look->begin[r] * t->bag[b].width;
            s->to[r] = (WorldPart){part->value, (size_t)part->ids * row};
            s->from[r] = (WorldPart){to, ids * row};
        }
        swap_rows(s, s->rows);
    }
}

/* ---- micro-batches ---- */

/* All of a step's out of the source; a failure is kept until somebody asks for the step. */
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
        return;
    }
    for (int b = 0; b < t->bags; ++b) {
        lookup_take(&f->look[b], f->batch, (int)t->plan.fields, t->owner);
        for (int i = 0; i < micros; ++i)
            f->run[i * bags + t->bag[b].number] = lookup_run(&f->look[b], i);
    }
    send_ids(s, f);
}

static Status begin_step(TableStream *s, double *wait_s)
{
    Flight *f;
    if (s->flights > 1) s->now = 1 - s->now;
    f = &s->flight[s->now];
    if (!f->taken) take_step(s, f, wait_s);
    f->taken = false;
    s->given = 0;
    if (f->status != OK) return fail(f->status, "%s", f->why);
    bring_rows(s, f);
    return OK;
}

static Status next(void *user, const Batch **batch, double *wait_s)
{
    TableStream *s = user;
    if (s->given == s->tables->plan.micros) TRY(begin_step(s, wait_s));
    *batch = &s->flight[s->now].batch[s->given++];
    bool last = s->given == s->tables->plan.micros;
    if (last && s->flights > 1) take_step(s, &s->flight[1 - s->now], wait_s);
    return OK;
}

static void release(void *user)
{
    TableStream *s = user;
    s->inner.release(s->inner.user);
}

int tables_held(const TablesPlan *plan)
{
    return 2 * plan->micros + 1;
}

BatchSource tables_source(Tables *t, const BatchSource *inner)
{
    t->training.inner = *inner;
    return (BatchSource){.user = &t->training, .next = next, .release = release};
}

/* Ids that are on their way arrive, for all ranks have sent theirs. */
void tables_forget(Tables *t)
{
    TableStream *s = &t->training;
    world_swap_wait(s->ids);
    for (int i = 0; i < s->flights; ++i) {
        s->flight[i].taken = false;
        mem_free(&s->flight[i].why);
    }
    s->given = t->plan.micros;
}

BatchSource tables_evaluation(Tables *t, const BatchSource *inner)
{
    if (!t->evaluation.tables) stream_init(t, &t->evaluation, false);
    t->evaluation.inner = *inner;
    t->evaluation.given = t->plan.micros;
    return (BatchSource){.user = &t->evaluation, .next = next, .release = release};
}

/* ---- gradients ---- */

void tables_reduce(Tables *t)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        Owner *owner = &f->owner[b];
        size_t row = (size_t)t->bag[b].width * sizeof(float);
        lookup_join(look);
        for (int r = 0; r < t->plan.world->size; ++r) {
            size_t ids = (size_t)(look->begin[r + 1] - look->begin[r]);
            OwnerPart *part = &owner->part[r];
            float *from = look->sum + (int64_t)look->begin[r] * t->bag[b].width;
            s->to[r] = (WorldPart){from, ids * row};
            s->from[r] = (WorldPart){part->grad, (size_t)part->ids * row};
        }
        swap_rows(s, s->rows);
        owner_join(owner);
    }
}

/* Each shard's sum is made by one rank; they are added in the order of shards. */
void tables_grad_squares(Tables *t, double *out)
{
    const World *world = t->plan.world;
    const Flight *f = &t->training.flight[t->training.now];
    size_t shards = (size_t)t->stores * ROW_SHARDS;
    double *mine = mem_new(shards * sizeof *mine);
    double *all = mem_new((size_t)world->size * shards * sizeof *all);
    for (int b = 0; b < t->bags; ++b)
        owner_squares(&f->owner[b], mine + (size_t)t->first[b] * ROW_SHARDS);
    world_gather(world, mine, shards * sizeof *mine, all);
    memset(out, 0, (size_t)t->plan.graph->table_count * sizeof *out);
    for (int b = 0; b < t->bags; ++b)
        for (int i = 0; i < t->bag[b].tables; ++i)
            for (int s = 0; s < ROW_SHARDS; ++s) {
                size_t at = (size_t)(t->first[b] + i) * ROW_SHARDS + (size_t)s;
                out[t->bag[b].table + i] += all[(size_t)t->owner[s] * shards + at];
            }
    mem_free(&mine);
    mem_free(&all);
}

void tables_update(Tables *t, double lr, double grad_scale)
{
    Flight *f = &t->training.flight[t->training.now];
    for (int b = 0; b < t->bags; ++b) owner_update(&f->owner[b], lr, grad_scale);
}
