/* The optimizer: its state, one step over the ranges, the gradient's squares. Rules that work element by element see
 * neighbouring ranges as one: the padding between tensors is zero in parameters, gradients and state, and stays so.
 *
 * Norms are sums of squares per FLAT_CHUNK of each tensor, added in order on every rank, whoever computed them. All tensors are
 * measured before the first is updated, so that the host waits once, and ranks exchange their chunks' sums once; but tensor
 * by tensor where what is measured lies in a scratch for one (lamb, nothing shared out). */
#include "rules.h"

#include <math.h>
#include <string.h>

enum { ALIGN_FLOATS = 16 }; /* ranges begin at multiples of this */

static const OptimTable *const rules[] = {
    [OPTIM_SGD] = &optim_sgd,   [OPTIM_ADAM] = &optim_adam, [OPTIM_ADAMW] = &optim_adamw,
    [OPTIM_LARS] = &optim_lars, [OPTIM_LAMB] = &optim_lamb,
};

static int64_t chunks(int64_t n)
{
    return (n + FLAT_CHUNK - 1) / FLAT_CHUNK;
}

static int64_t align(int64_t n)
{
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

/* ---- what is updated here, and where its state lies ---- */

/* True where b follows a with nothing but padding between them, and both are treated alike. */
static bool joins(const Optim *optim, const OptimPiece *a, const OptimPiece *b)
{
    return b->offset == align(a->offset + a->elements) &&
           b->value - a->value == b->offset - a->offset &&
           b->state - a->state == b->offset - a->offset &&
           b->gradient - a->gradient == b->offset - a->offset &&
           (a->decay == b->decay || optim->config->optim.weight_decay == 0);
}

/* The pieces that updates run over: as few as the rule allows. */
static void make_runs(Optim *optim)
{
    optim->run = mem_new((size_t)(optim->range_count + 1) * sizeof *optim->run);
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimPiece *piece = &optim->piece[i];
        OptimPiece *last = optim->run_count ? &optim->run[optim->run_count - 1] : NULL;
        if (piece->elements == 0) continue;
        if (last && optim->table->norms == 0 && joins(optim, last, piece))
            last->elements = piece->offset + piece->elements - last->offset;
        else
            optim->run[optim->run_count++] = *piece;
    }
}

/* State lies as the parameters do, or, of shares, close together. */
static void make_pieces(Optim *optim, int64_t arena_elements)
{
    const OptimShare *share = &optim->share;
    size_t room = (size_t)optim->range_count + 1;
    optim->piece = mem_new(room * sizeof *optim->piece);
    optim->chunk = mem_new(room * sizeof *optim->chunk);
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimRange *range = &optim->range[i];
        int64_t first = share->gather ? share->first[i] : 0;
        optim->piece[i] = (OptimPiece){
            .offset = range->offset + first,
            .elements = share->gather ? share->count[i] : range->elements,
            .value = share->gather ? share->value[i] : range->offset,
            .gradient = share->gather ? share->gradient[i] : range->offset,
            .state = share->gather ? optim->state_elements : range->offset,
            .decay = range->decay,
        };
        optim->state_elements += align(optim->piece[i].elements);
        optim->chunk[i + 1] = optim->chunk[i] + chunks(range->elements);
    }
    optim->chunks = optim->chunk[optim->range_count];
    if (!share->gather) optim->state_elements = arena_elements;
}

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

static size_t norms_bytes(const Optim *optim)
{
    return (size_t)(optim->chunks + 1) * OPTIM_NORMS * sizeof(double);
}

static size_t sums_bytes(const Optim *optim)
{
    return (size_t)(optim->range_count + 1) * sizeof *optim->sums;
}

static size_t first_bytes(const Optim *optim)
{
    return (size_t)(optim->range_count + 1) * sizeof *optim->first_chunk;
}

static void make_sums(Optim *optim)
{
    Backend *b = optim->backend;
    Stream *s = b->table->stream(b);
    optim->sums = b->table->alloc(b, sums_bytes(optim));
    optim->first_chunk = b->table->alloc(b, first_bytes(optim));
    b->table->copy(s, optim->first_chunk, optim->chunk, first_bytes(optim));
    b->table->sync(s);
    if (b->table->record_begin) optim->now = b->table->alloc(b, sizeof *optim->now);
}

static void free_sums(Optim *optim)
{
    Backend *b = optim->backend;
    b->table->release(b, optim->sums, sums_bytes(optim));
    b->table->release(b, optim->first_chunk, first_bytes(optim));
    if (optim->now) b->table->release(b, optim->now, sizeof *optim->now);
}

static void make_memory(Optim *optim)
{
    int64_t largest = 1;
    for (int i = 0; i < optim->range_count; ++i)
        if (optim->range[i].elements > largest) largest = optim->range[i].elements;
    for (int s = 0; s < optim->slots; ++s)
        optim->state[s] = arena_new(optim, optim->state_elements);
    if (optim->table->scratch)
        optim->scratch_elements = optim->share.gather ? optim->state_elements : largest;
    optim->scratch = arena_new(optim, optim->scratch_elements);
    optim->norms = backend_host_new(optim->backend, norms_bytes(optim));
    optim->whole = mem_new((size_t)(optim->range_count + 1) * OPTIM_NORMS * sizeof(double));
    optim->partial = optim->backend->table->alloc(optim->backend, norms_bytes(optim));
    make_sums(optim);
}

