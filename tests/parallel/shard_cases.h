/* Tests of sums that only the owner of a shard receives, and of parameters that are gathered from
 * shards, over every transport of host memory. Sums are compared bit by bit with the recursive
 * definition of the summation tree. */
#include "ways.h"

#include "parallel/transport/comm_table.h"

#include <time.h>

/* Makes a communicator. params: number of elements of its parameters; 0: none. */
static Comm *open_comm(Way way, int64_t elements, int64_t params)
{
    Comm *comm = open_way(way, elements, 1);
    if (params > 0) CHECK_OK(comm_params_new(comm, params));
    return comm;
}

/* A division of a range into shards. */
typedef struct Drawn {
    /* the shard of rank r has elements bound[r] to bound[r + 1] - 1 */
    int64_t bound[RANKS_MAX + 1];
    /* the same division for a communicator */
    Bounds bounds;
} Drawn;

static void drawn_init(Drawn *drawn)
{
    bounds_init(&drawn->bounds, drawn->bound, test_world.size);
}

static void drawn_fini(Drawn *drawn)
{
    bounds_fini(&drawn->bounds);
}

/* Divides the range [offset, offset + count) at random; some shards are empty, some are long.
 * number: determines the random numbers. */
static void draw_bounds(Drawn *drawn, int64_t offset, int64_t count, int number)
{
    RngKey key = rng_key(11, RNG_TEST, (uint64_t)number, 0);
    int size = test_world.size;
    int64_t *bound = drawn->bound;
    bound[0] = offset;
    bound[size] = offset + count;
    for (int r = 1; r < size; ++r) {
        int64_t left = bound[size] - bound[r - 1];
        bound[r] = bound[r - 1] + (int64_t)(rng_u32(key, (uint64_t)r) % (uint64_t)(left + 1));
    }
    drawn_init(drawn);
}

/* Divides the range among one or two ranks. The shards of all other ranks are empty. */
static void draw_few(Drawn *drawn, int64_t offset, int64_t count, int number)
{
    int owners = test_world.size > 4 ? 2 : 1, left = owners;
    (void)number;
    drawn->bound[0] = offset;
    for (int r = 0; r < test_world.size; ++r) {
        bool owns = r % 3 == 1 && left > 0;
        int64_t end = left > 1 ? drawn->bound[r] + count / owners : offset + count;
        drawn->bound[r + 1] = owns ? end : drawn->bound[r];
        left -= owns;
    }
    drawn_init(drawn);
}

/* After reduce-scatters, the sums in this rank's shard are right, and no element outside of the
 * range has changed. */
static void reduce_of_odd_sizes(void)
{
    static const int64_t counts[] = {1, 2, 3, 15, 16, 17, 65, 1025, 4099, 70001, 150000};
    enum { ROOM = 160000 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, 0);
        for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); ++i) {
            Drawn drawn;
            int64_t offset = 3 + 7 * i, *bound = drawn.bound;
            draw_bounds(&drawn, offset, counts[i], i);
            fill(comm, 0, ROOM, i);
            comm_reduce_scatter_begin(comm, &drawn.bounds);
            comm_wait(comm);
            CU_ASSERT_EQUAL(wrong(comm, bound[comm->rank], bound[comm->rank + 1], i), 0);
            drawn_fini(&drawn);
            int64_t touched = 0;
            for (int64_t e = 0; e < ROOM; e = e + 1 == offset ? offset + counts[i] : e + 1)
                touched += comm->arena[e] != tree_value(comm->rank, e, i);
            CU_ASSERT_EQUAL(touched, 0);
            world_barrier(&test_world);
        }
        comm_free(&comm);
    }
}

/* Returns the value that the owner of a parameter element writes in a round. */
static float filled(int rank, int64_t element, int round)
{
    return (float)(rank * 1000 + round) + (float)(element % 997) / 1024;
}

/* Counts the gathered elements that differ from what their owner wrote in this round. */
static int64_t wrong_params(const Comm *comm, const int64_t *bound, int round)
{
    int64_t count = 0;
    for (int r = 0; r < comm->size; ++r)
        for (int64_t e = bound[r]; e < bound[r + 1]; ++e)
            count += comm->params[e] != filled(r, e, round);
    return count;
}

