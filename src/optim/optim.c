/* Makes an optimizer and the memory for its state. */
#include "rules.h"

#include <string.h>

static float *arena_new(Optim *optim, int64_t elements)
{
    Backend *b = optim->backend;
    return elements ? b->table->alloc(b, (size_t)elements * sizeof(float)) : NULL;
}

static void arena_free(Optim *optim, float *arena, int64_t elements)
{
    Backend *b = optim->backend;
    if (arena) b->table->release(b, arena, (size_t)elements * sizeof(float));
}

static size_t chunk_squares_bytes(const Optim *optim)
{
    return (size_t)(optim->chunks + 1) * OPTIM_NORMS * sizeof(double);
}

static size_t sums_bytes(const Optim *optim)
{
    return (size_t)(optim->range_count + 1) * sizeof *optim->sums;
}

static size_t first_chunk_bytes(const Optim *optim)
{
    return (size_t)(optim->range_count + 1) * sizeof *optim->first_chunk;
}

static size_t now_bytes(const Optim *optim)
{
    return (size_t)optim->rule_count * sizeof *optim->numbers;
}

static size_t grad_chunk_bytes(const Optim *optim)
{
    return (size_t)optim->grad_chunk_count * sizeof *optim->grad_chunk;
}

/* Makes the table of all chunks of this rank's gradients, so that one launch of a kernel can
 * compute all their sums of squares. */
static void make_grad_chunks(Optim *optim)
{
    Backend *b = optim->backend;
    Stream *s = b->table->stream(b);
    FlatChunk *chunk = mem_new((size_t)(optim->chunks + 1) * sizeof *chunk);
    int64_t count = 0;
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimPiece *p = &optim->piece[i];
        int64_t sum = optim->chunk[i] + (p->offset - optim->range[i].offset) / FLAT_CHUNK;
        for (int64_t at = 0; at < p->elements; at += FLAT_CHUNK) {
            int64_t left = p->elements - at;
            chunk[count++] = (FlatChunk){.offset = p->grad_arena_offset + at,
                                         .elements = left < FLAT_CHUNK ? left : FLAT_CHUNK,
                                         .sum = sum++};
        }
    }
    optim->grad_chunk_count = count;
    if (count > 0) {
        optim->grad_chunk = b->table->alloc(b, grad_chunk_bytes(optim));
        b->table->copy(s, optim->grad_chunk, chunk, grad_chunk_bytes(optim));
        b->table->sync(s);
    }
    mem_free(&chunk);
}

/* Returns the bytes of an array that has `sums` exact sums for each norm; 0 if sums are not
 * exact. */
static size_t exact_bytes(const Optim *optim, int64_t sums)
{
    return optim->exact ? (size_t)(sums + 1) * OPTIM_NORMS * sizeof(SquareSum) : 0;
}

static void make_exact(Optim *optim)
{
    Backend *b = optim->backend;
    if (!optim->exact) return;
    optim->exact_chunk = b->table->alloc(b, exact_bytes(optim, optim->chunks));
    optim->exact_range = b->table->alloc(b, exact_bytes(optim, optim->range_count));
    optim->exact_host = backend_host_new(b, exact_bytes(optim, optim->range_count));
}

static void free_exact(Optim *optim)
{
    Backend *b = optim->backend;
    if (!optim->exact) return;
    b->table->release(b, optim->exact_chunk, exact_bytes(optim, optim->chunks));
    b->table->release(b, optim->exact_range, exact_bytes(optim, optim->range_count));
    backend_host_free(b, optim->exact_host, exact_bytes(optim, optim->range_count));
}

static void make_sums(Optim *optim)
{
    Backend *b = optim->backend;
    Stream *s = b->table->stream(b);
    optim->sums = b->table->alloc(b, sums_bytes(optim));
    optim->first_chunk = b->table->alloc(b, first_chunk_bytes(optim));
    b->table->copy(s, optim->first_chunk, optim->chunk, first_chunk_bytes(optim));
    b->table->sync(s);
    if (b->table->record_begin) optim->numbers = b->table->alloc(b, now_bytes(optim));
    make_grad_chunks(optim);
}

static void free_sums(Optim *optim)
{
    Backend *b = optim->backend;
    b->table->release(b, optim->sums, sums_bytes(optim));
    b->table->release(b, optim->first_chunk, first_chunk_bytes(optim));
    if (optim->numbers) b->table->release(b, optim->numbers, now_bytes(optim));
    if (optim->grad_chunk) b->table->release(b, optim->grad_chunk, grad_chunk_bytes(optim));
}

