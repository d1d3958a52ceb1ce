/* Tests that parts of different sizes are collected on one rank (world_collect), from more ranks
 * than it receives from at the same time. Also tests sums of integers over all ranks. */
#include "mpi_main.h"

static unsigned char byte_of(int rank, size_t at)
{
    return (unsigned char)((size_t)rank * 37 + at * 11 + at / 251);
}

/* Returns the size of a rank's part: none, a few bytes, or more bytes than MPI sends before the
 * receiver is ready. */
static size_t bytes_of(int rank, int round)
{
    static const size_t bytes[] = {0, 1, 300000, 17, 70000};
    return bytes[(rank + round) % 5];
}

/* The data of a rank in one collect: the part that it sends, and the parts that it receives as the
 * root. */
typedef struct Parts {
    size_t *bytes, all;
    unsigned char *mine, *out;
} Parts;

static Parts parts_new(int round)
{
    const World *world = &test_world;
    Parts p = {.bytes = mem_new((size_t)world->size * sizeof *p.bytes)};
    for (int r = 0; r < world->size; ++r) p.all += p.bytes[r] = bytes_of(r, round);
    p.mine = mem_new(p.bytes[world->rank] + 1);
    p.out = mem_new(p.all + 1);
    for (size_t i = 0; i < p.bytes[world->rank]; ++i) p.mine[i] = byte_of(world->rank + round, i);
    memset(p.out, 0x5a, p.all + 1);
    return p;
}

/* Checks that the root has all parts in the order of the ranks, and that no other memory has
 * changed. */
static void parts_check(Parts *p, int round, int root)
{
    const World *world = &test_world;
    size_t at = 0, wrong = 0;
    for (int r = 0; r < world->size; ++r)
        for (size_t i = 0; i < p->bytes[r]; ++i, ++at)
            wrong += p->out[at] != (world->rank == root ? byte_of(r + round, i) : 0x5a);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(p->out[p->all], 0x5a);
    mem_free(&p->bytes);
    mem_free(&p->mine);
    mem_free(&p->out);
}

/* Each rank is the root once; some roots have no part of their own. A rank continues with the next
 * root as soon as it has sent its part. */
static void parts_lie_in_order(void)
{
    const World *world = &test_world;
    for (int root = 0; root < world->size; ++root) {
        Parts p = parts_new(root / 2);
        world_collect(world, p.mine, p.bytes, root, p.out);
        parts_check(&p, root / 2, root);
    }
}

/* Every rank is the root of a collect at the same time, twice. */
static void all_collect_at_once(void)
{
    const World *world = &test_world;
    Parts *p = mem_new((size_t)world->size * sizeof *p);
    WorldCollect **collect = mem_new((size_t)world->size * sizeof *collect);
    for (int turn = 0; turn < 2; ++turn) {
        for (int root = 0; root < world->size; ++root) {
            p[root] = parts_new(root + turn);
            collect[root] =
                world_collect_begin(world, p[root].mine, p[root].bytes, root, p[root].out);
            CU_ASSERT_EQUAL(world_collect_is_root(collect[root]), root == world->rank);
        }
        world_collect_wait(&collect[world->rank]);
        for (int root = 0; root < world->size; ++root) {
            world_collect_wait(&collect[root]);
            parts_check(&p[root], root + turn, root);
        }
    }
    mem_free(&collect);
    mem_free(&p);
}

static void whole_numbers_are_added(void)
{
    const World *world = &test_world;
    /* a number that a double cannot represent exactly, and a negative one */
    int64_t data[] = {((int64_t)1 << 60) / world->size + world->rank, -world->rank, 0},
            ranks = world->size;
    world_allreduce(world, data, 3);
    CU_ASSERT_EQUAL(data[0], ((int64_t)1 << 60) / ranks * ranks + ranks * (ranks - 1) / 2);
    CU_ASSERT_EQUAL(data[1], -ranks * (ranks - 1) / 2);
    CU_ASSERT_EQUAL(data[2], 0);
}

/* Merges arrays in which each element is nonzero on one rank only. The elements must keep their
 * bits, which an addition of floats might change. */
static void one_number_of_each_is_kept(void)
{
    enum { EACH = 5 };
    const World *world = &test_world;
    int64_t count = (int64_t)world->size * EACH, wrong = 0;
    double *data = mem_new((size_t)count * sizeof *data);
    for (int k = 0; k < EACH; ++k)
        data[world->rank * EACH + k] = 1e-300 * (k + 1) / 3 + world->rank * 1e300 / 7;
    world_allreduce_disjoint(world, data, count);
    for (int r = 0; r < world->size; ++r)
        for (int k = 0; k < EACH; ++k) {
            double want = 1e-300 * (k + 1) / 3 + r * 1e300 / 7;
            wrong += memcmp(&data[r * EACH + k], &want, sizeof want) != 0;
        }
    CU_ASSERT_EQUAL(wrong, 0);
    mem_free(&data);
}

MPI_TEST_MAIN("parts and sums of many ranks", 20, {"parts lie in order", parts_lie_in_order},
              {"all collect at once", all_collect_at_once},
              {"whole numbers are added", whole_numbers_are_added},
              {"one number of each is kept", one_number_of_each_is_kept})
