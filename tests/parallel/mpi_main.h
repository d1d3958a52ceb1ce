/* The main function of tests that run under mpirun, and two simple backends for communicators: in
 * host memory, and in memory that counts as a device's. */
#ifndef WEFT_TEST_MPI_MAIN_H
#define WEFT_TEST_MPI_MAIN_H

#include "harness.h"
#include "parallel.h"

/* all ranks of the test program */
static World test_world;
/* value of `ranks` for programs that run with any number of ranks */
enum { ANY_RANKS = 0 };

static int test_sum_counts(int mine)
{
    int all = mine;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Runs the tests, [count], on all ranks. ranks: number of ranks that the tests need, or ANY_RANKS.
 * Returns the exit code. */
static int mpi_test_run(int argc, char **argv, const char *suite, const HarnessTest *test,
                        int count, int ranks)
{
    if (world_init(&test_world, &argc, &argv) != OK) {
        printf("%s: %s\n", suite, fail_message());
        return 2;
    }
    if (ranks != ANY_RANKS && test_world.size != ranks) {
        printf("%s: run me with %d ranks, not %d\n", suite, ranks, test_world.size);
        return 2;
    }
    int bad = harness_run(suite, test, count, test_world.rank, test_sum_counts);
    world_fini(&test_world);
    return bad;
}

#define MPI_TEST_MAIN(suite, ranks, ...)                                                           \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const HarnessTest tests[] = {__VA_ARGS__};                                          \
        return mpi_test_run(argc, argv, suite, tests, (int)(sizeof tests / sizeof tests[0]),       \
                            ranks);                                                                \
    }

/* Returns a world of the same ranks in which `ranks` consecutive ranks are on one node. The caller
 * frees the result's communicator `node`. */
static inline World world_of_nodes(World world, int ranks)
{
    world.one_node = false;
    MPI_Comm_split(world.comm, world.rank / ranks, world.rank, &world.node);
    MPI_Comm_rank(world.node, &world.node_rank);
    MPI_Comm_size(world.node, &world.node_size);
    return world;
}

static void *host_alloc(Backend *b, size_t bytes)
{
    (void)b;
    return mem_pages_new(bytes);
}
static void host_release(Backend *b, void *p, size_t bytes)
{
    (void)b;
    mem_pages_free(p, bytes);
}
static const BackendTable host_table = {
    .name = "host", .host_memory = true, .alloc = host_alloc, .release = host_release};

/* The functions device_* belong to a backend that behaves as a GPU does: its memory may be read and
 * written only by its own copies. */
static Stream *device_stream(Backend *b)
{
    (void)b;
    return NULL;
}

static void device_copy(Stream *s, void *to, const void *from, size_t bytes)
{
    (void)s;
    memcpy(to, from, bytes);
}

static void device_sync(Stream *s)
{
    (void)s;
}
static const BackendTable device_table = {.name = "device",
                                          .alloc = host_alloc,
                                          .release = host_release,
                                          .stream = device_stream,
                                          .copy = device_copy,
                                          .sync = device_sync};

#endif
