/* Slices between the ranks of a tensor group, as the operations ask for them (tensor.h, Exchange), and what they owe each other
 * at a step's end. Pipes join every two ranks of the group. A slice goes in pieces, so that all ranks write, read and add at
 * the same time; the ranks' parts are added in their order, wherever they come from. Host memory only. */
#include "executor.h"

#include <string.h>

enum { PIECE_BYTES = 128 << 10, PIECE_FLOATS = PIECE_BYTES / sizeof(float), PIPE_DEPTH = 2 };

struct TensorGroup {
    Exchange face;
    Executor *executor; /* borrowed */
    Channels *channels;
    int *out, *in;        /* owned; channels to and from each rank */
    float *sum;           /* owned; a piece in fp32 */
    char *own;            /* owned; a piece of this rank's, packed */
    int64_t owed;         /* floats that ranks add up at a step's end, */
    float *parts, *slice; /* owned: those of this rank; its slice of the sums */
};

/* A slice where it lies: runs of `run` bytes, `stride` apart. */
typedef struct Part {
    char *base;
    size_t run, stride, bytes;
} Part;

static Part part_of(const Slices *s, int size, int rank, const void *whole)
{
    size_t unit = (size_t)s->unit * dtype_bytes(s->type);
    size_t first = (size_t)slice_first(s->items, size, rank);
    size_t end = (size_t)slice_first(s->items, size, rank + 1);
    Part p = {.base = (char *)(uintptr_t)whole + first * unit,
              .run = (end - first) * unit,
              .stride = (size_t)s->items * unit};
    p.bytes = p.run * (size_t)s->runs;
    return p;
}

/* n bytes from place `at` of the packed slice on: out of the tensor, or into it. */
static void part_move(const Part *p, size_t at, size_t n, char *packed, bool into)
{
    while (n > 0) {
        size_t in_run = at % p->run, count = p->run - in_run < n ? p->run - in_run : n;
        char *here = p->base + at / p->run * p->stride + in_run;
        memcpy(into ? here : packed, into ? packed : here, count);
        at += count;
        packed += count;
        n -= count;
    }
}

static size_t piece_of(size_t bytes, size_t at)
{
    return at >= bytes ? 0 : bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
}

/* ---- pieces ---- */

static void send_piece(TensorGroup *g, int rank, const Part *from, size_t at)
{
    size_t n = piece_of(from->bytes, at);
    if (n == 0) return;
    char *place = pipe_place(g->executor, g->channels, g->out[rank]);
    part_move(from, at, n, place, false);
    channel_send(g->channels, g->out[rank]);
}

static const char *await_piece(TensorGroup *g, int rank)
{
    return pipe_message(g->executor, g->channels, g->in[rank]);
}

static void gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    TensorGroup *g = x->user;
    Part own = part_of(&s, x->size, x->rank, whole), packed = own;
    packed.base = (char *)(uintptr_t)mine;
    packed.stride = packed.run;
    size_t most =
        (size_t)(slice_first(s.items, x->size, 1) * s.unit * s.runs) * dtype_bytes(s.type);
    Phase outer = phase_enter(PHASE_MESSAGES);
    for (size_t at = 0; at < most; at += PIECE_BYTES) {
        for (int r = 0; r < x->size; ++r)
            if (r != x->rank) send_piece(g, r, &packed, at);
        for (int r = 0; r < x->size; ++r) {
            Part part = part_of(&s, x->size, r, whole);
            size_t n = piece_of(part.bytes, at);
            if (n == 0) continue;
            if (r == x->rank) {
                part_move(&own, at, n, packed.base + at, true);
                continue;
            }
            part_move(&part, at, n, (char *)(uintptr_t)await_piece(g, r), true);
            channel_return(g->channels, g->in[r]);
        }
    }
    phase_enter(outer);
}

/* sum = x, or sum += x. */
static void add_floats(float *sum, const float *x, size_t n, bool first)
{
    if (first)
        memcpy(sum, x, n * sizeof *sum);
    else
        for (size_t i = 0; i < n; ++i) sum[i] += x[i];
}

static void add_halves(float *sum, const Bf16 *x, size_t n, bool first)
{
    for (size_t i = 0; i < n; ++i) sum[i] = first ? bf16_value(x[i]) : sum[i] + bf16_value(x[i]);
}

/* One piece of every rank, added in their order. */
static void sum_piece(TensorGroup *g, const Slices *s, const Part *own, size_t at, char *mine)
{
    const Exchange *x = &g->face;
    size_t bytes = piece_of(own->bytes, at), n = bytes / dtype_bytes(s->type);
    bool half = s->type == DTYPE_BF16;
    float *sum = half ? g->sum : (float *)(void *)(mine + at);
    for (int r = 0; r < x->size && bytes > 0; ++r) {
        const char *piece = g->own;
        if (r == x->rank)
            part_move(own, at, bytes, g->own, false);
        else
            piece = await_piece(g, r);
        if (half)
            add_halves(sum, (const Bf16 *)(const void *)piece, n, r == 0);
        else
            add_floats(sum, (const float *)(const void *)piece, n, r == 0);
        if (r != x->rank) channel_return(g->channels, g->in[r]);
    }
    for (size_t i = 0; half && i < n; ++i) ((Bf16 *)(void *)(mine + at))[i] = bf16_of(sum[i]);
}

static void reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    TensorGroup *g = x->user;
    Part own = part_of(&s, x->size, x->rank, whole);
    size_t most = part_of(&s, x->size, 0, whole).bytes;
    Phase outer = phase_enter(PHASE_MESSAGES);
    for (size_t at = 0; at < most; at += PIECE_BYTES) {
        for (int r = 0; r < x->size; ++r) {
            Part part = part_of(&s, x->size, r, whole);
            if (r != x->rank) send_piece(g, r, &part, at);
        }
        sum_piece(g, &s, &own, at, mine);
    }
    phase_enter(outer);
}