static void write_shard(Comm *comm, const int64_t *bound, int round)
{
    for (int64_t e = bound[comm->rank]; e < bound[comm->rank + 1]; ++e)
        comm->params[e] = filled(comm->rank, e, round);
}

/* Sleeps for up to 300 microseconds in one of three calls, at random and differently on each rank.
 * at: number of the call. */
static void pause_at_random(int at)
{
    uint32_t draw = rng_u32(rng_key(3, RNG_TEST, (uint64_t)test_world.rank, 98), (uint64_t)at);
    if (draw % 3 == 0) nanosleep(&(struct timespec){.tv_nsec = draw % 300000}, NULL);
}

/* Makes several steps as in training: all-reduces and reduce-scatters are in flight at the same
 * time, and then parameters are gathered. The test itself has no barriers: a rank may write its
 * shard when the sums have arrived, and read all parameters when they have been gathered. */
static void steps(void)
{
    enum { ROOM = 700000, RANGES = 5, ROUNDS = 12 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, ROOM);
        Drawn drawn[RANGES];
        int64_t each = ROOM / RANGES;
        for (int i = 0; i < RANGES; ++i) draw_bounds(&drawn[i], i * each, each, 50 + i);
        int64_t bad = 0;
        for (int round = 0; round < ROUNDS; ++round) {
            for (int i = 0; round > 0 && i < RANGES; ++i)
                bad += wrong_params(comm, drawn[i].bound, round - 1);
            fill(comm, 0, ROOM, round);
            for (int i = 0; i < RANGES; ++i) {
                pause_at_random(round * RANGES + i);
                if (i == 2)
                    comm_allreduce_begin(comm, drawn[i].bound[0], each);
                else
                    comm_reduce_scatter_begin(comm, &drawn[i].bounds);
                comm_progress(comm);
            }
            comm_wait(comm);
            bad += wrong(comm, drawn[2].bound[0], drawn[2].bound[0] + each, round);
            for (int i = 0; i < RANGES; ++i) {
                const int64_t *mine = &drawn[i].bound[comm->rank];
                bad += wrong(comm, mine[0], mine[1], round);
                write_shard(comm, drawn[i].bound, round);
                pause_at_random(round * RANGES + i + 1000);
                comm_allgather_begin(comm, &drawn[i].bounds, 0);
            }
            comm_wait(comm);
        }
        CU_ASSERT_EQUAL(bad, 0);
        CU_ASSERT_EQUAL(comm->params_shared, comm->table == &comm_shm);
        for (int i = 0; i < RANGES; ++i) drawn_fini(&drawn[i]);
        comm_free(&comm);
        CU_ASSERT_PTR_NULL(comm);
    }
}

/* Three ranges whose leaves are pushed in several turns, one leaf of each rank in a turn. A push
 * adds the leaves to partial sums of the shards, and its memory in the arena is used again. */
typedef struct Growing {
    Comm *comm;
    /* divides a range into shards: draw_bounds or draw_few */
    void (*draw)(Drawn *drawn, int64_t offset, int64_t count, int number);
    /* division of each range */
    Drawn drawn[3];
    /* number of elements in each range */
    int64_t each;
    /* offset, in the arrays `level`, of this rank's shard of each range */
    int64_t at_level[3];
    /* arrays of partial sums, [levels] (CommPush.partial) */
    float *level[32];
    /* turns: number of turns */
    int turns, levels;
    PushTo to;
    /* A place is memory in the arena for the leaves of a range. at: offset of each place. pushed:
     * number of the last push from each place. If `to` is PUSH_TO_PARTIAL, the three ranges share
     * two places; otherwise each range has its own. */
    int64_t at[3], pushed[3];
} Growing;

/* Pushes this rank's leaf of a turn for range i. */
static void grow_range(Growing *g, int turn, int i)
{
    Comm *comm = g->comm;
    int place = g->to == PUSH_TO_PARTIAL ? (turn * 3 + i) % 2 : i,
        leaf = turn * comm->size + comm->rank;
    int64_t begin = g->drawn[i].bound[0];
    while (!comm_push_poll(comm, g->pushed[place])) {
    }
    for (int64_t e = 0; e < g->each; ++e)
        comm->arena[g->at[place] + e] = tree_value(leaf, begin + e, g->turns);
    CommPush push = {.bounds = &g->drawn[i].bounds,
                     .shift = g->at[place] - begin,
                     .partial = g->level,
                     .partial_at = g->at_level[i],
                     .first = turn * comm->size,
                     .leaves = g->turns * comm->size,
                     .to = g->to};
    g->pushed[place] = comm_push_begin(comm, &push);
}