/* ---- making it ---- */

static Status check(const OptimRange *range, int count, int64_t arena_elements,
                    const OptimShare *share)
{
    for (int i = 0; i < count; ++i) {
        const OptimRange *r = &range[i];
        if (r->offset % ALIGN_FLOATS || r->elements < 1 ||
            (!share && r->offset + r->elements > arena_elements))
            return fail(ERR_BUG, "optimizer: range %d is misplaced", i);
        if (share && (share->first[i] % FLAT_CHUNK || share->first[i] < 0 || share->count[i] < 0 ||
                      share->first[i] + share->count[i] > r->elements))
            return fail(ERR_BUG, "optimizer: the share of range %d is misplaced", i);
    }
    return OK;
}

static Status make(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                   int count, int64_t arena_elements, const OptimShare *share)
{
    *optim = NULL;
    TRY(check(range, count, arena_elements, share));
    Optim *o = *optim = mem_new(sizeof *o);
    o->table = rules[config->optim.name];
    o->slots = optim_slots(config);
    o->config = config;
    o->backend = backend;
    o->range_count = count;
    o->range = mem_new((size_t)(count + 1) * sizeof *o->range);
    memcpy(o->range, range, (size_t)count * sizeof *range);
    for (int i = 0; i < count; ++i) o->range[i].decay = range[i].decay || config->optim.decay_all;
    if (share) o->share = *share;
    make_pieces(o, arena_elements);
    o->share.first = o->share.count = NULL; /* the pieces say it */
    o->share.value = o->share.gradient = NULL;
    make_runs(o);
    make_memory(o);
    return OK;
}

Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements)
{
    return make(optim, config, backend, range, count, arena_elements, NULL);
}

Status optim_new_share(Optim **optim, const Config *config, Backend *backend,
                       const OptimRange *range, int count, const OptimShare *share)
{
    return make(optim, config, backend, range, count, 0, share);
}

void optim_free(Optim **optim)
{
    Optim *o = *optim;
    if (!o) return;
    for (int s = 0; s < o->slots; ++s) arena_free(o, o->state[s], o->state_elements);
    arena_free(o, o->scratch, o->scratch_elements);
    o->backend->table->release(o->backend, o->partial, norms_bytes(o));
    free_sums(o);
    backend_host_free(o->backend, o->norms, norms_bytes(o));
    mem_free(&o->whole);
    mem_free(&o->range);
    mem_free(&o->piece);
    mem_free(&o->chunk);
    mem_free(&o->run);
    mem_free(optim);
}

/* ---- norms ---- */

/* partial and norms: [set][chunk of all ranges]. */
void optim_squares(Optim *optim, int set, const OptimPiece *piece, const float *x)
{
    int range = (int)(piece - optim->piece);
    int64_t first = (piece->offset - optim->range[range].offset) / FLAT_CHUNK;
    double *out = optim->partial + set * optim->chunks + optim->chunk[range] + first;
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->squares(s, out, x, piece->elements);
}

/* Brings the sums of ranges first .. last-1 to the host, and, shared out, those of the other ranks. */
static void bring_squares(Optim *optim, int sets, int first, int last)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    int64_t at = optim->chunk[first], count = optim->chunk[last] - at;
    for (int set = 0; set < sets; ++set, at += optim->chunks)
        table->copy(s, optim->norms + at, optim->partial + at, (size_t)count * sizeof(double));
    table->sync(s);
    if (optim->share.gather) optim->share.gather(optim->share.user, optim->norms, sets);
}

static double sum_squares(const Optim *optim, int set, int range)
{
    double sum = 0;
    for (int64_t c = optim->chunk[range]; c < optim->chunk[range + 1]; ++c)
        sum += optim->norms[set * optim->chunks + c];
    return sum;
}

static void measure_gradients(Optim *optim, const float *grads)
{
    for (int i = 0; i < optim->range_count; ++i)
        if (optim->piece[i].elements > 0)
            optim_squares(optim, 0, &optim->piece[i], grads + optim->piece[i].gradient);
}

/* The same sums of whole ranges for optim_clip and for the host. */
static void sum_gradients(Optim *optim, const float *grads)
{
    const BackendTable *table = optim->backend->table;
    measure_gradients(optim, grads);
    table->flat->range_sums(table->stream(optim->backend), optim->sums, optim->partial,
                            optim->first_chunk, optim->range_count);
}