/* ---- a step's end ---- */

/* What of a parameter's gradient has been summed over the replicas here. */
static bool owes(const Executor *e, int param, float **at, int64_t *first, int64_t *count)
{
    const Plan *plan = e->plan;
    int rank = e->grid->dp_rank;
    if (!plan->graph->param[param].partial || plan->gradient_at[param] < 0) return false;
    plan_share(plan, param, rank, first, count);
    *at = e->level[0] + plan_sum_at(plan, plan->gradient_at[param] + *first, rank);
    return *count > 0;
}

static void owed_move(Executor *e, bool back)
{
    float *at, *packed = e->group->parts;
    int64_t first, count;
    for (int i = 0; i < e->plan->graph->param_count; ++i) {
        if (!owes(e, i, &at, &first, &count)) continue;
        memcpy(back ? at : packed, back ? packed : at, (size_t)count * sizeof(float));
        packed += count;
    }
}

void group_sum(Executor *e, float *signal)
{
    TensorGroup *g = e->group;
    if (!g) return;
    Slices all = {.runs = 1, .items = g->owed, .unit = 1, .type = DTYPE_F32};
    owed_move(e, false);
    g->parts[g->owed - 1] = *signal;
    g->face.reduce(&g->face, all, g->parts, g->slice);
    g->face.gather(&g->face, all, g->slice, g->parts);
    *signal = g->parts[g->owed - 1];
    owed_move(e, true);
}

/* ---- set-up ---- */

void group_progress(Executor *e)
{
    if (e->group) channels_progress(e->group->channels);
}

const Exchange *group_exchange(const Executor *e)
{
    return e->group ? &e->group->face : NULL;
}

static Status open_pipes(TensorGroup *g, const World *world, int transport)
{
    int size = world->size, count = 0;
    ChannelSpec *spec = mem_new((size_t)(size * size) * sizeof *spec);
    g->out = mem_new((size_t)size * sizeof *g->out);
    g->in = mem_new((size_t)size * sizeof *g->in);
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            if (from == to) continue;
            if (from == world->rank) g->out[to] = count;
            if (to == world->rank) g->in[from] = count;
            spec[count++] =
                (ChannelSpec){.from = from, .to = to, .depth = PIPE_DEPTH, .bytes = PIECE_BYTES};
        }
    Status st = channels_new(&g->channels, world, spec, count, transport);
    mem_free(&spec);
    return st;
}

/* How many floats a rank owes, and which: the ranks of a group must owe each other the same. */
static void count_owed(const Executor *e, int64_t *owed, uint64_t *which)
{
    float *at;
    int64_t field[4] = {0}; /* so far, parameter, first, count */
    *owed = 1;              /* METRIC_SIGNAL */
    for (int i = 0; i < e->plan->graph->param_count; ++i) {
        if (!owes(e, i, &at, &field[2], &field[3])) continue;
        *owed += field[3];
        field[1] = i;
        field[0] = (int64_t)hash_bytes(field, sizeof field);
    }
    *which = (uint64_t)field[0];
}

static Status check_owed(const Executor *e, uint64_t which)
{
    const World *world = &e->grid->tp_world;
    uint64_t *all = mem_new((size_t)world->size * sizeof *all);
    world_gather(world, &which, sizeof which, all);
    bool same = true;
    for (int r = 0; r < world->size; ++r) same = same && all[r] == which;
    mem_free(&all);
    if (same) return OK;
    return fail(ERR_CONFIG,
                "grid.zero: the slices of grid.tp=%d are not equal here, so that its "
                "ranks would share parameters out differently: choose a grid.tp that "
                "divides heads, widths and vocabulary, or grid.zero=0",
                world->size);
}

Status group_new(Executor *e)
{
    const World *world = &e->grid->tp_world;
    int64_t owed;
    uint64_t which;
    if (world->size == 1) return OK;
    if (!e->backend->table->host_memory)
        return fail(ERR_CONFIG, "grid.tp: tensor parallelism is for CPUs in this version");
    count_owed(e, &owed, &which);
    TRY(status_agree(e->grid->world, check_owed(e, which)));
    TensorGroup *g = e->group = mem_new(sizeof *g);
    *g = (TensorGroup){.executor = e, .owed = owed};
    g->face = (Exchange){
        .rank = world->rank, .size = world->size, .user = g, .gather = gather, .reduce = reduce};
    g->sum = mem_new(2 * PIECE_BYTES);
    g->own = mem_new(PIECE_BYTES);
    g->parts = mem_new((size_t)owed * sizeof(float));
    g->slice = mem_new((size_t)owed * sizeof(float));
    return open_pipes(g, world, e->options.transport);
}

void group_free(Executor *e)
{
    TensorGroup *g = e->group;
    if (!g) return;
    if (g->channels) channels_free(&g->channels);
    mem_free(&g->out);
    mem_free(&g->in);
    mem_free(&g->sum);
    mem_free(&g->own);
    mem_free(&g->parts);
    mem_free(&g->slice);
    mem_free(&e->group);
}

size_t group_bytes(const Plan *plan)
{
    const Graph *g = plan->graph;
    size_t owed = 0, others = (size_t)plan->shape.tp - 1;
    if (others == 0) return 0;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].partial && plan->gradient_at[i] >= 0)
            owed += (size_t)g->param[i].elements * sizeof(float);
    return 2 * owed + (size_t)PIECE_BYTES * (3 + PIPE_DEPTH * others);
}