/* Counts the wrong elements of the final sums. */
static int64_t wrong_sums(const Growing *g)
{
    int64_t count = 0;
    int rank = g->comm->rank, size = g->comm->size;
    for (int i = 0; i < 3; ++i) {
        const int64_t *bound = g->drawn[i].bound;
        int64_t at = bound[rank], end = bound[rank + 1];
        if (g->to == PUSH_TO_ALL) {
            at = bound[0];
            end = bound[size];
        }
        const float *got = g->to == PUSH_TO_PARTIAL ? g->level[0] + g->at_level[i]
                                                    : g->comm->arena + g->at[i] + at - bound[0];
        for (int64_t e = at; e < end; ++e) {
            float want = tree_reference(g->turns * size, e, g->turns);
            count += memcmp(&want, &got[e - at], sizeof want) != 0;
        }
    }
    return count;
}

static void grow_tree(Growing *g)
{
    int64_t end = 0;
    for (int i = 0; i < 3; ++i) {
        g->draw(&g->drawn[i], i * g->each, g->each, 80 + i);
        g->at_level[i] = end;
        end += g->drawn[i].bound[g->comm->rank + 1] - g->drawn[i].bound[g->comm->rank];
    }
    g->levels = deal_levels(DEAL_TURNS, g->turns, g->comm->size);
    for (int k = 0; k < g->levels; ++k) g->level[k] = mem_new((size_t)(end + 1) * sizeof(float));
    for (int turn = 0; turn < g->turns; ++turn)
        for (int i = 0; i < 3; ++i) {
            pause_at_random(turn * 3 + i);
            grow_range(g, turn, i);
            comm_progress(g->comm);
        }
    comm_wait(g->comm);
    CU_ASSERT_EQUAL(wrong_sums(g), 0);
    for (int k = 0; k < g->levels; ++k) mem_free(&g->level[k]);
    for (int i = 0; i < 3; ++i) drawn_fini(&g->drawn[i]);
}

static void pushes(void)
{
    enum { EACH = 100001, ROOM = 3 * EACH + 14 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, 0);
        for (int turns = 0; turns <= 6; ++turns)
            for (PushTo to = PUSH_TO_PARTIAL; to <= (turns < 4 ? PUSH_TO_ALL : PUSH_TO_PARTIAL);
                 ++to) {
                Growing g = {.comm = comm,
                             .draw = turns > 0 ? draw_bounds : draw_few,
                             .each = EACH,
                             .turns = turns > 0 ? turns : 2,
                             .to = to,
                             .at = {0, EACH + 7, 2 * EACH + 14}};
                grow_tree(&g);
            }
        comm_free(&comm);
    }
}

/* A range that is gathered into one of two places. */
typedef struct Placed {
    Drawn drawn;
    /* shift: offset of the place, minus the begin of the range; number: number of the gather */
    int64_t shift, number;
} Placed;

static void gather_to(Comm *comm, Placed *p, int64_t place, int64_t count, int round)
{
    draw_bounds(&p->drawn, 1000 * round, count, 90 + round);
    const int64_t *bound = p->drawn.bound;
    p->shift = place - bound[0];
    for (int64_t e = bound[comm->rank]; e < bound[comm->rank + 1]; ++e)
        comm->params[e + p->shift] = filled(comm->rank, e, round);
    p->number = comm_allgather_begin(comm, &p->drawn.bounds, p->shift);
}

/* Waits for a gather, counts its wrong elements, and releases its bounds. */
static int64_t wrong_gathered(Comm *comm, Placed *p, int round)
{
    int64_t count = 0;
    while (!comm_allgather_poll(comm, p->number)) {
    }
    for (int r = 0; r < comm->size; ++r)
        for (int64_t e = p->drawn.bound[r]; e < p->drawn.bound[r + 1]; ++e)
            count += comm->params[e + p->shift] != filled(r, e, round);
    drawn_fini(&p->drawn);
    return count;
}