void optim_grad_squares(Optim *optim, const float *grads, double *out)
{
    const BackendTable *table = optim->backend->table;
    Stream *s = table->stream(optim->backend);
    if (optim->share.gather) {
        measure_gradients(optim, grads);
        bring_squares(optim, 1, 0, optim->range_count);
        for (int i = 0; i < optim->range_count; ++i) out[i] = sum_squares(optim, 0, i);
        return;
    }
    sum_gradients(optim, grads);
    table->copy(s, out, optim->sums, (size_t)optim->range_count * sizeof *out);
    table->sync(s);
}

/* The update takes its scale from now. */
bool optim_can_clip(const Optim *optim)
{
    return optim->now && optim->table->norms == 0 && !optim->share.gather;
}

void optim_clip(Optim *optim, const float *grads, double limit)
{
    const BackendTable *table = optim->backend->table;
    sum_gradients(optim, grads);
    table->flat->clip(table->stream(optim->backend), &optim->now->grad_scale, optim->sums,
                      optim->range_count, limit);
}

/* ---- a step ---- */

/* What a step has in common for all pieces. */
typedef struct Step {
    Optim *optim;
    float *params;
    const float *grads;
} Step;

static OptimArgs args_of(const Step *step, const OptimPiece *piece)
{
    return (OptimArgs){.w = step->params + piece->value,
                       .g = step->grads + piece->gradient,
                       .lr = step->optim->lr,
                       .grad_scale = step->optim->scale};
}

/* Fills optim->whole for ranges first .. last-1: all of them, where others have slices. */
static void sum_ranges(Optim *optim, int first, int last)
{
    int sets = optim->table->norms;
    for (int set = 0; set < sets; ++set)
        for (int i = first; i < last; ++i)
            optim->whole[set * optim->range_count + i] = sum_squares(optim, set, i);
    if (optim->share.join) optim->share.join(optim->share.user, optim->whole, sets);
}

/* Ranges first .. last-1 of a rule with norms. */
static void step_ranges(const Step *step, int first, int last)
{
    Optim *optim = step->optim;
    const OptimTable *table = optim->table;
    for (int i = first; i < last; ++i) {
        OptimArgs args = args_of(step, &optim->piece[i]);
        if (optim->piece[i].elements > 0) table->measure(optim, &optim->piece[i], &args);
    }
    bring_squares(optim, table->norms, first, last);
    sum_ranges(optim, first, last);
    for (int i = first; i < last; ++i) {
        double norm[OPTIM_NORMS];
        OptimArgs args = args_of(step, &optim->piece[i]);
        args.norm = norm;
        for (int set = 0; set < table->norms; ++set)
            norm[set] = sqrt(optim->whole[set * optim->range_count + i]);
        if (optim->piece[i].elements > 0) table->update(optim, &optim->piece[i], &args);
    }
}

static void step_runs(const Step *step)
{
    Optim *optim = step->optim;
    for (int i = 0; i < optim->run_count; ++i) {
        OptimArgs args = args_of(step, &optim->run[i]);
        optim->table->update(optim, &optim->run[i], &args);
    }
}

void optim_begin(Optim *optim, double lr, double grad_scale)
{
    const BackendTable *table = optim->backend->table;
    optim->first = optim->step == 0;
    ++optim->step;
    optim->lr = (float)lr;
    optim->scale = (float)grad_scale;
    UpdateNumbers now = {.lr = optim->lr, .grad_scale = optim->scale};
    adam_corrections(optim, &now.correct1, &now.correct2);
    if (optim->now) table->flat->put(table->stream(optim->backend), optim->now, &now, sizeof now);
}

bool optim_repeats(const Optim *optim)
{
    return optim->now && !optim->first && optim->table->norms == 0;
}

void optim_update(Optim *optim, float *params, const float *grads)
{
    Step step = {optim, params, grads};
    bool all = optim->share.gather || !optim->table->scratch;
    int together = all ? optim->range_count : 1;
    if (optim->table->norms == 0)
        step_runs(&step);
    else
        for (int i = 0; i < optim->range_count; i += together) step_ranges(&step, i, i + together);
}

void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale)
{
    optim_begin(optim, lr, grad_scale);
    optim_update(optim, params, grads);
}

/* ---- what it needs ---- */

int optim_slots(const Config *config)
{
    bool none = config->optim.name == OPTIM_SGD && config->optim.momentum == 0;
    return none ? 0 : rules[config->optim.name]->slots;
}

bool optim_has_norms(const Config *config)
{
    return rules[config->optim.name]->norms > 0;
}

bool optim_scratch(const Config *config)
{
    return rules[config->optim.name]->scratch;
}

size_t optim_state_bytes(const Optim *optim)
{
    return (size_t)optim->slots * (size_t)optim->state_elements * sizeof(float);
}

float *optim_slot(const Optim *optim, int slot, const OptimPiece *piece)
{
    return slot < optim->slots ? optim->state[slot] + piece->state : NULL;
}

float *optim_scratch_of(const Optim *optim, const OptimPiece *piece)
{
    return optim->scratch + (optim->share.gather ? piece->state : 0);
}

float optim_decay(const Optim *optim, const OptimPiece *piece)
{
    return piece->decay ? (float)optim->config->optim.weight_decay : 0.0f;
}
