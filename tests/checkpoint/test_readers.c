/* Tests the assignment of tensors to readers. A tensor is read by a rank that wants it, and bytes
 * are balanced over ranks and nodes. The ranks of a transfer are listed node by node. The ranks are
 * simulated. */
#include "../../src/checkpoint/readers.h"

#include "harness.h"

enum { RANKS_MOST = 256, TENSORS_MOST = 400 };
static CheckpointTensor tensor[TENSORS_MOST];
static ReadBy taken[TENSORS_MOST];

/* Makes `count` tensors; tensor i has each + i % 7 * more elements. */
static CheckpointIo tensors(int count, int64_t each, int64_t more)
{
    for (int i = 0; i < count; ++i) {
        tensor[i] = (CheckpointTensor){.shape = {1, {each + i % 7 * more, 1, 1, 1}}};
        taken[i] = READ_BY_ANY;
    }
    return (CheckpointIo){.count = count, .tensor = tensor};
}

/* Makes ranks that want no tensor yet. If `nodes` is 0, each node has `width` consecutive ranks;
 * otherwise rank r is on node r % nodes. */
static Readers ranks_of(int ranks, int count, int width, int nodes)
{
    Readers r = {.ranks = ranks, .row_bytes = (size_t)count / 8 + 1};
    r.node = mem_new((size_t)ranks * sizeof *r.node);
    r.order = mem_new((size_t)ranks * sizeof *r.order);
    r.wants = mem_new((size_t)ranks * r.row_bytes);
    int at = 0;
    for (int k = 0; k < ranks; ++k) r.node[k] = nodes ? k % nodes : k / width * width;
    for (int node = 0; node < ranks; ++node)
        for (int k = 0; k < ranks; ++k)
            if (r.node[k] == node) r.order[at++] = k;
    CU_ASSERT_EQUAL(at, ranks);
    return r;
}

static void want(Readers *r, int rank, int i)
{
    r->wants[(size_t)rank * r->row_bytes + (size_t)i / 8] |= (uint8_t)(1 << i % 8);
}

/* Returns the number of elements that the rank, or if `nodes` is true the node, that reads most
 * reads. */
static int64_t busiest(const Readers *r, const CheckpointIo *io, bool nodes)
{
    int64_t sum[RANKS_MOST] = {0}, most = 0;
    for (int i = 0; i < io->count; ++i) {
        int at = nodes ? r->node[r->reader[i]] : r->reader[i];
        sum[at] += io->tensor[i].shape.dim[0];
        if (sum[at] > most) most = sum[at];
    }
    return most;
}

static void test_spread(void)
{
    for (int ranks = 1; ranks <= RANKS_MOST; ranks *= 4)
        for (int wanted = 0; wanted < 2; ++wanted) {
            CheckpointIo io = tensors(TENSORS_MOST, 1000, 100);
            Readers r = ranks_of(ranks, io.count, 4, 0);
            int64_t sum = 0;
            for (int i = 0; i < io.count; ++i) sum += tensor[i].shape.dim[0];
            for (int k = 0; k < ranks * io.count && wanted; ++k) want(&r, k % ranks, k / ranks);
            readers_assign(&r, &io, taken);
            CU_ASSERT(busiest(&r, &io, false) <= sum / ranks + 1600);
            readers_fini(&r);
        }
}

/* If there are as many tensors as nodes, each node reads one. */
static void test_nodes(void)
{
    for (int mixed = 0; mixed < 2; ++mixed) {
        CheckpointIo io = tensors(8, 1000, 0);
        Readers r = ranks_of(64, io.count, 8, mixed ? 8 : 0);
        readers_assign(&r, &io, taken);
        CU_ASSERT_EQUAL(busiest(&r, &io, true), 1000);
        readers_fini(&r);
    }
}

static void test_wants(void)
{
    CheckpointIo io = tensors(40, 1000, 10);
    Readers r = ranks_of(16, io.count, 4, 0);
    taken[7] = READ_NOT;
    /* READ_BY_FIRST: rank 0 wants only the first of the two tensors */
    taken[12] = taken[13] = READ_BY_FIRST;
    for (int i = 0; i < io.count; ++i)
        for (int k = 0; k < 16; ++k)
            if (i != 7 && i != 9 && k / 4 == i % 4) want(&r, k, i);
    readers_assign(&r, &io, taken);
    for (int i = 0; i < io.count; ++i) {
        int member[16], reader = r.reader[i];
        if (i == 7) {
            CU_ASSERT_EQUAL(reader, -1);
            continue;
        }
        CU_ASSERT(reader >= 0 && reader < 16);
        CU_ASSERT_EQUAL(readers_members(&r, i, member), i == 9 ? 1 : i == 13 ? 5 : 4);
        CU_ASSERT_EQUAL(member[0], reader);
        CU_ASSERT(i == 9 || i == 13 || readers_want(&r, reader, i));
        CU_ASSERT(reader == 0 || (i != 12 && i != 13));
    }
    readers_fini(&r);
}

/* The reader's node is listed first, then the other nodes. The ranks of a node are consecutive in
 * the list, although their numbers are not, and the list of a node begins with a different rank for
 * each tensor. */
static void test_members(void)
{
    CheckpointIo io = tensors(3, 1000, 0);
    Readers r = ranks_of(12, io.count, 0, 3);
    for (int k = 0; k < 12; ++k)
        if (k != 4) want(&r, k, 1);
    for (int i = 0; i < 3; ++i) want(&r, 5, i);
    readers_assign(&r, &io, taken);
    r.reader[1] = 7;
    static const int expected[] = {7, 10, 1, 5, 8, 11, 2, 3, 6, 9, 0};
    int member[12];
    CU_ASSERT_EQUAL(readers_members(&r, 1, member), 11);
    CU_ASSERT(memcmp(member, expected, sizeof expected) == 0);
    CU_ASSERT_EQUAL(readers_members(&r, 2, member), 1);
    CU_ASSERT_EQUAL(member[0], 5);
    readers_fini(&r);
}

TEST_MAIN("readers", {"bytes are shared out", test_spread}, {"nodes, too", test_nodes},
          {"who wants it reads it", test_wants}, {"node by node", test_members})
