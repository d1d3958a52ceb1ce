/* Tests multicasts in which each rank sends to some other ranks, on nodes of one, two, three and
 * seven ranks. A rank sends a few bytes, or more pieces than may be in flight at the same time. */
#include "mpi_main.h"

enum { BYTES_MOST = (20 << 20) + 3, BEHIND = 8 };
/* noise: bytes to send; each root begins at another offset. data: received bytes. */
static unsigned char noise[BYTES_MOST + 256], data[BYTES_MOST + BEHIND];

/* Lists `root` and the ranks whose bits are set in `set`. node: node of each rank. member: receives
 * the list. Returns the number of members. */
static int members_of(const World *world, const int *node, unsigned set, int root, int *member)
{
    int count = 1;
    member[0] = root;
    for (int k = 0; k < world->size; ++k) {
        int r = (node[root] + k) % world->size;
        if (r != root && set >> r & 1) member[count++] = r;
    }
    return count;
}

static void give(const World *world, const int *node, unsigned set, int root, size_t bytes)
{
    int member[7], count = members_of(world, node, set, root, member);
    if (world->rank != root && !(set >> world->rank & 1)) return;
    const unsigned char *given = noise + root * 16 + set % 16;
    memset(data, 0xee, bytes + BEHIND);
    if (world->rank == root) memcpy(data, given, bytes);
    Multicast multicast;
    multicast_begin(&multicast, world, multicast_place(member, count, node, world->rank), data,
                    bytes);
    CU_ASSERT(memcmp(data, given, bytes) == 0);
    multicast_wait(&multicast);
    for (int b = 0; b < BEHIND; ++b) CU_ASSERT_EQUAL(data[bytes + (size_t)b], 0xee);
}

static void test_sets(void)
{
    static const unsigned sets[] = {0x7f, 0x00, 0x15, 0x68, 0x03, 0x40};
    static const size_t sizes[] = {0, 1, 4099, 1 << 20, (2 << 20) + 1};
    for (size_t b = 0; b < sizeof noise; ++b) noise[b] = (unsigned char)(rand() >> 8);
    for (int width = 1; width <= 7; width += width < 3 ? 1 : 4) {
        World world = world_of_nodes(test_world, width);
        int *node = world_node_leaders(&world);
        for (int r = 0; r < world.size; ++r) CU_ASSERT_EQUAL(node[r], r / width * width);
        for (size_t k = 0; k < sizeof sets / sizeof *sets; ++k)
            for (int root = 0; root < world.size; ++root)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
                    give(&world, node, sets[k], root, sizes[s]);
        give(&world, node, 0x7f, 3, BYTES_MOST);
        give(&world, node, 0x15, 6, BYTES_MOST);
        mem_free(&node);
        MPI_Comm_free(&world.node);
    }
}

/* A multicast works in a process without a launcher. */
static void test_alone(void)
{
    World world = world_alone();
    int member = 0, *node = world_node_leaders(&world);
    unsigned char mine = 7;
    MulticastPlace place = multicast_place(&member, 1, node, 0);
    Multicast multicast;
    CU_ASSERT_EQUAL(place.parent, -1);
    multicast_begin(&multicast, &world, place, &mine, 1);
    multicast_wait(&multicast);
    CU_ASSERT_EQUAL(mine, 7);
    mem_free(&node);
}

MPI_TEST_MAIN("multicast_np7", 7, {"some ranks", test_sets}, {"alone", test_alone})
