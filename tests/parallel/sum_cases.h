/* Tests of all-reduces. For every transport of host memory, sums are compared bit by bit with the
 * recursive definition of the summation tree. The summands are such that another order of additions
 * gives other bits. */
#include "ways.h"

#include "parallel/transport/comm_table.h"

#include <math.h>
#include <sched.h>
#include <time.h>

/* Sleeps for up to 300 microseconds in one of three calls, at random and differently on each rank.
 * at: number of the call. */
static void stagger(const Comm *comm, int at)
{
    uint32_t draw = rng_u32(rng_key(3, RNG_TEST, (uint64_t)comm->rank, 99), (uint64_t)at);
    if (draw % 3 == 0) nanosleep(&(struct timespec){.tv_nsec = draw % 300000}, NULL);
}

static void sums_of_odd_sizes(void)
{
    static const int64_t counts[] = {1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 1023, 1025, 4099, 70001};
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_way(ways[t], 80000, 1);
        for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); ++i) {
            int64_t offset = 3 + 7 * i, end = offset + counts[i];
            fill(comm, 0, 80000, i);
            comm_allreduce_begin(comm, offset, counts[i]);
            comm_wait(comm);
            CU_ASSERT_EQUAL(wrong(comm, offset, end, i), 0);
            int64_t touched = 0;
            for (int64_t e = 0; e < 80000; e = e + 1 == offset ? end : e + 1)
                touched += comm->arena[e] != tree_value(comm->rank, e, i);
            CU_ASSERT_EQUAL(touched, 0);
            world_barrier(&test_world);
        }
        comm_free(&comm);
        CU_ASSERT_PTR_NULL(comm);
    }
}

/* Sums of many ranges of different sizes are in flight at the same time. Every rank begins and
 * polls them at its own pace. */
static void many_in_flight(void)
{
    enum { ELEMENTS = 400000, ROUNDS = 4 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_way(ways[t], ELEMENTS, 1);
        for (int round = 0; round < ROUNDS; ++round) {
            fill(comm, 0, ELEMENTS, round);
            int64_t end = ELEMENTS;
            for (int bucket = 0; end > 0; ++bucket) {
                uint32_t draw = rng_u32(rng_key(5, RNG_TEST, (uint64_t)round, 1), (uint64_t)bucket);
                int64_t count = draw % (bucket % 9 == 0 ? 150000 : 2500) + 1;
                if (count > end) count = end;
                comm_allreduce_begin(comm, end - count, count);
                end -= count;
                stagger(comm, round * 1000 + bucket);
                if (bucket % 2) comm_progress(comm);
            }
            comm_wait(comm);
            CU_ASSERT_EQUAL(wrong(comm, 0, ELEMENTS, round), 0);
        }
        comm_free(&comm);
    }
}

/* Polling alone completes a sum, without a wait. */
static void finished_by_polling(void)
{
    enum { ELEMENTS = 5000 };
    const double patience_s = 20;
    Comm *comm = open_way(ways[0], ELEMENTS, 1);
    fill(comm, 0, ELEMENTS, 7);
    comm_allreduce_begin(comm, 0, ELEMENTS);
    bool done = false;
    for (double begun_s = clock_s(); !done && clock_s() - begun_s < patience_s; sched_yield())
        done = comm->table->progress(comm);
    CU_ASSERT_TRUE(done);
    CU_ASSERT_EQUAL(wrong(comm, 0, ELEMENTS, 7), 0);
    comm_wait(comm);
    comm_free(&comm);
}

/* The sum of leaves that are all -0 is -0, because a sum does not start from 0. So leaves of -0
 * change no sum. */
static void minus_zero(void)
{
    enum { ELEMENTS = 4000 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_way(ways[t], ELEMENTS, 1);
        float value = test_world.rank == 0 ? -1.5f : -0.0f;
        int64_t bad = 0;
        for (int64_t e = 0; e < ELEMENTS; ++e) comm->arena[e] = e % 2 ? value : -0.0f;
        comm_allreduce_begin(comm, 0, ELEMENTS);
        comm_wait(comm);
        for (int64_t e = 0; e < ELEMENTS; ++e)
            bad += comm->arena[e] != (e % 2 ? -1.5f : 0) || !signbit(comm->arena[e]);
        CU_ASSERT_EQUAL(bad, 0);
        comm_free(&comm);
    }
}

/* A sum that is longer than the pieces of any transport, computed with two threads, has the same
 * bits on all ranks, and over several transports. */
static void large_and_same_bits(void)
{
    enum { ELEMENTS = 5000011 };
    uint64_t hash[WAY_COUNT] = {0};
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_way(ways[t], ELEMENTS, 2);
        fill(comm, 0, ELEMENTS, 5);
        comm_allreduce_begin(comm, 0, ELEMENTS);
        comm_wait(comm);
        CU_ASSERT_EQUAL(wrong(comm, ELEMENTS - 100000, ELEMENTS, 5), 0);
        hash[t] = hash_bytes(comm->arena, ELEMENTS * sizeof(float));
        uint64_t first = hash[t];
        world_bcast(&test_world, &first, sizeof first, 0);
        CU_ASSERT_EQUAL(first, hash[t]);
        comm_free(&comm);
    }
    CU_ASSERT_EQUAL(hash[0], hash[1]);
    CU_ASSERT_EQUAL(hash[0], hash[2]);
}

