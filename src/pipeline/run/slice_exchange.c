/* Exchanges slices between the ranks of a tensor-parallel group in host memory, for operations
 * (tensor.h, Exchange). Each pair of ranks of the group has a channel in each direction. Slices are
 * sent in pieces, so that all ranks write, read and add at the same time. Parts are added in a
 * fixed order, which does not depend on their arrival: in the order of ranks, or by the binary tree
 * of neighbours if the graph's sums are cut into slices (plan_sums_by_tree). */
#include "slice_exchange.h"

#include <string.h>

/* PIECE_BYTES: bytes of a piece. PIECE_ELEMENTS: largest number of elements in a piece. */
enum { PIECE_BYTES = EXCHANGE_PIECE_BYTES, PIECE_ELEMENTS = PIECE_BYTES / (int)sizeof(Bf16) };

struct HostExchange {
    Exchange interface;
    /* borrowed */
    const Context *context;
    /* owned */
    Channels *channels;
    /* index of the channel to each rank; int[size], owned */
    int *out;
    /* index of the channel from each rank; int[size], owned */
    int *in;
    /* true: parts are added by the binary tree; false: in the order of ranks */
    bool tree;
    /* partial sums of one piece in fp32, PIECE_ELEMENTS floats for each level of the tree, level
     * after level; owned. For fp32 tensors level 0 is not here but in the result. */
    float *sum;
    /* packed piece of this rank's slice; owned */
    char *local;
};

/* One rank's slice of a tensor: contiguous ranges of equal length at equal distances. */
typedef struct Part {
    /* first byte of the slice in the tensor; borrowed */
    char *base;
    /* bytes of each range */
    size_t run;
    /* bytes from the beginning of a range to the beginning of the next one */
    size_t stride;
    /* bytes of the slice */
    size_t bytes;
} Part;

static Part part_of(const Slices *s, int size, int rank, const void *whole)
{
    size_t unit = (size_t)s->item_elements * dtype_bytes(s->type);
    size_t first = (size_t)slice_first(s->items, size, rank);
    Part p = {.base = (char *)(uintptr_t)whole + first * unit,
              .run = slices_range_bytes(s, size, rank),
              .stride = (size_t)s->items * unit};
    p.bytes = p.run * (size_t)s->ranges;
    return p;
}

/* Copies bytes `at` to `at` + n - 1 of a slice from the tensor to `packed` or, with into = true,
 * from `packed` into the tensor. */
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

/* Returns the bytes of the piece that begins at byte `at` of a slice of `bytes` bytes. */
static size_t piece_of(size_t bytes, size_t at)
{
    return at >= bytes ? 0 : bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
}

/* ---- pieces ---- */

static void send_piece(HostExchange *g, int rank, const Part *from, size_t at)
{
    size_t n = piece_of(from->bytes, at);
    if (n == 0) return;
    char *place = await_slot(&g->context->progress, g->channels, g->out[rank]);
    part_move(from, at, n, place, false);
    channel_send(g->channels, g->out[rank]);
}

static const char *await_piece(HostExchange *g, int rank)
{
    return await_message(&g->context->progress, g->channels, g->in[rank]);
}

static void gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    HostExchange *g = x->user;
    const ExchangeBlock b = exchange_block(x, &s);
    Part local = part_of(&s, b.size, b.rank, whole), packed = local;
    packed.base = (char *)(uintptr_t)mine;
    packed.stride = packed.run;
    size_t most = (size_t)s.ranges * slices_range_bytes(&s, b.size, 0);
    Phase outer = phase_enter(PHASE_EXCHANGE);
    for (size_t at = 0; at < most; at += PIECE_BYTES) {
        for (int r = 0; r < b.size; ++r)
            if (r != b.rank) send_piece(g, b.first + r, &packed, at);
        for (int r = 0; r < b.size; ++r) {
            Part part = part_of(&s, b.size, r, whole);
            size_t n = piece_of(part.bytes, at);
            if (n == 0) continue;
            if (r == b.rank) {
                part_move(&local, at, n, packed.base + at, true);
                continue;
            }
            part_move(&part, at, n, (char *)(uintptr_t)await_piece(g, b.first + r), true);
            channel_release(g->channels, g->in[b.first + r]);
        }
    }
    phase_enter(outer);
}

/* These functions set sum = x if is_first is true (for the first part), else sum += x. */
static void add_floats(float *sum, const float *x, size_t n, bool is_first)
{
    if (is_first)
        memcpy(sum, x, n * sizeof *sum);
    else
        for (size_t i = 0; i < n; ++i) sum[i] += x[i];
}

static void add_bf16(float *sum, const Bf16 *x, size_t n, bool is_first)
{
    for (size_t i = 0; i < n; ++i) sum[i] = is_first ? bf16_value(x[i]) : sum[i] + bf16_value(x[i]);
}

static void add_f16(float *sum, const F16 *x, size_t n, bool is_first)
{
    for (size_t i = 0; i < n; ++i) sum[i] = is_first ? f16_value(x[i]) : sum[i] + f16_value(x[i]);
}

