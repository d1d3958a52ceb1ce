/* Checks whether parameters, running statistics and optimizer state are finite, and the same on all
 * replicas that have their own memory. Each rank reads its tensors once, hashes them, and compares
 * the hashes with its replicas. If they differ, the message names the first tensor and the ranks
 * that are in the minority. */
#include "save_copy.h"
#include "transport.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* PART floats are a whole number of chunks. */
enum { PART = 16 * FLAT_CHUNK, TEXT_BYTES = 512 };

/* A tensor that this rank stores: the value of a parameter (slot -1) or a slot of its state. */
typedef struct Held {
    int param, slot;
    float *at;
    int64_t count;
    /* every replica has the same values, in its own memory */
    bool same;
} Held;

typedef struct Look {
    const Trainer *trainer;
    /* number of tensors; the first `compared` are the same on all replicas */
    int count, compared;
    /* owned */
    Held *held;
    uint64_t *hash;
    /* first tensor that is not finite; -1: none */
    int not_finite;
} Look;

bool train_compares(const Trainer *t, const char **why_not)
{
    const Plan *plan = t->plan;
    bool common = plan->zero && !plan->gathers && transport_sharers(t) > 1;
    *why_not = t->shape.dp == 1 ? "there is one replica"
               : plan->gathers  ? "replicas have parts of parameters and state, none the same"
               : common         ? "replicas have their parameters in common memory, and parts of "
                                  "the state, none the same"
                                : NULL;
    return *why_not == NULL;
}

/* ---- listing the tensors ---- */

static void add(Look *look, Held held)
{
    if (held.count == 0) return;
    look->held[look->count++] = held;
    if (held.same) look->compared = look->count;
}

static void add_values(Look *look, bool same)
{
    const Trainer *t = look->trainer;
    for (int i = 0; i < t->graph->param_count; ++i) {
        int64_t first = 0, count = t->graph->param[i].elements;
        if (!train_owns(t, i)) continue;
        if (t->plan->gathers) plan_shard(t->plan, i, t->grid.dp_rank, &first, &count);
        add(look, (Held){i, -1, executor_param(t->executor, i), count, same});
    }
}

static void add_state(Look *look, bool same)
{
    const Trainer *t = look->trainer;
    const Optim *o = t->optim;
    for (int i = 0; i < o->range_count; ++i)
        for (int s = 0; s < o->piece[i].rule->slots; ++s)
            add(look, (Held){t->range_param[i], s, o->state[s] + o->piece[i].state[s],
                             o->piece[i].elements, same});
}

/* ---- checking one tensor ---- */

/* Arguments of the threads that check the chunks of a range. */
typedef struct Looking {
    const float *base;
    /* index of the range's first chunk */
    uint64_t first;
    /* sum of hashes; NULL: no hash */
    _Atomic uint64_t *sum;
    atomic_bool *bad;
} Looking;

/* Checks, hashes and copies one chunk at a time, while it is in the cache; without a hash the whole
 * range is one chunk. The hash of each chunk is seeded with its index and the hashes are added, so
 * the order of threads does not matter. */
static void look_at_chunks(const void *args, float *const range[FLAT_RANGES], int64_t n)
{
    const Looking *l = args;
    uint64_t sum = 0, number = l->first + (uint64_t)(range[0] - l->base) / FLAT_CHUNK;
    int64_t most = l->sum ? FLAT_CHUNK : n;
    for (int64_t at = 0; at < n; at += most, ++number) {
        int64_t count = n - at < most ? n - at : most;
        if (l->sum) sum += hash_seeded(range[0] + at, (size_t)count * sizeof(float), number);
        bool bad =
            backend_cpu.flat->find_and_copy(range[1] ? range[1] + at : NULL, range[0] + at, count);
        if (bad) atomic_store(l->bad, true);
    }
    if (l->sum) atomic_fetch_add_explicit(l->sum, sum, memory_order_relaxed);
}

