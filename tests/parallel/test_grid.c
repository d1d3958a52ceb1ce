/* Tests of grid shapes from a configuration, of the messages for shapes that do not fit, and of a
 * grid and channels of one rank without MPI. */
#include "harness.h"
#include "parallel.h"

static const World alone = {
    .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};

static Status shape_for(GridShape *shape, int dp, int pp, int tp, int ranks)
{
    Config config = {.grid = {.dp = dp, .pp = pp, .tp = tp}};
    *shape = (GridShape){0};
    return grid_shape(shape, &config, ranks);
}

static void shapes_that_fit(void)
{
    static const int cases[][7] = {
        /* configured dp, pp, tp; number of ranks; resulting dp, pp, tp */
        {0, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 8, 8, 1, 1}, {0, 2, 1, 8, 4, 2, 1}, {0, 2, 2, 8, 2, 2, 2},
        {1, 8, 1, 8, 1, 8, 1}, {3, 2, 1, 6, 3, 2, 1}, {0, 3, 1, 3, 1, 3, 1}};
    for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); ++i) {
        const int *c = cases[i];
        GridShape shape;
        CHECK_OK(shape_for(&shape, c[0], c[1], c[2], c[3]));
        CU_ASSERT_TRUE(shape.dp == c[4] && shape.pp == c[5] && shape.tp == c[6]);
    }
}

static void shapes_that_do_not(void)
{
    GridShape shape;
    CHECK_FAILS(shape_for(&shape, 4, 1, 1, 2), ERR_CONFIG,
                "grid.dp is 4, but 2 ranks were started: start 4, or leave grid.dp out");
    CHECK_FAILS(shape_for(&shape, 2, 2, 1, 6), ERR_CONFIG,
                "is 4 ranks, but 6 were started: start 4, or");
    CHECK_FAILS(shape_for(&shape, 2, 2, 2, 6), ERR_CONFIG,
                "is 8 ranks, but 6 were started: start 8");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "leave"));
    CHECK_FAILS(shape_for(&shape, 0, 4, 1, 6), ERR_CONFIG, "start 4 or 8, or set grid.pp to 3");
    CHECK_FAILS(shape_for(&shape, 0, 1, 4, 6), ERR_CONFIG, "start 4 or 8, or set grid.tp to 3");
    CHECK_FAILS(shape_for(&shape, 0, 4, 2, 2), ERR_CONFIG, "start 8, or set grid.pp to 1");
    CHECK_FAILS(shape_for(&shape, 0, 3, 2, 5), ERR_CONFIG, "but 5 were started: start 6");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), ", or set"));
    const Config served = {.grid = {.pp = 4, .tp = 1, .servers = 2}};
    CHECK_FAILS(grid_shape(&shape, &served, 6), ERR_CONFIG, "but 8 were started: start 6 or 10");
    CHECK_FAILS(shape_for(&shape, 1048576, 1048576, 1048576, 5), ERR_CONFIG, "grid.dp");
}

static void grid_of_one(void)
{
    Grid grid;
    CHECK_OK(grid_init(&grid, &alone, (GridShape){1, 1, 1}));
    CU_ASSERT_TRUE(grid.dp_rank == 0 && grid.pp_rank == 0 && grid.tp_rank == 0);
    CU_ASSERT_TRUE(grid.pp_world.size == 1 && grid.pp_world.comm == MPI_COMM_NULL);
    grid_fini(&grid);
    grid_fini(&grid);
    char *text = mem_text("mine");
    CU_ASSERT_PTR_EQUAL(world_bcast_text(&alone, text), text);
    mem_free(&text);
    CU_ASSERT_PTR_NULL(world_bcast_text(&alone, NULL));
}

static void channels_of_one(void)
{
    Channels *channels = NULL;
    ChannelSpec self = {.from = 0, .to = 0, .depth = 2, .bytes = 64};
    for (int transport = TRANSPORT_AUTO; transport <= TRANSPORT_MPI; ++transport) {
        CHECK_OK(channels_new(&channels, &alone, NULL, 0, transport));
        channels_progress(channels);
        channels_wait(channels, 1e-3);
        channels_wait(channels, 1);
        channels_free(&channels);
        CU_ASSERT_PTR_NULL(channels);
        CHECK_FAILS(channels_new(&channels, &alone, &self, 1, transport), ERR_BUG, "to itself");
        CU_ASSERT_PTR_NULL(channels);
    }
    channels_free(&channels);
    int up = 1;
    MPI_Initialized(&up);
    CU_ASSERT_FALSE(up);
}

TEST_MAIN("grid", {"shapes that fit", shapes_that_fit}, {"shapes that do not", shapes_that_do_not},
          {"a grid of one", grid_of_one}, {"channels of one", channels_of_one})
