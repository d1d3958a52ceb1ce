/* Messages between two ranks, and swaps of many at a time, for work that goes on while they are on
 * their way, and for ranks that wait for long and leave their core to others meanwhile. */
#include "mpi_check.h"
#include "parallel.h"

#include <time.h>

/* not those of other files of this folder, collect.c */
enum { TAG_SWAP = 18, TAG_TELL };

/* MPI polls without a pause, and takes a core from those who compute: who waits for long sleeps
 * between two looks, longer and longer. */
typedef struct Pause {
    int looks;
    long ns;
} Pause;

static double slept_s;

double world_slept_s(void)
{
    return slept_s;
}

static void pause_a_little(Pause *pause)
{
    enum { SHORTEST_NS = 2000, LONGEST_NS = 500000, LOOKS = 100 };
    if (++pause->looks < LOOKS) return;
    pause->ns = pause->ns < SHORTEST_NS  ? SHORTEST_NS
                : pause->ns > LONGEST_NS ? LONGEST_NS
                                         : pause->ns + pause->ns / 8;
    const double begun = clock_s();
    nanosleep(&(struct timespec){.tv_nsec = pause->ns}, NULL);
    slept_s += clock_s() - begun;
}

struct WorldSwap {
    const World *world;
    bool sleeps;
    /* owned: room for one message to and one from each rank */
    MPI_Request *request;
    int count;
};

WorldSwap *world_swap_new(const World *world, bool sleeps)
{
    WorldSwap *swap = mem_new(sizeof *swap);
    swap->world = world;
    swap->sleeps = sleeps;
    swap->request = mem_new(2 * (size_t)world->size * sizeof *swap->request);
    return swap;
}

void world_swap_free(WorldSwap **swap)
{
    if (!*swap) return;
    mem_free(&(*swap)->request);
    mem_free(swap);
}

void world_swap_begin(WorldSwap *swap, const WorldPart *to, const WorldPart *from)
{
    const World *world = swap->world;
    swap->count = 0;
    for (int k = 1; k < world->size; ++k) {
        int r = (world->rank + world->size - k) % world->size;
        if (from[r].bytes == 0) continue;
        MPI_CHECK(MPI_Irecv(from[r].at, (int)from[r].bytes, MPI_BYTE, r, TAG_SWAP, world->comm,
                            &swap->request[swap->count++]));
    }
    for (int k = 1; k < world->size; ++k) {
        int r = (world->rank + k) % world->size;
        if (to[r].bytes == 0) continue;
        MPI_CHECK(MPI_Isend(to[r].at, (int)to[r].bytes, MPI_BYTE, r, TAG_SWAP, world->comm,
                            &swap->request[swap->count++]));
    }
}

void world_swap_wait(WorldSwap *swap)
{
    Pause pause = {0};
    int done = 0;
    while (swap->sleeps && swap->count > 0 && !done) {
        MPI_CHECK(MPI_Testall(swap->count, swap->request, &done, MPI_STATUSES_IGNORE));
        if (!done) pause_a_little(&pause);
    }
    if (swap->count > 0 && !done)
        MPI_CHECK(MPI_Waitall(swap->count, swap->request, MPI_STATUSES_IGNORE));
    swap->count = 0;
}

void world_swap(const World *world, const WorldPart *to, const WorldPart *from)
{
    WorldSwap *swap = world_swap_new(world, false);
    world_swap_begin(swap, to, from);
    world_swap_wait(swap);
    world_swap_free(&swap);
}

void world_tell(const World *world, int rank, const void *data, size_t bytes)
{
    MPI_CHECK(MPI_Send(data, (int)bytes, MPI_BYTE, rank, TAG_TELL, world->comm));
}

void world_tell_begin(WorldTold *told, const World *world, int rank, const void *data, size_t bytes)
{
    MPI_CHECK(MPI_Isend(data, (int)bytes, MPI_BYTE, rank, TAG_TELL, world->comm, &told->request));
    told->begun = true;
}

void world_tell_wait(WorldTold *told)
{
    if (told->begun) MPI_CHECK(MPI_Wait(&told->request, MPI_STATUS_IGNORE));
    told->begun = false;
}

bool world_awaits(const World *world, int rank, double patience_s)
{
    Pause pause = {0};
    int there = 0, other = 0;
    for (double waited = 0; waited < patience_s;) {
        MPI_CHECK(MPI_Iprobe(rank, TAG_TELL, world->comm, &there, MPI_STATUS_IGNORE));
        if (there) return true;
        MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, TAG_TELL, world->comm, &other, MPI_STATUS_IGNORE));
        pause_a_little(&pause);
        waited = other ? waited + (double)pause.ns * 1e-9 : 0;
    }
    return false;
}

int world_hear(const World *world, int rank, void *data, size_t bytes)
{
    MPI_Status status;
    Pause pause = {0};
    int from = rank < 0 ? MPI_ANY_SOURCE : rank, there = 0;
    for (;;) {
        MPI_CHECK(MPI_Iprobe(from, TAG_TELL, world->comm, &there, &status));
        if (there) break;
        pause_a_little(&pause);
    }
    MPI_CHECK(MPI_Recv(data, (int)bytes, MPI_BYTE, status.MPI_SOURCE, TAG_TELL, world->comm,
                       MPI_STATUS_IGNORE));
    return status.MPI_SOURCE;
}
