/* Memory in which the ranks of a node share the unpacked chunks of a set of fields. While a chunk
 * is in this memory, no rank reads and unpacks it again. All ranks of a node map the memory, also
 * those of pipeline stages that read nothing. */
#include "chunk_share.h"

/* Returns the number of ranks of this node that share memory; 1: each rank keeps chunks for
 * itself. */
static int sharers(const Trainer *t)
{
    return t->config->grid.transport == TRANSPORT_MPI ? 1 : t->world->node_size;
}

bool chunk_share_possible(const Trainer *t)
{
    return sharers(t) > 1;
}

static void prepare(void *user, void *at)
{
    const Trainer *t = ((const void **)user)[0];
    const DataSet *set = ((const void **)user)[1];
    data_fields_memory_init(set, sharers(t), at);
}

void chunk_share_new(NodeMemory **memory, const Trainer *t, const DataSet *set, FieldMemory *chunks)
{
    const size_t bytes = data_fields_kept_bytes(set, sharers(t));
    const void *user[] = {t, set};
    *memory = NULL;
    *chunks = (FieldMemory){0};
    if (bytes == 0 || -world_min(t->world, -sharers(t)) == 1) return;
    if (node_memory_new(memory, t->world, bytes, "unpacked chunks of fields", prepare, user) != OK)
        log_warn("%s; each rank keeps unpacked chunks for itself, which takes more memory",
                 fail_message());
    else
        *chunks = (FieldMemory){
            .at = node_memory_at(*memory), .check = node_memory_check, .user = *memory};
}

size_t chunk_share_bytes(const Trainer *t, const DataSet *set)
{
    return data_fields_kept_bytes(set, sharers(t)) / (size_t)sharers(t);
}

void chunk_share_report(const Trainer *t)
{
    const int64_t chunks = data_fields_chunks(&t->train_set);
    const bool counts = !t->chunk_memory || t->world->node_rank == 0;
    int64_t unpacked = counts ? t->unpacked_chunks : 0;
    if (chunks == 0) return;
    if (counts && t->loader) unpacked += loader_unpacked_chunks(t->loader);
    world_allreduce(t->world, &unpacked, 1);
    log_info("chunks of fields: %lld unpacked, of %lld in the training set", (long long)unpacked,
             (long long)chunks);
}