/* Returns the number of floats of Optim.whole_buffer: the largest need of any tensor. */
static int64_t whole_elements(const Optim *optim)
{
    int64_t most = 0;
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimPiece *piece = &optim->piece[i];
        if (piece->elements == 0 || !piece->rule->table->whole) continue;
        int64_t floats = optim_whole_floats(piece->rule->table, piece->tensor);
        if (floats > most) most = floats;
    }
    return most;
}

static void make_memory(Optim *optim)
{
    for (int s = 0; s < optim->slots; ++s)
        optim->state[s] = arena_new(optim, optim->slot_elements[s]);
    optim->average = arena_new(optim, optim->average_elements);
    optim->whole_elements = whole_elements(optim);
    optim->scratch = arena_new(optim, optim->scratch_elements);
    optim->whole_buffer = arena_new(optim, optim->whole_elements);
    optim->chunk_squares = backend_host_new(optim->backend, chunk_squares_bytes(optim));
    optim->range_squares = mem_new((size_t)(optim->range_count + 1) * OPTIM_NORMS * sizeof(double));
    optim->partial = optim->backend->table->alloc(optim->backend, chunk_squares_bytes(optim));
    make_sums(optim);
    make_exact(optim);
}

/* ---- making an optimizer ---- */

static Status check_ranges(const OptimRange *range, int count, int rules, int64_t arena_elements,
                           const OptimShard *shard)
{
    for (int i = 0; i < count; ++i) {
        const OptimRange *r = &range[i];
        if (r->offset != arena_align(r->offset) || r->elements < 1 ||
            (!shard && r->offset + r->elements > arena_elements))
            return fail(ERR_BUG, "optimizer: range %d is misplaced", i);
        if (shard && (shard->first[i] % FLAT_CHUNK || shard->first[i] < 0 || shard->count[i] < 0 ||
                      shard->first[i] + shard->count[i] > r->elements))
            return fail(ERR_BUG, "optimizer: the shard of range %d is misplaced", i);
        if (r->rule < 0 || r->rule >= rules)
            return fail(ERR_BUG, "optimizer: range %d has no rule number %d", i, r->rule);
    }
    return OK;
}

/* Checks the table of rule number `number`. ERR_BUG: the table has a fault. ERR_CONFIG: the rule
 * cannot work on this backend. */
static Status check_rule(const Config *config, int number, Backend *backend)
{
    const OptimTable *t = optim_rule(config, number).table;
    TRY(optim_rule_check(t));
    TRY(optim_slots_check(t, backend));
    if (t->devices == DEVICES_ALL || backend->table->host_memory) return OK;
    return config_fail_key(config, number ? "optim.groups" : "optim.name",
                           "%s works on CPUs only, not with train.device %s: choose another "
                           "rule, or train.device: cpu",
                           t->word.word, backend->table->name);
}

/* Checks that rules on whole tensors get undivided tensors. */
static Status check_whole(const Optim *o)
{
    for (int i = 0; i < o->range_count; ++i) {
        const OptimPiece *piece = &o->piece[i];
        bool part = piece->elements > 0 && piece->elements < o->range[i].elements;
        if (part && piece->rule->table->whole)
            return fail(ERR_BUG,
                        "optimizer: range %d is divided over ranks, but %s needs the whole tensor",
                        i, piece->rule->table->word.word);
    }
    return OK;
}

/* Copies the configuration's rules. Sets `table` and the fields that combine all ranges and their
 * rules: the largest numbers of slots and norms, needs_whole_tensors and `exact`. Also sets
 * OptimRange.decay for rules with decay_all. */
static void copy_rules(Optim *o)
{
    o->rule_count = optim_rule_count(o->config);
    o->rule = mem_new((size_t)(o->rule_count + o->range_count) * sizeof *o->rule);
    for (int i = 0; i < o->rule_count; ++i) o->rule[i] = optim_rule(o->config, i);
    o->table = o->rule[0].table;
    for (int i = 0; i < o->range_count; ++i) {
        const OptimRule *rule = &o->rule[o->range[i].rule];
        o->range[i].decay = o->range[i].decay || rule->constants->decay_all;
        if (rule->slots > o->slots) o->slots = rule->slots;
        if (rule->table->norms > o->norm_count) o->norm_count = rule->table->norms;
        o->needs_whole_tensors = o->needs_whole_tensors || rule->table->whole;
        o->exact = o->exact || o->range[i].exact;
    }
}

static void free_lists(Optim **optim)
{
    Optim *o = *optim;
    mem_free(&o->range);
    mem_free(&o->piece);
    mem_free(&o->chunk);
    mem_free(&o->joined);
    mem_free(&o->joined_statistic);
    mem_free(&o->update_piece);
    mem_free(&o->rule);
    mem_free(optim);
}

