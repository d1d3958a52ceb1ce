/* The ways in which tests of sums run: combinations of a transport of host memory and an algorithm
 * for messages. */
#ifndef WEFT_TEST_WAYS_H
#define WEFT_TEST_WAYS_H

#include "mpi_main.h"
#include "tree_case.h"

enum { RANKS_MAX = 64 };

typedef struct Way {
    int transport;
    /* algorithm for messages */
    SumAlgorithm messages;
    /* with TRANSPORT_AUTO: number of ranks per node; a world with more ranks is divided into nodes
     * of this size */
    int node;
} Way;
enum { WAY_COUNT = 6 };
static const Way ways[WAY_COUNT] = {
    {TRANSPORT_SHM, COMM_BY_RULE, 0},  {TRANSPORT_MPI, COMM_ALL_TO_ALL, 0},
    {TRANSPORT_MPI, COMM_HALVING, 0},  {TRANSPORT_AUTO, COMM_ALL_TO_ALL, 2},
    {TRANSPORT_AUTO, COMM_HALVING, 2}, {TRANSPORT_AUTO, COMM_HALVING, 4}};

/* Makes a communicator over all ranks of the test program. elements: size of its arena in
 * floats. */
static Comm *open_way(Way way, int64_t elements, int threads)
{
    static Backend backend;
    static World nodes[2];
    World *world = &test_world;
    backend = (Backend){.table = &host_table, .options = {.threads = threads}};
    if (way.transport == TRANSPORT_AUTO && test_world.size > way.node) {
        world = &nodes[way.node / 4];
        if (world->size == 0) *world = world_of_nodes(test_world, way.node);
    }
    Comm *comm = NULL;
    comm_set_sum_algorithm(way.messages);
    CHECK_OK(comm_new(&comm, world, &backend, way.transport, elements));
    comm_set_sum_algorithm(COMM_BY_RULE);
    return comm;
}

/* Writes this rank's summands of a round to the arena. */
static void fill(Comm *comm, int64_t begin, int64_t end, int round)
{
    for (int64_t e = begin; e < end; ++e) comm->arena[e] = tree_value(comm->rank, e, round);
}

/* Counts the elements of [begin, end) in the arena whose bits differ from those of the
 * reference. */
static int64_t wrong(const Comm *comm, int64_t begin, int64_t end, int round)
{
    int64_t count = 0;
    for (int64_t e = begin; e < end; ++e) {
        float want = tree_reference(comm->size, e, round);
        count += memcmp(&want, &comm->arena[e], sizeof want) != 0;
    }
    return count;
}

#endif
