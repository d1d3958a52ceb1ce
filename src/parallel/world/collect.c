/* What all ranks know of each other: parts of many sizes, brought to one of them, tensor by tensor
 * where memory is short, so that nothing is buffered; and their ranks in the job. */
#include "mpi_check.h"
#include "parallel.h"

#include <string.h>

/* MPI counts in int */
static const size_t PIECE_BYTES = (size_t)1 << 30;
enum { TAG_COLLECT = 17 };

static void send_part(const World *world, const char *part, size_t bytes, int root)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        MPI_CHECK(MPI_Send(part + done, (int)piece, MPI_BYTE, root, TAG_COLLECT, world->comm));
    }
}

static void receive_part(const World *world, char *part, size_t bytes, int from)
{
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        MPI_CHECK(MPI_Recv(part + done, (int)piece, MPI_BYTE, from, TAG_COLLECT, world->comm,
                           MPI_STATUS_IGNORE));
    }
}

void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out)
{
    if (world->rank != root) {
        send_part(world, mine, bytes[world->rank], root);
        return;
    }
    char *at = out;
    for (int r = 0; r < world->size; at += bytes[r++]) {
        if (r != root)
            receive_part(world, at, bytes[r], r);
        else if (bytes[r] > 0)
            memcpy(at, mine, bytes[r]);
    }
}

int *world_job_ranks(const World *world)
{
    int mine = 0, *all = mem_new((size_t)world->size * sizeof *all);
    if (world->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &mine));
    world_gather(world, &mine, sizeof mine, all);
    return all;
}