/* Ranges are gathered into two places alternately, each while the range before it is used. The test
 * waits for each gather separately, while sums are in flight. */
static void places(void)
{
    enum { EACH = 70001, ROUNDS = 20 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], 2 * EACH, 2 * EACH);
        Placed placed[2];
        int64_t bad = 0;
        gather_to(comm, &placed[0], 0, EACH, 0);
        for (int round = 1; round <= ROUNDS; ++round) {
            int now = round % 2;
            gather_to(comm, &placed[now], now * EACH, EACH, round);
            comm_allreduce_begin(comm, now * EACH, EACH);
            pause_at_random(round);
            bad += wrong_gathered(comm, &placed[1 - now], round - 1);
            /* waits until all ranks have read the place that the next gather writes */
            if (comm->params_shared) world_barrier(&test_world);
        }
        bad += wrong_gathered(comm, &placed[ROUNDS % 2], ROUNDS);
        comm_wait(comm);
        CU_ASSERT_EQUAL(bad, 0);
        CU_ASSERT_EQUAL(comm->gathers, ROUNDS + 1);
        comm_free(&comm);
    }
}

/* One rank has a shard that is longer than a message; all other shards are short or empty. */
static void large_and_lopsided(void)
{
    enum { ROOM = 3000001 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, ROOM);
        Drawn drawn;
        int64_t *bound = drawn.bound;
        for (int r = 0; r <= comm->size; ++r) bound[r] = r == 0 ? 5 : r < comm->size ? 900 : ROOM;
        drawn_init(&drawn);
        fill(comm, 0, ROOM, 6);
        comm_reduce_scatter_begin(comm, &drawn.bounds);
        comm_wait(comm);
        int64_t begin = bound[comm->rank], end = bound[comm->rank + 1];
        CU_ASSERT_EQUAL(wrong(comm, begin, begin + 1000 < end ? begin + 1000 : end, 6), 0);
        CU_ASSERT_EQUAL(wrong(comm, end - 1000 > begin ? end - 1000 : begin, end, 6), 0);
        write_shard(comm, bound, 1);
        comm_allgather_begin(comm, &drawn.bounds, 0);
        comm_wait(comm);
        CU_ASSERT_EQUAL(wrong_params(comm, bound, 1), 0);
        drawn_fini(&drawn);
        comm_free(&comm);
    }
}

/* Only one or two ranks have a shard, which is longer than a message. */
static void few_have_all(void)
{
    enum { COUNT = 800006, ROOM = 1200009 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, ROOM);
        Drawn drawn;
        const int64_t *bound = drawn.bound;
        draw_few(&drawn, 7, COUNT, 0);
        fill(comm, 0, ROOM, 9);
        comm_reduce_scatter_begin(comm, &drawn.bounds);
        comm_wait(comm);
        CU_ASSERT_EQUAL(wrong(comm, bound[comm->rank], bound[comm->rank + 1], 9), 0);
        write_shard(comm, bound, 2);
        comm_allgather_begin(comm, &drawn.bounds, 0);
        comm_wait(comm);
        CU_ASSERT_EQUAL(wrong_params(comm, bound, 2), 0);
        drawn_fini(&drawn);
        comm_free(&comm);
    }
}

/* Each operation ends before the next one begins, so no later operation drives its messages. */
static void one_at_a_time(void)
{
    enum { ROOM = 4096 };
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], ROOM, ROOM);
        Drawn drawn;
        float *level[32];
        draw_bounds(&drawn, 0, ROOM, 7);
        int levels = deal_levels(DEAL_TURNS, 1, comm->size),
            rounds = comm->table == &comm_nodes ? 600 : 50;
        for (int k = 0; k < levels; ++k) level[k] = mem_new((ROOM + 1) * sizeof(float));
        for (int round = 0; round < rounds; ++round) {
            CommPush push = {.bounds = &drawn.bounds, .partial = level, .leaves = comm->size};
            int64_t number = comm_push_begin(comm, &push);
            while (!comm_push_poll(comm, number)) {
            }
            number = comm_allgather_begin(comm, &drawn.bounds, 0);
            while (!comm_allgather_poll(comm, number)) {
            }
        }
        comm_wait(comm);
        CU_ASSERT_EQUAL(comm->pushes, rounds);
        comm_free(&comm);
        for (int k = 0; k < levels; ++k) mem_free(&level[k]);
        drawn_fini(&drawn);
    }
}

