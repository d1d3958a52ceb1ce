/* Gathers parts of different sizes on one rank. Parts are received in pieces directly into their
 * destination, because callers may have no memory for a buffer. Also contains world_job_ranks. */
#include "mpi_check.h"
#include "parallel.h"

#include <string.h>

/* bytes of the largest message; counts of MPI are ints */
static const size_t PIECE_BYTES = (size_t)1 << 30;
/* TAG_COLLECT: tag of the messages. RECEIVES: number of receives that a root has posted at a time.
 * They are enough to hide latency, and few enough that thousands of ranks do not flood the root
 * with messages. */
enum { TAG_COLLECT = 17, RECEIVES = 16 };

struct WorldCollect {
    /* borrowed */
    const World *world;
    /* requests of the sends (of the receives on the root), [count]; owned */
    MPI_Request *request;
    int count;
    /* The following fields are used on the root only. */
    /* the root's own part; borrowed */
    const void *mine;
    /* destination of the root's own part; borrowed */
    char *my_destination;
    /* bytes of each rank's part, [world->size]; owned; NULL on other ranks than the root */
    size_t *bytes;
    /* rank whose part is received next */
    int from;
    /* destination of this part; borrowed */
    char *destination;
    /* number of bytes of this part for which receives have been posted */
    size_t done;
};

static int piece_at(size_t bytes, size_t done)
{
    return (int)(bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES);
}

static void send_part(WorldCollect *c, const char *part, size_t bytes, int root)
{
    c->request = mem_new((bytes / PIECE_BYTES + 1) * sizeof *c->request);
    for (size_t done = 0; done < bytes; done += PIECE_BYTES)
        MPI_CHECK(MPI_Isend(part + done, piece_at(bytes, done), MPI_BYTE, root, TAG_COLLECT,
                            c->world->comm, &c->request[c->count++]));
}

/* Posts the receive of the next piece. Returns false if the receives of all pieces have been
 * posted. */
static bool receive_next(WorldCollect *c, MPI_Request *request)
{
    const World *world = c->world;
    while (c->from < world->size && (c->from == world->rank || c->done == c->bytes[c->from])) {
        c->destination += c->bytes[c->from++];
        c->done = 0;
    }
    if (c->from == world->size) return false;
    int piece = piece_at(c->bytes[c->from], c->done);
    MPI_CHECK(MPI_Irecv(c->destination + c->done, piece, MPI_BYTE, c->from, TAG_COLLECT,
                        world->comm, request));
    c->done += (size_t)piece;
    return true;
}

static void receive_begin(WorldCollect *c, const void *mine, const size_t *bytes, char *out)
{
    const World *world = c->world;
    c->mine = mine;
    c->my_destination = c->destination = out;
    c->bytes = mem_new((size_t)world->size * sizeof *c->bytes);
    memcpy(c->bytes, bytes, (size_t)world->size * sizeof *c->bytes);
    for (int r = 0; r < world->rank; ++r) c->my_destination += bytes[r];
    c->request = mem_new(RECEIVES * sizeof *c->request);
    while (c->count < RECEIVES && receive_next(c, &c->request[c->count])) ++c->count;
}

WorldCollect *world_collect_begin(const World *world, const void *mine, const size_t *bytes,
                                  int root, void *out)
{
    WorldCollect *c = mem_new(sizeof *c);
    c->world = world;
    if (world->rank == root)
        receive_begin(c, mine, bytes, out);
    else
        send_part(c, mine, bytes[world->rank], root);
    return c;
}

static void receive_wait(WorldCollect *c)
{
    /* index of a request that is complete; MPI_UNDEFINED: all are complete */
    int over = 0;
    size_t bytes = c->bytes[c->world->rank];
    if (bytes > 0) memcpy(c->my_destination, c->mine, bytes);
    while (c->count > 0 && over != MPI_UNDEFINED) {
        over = mpi_await_any(c->count, c->request);
        if (over != MPI_UNDEFINED) (void)receive_next(c, &c->request[over]);
    }
}

bool world_collect_is_root(const WorldCollect *collect)
{
    return collect->bytes;
}

void world_collect_wait(WorldCollect **collect)
{
    WorldCollect *c = *collect;
    if (!c) return;
    if (c->bytes)
        receive_wait(c);
    else if (c->count > 0)
        mpi_await_all(c->count, c->request);
    mem_free(&c->bytes);
    mem_free(&c->request);
    mem_free(collect);
}

void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out)
{
    WorldCollect *collect = world_collect_begin(world, mine, bytes, root, out);
    world_collect_wait(&collect);
}

int *world_job_ranks(const World *world)
{
    int mine = 0, *all = mem_new((size_t)world->size * sizeof *all);
    if (world->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &mine));
    world_allgather(world, &mine, sizeof mine, all);
    return all;
}
