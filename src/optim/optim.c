/* The optimizer: its state, one step over the ranges, the gradient's global norm. Rules that work element by element see
 * neighbouring ranges as one: the padding between tensors is zero in parameters, gradients and state, and stays so. */
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

/* True where b follows a with nothing but padding between them, and both are treated alike. */
static bool joins(const Optim *optim, const OptimRange *a, const OptimRange *b)
{
    int64_t end = a->offset + a->elements;
    int64_t next = (end + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
    return b->offset == next && (a->decay == b->decay || optim->config->optim.weight_decay == 0);
}

/* The ranges that updates run over: as few as the rule allows. */
static void make_runs(Optim *optim)
{
    optim->run = mem_new((size_t)optim->range_count * sizeof *optim->run);
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimRange *range = &optim->range[i];
        OptimRange *last = optim->run_count ? &optim->run[optim->run_count - 1] : NULL;
        if (last && optim->table->elementwise && joins(optim, last, range))
            last->elements = range->offset + range->elements - last->offset;
        else
            optim->run[optim->run_count++] = *range;
    }
}

static void make_memory(Optim *optim)
{
    Backend *b = optim->backend;
    int64_t largest = 1, all_chunks = 1;
    for (int i = 0; i < optim->range_count; ++i) {
        int64_t n = optim->range[i].elements;
        if (n > largest) largest = n;
        all_chunks += chunks(n);
    }
    for (int s = 0; s < optim->table->slots; ++s)
        optim->state[s] = b->table->alloc(b, (size_t)optim->arena_elements * sizeof(float));
    optim->scratch_elements = optim->table->scratch ? largest : 0;
    if (optim->scratch_elements)
        optim->scratch = b->table->alloc(b, (size_t)largest * sizeof(float));
    optim->norm_chunks = all_chunks;
    optim->norms = mem_new((size_t)all_chunks * sizeof(double));
    optim->partial = b->table->alloc(b, (size_t)all_chunks * sizeof(double));
}

Status optim_new(Optim **optim, const Config *config, Backend *backend, const OptimRange *range,
                 int count, int64_t arena_elements)
{
    *optim = NULL;
    for (int i = 0; i < count; ++i)
        if (range[i].offset % ALIGN_FLOATS || range[i].elements < 1 ||
            range[i].offset + range[i].elements > arena_elements)
            return fail(ERR_BUG, "optimizer: range %d is misplaced", i);
    Optim *o = *optim = mem_new(sizeof *o);
    o->table = rules[config->optim.name];
    o->config = config;
    o->backend = backend;
    o->range_count = count;
    o->range = mem_new((size_t)(count + 1) * sizeof *o->range);
    memcpy(o->range, range, (size_t)count * sizeof *range);
    for (int i = 0; i < count; ++i) o->range[i].decay = range[i].decay || config->optim.decay_all;
    o->arena_elements = arena_elements;
    make_runs(o);
    make_memory(o);
    return OK;
}

void optim_free(Optim **optim)
{
    Optim *o = *optim;
    if (!o) return;
    Backend *b = o->backend;
    for (int s = 0; s < o->table->slots; ++s)
        b->table->release(b, o->state[s], (size_t)o->arena_elements * sizeof(float));
    if (o->scratch) b->table->release(b, o->scratch, (size_t)o->scratch_elements * sizeof(float));
    b->table->release(b, o->partial, (size_t)o->norm_chunks * sizeof(double));
    mem_free(&o->norms);
    mem_free(&o->range);
    mem_free(&o->run);
    mem_free(optim);
}

/* The first n partial sums, brought to the host and added in order. */
static double sum_partial(Optim *optim, int64_t n)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    double sum = 0;
    optim->backend->table->copy(s, optim->norms, optim->partial, (size_t)n * sizeof(double));
    optim->backend->table->sync(s);
    for (int64_t i = 0; i < n; ++i) sum += optim->norms[i];
    return sum;
}

double optim_norm(Optim *optim, const float *x, int64_t n)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    optim->backend->table->flat->squares(s, optim->partial, x, n);
    return sqrt(sum_partial(optim, chunks(n)));
}

double optim_grad_norm(Optim *optim, const float *grads)
{
    Stream *s = optim->backend->table->stream(optim->backend);
    int64_t done = 0;
    for (int i = 0; i < optim->range_count; ++i) {
        const OptimRange *range = &optim->range[i];
        optim->backend->table->flat->squares(s, optim->partial + done, grads + range->offset,
                                             range->elements);
        done += chunks(range->elements);
    }
    return sqrt(sum_partial(optim, done));
}

void optim_step(Optim *optim, float *params, const float *grads, double lr, double grad_scale)
{
    for (int i = 0; i < optim->run_count; ++i) {
        const OptimRange *run = &optim->run[i];
        optim->table->update(optim, run, params + run->offset, grads + run->offset, (float)lr,
                             (float)grad_scale);
    }
    ++optim->step;
}

size_t optim_state_bytes(const Optim *optim)
{
    return (size_t)optim->table->slots * (size_t)optim->arena_elements * sizeof(float);
}

float *optim_slot(const Optim *optim, int slot, const OptimRange *range)
{
    return optim->state[slot] + range->offset;
}

float optim_decay(const Optim *optim, const OptimRange *range)
{
    return range->decay ? (float)optim->config->optim.weight_decay : 0.0f;
}
