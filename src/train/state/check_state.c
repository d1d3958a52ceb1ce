/* Checks that parameters, running statistics and optimizer state are finite, and the same on all
 * replicas that store their own copies. Each rank reads its tensors once, hashes them, and compares
 * the hashes with those of its replicas. If hashes differ, the message names the first such tensor
 * and the ranks that are in the minority, or all ranks if there is no majority. */
#include "save_copy.h"
#include "../transport.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* floats of a device's tensor that are copied to the host at a time; a multiple of FLAT_CHUNK */
enum { PART = 16 * FLAT_CHUNK };
/* bytes of a message, with its final zero */
enum { TEXT_BYTES = 512 };

/* A tensor that this rank stores. */
typedef struct StateTensor {
    /* index of the parameter in the graph */
    int param;
    /* its slot, in the sense of Tensors.slot */
    int slot;
    /* first float, in the backend's memory */
    float *at;
    /* number of floats */
    int64_t count;
    /* true: every replica has the same values, in its own memory */
    bool same;
} StateTensor;

typedef struct StateCheck {
    const Trainer *trainer;
    /* number of tensors */
    int count;
    /* number of tensors, counted from the first, that must be the same on all replicas */
    int compared;
    /* the tensors of this rank; owned */
    StateTensor *tensor;
    /* hash of each tensor; 0: the tensor is not compared; owned */
    uint64_t *hash;
    /* index of the first tensor that is not finite; -1: all are finite */
    int not_finite;
} StateCheck;

bool train_compares(const Trainer *t, const char **why_not)
{
    const Plan *plan = t->plan;
    bool shared_params = plan->zero && !plan->gathers && transport_param_sharers(t) > 1;
    *why_not = t->shape.dp == 1 ? "there is one replica"
               : plan->gathers  ? "each replica has other parts of parameters and state"
               : shared_params  ? "replicas share the memory of their parameters, and each has "
                                  "another part of the state"
                                : NULL;
    return *why_not == NULL;
}

/* ---- listing the tensors ---- */

static void add(StateCheck *state, StateTensor tensor)
{
    if (tensor.count == 0) return;
    state->tensor[state->count++] = tensor;
    if (tensor.same) state->compared = state->count;
}

static void add_values(StateCheck *state, bool same)
{
    const Trainer *t = state->trainer;
    for (int i = 0; i < t->graph->param_count; ++i) {
        int64_t first = 0, count = t->graph->param[i].elements;
        if (!train_owns(t, i)) continue;
        if (t->plan->gathers) plan_shard(t->plan, i, t->grid.dp_rank, &first, &count);
        add(state, (StateTensor){i, TENSOR_VALUE, executor_param(t->executor, i), count, same});
    }
}

static void add_state(StateCheck *state, bool same)
{
    const Trainer *t = state->trainer;
    const Optim *o = t->optim;
    for (int i = 0; i < o->range_count; ++i)
        for (int s = 0; s < o->piece[i].rule->slots; ++s)
            add(state, (StateTensor){t->range_param[i], s, o->state[s] + o->piece[i].state[s],
                                     o->piece[i].elements, same});
}

static void add_averages(StateCheck *state, bool same)
{
    const Trainer *t = state->trainer;
    const Optim *o = t->optim;
    for (int i = 0; o->average && i < o->averaged_count; ++i)
        add(state,
            (StateTensor){t->range_param[i], TENSOR_AVERAGE,
                          o->average + o->piece[i].average_offset, o->piece[i].elements, same});
}

/* ---- checking one tensor ---- */

/* Arguments of the threads that check the chunks of a tensor. */
typedef struct ChunkCheck {
    /* first float of the memory that is checked */
    const float *base;
    /* number of the chunk at `base`, counted from the beginning of the tensor */
    uint64_t first;
    /* sum of the chunks' hashes; NULL: the tensor is not hashed */
    _Atomic uint64_t *sum;
    /* set if a value is not finite */
    atomic_bool *bad;
} ChunkCheck;

