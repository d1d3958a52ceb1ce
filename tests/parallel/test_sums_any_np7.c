/* Sums over whatever ranks there are, each way: 7 of them among the tests, and many more where
 * `make sums` starts it. */
#include "shard_cases.h"
#include "sum_cases.h"

/* What the plan says of messages, counted: each rank's own, and those of the rank that has most. */
static void messages_counted(void)
{
    enum { ARENA = 3 << 18 };
    for (int way = COMM_ALL_TO_ALL; way <= COMM_HALVING; ++way) {
        Comm *comm = open_way((Way){TRANSPORT_MPI, (CommWay)way, 0}, ARENA, 1);
        SumShape shape = {.ranks = comm->size,
                          .width = 1,
                          .arena_elements = ARENA,
                          .collect = true,
                          .spread = true};
        shape.elements = 3 * sum_piece_elements(comm->size, 1, ARENA);
        SumCost cost = sum_cost(&shape, (CommWay)way, (Link){0});
        comm_allreduce_begin(comm, 0, shape.elements);
        comm_wait(comm);
        int64_t counted[2] = {comm->messages, comm->message_bytes}, all[2 * RANKS_MAX] = {0};
        int64_t most = 0, sum = 0, bytes = 0;
        world_gather(&test_world, counted, sizeof counted, all);
        for (int r = 0; r < comm->size; ++r) {
            if (all[2 * r] > most) most = all[2 * r];
            sum += all[2 * r];
            bytes += all[2 * r + 1];
        }
        CU_ASSERT_EQUAL(cost.pieces, 3);
        CU_ASSERT_EQUAL(most, cost.messages);
        CU_ASSERT_DOUBLE_EQUAL((double)sum / comm->size, cost.mean_messages, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL((double)bytes / comm->size, cost.bytes, 0.5);
        comm_free(&comm);
    }
}

MPI_TEST_MAIN("sums over any ranks", ANY_RANKS, SUM_CASES_ANY, SHARD_CASES,
              {"messages are counted", messages_counted})
