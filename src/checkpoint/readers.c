/* Assigns a reader to each tensor of a checkpoint. Every rank gets the table of the tensors that
 * each rank wants, and computes the same readers from this table. */
#include "readers.h"

bool readers_want(const Readers *r, int rank, int i)
{
    return r->wants[(size_t)rank * r->row_bytes + (size_t)i / 8] >> i % 8 & 1;
}

typedef struct Reads {
    /* elements assigned so far to each rank, [ranks]; owned */
    int64_t *rank;
    /* elements assigned so far to each node, at the index of the node's first rank; owned */
    int64_t *node;
} Reads;

/* Returns true if rank a has fewer elements to read than rank b or, if both have equally many, if
 * the node of a has fewer than the node of b. */
static bool reads_less(const Readers *r, const Reads *reads, int a, int b)
{
    if (reads->rank[a] != reads->rank[b]) return reads->rank[a] < reads->rank[b];
    return reads->node[r->node[a]] < reads->node[r->node[b]];
}

static int reader_of(const Readers *r, const Reads *reads, int i)
{
    int best = -1;
    bool wanted = false;
    for (int rank = 0; rank < r->ranks && !wanted; ++rank) wanted = readers_want(r, rank, i);
    for (int rank = 0; rank < r->ranks; ++rank) {
        if (wanted && !readers_want(r, rank, i)) continue;
        if (best < 0 || reads_less(r, reads, rank, best)) best = rank;
    }
    return best;
}

void readers_assign(Readers *r, const CheckpointIo *io, const ReadBy *taken)
{
    size_t ranks = (size_t)r->ranks;
    Reads reads = {mem_new(ranks * sizeof *reads.rank), mem_new(ranks * sizeof *reads.node)};
    r->reader = mem_new(((size_t)io->count + 1) * sizeof *r->reader);
    for (int i = 0; i < io->count; ++i) {
        int reader = taken[i] == READ_BY_ANY ? reader_of(r, &reads, i) : -1;
        if (taken[i] == READ_BY_FIRST) reader = 0;
        r->reader[i] = reader;
        if (reader < 0) continue;
        reads.rank[reader] += shape_count(io->tensor[i].shape);
        reads.node[r->node[reader]] += shape_count(io->tensor[i].shape);
    }
    mem_free(&reads.rank);
    mem_free(&reads.node);
}

/* Returns the ranks, sorted by node. Owner: the caller. */
static int *by_node(const int *node, int ranks)
{
    int *order = mem_new((size_t)ranks * sizeof *order);
    int *begin = mem_new(((size_t)ranks + 1) * sizeof *begin);
    for (int r = 0; r < ranks; ++r) ++begin[node[r] + 1];
    for (int r = 0; r < ranks; ++r) begin[r + 1] += begin[r];
    for (int r = 0; r < ranks; ++r) order[begin[node[r]]++] = r;
    mem_free(&begin);
    return order;
}

void readers_init(Readers *r, const World *world, const CheckpointIo *io, const ReadBy *taken)
{
    size_t row = (size_t)io->count / 8 + 1;
    uint8_t *mine = mem_new(row);
    for (int i = 0; i < io->count; ++i)
        if (taken[i] != READ_NOT && (!io->wants || io->wants(io->user, i)))
            mine[i / 8] |= (uint8_t)(1 << i % 8);
    *r = (Readers){.ranks = world->size,
                   .node = world_node_leaders(world),
                   .wants = mem_new((size_t)world->size * row),
                   .row_bytes = row};
    world_allgather(world, mine, row, r->wants);
    r->order = by_node(r->node, r->ranks);
    readers_assign(r, io, taken);
    mem_free(&mine);
}

void readers_fini(Readers *r)
{
    mem_free(&r->reader);
    mem_free(&r->wants);
    mem_free(&r->order);
    mem_free(&r->node);
}

/* Returns the number of ranks of the node whose ranks begin at r->order[first]. */
static int node_width(const Readers *r, int first)
{
    int end = first + 1;
    while (end < r->ranks && r->node[r->order[end]] == r->node[r->order[first]]) ++end;
    return end - first;
}

int readers_members(const Readers *r, int i, int *member)
{
    int reader = r->reader[i], first = 0, count = 0;
    while (r->node[r->order[first]] != r->node[reader]) ++first;
    member[count++] = reader;
    for (int left = r->ranks; left > 0;) {
        int width = node_width(r, first);
        for (int k = 0; k < width; ++k) {
            /* For each tensor i the list begins with another rank of the node, because the first
             * ranks of the list forward the most data. */
            int rank = r->order[first + (k + i) % width];
            if (rank != reader && readers_want(r, rank, i)) member[count++] = rank;
        }
        left -= width;
        first = (first + width) % r->ranks;
    }
    return count;
}
