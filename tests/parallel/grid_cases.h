/* Tests of parts of the world and of grids, for any number of ranks: the members of each part, sums
 * in several parts at the same time, and the coordinates of every rank in a grid. */
#include "mpi_main.h"

static const int transports[] = {TRANSPORT_SHM, TRANSPORT_MPI};

/* Checks that the members of a part, as ranks of the world, are want[0] to want[count - 1]. Also
 * checks the part's rank and size. */
static void check_part(const World *part, const int *want, int count)
{
    int mine = test_world.rank, found[16] = {0};
    CU_ASSERT_EQUAL_FATAL(part->size, count);
    world_allgather(part, &mine, sizeof mine, found);
    for (int r = 0; r < count; ++r) CU_ASSERT_EQUAL(found[r], want[r]);
    CU_ASSERT_EQUAL(want[part->rank], mine);
    CU_ASSERT_EQUAL(part->node_size, count);
    CU_ASSERT_EQUAL(part->node_rank, part->rank);
    CU_ASSERT_TRUE(part->one_node);
    CU_ASSERT_EQUAL(part->comm == MPI_COMM_NULL, count == 1);
    CU_ASSERT_EQUAL(part->node == MPI_COMM_NULL, count == 1);
}

/* Each rank adds its own power of two to a sum over the part. So the sum shows which ranks took
 * part: it must be those of `want`, [count]. */
static void check_sum(const World *part, const int *want, int count, int transport)
{
    enum { ELEMENTS = 3000 };
    Backend backend = {.table = &host_table, .options = {.threads = 1}};
    Comm *comm = NULL;
    CHECK_OK(comm_new(&comm, part, &backend, transport, ELEMENTS));
    if (!comm) return;
    CU_ASSERT_EQUAL(comm->table == &comm_self, count == 1);
    float all = 0;
    for (int r = 0; r < count; ++r) all += (float)(1 << want[r]);
    for (int round = 1; round <= 5; ++round) {
        int wrong = 0;
        for (int e = 0; e < ELEMENTS; ++e)
            comm->arena[e] = (float)round * (float)(1 << test_world.rank);
        comm_allreduce_begin(comm, 0, ELEMENTS);
        comm_wait(comm);
        for (int e = 0; e < ELEMENTS; ++e) wrong += comm->arena[e] != (float)round * all;
        CU_ASSERT_EQUAL(wrong, 0);
        world_barrier(part);
    }
    comm_free(&comm);
}

/* Divides the world into parts by rank modulo `colors`, for every number of colors. A
 * part has one rank, several or all, and parts may differ in size. */
static void parts_by_remainder(void)
{
    for (int colors = 1; colors <= test_world.size; ++colors) {
        World part;
        int want[16], count = 0;
        for (int r = test_world.rank % colors; r < test_world.size; r += colors) want[count++] = r;
        CHECK_OK(world_split(&part, &test_world, test_world.rank % colors));
        check_part(&part, want, count);
        for (int t = 0; t < 2; ++t) check_sum(&part, want, count, transports[t]);
        world_part_fini(&part);
        CU_ASSERT_TRUE(part.comm == MPI_COMM_NULL && part.size == 1);
    }
}

static void part_of_a_part(void)
{
    World half, one;
    CHECK_OK(world_split(&half, &test_world, test_world.rank > 0));
    CHECK_OK(world_split(&one, &half, half.rank));
    CU_ASSERT_EQUAL(one.size, 1);
    CU_ASSERT_TRUE(one.comm == MPI_COMM_NULL);
    char *text =
        world_bcast_text(&half, half.rank == 0 ? mem_format("of %d", test_world.rank) : NULL);
    CU_ASSERT_STRING_EQUAL(text, test_world.rank == 0 ? "of 0" : "of 1");
    mem_free(&text);
    CU_ASSERT_PTR_NULL(world_bcast_text(&half, NULL));
    world_part_fini(&one);
    world_part_fini(&half);
}

/* The last rank fails. All ranks of its part agree on the failure; the other part, which consists
 * of rank 0, is not affected. */
static void statuses_of_parts(void)
{
    World part;
    int last = test_world.size - 1;
    CHECK_OK(world_split(&part, &test_world, test_world.rank == 0));
    Status mine = test_world.rank == last ? fail(ERR_DATA, "bad label") : OK;
    if (test_world.rank == 0)
        CHECK_OK(status_agree(&part, mine));
    else
        CHECK_FAILS(status_agree(&part, mine), ERR_DATA, "bad label");
    world_part_fini(&part);
}

/* Checks this rank's coordinates, its three worlds, and sums in them. */
static void check_grid(GridShape shape)
{
    Grid grid;
    CHECK_OK(grid_init(&grid, &test_world, shape));
    int dp = grid.dp_rank, pp = grid.pp_rank, tp = grid.tp_rank, want[3][16];
    CU_ASSERT_EQUAL((pp * shape.dp + dp) * shape.tp + tp, test_world.rank);
    CU_ASSERT_TRUE(dp >= 0 && dp < shape.dp && pp >= 0 && pp < shape.pp && tp >= 0 &&
                   tp < shape.tp);
    for (int i = 0; i < shape.dp; ++i) want[0][i] = (pp * shape.dp + i) * shape.tp + tp;
    for (int i = 0; i < shape.pp; ++i) want[1][i] = (i * shape.dp + dp) * shape.tp + tp;
    for (int i = 0; i < shape.tp; ++i) want[2][i] = (pp * shape.dp + dp) * shape.tp + i;
    check_part(&grid.dp_world, want[0], shape.dp);
    check_part(&grid.pp_world, want[1], shape.pp);
    check_part(&grid.tp_world, want[2], shape.tp);
    CU_ASSERT_EQUAL(grid.dp_world.rank, dp);
    CU_ASSERT_EQUAL(grid.pp_world.rank, pp);
    CU_ASSERT_EQUAL(grid.tp_world.rank, tp);
    check_sum(&grid.dp_world, want[0], shape.dp, TRANSPORT_AUTO);
    check_sum(&grid.tp_world, want[2], shape.tp, TRANSPORT_AUTO);
    grid_fini(&grid);
}

/* Tries every shape that uses all ranks. */
static void grids(void)
{
    int ranks = test_world.size;
    for (int dp = 1; dp <= ranks; ++dp)
        for (int pp = 1; dp * pp <= ranks; ++pp)
            if (ranks % (dp * pp) == 0) check_grid((GridShape){dp, pp, ranks / (dp * pp)});
    Grid grid;
    CHECK_FAILS(grid_init(&grid, &test_world, (GridShape){ranks, 2, 1}), ERR_BUG, "over");
    grid_fini(&grid);
}

#define GRID_CASES                                                                                 \
    {"parts by remainder", parts_by_remainder}, {"a part of a part", part_of_a_part},              \
        {"statuses of parts", statuses_of_parts},                                                  \
    {                                                                                              \
        "grids", grids                                                                             \
    }
