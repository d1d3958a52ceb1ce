/* Tests sparse exchanges: messages about which only the senders know in advance. Exactly the
 * messages that were sent arrive, in many consecutive exchanges and in two exchanges at the same
 * time. Also tests how long world_wait_for waits. */
#include "mpi_main.h"

#include <time.h>

/* Returns the size of a message. In most cases it is 0, which means that there is no message;
 * otherwise a few bytes, or more bytes than MPI sends before the receiver is ready. */
static size_t bytes_of(int from, int to, int round)
{
    static const size_t bytes[] = {0, 0, 3, 0, 200000, 0, 0, 40, 0};
    return from == to ? 0 : bytes[(from * 5 + to * 3 + round) % 9];
}

static unsigned char byte_of(int from, int to, int round, size_t at)
{
    return (unsigned char)((size_t)(from * 7 + to * 31 + round * 13) + at + at / 251);
}

/* Fills `to`, [ranks], with this rank's messages. Returns their memory, which the caller owns. */
static unsigned char *fill(MemoryRange *to, int round)
{
    size_t all = 1, at = 0;
    for (int r = 0; r < test_world.size; ++r) all += bytes_of(test_world.rank, r, round);
    unsigned char *out = mem_new(all);
    for (int r = 0; r < test_world.size; ++r) {
        to[r] = (MemoryRange){out + at, bytes_of(test_world.rank, r, round)};
        for (size_t i = 0; i < to[r].bytes; ++i) out[at++] = byte_of(test_world.rank, r, round, i);
    }
    return out;
}

static size_t count_wrong(const MemoryRange *from, int round)
{
    size_t wrong = 0;
    for (int r = 0; r < test_world.size; ++r) {
        const unsigned char *in = from[r].at;
        size_t bytes = bytes_of(r, test_world.rank, round);
        wrong += from[r].bytes != bytes;
        for (size_t i = 0; i < bytes && from[r].bytes == bytes; ++i)
            wrong += in[i] != byte_of(r, test_world.rank, round, i);
    }
    return wrong;
}

/* number of communicators that MPI_Comm_dup, which is replaced here, has made */
static int made;
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    ++made;
    return PMPI_Comm_dup(comm, out);
}

/* In every third exchange no rank sends a message, and in some exchanges a rank is late. */
static void all_arrive(bool sleeps)
{
    WorldSparse *exchange = world_sparse_new(&test_world, sleeps);
    MemoryRange *to = mem_new((size_t)test_world.size * sizeof *to);
    made = 0;
    for (int round = 0; round < 60; ++round) {
        unsigned char *out = fill(to, round);
        bool none = round % 3 == 0;
        for (int r = 0; r < test_world.size && none; ++r) to[r].bytes = 0;
        if (round % 7 == test_world.rank) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        world_sparse_begin(exchange, to);
        const MemoryRange *from = world_sparse_wait(exchange);
        for (int r = 0; r < test_world.size && none; ++r) CU_ASSERT_EQUAL(from[r].bytes, 0);
        if (!none) CU_ASSERT_EQUAL(count_wrong(from, round), 0);
        mem_free(&out);
    }
    CU_ASSERT_EQUAL(made, 1);
    mem_free(&to);
    world_sparse_free(&exchange);
}

static void exchanges_in_a_row(void)
{
    all_arrive(false);
    all_arrive(true);
}

/* A second exchange is begun and completed while the first is in flight, as the exchange of an
 * evaluation is between two steps. */
static void two_at_a_time(void)
{
    WorldSparse *first = world_sparse_new(&test_world, false),
                *second = world_sparse_new(&test_world, true);
    MemoryRange *to = mem_new((size_t)test_world.size * sizeof *to);
    for (int round = 0; round < 20; ++round) {
        unsigned char *a = fill(to, round);
        world_sparse_begin(first, to);
        unsigned char *b = fill(to, round + 1);
        world_sparse_begin(second, to);
        CU_ASSERT_EQUAL(count_wrong(world_sparse_wait(second), round + 1), 0);
        world_barrier(&test_world);
        CU_ASSERT_EQUAL(count_wrong(world_sparse_wait(first), round), 0);
        mem_free(&a);
        mem_free(&b);
    }
    mem_free(&to);
    world_sparse_free(&first);
    world_sparse_free(&second);
}

static void alone(void)
{
    World one;
    CU_ASSERT_EQUAL(world_split(&one, &test_world, test_world.rank), OK);
    WorldSparse *exchange = world_sparse_new(&one, false);
    MemoryRange to = {0};
    world_sparse_begin(exchange, &to);
    CU_ASSERT_EQUAL(world_sparse_wait(exchange)[0].bytes, 0);
    world_sparse_free(&exchange);
    world_part_fini(&one);
}

/* look_s: seconds that each call of MPI_Iprobe takes, as if ranks that wait in MPI occupied the
 * cores; 0: no longer than usual. The variable `looks` counts the calls. */
static double look_s;
static int looks;

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status)
{
    if (look_s > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(look_s * 1e9)}, NULL);
    ++looks;
    return PMPI_Iprobe(from, tag, comm, there, status);
}

/* world_wait_for measures its time limit by the clock: the slower a look for a message is, the
 * fewer looks it makes. */
static void patience(void)
{
    enum { LOOKS_MOST = 10 };
    const double patience_s = 0.5;
    char word = 0;
    if (test_world.rank == 2) world_send(&test_world, 0, &word, 1);
    if (test_world.rank == 0) {
        CU_ASSERT_TRUE(world_wait_for(&test_world, 2, 60));
        look_s = patience_s / LOOKS_MOST;
        looks = 0;
        const double begun_s = clock_s();
        CU_ASSERT_FALSE(world_wait_for(&test_world, 1, patience_s));
        CU_ASSERT(clock_s() - begun_s >= patience_s);
        /* a look of world_wait_for makes up to three calls, and ends before the time is checked */
        CU_ASSERT(looks <= LOOKS_MOST + 3);
        look_s = 0;
        CU_ASSERT_TRUE(world_wait_for(&test_world, 2, patience_s));
        CU_ASSERT_EQUAL(world_receive(&test_world, -1, &word, 1), 2);
    }
    world_barrier(&test_world);
}

MPI_TEST_MAIN("sparse exchanges", 5, {"exchanges in a row", exchanges_in_a_row},
              {"two at a time", two_at_a_time}, {"alone", alone}, {"patience", patience})