/* Checks one tensor; a device's is copied to `part` piece by piece. to: address of its copy, or
 * NULL. Returns true if it is finite. */
static bool look_at(const Trainer *t, const Held *held, float *part, float *to, uint64_t *hash)
{
    const BackendTable *table = t->backend->table;
    _Atomic uint64_t sum = 0;
    atomic_bool bad = false;
    int64_t step = table->host_memory ? held->count : PART;
    for (int64_t at = 0; at < held->count; at += step) {
        int64_t n = held->count - at < step ? held->count - at : step;
        float *x = held->at + at;
        if (!table->host_memory) {
            table->copy(table->stream(t->backend), part, x, (size_t)n * sizeof *part);
            table->sync(table->stream(t->backend));
            x = part;
        }
        Looking looking = {x, (uint64_t)(at / FLAT_CHUNK), held->same ? &sum : NULL, &bad};
        backend_cpu.flat->each(NULL, look_at_chunks, &looking,
                               (float *[FLAT_RANGES]){x, to ? to + at : NULL}, n);
    }
    *hash = sum;
    return !bad;
}

static void look_init(Look *look, const Trainer *t, bool compares, const SaveCopy *copy)
{
    size_t most = (size_t)t->graph->param_count * (OPTIM_SLOTS + 1) + 1;
    *look = (Look){.trainer = t,
                   .held = mem_new(most * sizeof *look->held),
                   .hash = mem_new(most * sizeof *look->hash),
                   .not_finite = -1};
    add_values(look, compares);
    add_state(look, compares && !t->plan->zero);
    float *part = t->backend->table->host_memory ? NULL : mem_new(PART * sizeof *part);
    for (int i = 0; i < look->count; ++i) {
        const Held *held = &look->held[i];
        float *to = copy ? save_copy_place(copy, held->param, held->slot) : NULL;
        bool finite = look_at(t, held, part, to, &look->hash[i]);
        if (!finite && look->not_finite < 0) look->not_finite = i;
    }
    mem_free(&part);
}

static void look_fini(Look *look)
{
    mem_free(&look->held);
    mem_free(&look->hash);
}

/* Returns the tensor's path in checkpoints. Owner: the caller. */
static char *tensor_name(const Look *look, int i)
{
    const Trainer *t = look->trainer;
    const Held *held = &look->held[i];
    const Param *p = &t->graph->param[held->param];
    if (held->slot < 0) return checkpoint_path(p);
    OptimRule rule = optim_rule(t->config, t->rule[held->param]);
    return mem_format("/optim/%s/%s", rule.table->slot_name[held->slot], p->name);
}

/* Returns the first value that is not finite. */
static double bad_value(const Look *look, int i)
{
    const Trainer *t = look->trainer;
    const Held *held = &look->held[i];
    const BackendTable *table = t->backend->table;
    float *host = mem_new((size_t)held->count * sizeof *host);
    int64_t at = 0;
    table->copy(table->stream(t->backend), host, held->at, (size_t)held->count * sizeof *host);
    table->sync(table->stream(t->backend));
    while (at + 1 < held->count && isfinite(host[at])) ++at;
    double value = text_unsigned_nan((double)host[at]);
    mem_free(&host);
    return value;
}

/* ---- reporting ---- */

/* Fails on all ranks with the text of rank `from`. */
static Status fail_all(const Trainer *t, int from, char *text)
{
    world_bcast(t->world, text, TEXT_BYTES, from);
    return fail(ERR_DATA, "%s", text);
}

static Status check_finite(const Look *look)
{
    const Trainer *t = look->trainer;
    bool bad = look->not_finite >= 0;
    char text[TEXT_BYTES] = "", host[HOST_BYTES];
    int from = world_least(t->world, bad ? t->world->rank : INT_MAX);
    if (from == INT_MAX) return OK;
    int with = -world_least(t->world, bad ? -t->world->rank : 0);
    if (t->world->rank == from) {
        char *name = tensor_name(look, look->not_finite);
        host_name(host, HOST_BYTES);
        snprintf(text, sizeof text, "%s holds %g on rank %d, %s%s", name,
                 bad_value(look, look->not_finite), from, host, with > from ? ", and others" : "");
        mem_free(&name);
    }
    return fail_all(t, from, text);
}

