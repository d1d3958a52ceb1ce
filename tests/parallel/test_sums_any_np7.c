/* Tests sums over any number of ranks, with each algorithm. The test suite runs it with 7 ranks,
 * `make sums` with many more. */
#include "shard_cases.h"
#include "sum_cases.h"

typedef struct Counted {
    /* most: number of messages of the rank that sends most; mean: mean number of messages of a
     * rank; bytes: mean number of bytes that a rank sends */
    double most, mean, bytes;
} Counted;

/* Counts the messages that the ranks have sent since a moment. before: number of messages and
 * number of bytes at that moment. */
static Counted count_messages(const Comm *comm, const int64_t *before)
{
    int64_t mine[2] = {comm->message_count - before[0], comm->message_bytes - before[1]};
    int64_t all[2 * RANKS_MAX] = {0};
    Counted counted = {0};
    world_allgather(&test_world, mine, sizeof mine, all);
    for (int r = 0; r < comm->size; ++r) {
        double messages = (double)all[2 * r];
        if (messages > counted.most) counted.most = messages;
        counted.mean += messages / comm->size;
        counted.bytes += (double)all[2 * r + 1] / comm->size;
    }
    return counted;
}

/* Compares planned and counted messages of a reduce-scatter and of an all-reduce of three pieces
 * each. */
static void messages_are_counted(void)
{
    enum { ARENA = 3 << 18 };
    for (int w = COMM_ALL_TO_ALL; w <= COMM_HALVING; ++w) {
        SumAlgorithm algorithm = (SumAlgorithm)w;
        Comm *comm = open_way((Way){TRANSPORT_MPI, algorithm, 0}, ARENA, 1);
        int size = comm->size;
        SumShape shape = {.ranks = size, .width = 1, .arena_elements = ARENA, .collect = true};
        int64_t bound[RANKS_MAX + 1], each = 3 * sum_slice_elements(size, 1, ARENA);
        Bounds bounds;
        for (int r = 0; r <= size; ++r) bound[r] = r * each;
        bounds_init(&bounds, bound, size);
        shape.elements = size * each;
        shape.longest = each;
        int64_t before[2] = {comm->message_count, comm->message_bytes};
        comm_reduce_scatter_begin(comm, &bounds);
        comm_wait(comm);
        bounds_fini(&bounds);
        SumCost cost = sum_cost(&shape, algorithm, (Link){0});
        Counted counted = count_messages(comm, before);
        CU_ASSERT_EQUAL(cost.pieces, 3);
        CU_ASSERT_EQUAL(counted.most, (double)cost.messages);
        CU_ASSERT_DOUBLE_EQUAL(counted.mean, cost.mean_messages, 1e-6);

        before[0] = comm->message_count;
        before[1] = comm->message_bytes;
        shape.elements = 3 * sum_piece_elements(size, 1, ARENA);
        shape.longest = 0;
        shape.spread = true;
        comm_allreduce_begin(comm, 0, shape.elements);
        comm_wait(comm);
        cost = sum_cost(&shape, algorithm, (Link){0});
        counted = count_messages(comm, before);
        CU_ASSERT_DOUBLE_EQUAL(counted.mean, cost.mean_messages, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(counted.bytes, cost.bytes, 0.5);
        CU_ASSERT_EQUAL(counted.most, (double)cost.messages);
        comm_free(&comm);
    }
}

MPI_TEST_MAIN("sums over any ranks", ANY_RANKS, SUM_CASES_ANY, SHARD_CASES,
              {"messages are counted", messages_are_counted})