static void add_piece(DType type, float *sum, const void *x, size_t n, bool is_first)
{
    if (type == DTYPE_BF16)
        add_bf16(sum, x, n, is_first);
    else if (type == DTYPE_F16)
        add_f16(sum, x, n, is_first);
    else
        add_floats(sum, x, n, is_first);
}

static void round_piece(DType type, void *to, const float *sum, size_t n)
{
    Bf16 *bf16 = to;
    F16 *f16 = to;
    for (size_t i = 0; i < n && type == DTYPE_BF16; ++i) bf16[i] = bf16_of(sum[i]);
    for (size_t i = 0; i < n && type == DTYPE_F16; ++i) f16[i] = f16_of(sum[i]);
}

/* Adds the piece of rank r of the block (ExchangeBlock) to the partial sums of the block's ranks
 * before r. These sums are on `depth` levels: level 0 is at `sum`, the others are in g->sum.
 * Returns the new depth. */
static int join_piece(const HostExchange *g, const Slices *s, float *sum, int depth, int r,
                      const void *piece, size_t n)
{
    int joins = 0;
    while (g->tree && r >> joins & 1) ++joins;
    if (!g->tree && r > 0) joins = 1;
    if (joins == 0) ++depth;
    float *to = depth == 1 ? sum : g->sum + (depth - 1) * PIECE_ELEMENTS;
    add_piece(s->type, to, piece, n, joins == 0);
    for (; joins > 1; --joins, --depth) {
        const float *right = g->sum + (depth - 1) * PIECE_ELEMENTS;
        float *left = depth == 2 ? sum : g->sum + (depth - 2) * PIECE_ELEMENTS;
        for (size_t i = 0; i < n; ++i) left[i] += right[i];
    }
    return depth;
}

/* Adds the pieces that begin at byte `at` of the slices that all ranks of the block have sent to
 * this rank, and writes the sum to mine + at. */
static void sum_piece(HostExchange *g, const Slices *s, const Part *local, size_t at, char *mine)
{
    const ExchangeBlock b = exchange_block(&g->interface, s);
    size_t bytes = piece_of(local->bytes, at), n = bytes / dtype_bytes(s->type);
    bool half = s->type != DTYPE_F32;
    float *sum = half ? g->sum : (float *)(void *)(mine + at);
    int depth = 0;
    for (int r = 0; r < b.size && bytes > 0; ++r) {
        const char *piece = g->local;
        if (r == b.rank)
            part_move(local, at, bytes, g->local, false);
        else
            piece = await_piece(g, b.first + r);
        depth = join_piece(g, s, sum, depth, r, piece, n);
        if (r != b.rank) channel_release(g->channels, g->in[b.first + r]);
    }
    round_piece(s->type, mine + at, sum, n);
}

static void reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    HostExchange *g = x->user;
    const ExchangeBlock b = exchange_block(x, &s);
    Part local = part_of(&s, b.size, b.rank, whole);
    size_t most = part_of(&s, b.size, 0, whole).bytes;
    Phase outer = phase_enter(PHASE_EXCHANGE);
    for (size_t at = 0; at < most; at += PIECE_BYTES) {
        for (int r = 0; r < b.size; ++r) {
            Part part = part_of(&s, b.size, r, whole);
            if (r != b.rank) send_piece(g, b.first + r, &part, at);
        }
        sum_piece(g, &s, &local, at, mine);
    }
    phase_enter(outer);
}

/* ---- set-up ---- */

static Status open_channels(HostExchange *g, const World *world, int transport)
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
            spec[count++] = (ChannelSpec){
                .from = from, .to = to, .depth = EXCHANGE_DEPTH, .bytes = PIECE_BYTES};
        }
    Status st = channels_new(&g->channels, world, spec, count, transport);
    mem_free(&spec);
    return st;
}

Status host_exchange_new(HostExchange **out, const Context *context, const World *world)
{
    HostExchange *g = *out = mem_new(sizeof *g);
    *g = (HostExchange){.context = context, .tree = plan_sums_by_tree(context->plan)};
    g->interface = (Exchange){.rank = world->rank,
                              .size = world->size,
                              .user = g,
                              .all_gather = gather,
                              .reduce_scatter = reduce};
    g->sum = mem_new(exchange_sum_bytes(world->size));
    g->local = mem_new(PIECE_BYTES);
    return open_channels(g, world, context->options.transport);
}

void host_exchange_free(HostExchange **exchange)
{
    HostExchange *g = *exchange;
    if (!g) return;
    if (g->channels) channels_free(&g->channels);
    mem_free(&g->out);
    mem_free(&g->in);
    mem_free(&g->sum);
    mem_free(&g->local);
    mem_free(exchange);
}

const Exchange *host_exchange_interface(const HostExchange *exchange)
{
    return &exchange->interface;
}

Channels *host_exchange_channels(const HostExchange *exchange)
{
    return exchange->channels;
}
