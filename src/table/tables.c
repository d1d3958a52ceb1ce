/* Sparse tables of a run. What a step does, from the first micro-batch to the update:
 *
 *     next(0)     ids of all of the step's micro-batches, each once ──> their owners
 *                 rows <── owners            (the ids have come while the step before ran)
 *     next(last)  ids of the next step are sent ahead
 *     backward    a gradient for each row of each micro-batch
 *     reduce      their sums, by the tree of micro-batches ──> owners, who add the ranks'
 *     update      owners change rows, and make those that are new
 *
 * Every rank is an owner, of a run of shards, or servers are, who do their half of each line when
 * rank 0 says so. Messages are MPI's, from the one thread that computes. */
#include "tables.h"

#include <string.h>

/* ---- making ---- */

static void store_init(Tables *t, TableStore *s, const SparseTable *of, const OptimRule *rule)
{
    *s = (TableStore){.of = of, .rule = *rule, .hash = hash_text(of->name)};
    s->state = rule->table->row_state(rule->is, of->width);
    s->floats = of->width;
    for (int i = 0; i < s->state.slots; ++i) s->floats += s->state.floats[i];
    if (t->owns) s->rows = row_store_new(s->hash, s->floats, t->plan.limit_bytes);
}

/* Takes the bag whose tables begin with `of`, of which there are `count`. */
static void bag_init(Tables *t, const SparseTable *of, int count)
{
    Bag *bag = &t->bag[t->bags];
    *bag = (Bag){.width = of->width, .of = of};
    while (bag->tables < count && of[bag->tables].node == of->node) ++bag->tables;
    if (t->asks) {
        const OpSpec *spec = &t->plan.graph->node[of->node].spec;
        bag->number = spec->bag;
        bag->first_field = spec->bag_first;
        bag->fields = spec->bag_fields;
        bag->table = (int)(of - t->plan.graph->table);
    }
    bag->hash = mem_new((size_t)bag->tables * sizeof *bag->hash);
    t->first[t->bags++] = t->stores;
    for (int i = 0; i < bag->tables; ++i) {
        int rule = t->asks ? bag->table + i : t->stores;
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

static void flight_init(Tables *t, Flight *f, bool gradients)
{
    const TablesPlan *p = &t->plan;
    size_t micros = (size_t)p->micros, bags = (size_t)t->bags;
    *f = (Flight){0};
    if (t->asks) {
        f->batch = mem_new(micros * sizeof *f->batch);
        f->run = mem_new(micros * (size_t)p->graph->bag_count * sizeof *f->run);
        f->look = mem_new(bags * sizeof *f->look);
    }
    if (t->owns) f->owner = mem_new(bags * sizeof *f->owner);
    for (int b = 0; b < t->bags; ++b) {
        const Bag *bag = &t->bag[b];
        if (t->asks)
            lookup_init(&f->look[b], bag, t->owners, p->micros, p->micro_batch, p->id_most,
                        gradients);
        if (!t->owns) continue;
        owner_init(&f->owner[b], bag, &t->store[t->first[b]], p->seed, t->askers,
                   t->asks ? p->world->rank : -1);
        f->owner[b].limit_bytes = p->limit_bytes;
        f->owner[b].held_bytes = tables_bytes;
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
    mem_free(&f->run);
    mem_free(&f->look);
    mem_free(&f->owner);
    mem_free(&f->why);
}

void stream_init(Tables *t, TableStream *s, bool gradients)
{
    const World *world = t->plan.world;
    bool sleeps = !t->asks;
    *s = (TableStream){.tables = t,
                       .flights = gradients ? 2 : 1,
                       .given = t->plan.micros,
                       .ids = world_swap_new(world, sleeps),
                       .rows = world_swap_new(world, sleeps),
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

void tables_init(Tables *t, const SparseTable *of, int count)
{
    const TablesPlan *p = &t->plan;
    size_t room = (size_t)count + 1;
    t->owns = p->servers == 0 || !t->asks;
    t->askers = p->world->size - p->servers;
    t->owners = p->servers ? p->servers : p->world->size;
    t->first_owner = p->servers ? t->askers : 0;
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
    mem_free(&t->sorted.id);
    mem_free(&t->sorted.row);
    mem_free(&t->shard_rows);
    mem_free(&t->bag);
    mem_free(&t->store);
    mem_free(&t->first);
}

int tables_store(const Tables *t, int table)
{
    for (int b = 0; t && b < t->bags; ++b) {
        int own = table - t->bag[b].table;
        if (own >= 0 && own < t->bag[b].tables) return t->first[b] + own;
    }
    return -1;
}

/* ---- messages ---- */

void say(const Tables *t, Say what)
{
    if (t->plan.servers == 0 || t->plan.world->rank > 0) return;
    for (int o = 0; o < t->owners; ++o)
        world_tell(t->plan.world, t->first_owner + o, &what, sizeof what);
}

static void swap_clear(TableStream *s)
{
    size_t ranks = (size_t)s->tables->plan.world->size;
    memset(s->to, 0, ranks * sizeof *s->to);
    memset(s->from, 0, ranks * sizeof *s->from);
}

static void swap_rows(TableStream *s)
{
    world_swap_begin(s->rows, s->to, s->from);
    world_swap_wait(s->rows);
}

/* Owner o's part of what an asker has by place, `each` bytes an id. */
static WorldPart slice(const Lookup *look, int o, void *of, size_t each)
{
    size_t first = (size_t)look->begin[o], end = (size_t)look->begin[o + 1];
    return (WorldPart){(char *)of + first * each, (end - first) * each};
}

/* How many ids of each of the bag's tables each rank asks of each owner. */
static void swap_counts(TableStream *s, const Bag *bag, Lookup *look, Owner *owner)
{
    const Tables *t = s->tables;
    size_t tables = (size_t)bag->tables, bytes = tables * sizeof(int32_t);
    int me = t->plan.world->rank;
    swap_clear(s);
    for (int o = 0; o < t->owners && look; ++o) {
        int32_t *count = look->count + (size_t)o * tables;
        s->to[t->first_owner + o] = (WorldPart){count, bytes};
        if (t->owns && o == me) memcpy(owner->part[me].count, count, bytes);
    }
    for (int a = 0; a < t->askers && owner; ++a)
        s->from[a] = (WorldPart){owner->part[a].count, bytes};
    swap_rows(s);
    if (owner) owner_fit(owner, look);
}

/* Counts, then the ids themselves, which are waited for when rows are asked for. */
void stream_ids(TableStream *s, Flight *f)
{
    const Tables *t = s->tables;
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = f->look ? &f->look[b] : NULL;
        Owner *owner = f->owner ? &f->owner[b] : NULL;
        swap_counts(s, &t->bag[b], look, owner);
        swap_clear(s);
        for (int o = 0; o < t->owners && look; ++o)
            s->to[t->first_owner + o] = slice(look, o, look->id, sizeof *look->id);
        for (int a = 0; a < t->askers && owner; ++a) {
            const OwnerPart *part = &owner->part[a];
            s->from[a] = (WorldPart){part->id, (size_t)part->ids * sizeof *part->id};
        }
        world_swap_begin(s->ids, s->to, s->from);
        if (b + 1 < t->bags) world_swap_wait(s->ids);
    }
}

/* Owners write the values of rows, which go to those who asked. */
void stream_rows(TableStream *s, Flight *f)
{
    const Tables *t = s->tables;
    world_swap_wait(s->ids);
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = f->look ? &f->look[b] : NULL;
        Owner *owner = f->owner ? &f->owner[b] : NULL;
        size_t row = (size_t)t->bag[b].width * sizeof(float);
        swap_clear(s);
        if (owner) owner_answer(owner);
        for (int a = 0; a < t->askers && owner; ++a)
            s->to[a] = (WorldPart){owner->part[a].value, (size_t)owner->part[a].ids * row};
        for (int o = 0; o < t->owners && look; ++o)
            s->from[t->first_owner + o] = slice(look, o, look->value, row);
        swap_rows(s);
    }
}

/* The other way round. */
void stream_gradients(TableStream *s, Flight *f)
{
    const Tables *t = s->tables;
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = f->look ? &f->look[b] : NULL;
        Owner *owner = f->owner ? &f->owner[b] : NULL;
        size_t row = (size_t)t->bag[b].width * sizeof(float);
        swap_clear(s);
        if (look) lookup_join(look);
        for (int o = 0; o < t->owners && look; ++o)
            s->to[t->first_owner + o] = slice(look, o, look->sum, row);
        for (int a = 0; a < t->askers && owner; ++a)
            s->from[a] = (WorldPart){owner->part[a].grad, (size_t)owner->part[a].ids * row};
        swap_rows(s);
        if (owner) owner_join(owner);
    }
}

/* out[store]: each shard's sum is made by one rank; they are added in the order of shards. */
void stream_squares(TableStream *s, Flight *f, double *out)
{
    const Tables *t = s->tables;
    const World *world = t->plan.world;
    size_t shards = (size_t)t->stores * ROW_SHARDS;
    double *mine = mem_new(shards * sizeof *mine);
    double *all = mem_new((size_t)world->size * shards * sizeof *all);
    for (int b = 0; b < t->bags && f->owner; ++b)
        owner_squares(&f->owner[b], mine + (size_t)t->first[b] * ROW_SHARDS);
    world_gather(world, mine, shards * sizeof *mine, all);
    for (int i = 0; i < t->stores; ++i) {
        out[i] = 0;
        for (int k = 0; k < ROW_SHARDS; ++k) {
            size_t owner = (size_t)(t->first_owner + t->owner[k]);
            out[i] += all[owner * shards + (size_t)i * ROW_SHARDS + (size_t)k];
        }
    }
    mem_free(&mine);
    mem_free(&all);
}

/* ---- micro-batches ---- */

static Say say_of(const TableStream *s, SayKind kind, const Flight *f)
{
    return (Say){
        .kind = kind, .evaluation = s == &s->tables->evaluation, .flight = (int)(f - s->flight)};
}

/* A training step is this rank's own, but its new rows. */
static bool is_local(const TableStream *s)
{
    return s->tables->plan.mode != TABLE_SYNC && s == &s->tables->training;
}

/* All of a step's out of the source. A failure is kept until somebody asks for the step: the one
 * before ends as usual, so others are sent no ids. */
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
    say(t, say_of(s, SAY_IDS, f));
    stream_ids(s, f);
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
    if (is_local(s)) {
        if (s->tables->plan.mode == TABLE_GEO)
            geo_rows(s->tables, f);
        else
            async_rows(s->tables, f);
        return OK;
    }
    say(s->tables, say_of(s, SAY_ROWS, f));
    stream_rows(s, f);
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
    if (!is_local(s)) say(t, (Say){.kind = SAY_FORGET});
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
    if (is_local(s)) {
        for (int b = 0; b < t->bags; ++b) lookup_join(&f->look[b]);
        return;
    }
    say(t, say_of(s, SAY_GRADIENTS, f));
    stream_gradients(s, f);
}

void tables_grad_squares(Tables *t, double *out)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    double *own = mem_new((size_t)t->stores * sizeof *own);
    say(t, say_of(s, SAY_SQUARES, f));
    stream_squares(s, f, own);
    for (int i = 0; i < t->plan.graph->table_count; ++i) {
        int store = tables_store(t, i);
        out[i] = store < 0 ? 0 : own[store];
    }
    mem_free(&own);
}

void tables_update(Tables *t, double lr, double grad_scale)
{
    TableStream *s = &t->training;
    Flight *f = &s->flight[s->now];
    if (is_local(s)) {
        geo_update(t, f, lr, grad_scale);
        return;
    }
    Say what = say_of(s, SAY_UPDATE, f);
    what.lr = lr;
    what.grad_scale = grad_scale;
    say(t, what);
    for (int b = 0; b < t->bags && f->owner; ++b) owner_update(&f->owner[b], lr, grad_scale);
}
