/* Transports of host memory, and ways by messages: what all sums are tried over. */
#ifndef WEFT_TEST_WAYS_H
#define WEFT_TEST_WAYS_H

#include "mpi_main.h"

/* auto: between nodes of two or four ranks, where there are several */
typedef struct Way {
    int transport;
    CommWay messages;
} Way;
enum { WAY_COUNT = 5 };
static const Way ways[WAY_COUNT] = {{TRANSPORT_SHM, COMM_BY_RULE},
                                    {TRANSPORT_MPI, COMM_ALL_TO_ALL},
                                    {TRANSPORT_MPI, COMM_HALVING},
                                    {TRANSPORT_AUTO, COMM_ALL_TO_ALL},
                                    {TRANSPORT_AUTO, COMM_HALVING}};

static Comm *open_way(Way way, int64_t elements, int threads)
{
    static Backend backend;
    static World nodes;
    bool apart = way.transport == TRANSPORT_AUTO && test_world.size > 2;
    if (apart && nodes.size == 0) nodes = world_of_nodes();
    backend = (Backend){.table = &host_table, .options = {.threads = threads}};
    Comm *comm = NULL;
    comm_set_way(way.messages);
    CHECK_OK(comm_new(&comm, apart ? &nodes : &test_world, &backend, way.transport, elements));
    comm_set_way(COMM_BY_RULE);
    return comm;
}

#endif