static Status make(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                   int count, int64_t arena_elements, const OptimShard *shard)
{
    *optim = NULL;
    TRY(check_ranges(range, count, optim_rule_count(config), arena_elements, shard));
    for (int i = 0; i < optim_rule_count(config); ++i) TRY(check_rule(config, i, backend));
    if (config->optim.slim > 0 && !backend->table->flat->run_elements)
        return config_fail_key(config, "optim.slim",
                               "works on CPUs only, not with train.device %s: leave it out, or set "
                               "train.device: cpu",
                               backend->table->name);
    Optim *o = *optim = mem_new(sizeof *o);
    o->config = config;
    o->backend = backend;
    o->averaged_count = o->range_count = count;
    while (o->range_count > 0 && range[o->range_count - 1].statistic) --o->range_count;
    o->range = mem_new((size_t)(count + 1) * sizeof *o->range);
    memcpy(o->range, range, (size_t)count * sizeof *range);
    copy_rules(o);
    if (shard) o->shard = *shard;
    optim_make_pieces(o, arena_elements);
    /* these borrowed arrays are not needed any more: the pieces have their values */
    o->shard.first = o->shard.count = NULL;
    o->shard.value_offset = o->shard.grad_arena_offset = NULL;
    Status st = check_whole(o);
    if (st != OK) free_lists(optim);
    TRY(st);
    optim_join_pieces(o);
    make_memory(o);
    return OK;
}

Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements)
{
    return make(optim, config, backend, range, count, arena_elements, NULL);
}

Status optim_new_shard(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShard *shard)
{
    return make(optim, config, backend, range, count, 0, shard);
}

void optim_free(Optim **optim)
{
    Optim *o = *optim;
    if (!o) return;
    for (int s = 0; s < o->slots; ++s) arena_free(o, o->state[s], o->slot_elements[s]);
    arena_free(o, o->average, o->average_elements);
    arena_free(o, o->scratch, o->scratch_elements);
    arena_free(o, o->whole_buffer, o->whole_elements);
    o->backend->table->release(o->backend, o->partial, chunk_squares_bytes(o));
    free_sums(o);
    free_exact(o);
    backend_host_free(o->backend, o->chunk_squares, chunk_squares_bytes(o));
    mem_free(&o->range_squares);
    free_lists(optim);
}

/* ---- sizes, and access for the rules ---- */

void optim_use_whole(Optim *optim, OptimWhole whole)
{
    optim->whole_io = whole;
}

void optim_use_merge(Optim *optim, OptimMerge merge)
{
    optim->merge = merge;
}

bool optim_can_copy(const Optim *optim)
{
    bool can = !optim->shard.gather && !optim->backend->table->host_memory;
    for (int i = 0; i < optim->rule_count; ++i)
        can = can && optim->rule[i].table->update_pieces != NULL;
    return can;
}

void optim_use_copies(Optim *optim, void *const *copy, DType type)
{
    for (int i = 0; i < optim->range_count; ++i) optim->piece[i].copy = copy[i];
    optim->copy_type = type;
    optim_join_pieces(optim);
}

size_t optim_state_bytes(const Optim *optim)
{
    int64_t elements = 0;
    for (int s = 0; s < optim->slots; ++s) elements += optim->slot_elements[s];
    return (size_t)elements * sizeof(float);
}

size_t optim_bytes(const Optim *optim)
{
    int64_t others = optim->average_elements + optim->scratch_elements + optim->whole_elements;
    return optim_state_bytes(optim) + (size_t)others * sizeof(float);
}

float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece)
{
    const OptimTable *table = piece->rule->table;
    if (slot >= (optim->uses ? OPTIM_SLOTS : table->slots))
        die("optimizer %s: update uses state slot %d, but .slots is %d", table->word.word, slot,
            table->slots);
    if (optim->uses) optim->uses->slots |= 1u << slot;
    if (optim->uses || slot >= piece->rule->slots) return NULL;
    return optim->state[slot] + piece->state[slot];
}

float *optim_scratch_of(const Optim *optim, const OptimPiece *piece)
{
    if (optim->uses) optim->uses->scratch = true;
    return optim->scratch + piece->scratch_offset;
}

float optim_decay(const OptimPiece *piece)
{
    return piece->decay ? (float)piece->rule->constants->weight_decay : 0.0f;
}

const UpdateNumbers *optim_numbers_of(const Optim *optim, const OptimRule *rule)
{
    return optim->numbers ? optim->numbers + (rule - optim->rule) : NULL;
}

void optim_each(const Optim *optim, const OptimPiece *piece, ElementBody body, const void *args,
                float *const array[FLAT_ARRAYS])
{
    const BackendTable *table = optim->backend->table;
    if (optim->uses) optim->uses->each = true;
    table->flat->run_elements(table->stream(optim->backend), body, args, array, piece->elements);
}
