/* Allocates and releases the parameters of a communicator whose ranks do not share the memory of
 * the parameters. */
#include "comm_table.h"

Status comm_params_alloc(Comm *comm, size_t bytes)
{
    comm->params = comm->backend->table->alloc(comm->backend, bytes);
    return OK;
}

void comm_params_release(Comm *comm)
{
    if (comm->params)
        comm->backend->table->release(comm->backend, comm->params,
                                      (size_t)comm->param_elements * sizeof(float));
}
