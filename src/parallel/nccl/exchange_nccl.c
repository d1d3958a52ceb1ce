/* Exchanges slices between the GPUs of a tensor-parallel group. The ranks that divide a tensor are
 * the whole group or a block of neighbours in it (ExchangeBlock in tensor/op.h). Terms of this
 * file:
 * - A tensor consists of runs of equal size, which are the ranges of Slices (tensor/shape.h).
 * - A run is cut into slices, one for each rank of the block.
 * - A tensor is exchanged in pieces. A piece is several consecutive runs or, if a slice is too
 *   large for that, the same range of bytes of every slice of one run.
 * - A piece has one part for each rank: the bytes of the piece that are in that rank's slices.
 * A part that is not contiguous in the tensor is packed before it is sent, or unpacked after it is
 * received. Partial results are added in rank order or by the binary tree of neighbours. */
#include "nccl.h"

/* PIECE_BYTES: size of a piece of a large tensor, if all ranks of the group divide it evenly.
 * part_capacity reserves for each part twice an even share of PIECE_BYTES, and at least half of
 * this is used, so the piece has between PIECE_BYTES and about 2 * PIECE_BYTES bytes. If a block of
 * fewer ranks divides the tensor, a piece is smaller in proportion. The last piece of a run or of
 * the tensor may be smaller. PART_ALIGN: alignment of parts in the staging memory, in bytes. */
enum { PIECE_BYTES = 16 << 20, PART_ALIGN = 256 };

typedef struct GpuExchange {
    Exchange base;
    /* handle of the group's communicator; borrowed */
    const NcclComm *nccl_comm;
    /* true: fp32 parts are added by the binary tree of neighbours, and the number of ranks is a
     * power of two; false: all parts are added in rank order */
    bool tree;
    /* capacity for one part, in bytes */
    size_t part_bytes;
    /* staging memory for the received parts of all ranks, in rank order; owned */
    char *in;
    /* staging memory for parts to send, in rank order; it is the second half of the allocation at
     * `in` */
    char *out;
} GpuExchange;

typedef struct Piece {
    /* the tensor's division into slices; borrowed */
    const Slices *s;
    /* the ranks that have slices of the tensor */
    ExchangeBlock block;
    /* index of the first run of the piece */
    int64_t run;
    /* number of runs of the piece */
    int64_t runs;
    /* first byte of the piece within each rank's slice of a run */
    size_t begin;
    /* largest number of bytes of the piece within a rank's slice of a run */
    size_t bytes;
} Piece;

/* The part of a piece that belongs to one rank. */
typedef struct Part {
    /* address of the first byte */
    char *at;
    /* bytes of the part in each run */
    size_t bytes;
    /* distance of two runs, in bytes */
    size_t pitch;
    /* number of runs */
    size_t runs;
} Part;

static Part part_of_whole(const Piece *p, int ranks, int rank, const void *whole)
{
    size_t unit = (size_t)p->s->item_elements * dtype_bytes(p->s->type);
    size_t pitch = (size_t)p->s->items * unit;
    size_t first = (size_t)slice_first(p->s->items, ranks, rank) * unit;
    size_t all = slices_range_bytes(p->s, ranks, rank);
    size_t left = all > p->begin ? all - p->begin : 0;
    return (Part){.at = (char *)(uintptr_t)whole + (size_t)p->run * pitch + first + p->begin,
                  .bytes = left < p->bytes ? left : p->bytes,
                  .pitch = pitch,
                  .runs = (size_t)p->runs};
}

/* Returns a part with the size of `like`, but at address `at` and without gaps between its runs. */
static Part packed_at(char *at, Part like)
{
    return (Part){.at = at, .bytes = like.bytes, .pitch = like.bytes, .runs = like.runs};
}

static Part part_of_mine(const Piece *p, const Part *local, int ranks, int rank, const void *mine)
{
    size_t before = (size_t)p->run * slices_range_bytes(p->s, ranks, rank) + p->begin;
    return packed_at((char *)(uintptr_t)mine + before, *local);
}