/* Checks, hashes and copies one chunk at a time, so that it stays in the cache. If nothing is
 * hashed, the whole range is one chunk. The hash of each chunk is seeded with the chunk's number,
 * and the hashes are added, so the sum does not depend on the order of threads. */
static void check_chunks(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const ChunkCheck *c = args;
    uint64_t sum = 0, number = c->first + (uint64_t)(array[0] - c->base) / FLAT_CHUNK;
    int64_t step = c->sum ? FLAT_CHUNK : n;
    for (int64_t at = 0; at < n; at += step, ++number) {
        int64_t count = n - at < step ? n - at : step;
        if (c->sum) sum += hash_seeded(array[0] + at, (size_t)count * sizeof(float), number);
        bool bad =
            backend_cpu.flat->find_and_copy(array[1] ? array[1] + at : NULL, array[0] + at, count);
        if (bad) atomic_store(c->bad, true);
    }
    if (c->sum) atomic_fetch_add_explicit(c->sum, sum, memory_order_relaxed);
}

/* Checks one tensor. A tensor of a device is copied to `part` for this, piece by piece. to: memory
 * for a copy of the tensor, or NULL. Sets *hash, to 0 if the tensor is not compared. Returns true
 * if all values are finite. */
static bool check_tensor(const Trainer *t, const StateTensor *tensor, float *part, float *to,
                         uint64_t *hash)
{
    const BackendTable *table = t->backend->table;
    _Atomic uint64_t sum = 0;
    atomic_bool bad = false;
    int64_t step = table->host_memory ? tensor->count : PART;
    for (int64_t at = 0; at < tensor->count; at += step) {
        int64_t n = tensor->count - at < step ? tensor->count - at : step;
        float *x = tensor->at + at;
        if (!table->host_memory) {
            table->copy(table->stream(t->backend), part, x, (size_t)n * sizeof *part);
            table->sync(table->stream(t->backend));
            x = part;
        }
        ChunkCheck chunks = {x, (uint64_t)(at / FLAT_CHUNK), tensor->same ? &sum : NULL, &bad};
        backend_cpu.flat->run_elements(NULL, check_chunks, &chunks,
                                       (float *[FLAT_ARRAYS]){x, to ? to + at : NULL}, n);
    }
    *hash = sum;
    return !bad;
}

static void state_check_init(StateCheck *state, const Trainer *t, bool compares,
                             const SaveCopy *copy)
{
    size_t most = (size_t)t->graph->param_count * (OPTIM_SLOTS + 2) + 1;
    *state = (StateCheck){.trainer = t,
                          .tensor = mem_new(most * sizeof *state->tensor),
                          .hash = mem_new(most * sizeof *state->hash),
                          .not_finite = -1};
    add_values(state, compares);
    add_state(state, compares && !t->plan->zero);
    add_averages(state, compares && !t->plan->zero);
    float *part = t->backend->table->host_memory ? NULL : mem_new(PART * sizeof *part);
    for (int i = 0; i < state->count; ++i) {
        const StateTensor *tensor = &state->tensor[i];
        float *to = copy ? save_copy_place(copy, tensor->param, tensor->slot) : NULL;
        bool finite = check_tensor(t, tensor, part, to, &state->hash[i]);
        if (!finite && state->not_finite < 0) state->not_finite = i;
    }
    mem_free(&part);
}

static void state_check_fini(StateCheck *state)
{
    mem_free(&state->tensor);
    mem_free(&state->hash);
}

/* Returns the tensor's path in checkpoints. Owner: the caller. */
static char *tensor_name(const StateCheck *state, int i)
{
    return tensor_path(state->trainer, state->tensor[i].param, state->tensor[i].slot);
}