/* A wait returns if no sum was begun, empty sums do nothing, and two communicators can be used at
 * the same time. */
static void idle_and_side_by_side(void)
{
    Comm *a = open_way(ways[0], 1000, 1), *b = open_way(ways[2], 1000, 1);
    comm_wait(a);
    comm_wait(b);
    fill(a, 0, 1000, 1);
    fill(b, 0, 1000, 2);
    comm_allreduce_begin(a, 0, 0);
    comm_allreduce_begin(a, 0, 1000);
    comm_allreduce_begin(b, 10, 0);
    comm_allreduce_begin(b, 0, 1000);
    comm_wait(b);
    comm_wait(a);
    CU_ASSERT_EQUAL(wrong(a, 0, 1000, 1), 0);
    CU_ASSERT_EQUAL(wrong(b, 0, 1000, 2), 0);
    comm_free(&a);
    comm_free(&b);
}

/* Rank 0 begins a sum 150 ms later than the others; the sum is right on all ranks. */
static void late_rank(void)
{
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_way(ways[t], 300000, 1);
        fill(comm, 0, 300000, 4);
        if (comm->rank == 0) nanosleep(&(struct timespec){.tv_nsec = 150 * 1000000}, NULL);
        comm_allreduce_begin(comm, 0, 300000);
        comm_wait(comm);
        CU_ASSERT_EQUAL(wrong(comm, 0, 300000, 4), 0);
        comm_free(&comm);
    }
}

/* Sums in device memory go through host memory if GPUs are not connected. */
static void by_way_of_the_host(void)
{
    Backend device = {.table = &device_table, .options = {.threads = 1}};
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = NULL;
        CHECK_OK(comm_new(&comm, &test_world, &device, ways[t].transport, 5000));
        CU_ASSERT_PTR_EQUAL(comm->table, &comm_staged);
        for (int round = 0; round < 2; ++round) {
            fill(comm, 0, 5000, round);
            comm_allreduce_begin(comm, 0, 1000);
            comm_allreduce_begin(comm, 1000, 3500);
            comm_progress(comm);
            comm_wait(comm);
            CU_ASSERT_EQUAL(wrong(comm, 0, 4500, round), 0);
            for (int64_t e = 4500; e < 5000; ++e)
                CU_ASSERT_EQUAL(comm->arena[e], tree_value(comm->rank, e, round));
        }
        CHECK_FAILS(comm_params_new(comm, 10), ERR_CONFIG, "grid.zero");
        comm_free(&comm);
    }
}

static void choice_of_transport(void)
{
    Backend host = {.table = &host_table, .options = {.threads = 1}},
            device = {.table = &device_table};
    Comm *comm = NULL;
    CHECK_OK(comm_new(&comm, &test_world, &host, TRANSPORT_AUTO, 100));
    CU_ASSERT_PTR_EQUAL(comm->table, &comm_shm);
    CU_ASSERT_EQUAL(comm->size, test_world.size);
    comm_free(&comm);
    CHECK_FAILS(comm_new(&comm, &test_world, &host, TRANSPORT_NCCL, 100), ERR_CONFIG, "nccl needs");
    CHECK_FAILS(comm_new(&comm, &test_world, &device, TRANSPORT_NCCL, 100), ERR_BUG, "not joined");
    CU_ASSERT_PTR_NULL(comm);
    World two_nodes = test_world;
    two_nodes.one_node = false;
    CHECK_FAILS(comm_new(&comm, &two_nodes, &host, TRANSPORT_SHM, 100), ERR_CONFIG, "on one node");
    CHECK_OK(comm_new(&comm, &two_nodes, &host, TRANSPORT_MPI, 100));
    CU_ASSERT_PTR_EQUAL(comm->table, &comm_mpi);
    comm_free(&comm);
    World nodes = world_of_nodes(test_world, 2);
    CHECK_OK(comm_new(&comm, &nodes, &host, TRANSPORT_AUTO, 100));
    CU_ASSERT_PTR_EQUAL(comm->table, test_world.size % 2 ? &comm_mpi : &comm_nodes);
    comm_free(&comm);
    MPI_Comm_free(&nodes.node);
}

/* Returns comm_group_width of a world in which ranks with the same color are on one node. color:
 * color of each rank. */
static inline int width_of(const int *color)
{
    World world = test_world;
    world.one_node = false;
    MPI_Comm_split(world.comm, color[world.rank], world.rank, &world.node);
    MPI_Comm_size(world.node, &world.node_size);
    int width = comm_group_width(&world, TRANSPORT_AUTO);
    CU_ASSERT_EQUAL(comm_group_width(&world, TRANSPORT_MPI), 1);
    MPI_Comm_free(&world.node);
    return width;
}