static bool is_packed(const Part *part)
{
    return part->runs == 1 || part->bytes == part->pitch;
}

static size_t bytes_of(const Part *part)
{
    return part->bytes * part->runs;
}

static void move(const GpuExchange *ex, Part to, Part from)
{
    ex->nccl_comm->backend->table->copy_rows(ex->nccl_comm->stream, to.at, to.pitch, from.at,
                                             from.pitch, from.bytes, from.runs);
}

/* Returns the memory from which the part of rank `rank` is sent, or into which it is received: the
 * part's place in the tensor if the part is contiguous there, otherwise its place in the staging
 * memory `packed`. */
static Part through(const GpuExchange *ex, char *packed, Part part, int rank)
{
    return is_packed(&part) ? part : packed_at(packed + (size_t)rank * ex->part_bytes, part);
}

static void gather_piece(const GpuExchange *ex, const Piece *p, const void *mine, void *whole)
{
    const ExchangeBlock b = p->block;
    Part target = part_of_whole(p, b.size, b.rank, whole);
    Part local = part_of_mine(p, &target, b.size, b.rank, mine);
    nccl_group_begin(ex->nccl_comm);
    for (int r = 0; r < b.size; ++r) {
        Part in = through(ex, ex->in, part_of_whole(p, b.size, r, whole), r);
        if (r == b.rank) continue;
        nccl_send(ex->nccl_comm, local.at, bytes_of(&local), b.first + r);
        nccl_receive(ex->nccl_comm, in.at, bytes_of(&in), b.first + r);
    }
    nccl_group_end(ex->nccl_comm);
    move(ex, target, local);
    for (int r = 0; r < b.size; ++r) {
        Part part = part_of_whole(p, b.size, r, whole);
        if (r != b.rank && !is_packed(&part)) move(ex, part, through(ex, ex->in, part, r));
    }
}

/* Writes the sum of the parts of all ranks of the block, n elements each, to `sum`. 16-bit parts
 * are always added in rank order, in fp32, and the sum is rounded once. This is right even if
 * ex->tree requires the binary tree: only a divided embedding then has 16-bit parts, and for each
 * element at most one rank's part is not 0 (has_wide_side in tensor/sliced.c), so every order gives
 * the same bits. */
static void add_parts(const GpuExchange *ex, const Piece *p, void *sum, int64_t n)
{
    const FlatTable *flat = ex->nccl_comm->backend->table->flat;
    const DType type = p->s->type;
    const int64_t stride = (int64_t)(ex->part_bytes / dtype_bytes(type));
    const int size = p->block.size;
    if (!ex->tree || type != DTYPE_F32) {
        flat->add_slices(ex->nccl_comm->stream, type, sum, ex->in, size, stride, n);
        return;
    }
    for (int step = 1; step < size; step *= 2)
        for (int r = 0; r < size; r += 2 * step) {
            float *left = (float *)(void *)ex->in + r * stride;
            flat->add(ex->nccl_comm->stream, 2 * step >= size ? sum : left, left,
                      left + step * stride, n);
        }
}

static void reduce_piece(const GpuExchange *ex, const Piece *p, const void *whole, void *mine)
{
    const ExchangeBlock b = p->block;
    size_t element = dtype_bytes(p->s->type);
    Part local = part_of_whole(p, b.size, b.rank, whole);
    Part sum = part_of_mine(p, &local, b.size, b.rank, mine);
    for (int r = 0; r < b.size; ++r) {
        Part part = part_of_whole(p, b.size, r, whole);
        if (r != b.rank && !is_packed(&part)) move(ex, through(ex, ex->out, part, r), part);
    }
    nccl_group_begin(ex->nccl_comm);
    for (int r = 0; r < b.size; ++r) {
        Part out = through(ex, ex->out, part_of_whole(p, b.size, r, whole), r);
        if (r == b.rank) continue;
        nccl_send(ex->nccl_comm, out.at, bytes_of(&out), b.first + r);
        nccl_receive(ex->nccl_comm, ex->in + (size_t)r * ex->part_bytes, bytes_of(&local),
                     b.first + r);
    }
    nccl_group_end(ex->nccl_comm);
    move(ex, packed_at(ex->in + (size_t)b.rank * ex->part_bytes, local), local);
    add_parts(ex, p, sum.at, (int64_t)(bytes_of(&local) / element));
}