/* Returns the first value of tensor i that is not finite. */
static double bad_value(const StateCheck *state, int i)
{
    const Trainer *t = state->trainer;
    const StateTensor *tensor = &state->tensor[i];
    const BackendTable *table = t->backend->table;
    float *host = mem_new((size_t)tensor->count * sizeof *host);
    int64_t at = 0;
    table->copy(table->stream(t->backend), host, tensor->at, (size_t)tensor->count * sizeof *host);
    table->sync(table->stream(t->backend));
    while (at + 1 < tensor->count && isfinite(host[at])) ++at;
    double value = text_nan_without_sign((double)host[at]);
    mem_free(&host);
    return value;
}

/* ---- reporting ---- */

/* Returns ERR_DATA on all ranks, with the text of rank `from` as message. Collective. */
static Status fail_all(const Trainer *t, int from, char *text)
{
    world_bcast(t->world, text, TEXT_BYTES, from);
    return fail(ERR_DATA, "%s", text);
}

static Status check_finite(const StateCheck *state)
{
    const Trainer *t = state->trainer;
    bool bad = state->not_finite >= 0;
    char text[TEXT_BYTES] = "", host[HOST_BYTES];
    int from = world_min(t->world, bad ? t->world->rank : INT_MAX);
    if (from == INT_MAX) return OK;
    int last = -world_min(t->world, bad ? -t->world->rank : 0);
    if (t->world->rank == from) {
        char *name = tensor_name(state, state->not_finite);
        host_name(host, HOST_BYTES);
        snprintf(text, sizeof text, "%s holds %g on rank %d, %s%s", name,
                 bad_value(state, state->not_finite), from, host,
                 last > from ? ", and others" : "");
        mem_free(&name);
    }
    return fail_all(t, from, text);
}

/* A replica's hash of the first tensor that differs, and its rank and host. */
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

/* Writes a message to text that names the ranks that differ from the majority or, without a
 * majority, all ranks. */
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
                 known ? " differs from most: its memory or its processor is at fault"
                       : ": the memory or the processor of one of them is at fault");
}

/* Returns the index of the first tensor that differs among the replicas of this rank's part of the
 * model; `compared` if none does. Collective on these replicas. */
static int first_difference(const StateCheck *state)
{
    const World *dp = &state->trainer->grid.dp_world;
    size_t bytes = (size_t)state->compared * sizeof *state->hash;
    uint64_t *first = mem_new(bytes + 1);
    int i = 0;
    memcpy(first, state->hash, bytes);
    world_bcast(dp, first, bytes, 0);
    while (i < state->compared && state->hash[i] == first[i]) ++i;
    mem_free(&first);
    return world_min(dp, i);
}

/* Gathers the hashes of tensor i from the replicas of this rank's part of the model, and writes a
 * message about their difference to text. Collective on these replicas. */
static void describe_difference(const StateCheck *state, int i, char *text)
{
    const Trainer *t = state->trainer;
    const World *dp = &t->grid.dp_world;
    Side mine = {.hash = state->hash[i], .rank = t->world->rank};
    Side *side = mem_new((size_t)dp->size * sizeof *side);
    char *name = tensor_name(state, i);
    host_name(mine.host, HOST_BYTES);
    world_allgather(dp, &mine, sizeof mine, side);
    name_ranks(side, dp->size, name, text);
    mem_free(&side);
    mem_free(&name);
}

static Status check_replicas(const StateCheck *state)
{
    const Trainer *t = state->trainer;
    char text[TEXT_BYTES] = "";
    int i = first_difference(state);
    bool differ = i < state->compared;
    if (differ) describe_difference(state, i, text);
    int from = world_min(t->world, differ ? t->world->rank : INT_MAX);
    return from == INT_MAX ? OK : fail_all(t, from, text);
}

static Status check(Trainer *t, const SaveCopy *copy)
{
    StateCheck state;
    const char *why_not;
    Phase outer = phase_enter(copy ? PHASE_CHECKPOINT : PHASE_UPDATE);
    bool compares = train_compares(t, &why_not);
    state_check_init(&state, t, compares, copy);
    Status st = check_finite(&state);
    if (st == OK && compares) st = check_replicas(&state);
    state_check_fini(&state);
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