static inline void widths_of_groups(void)
{
    int size = test_world.size, pair = size % 2 == 0 ? 2 : 1;
    CU_ASSERT_EQUAL(width_of((int[]){0, 1, 2, 3, 4, 5, 6, 7}), 1);
    CU_ASSERT_EQUAL(width_of((int[]){0, 0, 1, 1, 2, 2, 3, 3}), pair);
    CU_ASSERT_EQUAL(width_of((int[]){0, 0, 1, 1, 1, 1, 2, 2}), pair);
    CU_ASSERT_EQUAL(width_of((int[]){0, 0, 0, 0, 1, 1, 2, 2}), size == 4 ? 4 : pair);
    CU_ASSERT_EQUAL(width_of((int[]){0, 0, 0, 0, 1, 1, 1, 1}), size % 4 == 0 ? 4 : pair);
    CU_ASSERT_EQUAL(width_of((int[]){0, 0, 0, 1, 1, 1, 2, 2}), size == 2 ? 2 : 1);
    CU_ASSERT_EQUAL(width_of((int[]){0, 1, 1, 0, 2, 2, 3, 3}), 1);
    CU_ASSERT_EQUAL(comm_group_width(&test_world, TRANSPORT_AUTO), 1);
}

/* A request for more memory than any machine has is an error on every rank; no rank is killed by a
 * signal later. */
static void too_large_is_a_message(void)
{
    Backend host = {.table = &host_table, .options = {.threads = 1}};
    Comm *comm = NULL;
    CHECK_FAILS(comm_new(&comm, &test_world, &host, TRANSPORT_SHM, INT64_C(1) << 44), ERR_CONFIG,
                "set grid.transport: mpi");
    CU_ASSERT_PTR_NULL(comm);
}

static void statuses_agree(void)
{
    CHECK_OK(status_agree(&test_world, OK));
    int last = test_world.size - 1;
    Status mine = test_world.rank == last ? fail(ERR_DATA, "bad label in %s", "a.h5") : OK;
    char want[64];
    snprintf(want, sizeof want, "rank %d: bad label in a.h5", last);
    CHECK_FAILS(status_agree(&test_world, mine), ERR_DATA, want);
    mine = fail(test_world.rank == 0 ? ERR_DATA : ERR_IO, "from %d", test_world.rank);
    CHECK_FAILS(status_agree(&test_world, mine), ERR_IO, "rank 1: from 1");
    CHECK_FAILS(status_agree(&test_world, fail(ERR_IO, "all")), ERR_IO, "all");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "rank"));
}

static void broadcast_and_gather(void)
{
    for (int root = 0; root < test_world.size; ++root) {
        char data[1000], letter = (char)('a' + root % 26);
        memset(data, test_world.rank == root ? letter : '?', sizeof data);
        world_bcast(&test_world, data, sizeof data, root);
        CU_ASSERT_EQUAL(data[0], letter);
        CU_ASSERT_EQUAL(data[999], letter);
    }
    int64_t mine[2] = {test_world.rank, -test_world.rank}, all[2 * RANKS_MAX] = {0};
    world_allgather(&test_world, mine, sizeof mine, all);
    for (int r = 0; r < test_world.size; ++r) {
        CU_ASSERT_EQUAL(all[2 * r], r);
        CU_ASSERT_EQUAL(all[2 * r + 1], -r);
    }
}

static void ranks_of_the_node(void)
{
    CU_ASSERT_EQUAL(test_world.node_size, test_world.size);
    CU_ASSERT_EQUAL(test_world.node_rank, test_world.rank);
    CU_ASSERT_TRUE(test_world.one_node);
    int local = 0;
    CU_ASSERT_TRUE(world_launched(&local));
    CU_ASSERT_EQUAL(local, test_world.size);
}

/* the cases that run with any number of ranks; SUM_CASES is for up to 8 ranks */
#define SUM_CASES_ANY                                                                              \
    {"sums of odd sizes", sums_of_odd_sizes}, {"many in flight", many_in_flight},                  \
        {"finished by polling", finished_by_polling}, {"minus zero", minus_zero},                  \
        {"large, same bits on both transports", large_and_same_bits},                              \
        {"idle and side by side", idle_and_side_by_side}, {"late rank", late_rank},                \
        {"choice of transport", choice_of_transport}, {"by way of the host", by_way_of_the_host},  \
        {"too large is a message", too_large_is_a_message}, {"statuses agree", statuses_agree},    \
        {"broadcast and gather", broadcast_and_gather},                                            \
    {                                                                                              \
        "ranks of the node", ranks_of_the_node                                                     \
    }
#define SUM_CASES                                                                                  \
    SUM_CASES_ANY,                                                                                 \
    {                                                                                              \
        "widths of groups", widths_of_groups                                                       \
    }