/* Operations on empty ranges do nothing, and a wait for them returns. */
static void nothing_begun(void)
{
    for (int t = 0; t < WAY_COUNT; ++t) {
        Comm *comm = open_comm(ways[t], 100, 100);
        Drawn drawn;
        for (int r = 0; r <= comm->size; ++r) drawn.bound[r] = 40;
        drawn_init(&drawn);
        comm_reduce_scatter_begin(comm, &drawn.bounds);
        comm_allgather_begin(comm, &drawn.bounds, 0);
        comm_wait(comm);
        drawn_fini(&drawn);
        for (int e = 0; e < 100; ++e) CU_ASSERT(comm->params[e] == 0 && comm->arena[e] == 0);
        comm_free(&comm);
    }
}

/* A communicator of one rank: sums and parameters stay as they are, and pushes add. */
static void alone(void)
{
    World one;
    Backend backend = {.table = &host_table, .options = {.threads = 1}};
    Comm *comm = NULL;
    CHECK_OK(world_split(&one, &test_world, test_world.rank));
    CHECK_OK(comm_new(&comm, &one, &backend, TRANSPORT_AUTO, 64));
    CHECK_OK(comm_params_new(comm, 64));
    Bounds bounds;
    bounds_init(&bounds, (const int64_t[]){0, 64}, 1);
    comm->arena[5] = 3;
    comm->params[7] = 4;
    comm_reduce_scatter_begin(comm, &bounds);
    comm_allgather_begin(comm, &bounds, 0);
    comm_wait(comm);
    CU_ASSERT(comm->arena[5] == 3 && comm->params[7] == 4);
    float sum[64] = {0}, *level[1] = {sum};
    CommPush push = {.bounds = &bounds, .partial = level, .leaves = 2};
    for (push.first = 0; push.first < 2; ++push.first)
        CU_ASSERT_TRUE(comm_push_poll(comm, comm_push_begin(comm, &push)));
    CU_ASSERT_EQUAL(sum[5], 6);
    comm_free(&comm);
    bounds_fini(&bounds);
    world_part_fini(&one);
}

/* a transport without any functions */
static const CommTable bare = {.name = "bare"};

static void no_params_is_a_message(void)
{
    Comm comm = {.table = &bare, .size = 2};
    CHECK_FAILS(comm_params_new(&comm, 64), ERR_CONFIG, "use grid.zero: 0");
    Comm *huge = open_comm(ways[0], 100, 0);
    CHECK_FAILS(comm_params_new(huge, INT64_C(1) << 44), ERR_CONFIG, "the parameters");
    comm_free(&huge);
}

static void parts_to_one_rank(void)
{
    int size = test_world.size, rank = test_world.rank;
    size_t bytes[RANKS_MAX] = {0}, all = 0;
    for (int r = 0; r < size; ++r) all += bytes[r] = (size_t)(r == 1 ? 0 : 1000 * r + 7);
    char *mine = mem_new(bytes[rank] + 1), *out = mem_new(all);
    memset(mine, 'a' + rank % 26, bytes[rank]);
    for (int root = 0; root < size; ++root) {
        memset(out, '?', all);
        world_collect(&test_world, mine, bytes, root, out);
        size_t at = 0, bad = 0;
        for (int r = 0; r < size; at += bytes[r++])
            for (size_t i = 0; i < bytes[r]; ++i)
                bad += out[at + i] != (root == rank ? 'a' + r % 26 : '?');
        CU_ASSERT_EQUAL(bad, 0);
    }
    mem_free(&mine);
    mem_free(&out);
}

#define SHARD_CASES                                                                                \
    {"reductions of odd sizes", reduce_of_odd_sizes}, {"steps", steps}, {"pushes", pushes},        \
        {"places", places}, {"large and lopsided", large_and_lopsided},                            \
        {"few have all", few_have_all}, {"one at a time", one_at_a_time},                          \
        {"nothing begun", nothing_begun}, {"alone", alone},                                        \
        {"no params is a message", no_params_is_a_message},                                        \
    {                                                                                              \
        "parts to one rank", parts_to_one_rank                                                     \
    }
