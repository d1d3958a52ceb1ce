/* What all ranks know of each other: parts of many sizes, brought to one of them, tensor by tensor
 * where memory is short, so that nothing is buffered; and their ranks in the job. */
#include "mpi_check.h"
#include "parallel.h"

#include <string.h>

/* MPI counts in int */
static const size_t PIECE_BYTES = (size_t)1 << 30;
/* A root has at most so many receives on their way: enough to hide latency, and no flood of
 * thousands of ranks' messages. */
enum { TAG_COLLECT = 17, RECEIVES = 16 };

static void send_part(const World *world, const char *part, size_t bytes, int root)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        MPI_CHECK(MPI_Send(part + done, (int)piece, MPI_BYTE, root, TAG_COLLECT, world->comm));
    }
}

/* Receives on their way to a root. */
typedef struct Receives {
    MPI_Request request[RECEIVES];
    int count;
} Receives;

/* Where the next one goes; where all are used, waits until one is over. */
static MPI_Request *next_request(Receives *receives)
{
    int over = receives->count;
    if (receives->count < RECEIVES)
        ++receives->count;
    else
        MPI_CHECK(MPI_Waitany(RECEIVES, receives->request, &over, MPI_STATUS_IGNORE));
    return &receives->request[over];
}

static void receive_part(Receives *receives, const World *world, char *part, size_t bytes, int from)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        MPI_CHECK(MPI_Irecv(part + done, (int)piece, MPI_BYTE, from, TAG_COLLECT, world->comm,
                            next_request(receives)));
    }
}

void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out)
{
    if (world->rank != root) {
        send_part(world, mine, bytes[world->rank], root);
        return;
    }
    Receives receives = {.count = 0};
    char *at = out, *own = out;
    for (int r = 0; r < world->size; at += bytes[r++]) {
        if (r == root)
            own = at;
        else
            receive_part(&receives, world, at, bytes[r], r);
    }
    /* while the last ones come */
    if (bytes[root] > 0) memcpy(own, mine, bytes[root]);
    if (receives.count > 0)
        MPI_CHECK(MPI_Waitall(receives.count, receives.request, MPI_STATUSES_IGNORE));
}

int *world_job_ranks(const World *world)
{
    int mine = 0, *all = mem_new((size_t)world->size * sizeof *all);
    if (world->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &mine));
    world_gather(world, &mine, sizeof mine, all);
    return all;
}
