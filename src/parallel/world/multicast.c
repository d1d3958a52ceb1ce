/* Sends bytes of one rank to some other ranks along a tree, in pieces. A rank receives later pieces
 * while it passes earlier pieces on to its children. Also contains world_node_leaders. */
#include "mpi_check.h"
#include "parallel.h"

/* tag of the messages, different from the tags of the other files of this folder */
enum { TAG_MULTICAST = 24 };

int *world_node_leaders(const World *world)
{
    int first = world->rank, *all = mem_new((size_t)world->size * sizeof *all);
    if (world->node != MPI_COMM_NULL) MPI_CHECK(MPI_Bcast(&first, 1, MPI_INT, 0, world->node));
    world_allgather(world, &first, sizeof first, all);
    return all;
}

/* ---- the tree ---- */

/* The members of a multicast, as in multicast_place. */
typedef struct Members {
    /* rank of each member, in the order of the members; borrowed */
    const int *rank;
    /* node of each rank of the world (world_node_leaders); borrowed */
    const int *node;
} Members;

static int node_at(const Members *m, int at)
{
    return m->node[m->rank[at]];
}

/* Returns the index of the member at which the members root + 1 .. end - 1 are cut into two parts;
 * the first member of each part is a child of member `root`. Returns `end` if the members are one
 * part. Members on the same node stay in one part, unless all are on the node of `root`, so that
 * the bytes enter each node once. */
static int cut(const Members *m, int root, int end)
{
    int first = root + 1, middle = first + (end - first + 1) / 2;
    if (end - first < 2) return end;
    if (node_at(m, first) == node_at(m, end - 1))
        return node_at(m, root) == node_at(m, first) ? middle : end;
    for (int d = 0;; ++d) {
        int before = middle - d, after = middle + d;
        if (before > first && node_at(m, before - 1) != node_at(m, before)) return before;
        if (after < end && node_at(m, after - 1) != node_at(m, after)) return after;
    }
}

MulticastPlace multicast_place(const int *member, int count, const int *node, int rank)
{
    const Members m = {member, node};
    int root = 0, end = count, at = 0, parent = -1;
    while (member[at] != rank) ++at;
    while (root != at) {
        int second = cut(&m, root, end);
        parent = member[root];
        end = at < second ? second : end;
        root = at < second ? root + 1 : second;
    }
    int second = cut(&m, root, end), levels = 2;
    while (1 << levels < count) ++levels;
    return (MulticastPlace){
        .parent = parent,
        .child = {root + 1 < end ? member[root + 1] : -1, second < end ? member[second] : -1},
        .levels = levels};
}

/* ---- bytes ---- */

/* Returns the bytes of a piece. With two levels a piece has 4 MiB, because few messages are best.
 * For 16,384 ranks it has 84 KiB, so that a tensor of a few MB soon has pieces on all levels of the
 * tree. */
static size_t piece_bytes(const Multicast *m)
{
    return ((size_t)16 << 20) / (size_t)(m->place.levels * m->place.levels);
}

static int bytes_of(const Multicast *m, size_t piece)
{
    size_t each = piece_bytes(m), left = m->bytes - piece * each;
    return (int)(left < each ? left : each);
}

static void receive_begin(Multicast *m, size_t piece)
{
    if (m->place.parent < 0 || piece * piece_bytes(m) >= m->bytes) return;
    MPI_CHECK(MPI_Irecv(m->data + piece * piece_bytes(m), bytes_of(m, piece), MPI_BYTE,
                        m->place.parent, TAG_MULTICAST, m->world->comm,
                        &m->in[piece % MULTICAST_PIECES]));
}

static void send_begin(Multicast *m, size_t piece)
{
    MPI_Request *out = m->out[piece % MULTICAST_PIECES];
    /* waits for the sends of the earlier piece that used these requests */
    mpi_await_all(2, out);
    for (int c = 0; c < 2; ++c)
        if (m->place.child[c] >= 0)
            MPI_CHECK(MPI_Isend(m->data + piece * piece_bytes(m), bytes_of(m, piece), MPI_BYTE,
                                m->place.child[c], TAG_MULTICAST, m->world->comm, &out[c]));
}

static bool has_peers(const Multicast *m)
{
    return m->place.parent >= 0 || m->place.child[0] >= 0;
}

void multicast_begin(Multicast *m, const World *world, MulticastPlace place, void *data,
                     size_t bytes)
{
    *m = (Multicast){.world = world, .place = place, .data = data, .bytes = bytes};
    if (!has_peers(m)) return;
    for (int k = 0; k < MULTICAST_PIECES; ++k)
        m->in[k] = m->out[k][0] = m->out[k][1] = MPI_REQUEST_NULL;
    for (size_t piece = 0; piece + 1 < MULTICAST_PIECES; ++piece) receive_begin(m, piece);
    for (size_t piece = 0; piece * piece_bytes(m) < bytes; ++piece) {
        receive_begin(m, piece + MULTICAST_PIECES - 1);
        mpi_await(&m->in[piece % MULTICAST_PIECES]);
        send_begin(m, piece);
    }
}

void multicast_wait(Multicast *m)
{
    if (has_peers(m)) mpi_await_all(2 * MULTICAST_PIECES, m->out[0]);
}
