/* Checks grid.transport (and grid.zero on GPUs) for a dry run, or before a run makes communicators.
 * Derives from grid.transport the transport of the sums over replicas, whether NCCL joins the GPUs,
 * and how many replicas share parameters. Whether ranks share a GPU or are on several nodes is
 * checked only when communicators are made. */
#include "transport.h"

Status transport_check(const Trainer *t)
{
    const Config *c = t->config;
    bool gpus = !t->backend->table->host_memory;
    bool several = t->shape.dp * t->shape.pp * t->shape.tp > 1;
    int chosen = (int)c->grid.transport;
    if (several && chosen == TRANSPORT_NCCL && !gpus)
        return config_fail_key(c, "grid.transport",
                               "nccl connects GPUs only: set auto, or train.device: cuda");
    if (gpus && t->shape.dp > 1 && c->grid.zero && !train_gpus_joined(t))
        return config_fail_key(c, "grid.zero",
                               "replicas on GPUs can shard with NCCL only, but grid.transport "
                               "selects another transport: set grid.transport: auto, or "
                               "grid.zero: 0");
    return OK;
}

bool transport_one_node(const Trainer *t, int ranks)
{
    return t->node_ranks > 0 ? ranks <= t->node_ranks : t->world->one_node;
}

/* Returns the transport of the sums of this rank's gradients over the ranks of grid.dp_world. */
static int sums_transport(const Trainer *t)
{
    /* before the grid is made, the answer for the first stage */
    const bool one_node = t->grid_ready ? t->grid.dp_world.one_node
                                        : transport_one_node(t, t->shape.dp * t->shape.tp);
    return comm_transport(t->config->grid.transport, one_node, t->backend->table->host_memory);
}

bool train_sums_by_mpi(const Trainer *t)
{
    return t->shape.dp > 1 && sums_transport(t) == TRANSPORT_MPI;
}

bool train_gpus_joined(const Trainer *t)
{
    int transport = (int)t->config->grid.transport;
    if (t->backend->table->host_memory) return false;
    if (t->grid_ready) return t->grid.nccl_comm[0] != NULL;
    return transport == TRANSPORT_AUTO || transport == TRANSPORT_NCCL;
}

int transport_param_sharers(const Trainer *t)
{
    return sums_transport(t) == TRANSPORT_SHM ? t->shape.dp : 1;
}