/* Advances *p to the next piece. If the largest slice of a run fits into part_bytes, the piece has
 * as many runs as fit; otherwise it has up to part_bytes bytes of each slice of one run. Returns
 * false after the last piece. */
static bool next_piece(const GpuExchange *ex, Piece *p)
{
    /* bytes of the longest slice of a run, which is that of rank 0 */
    size_t most = slices_range_bytes(p->s, p->block.size, 0);
    p->begin += p->bytes;
    if (p->begin >= most) {
        p->run += p->runs;
        p->begin = 0;
    }
    if (most == 0 || p->run >= p->s->ranges) return false;
    int64_t fit = (int64_t)(ex->part_bytes / most), left = p->s->ranges - p->run;
    p->runs = fit < 1 ? 1 : fit < left ? fit : left;
    p->bytes = most < ex->part_bytes ? most : ex->part_bytes;
    return true;
}

static void gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    Piece piece = {.s = &s, .block = exchange_block(x, &s)};
    Phase outer = phase_enter(PHASE_EXCHANGE);
    while (next_piece(x->user, &piece)) gather_piece(x->user, &piece, mine, whole);
    phase_enter(outer);
}

static void reduce(const Exchange *x, Slices s, const void *whole, void *mine)
{
    Piece piece = {.s = &s, .block = exchange_block(x, &s)};
    Phase outer = phase_enter(PHASE_EXCHANGE);
    while (next_piece(x->user, &piece)) reduce_piece(x->user, &piece, whole, mine);
    phase_enter(outer);
}

/* Returns the capacity of a part in bytes. It is at least twice an even share of PIECE_BYTES, or of
 * the largest tensor if that is smaller. Slices may differ by one item, so the longest slice can be
 * more than an even share; but if every rank of the group has an item, it is less than twice an
 * even share. A tensor of up to PIECE_BYTES bytes then is a single piece. most: bytes of the
 * largest tensor. */
static size_t part_capacity(int ranks, size_t most)
{
    size_t piece = most < PIECE_BYTES ? most : PIECE_BYTES;
    return (2 * piece / (size_t)ranks + 2 * PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

size_t gpu_exchange_bytes(int ranks, size_t most)
{
    return 2 * (size_t)ranks * part_capacity(ranks, most);
}

Exchange *gpu_exchange_new(const World *world, size_t most, bool tree)
{
    if (!world->nccl_comm) return NULL;
    const NcclComm *nccl_comm = world->nccl_comm;
    GpuExchange *ex = mem_new(sizeof *ex);
    *ex = (GpuExchange){
        .nccl_comm = nccl_comm, .tree = tree, .part_bytes = part_capacity(world->size, most)};
    ex->base = (Exchange){.rank = world->rank,
                          .size = world->size,
                          .user = ex,
                          .all_gather = gather,
                          .reduce_scatter = reduce};
    ex->in =
        nccl_comm->backend->table->alloc(nccl_comm->backend, gpu_exchange_bytes(world->size, most));
    ex->out = ex->in + (size_t)world->size * ex->part_bytes;
    return &ex->base;
}

void gpu_exchange_free(Exchange **exchange)
{
    GpuExchange *ex = (*exchange)->user;
    Backend *backend = ex->nccl_comm->backend;
    backend->table->sync(ex->nccl_comm->stream);
    backend->table->release(backend, ex->in, 2 * (size_t)ex->base.size * ex->part_bytes);
    mem_free(&ex);
    *exchange = NULL;
}
