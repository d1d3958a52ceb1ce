/* Applies train.sync_batch_norm: layers compute their statistics over the micro-batches of all
 * replicas. */
#include "build.h"

Status graph_sync_statistics(Graph *graph, const Config *config, int replicas)
{
    int found = 0;
    for (int i = 0; i < graph->node_count; ++i) {
        OpSpec *spec = &graph->node[i].spec;
        if (op_info(spec->kind)->communication != COMMUNICATES_IF_SYNCED) continue;
        /* a frozen batch norm computes no statistics */
        spec->synced = replicas > 1 && !spec->fixed_stats;
        ++found;
    }
    if (found > 0) return OK;
    return config_fail_key(config, "train.sync_batch_norm",
                           "the model has no batch_norm: leave it out");
}