/* One replica's hash of the first tensor that differs. */
typedef struct Side {
    uint64_t hash;
    int rank;
    char host[HOST_BYTES];
} Side;

static int votes(const Side *side, int count, uint64_t hash)
{
    int n = 0;
    for (int i = 0; i < count; ++i) n += side[i].hash == hash;
    return n;
}

/* Names the ranks that differ from the majority; without a majority, names all. */
static void name_ranks(const Side *side, int count, const char *tensor, char *text)
{
    int most = 0, used = 0;
    for (int i = 0; i < count; ++i) {
        int n = votes(side, count, side[i].hash);
        if (n > most) most = n;
    }
    bool known = 2 * most > count;
    used = snprintf(text, TEXT_BYTES, "replicas differ in %s: ", tensor);
    for (int i = 0, named = 0; i < count && used < TEXT_BYTES; ++i) {
        if (known && votes(side, count, side[i].hash) == most) continue;
        used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "%srank %d on %s",
                         named++ ? ", " : "", side[i].rank, side[i].host);
    }
    if (used < TEXT_BYTES)
        snprintf(text + used, (size_t)(TEXT_BYTES - used), "%s",
                 known ? " has not what most have: its memory or its processor is at fault"
                       : ": the memory or the processor of one of them is at fault");
}

/* Returns the first tensor that differs among this rank's replicas, or `compared`. */
static int first_difference(const Look *look)
{
    const World *dp = &look->trainer->grid.dp_world;
    size_t bytes = (size_t)look->compared * sizeof *look->hash;
    uint64_t *first = mem_new(bytes + 1);
    int i = 0;
    memcpy(first, look->hash, bytes);
    world_bcast(dp, first, bytes, 0);
    while (i < look->compared && look->hash[i] == first[i]) ++i;
    mem_free(&first);
    return world_least(dp, i);
}

/* Collects the hashes of tensor i from this rank's replicas and describes the difference. */
static void say_difference(const Look *look, int i, char *text)
{
    const Trainer *t = look->trainer;
    const World *dp = &t->grid.dp_world;
    Side mine = {.hash = look->hash[i], .rank = t->world->rank};
    Side *side = mem_new((size_t)dp->size * sizeof *side);
    char *name = tensor_name(look, i);
    host_name(mine.host, HOST_BYTES);
    world_gather(dp, &mine, sizeof mine, side);
    name_ranks(side, dp->size, name, text);
    mem_free(&side);
    mem_free(&name);
}

static Status check_replicas(const Look *look)
{
    const Trainer *t = look->trainer;
    char text[TEXT_BYTES] = "";
    int i = first_difference(look);
    bool differ = i < look->compared;
    if (differ) say_difference(look, i, text);
    int from = world_least(t->world, differ ? t->world->rank : INT_MAX);
    return from == INT_MAX ? OK : fail_all(t, from, text);
}

static Status check(Trainer *t, const SaveCopy *copy)
{
    Look look;
    const char *why_not;
    Phase outer = phase_enter(copy ? PHASE_CHECKPOINT : PHASE_UPDATE);
    bool compares = train_compares(t, &why_not);
    look_init(&look, t, compares, copy);
    Status st = check_finite(&look);
    if (st == OK && compares) st = check_replicas(&look);
    look_fini(&look);
    phase_enter(outer);
    return st;
}

Status train_check(Trainer *t)
{
    return check(t, NULL);
}

Status train_check_and_copy(Trainer *t)
{
    const SaveCopy *copy = t->copy_lent ? NULL : t->copy;
    TRY(check(t, copy));
    t->copied = copy != NULL;
    return OK;
}
