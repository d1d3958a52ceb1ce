/* What a run's memory is by plan, and what it is: the two figures that a run's summary puts side by side. The plan counts
 * arenas and the loader's micro-batches; what oneDNN, HDF5 and MPI hold for themselves is not ours to plan. */
#include "train.h"

#include <malloc.h>
#include <string.h>

int train_data_slots(const Trainer *t, const Plan *plan)
{
    return (int)t->config->data.prefetch + plan->batches_out;
}

/* One micro-batch in the loader: samples, labels or targets, and the samples' numbers. */
static size_t batch_bytes(const Trainer *t, const Plan *plan)
{
    const Graph *g = t->graph;
    const DataSet *set = &t->train_set;
    int64_t rows = t->micro_batch * (set->target_width ? set->target_width : t->rows_per_sample);
    size_t bytes = (size_t)t->micro_batch * sizeof(int64_t);
    if (plan->reads_data) bytes += desc_bytes(g->input);
    if (plan->reads_labels) bytes += (size_t)rows * sizeof(int32_t);
    return bytes;
}

/* The plan counts the places of a channel once, with its receiver. Over MPI the sender has as many. */
static size_t sender_bytes(const Trainer *t, const Plan *plan)
{
    size_t bytes = 0;
    if (plan->shape.pp == 1 || t->config->grid.transport != TRANSPORT_MPI) return 0;
    for (int c = 0; c < plan->chunk_count; ++c)
        bytes += plan->chunk[c].values_out.bytes + plan->chunk[c].gradients_out.bytes;
    return (size_t)plan->channel_depth * bytes;
}

TrainBytes train_bytes(const Trainer *t, const Plan *plan)
{
    size_t data = (size_t)train_data_slots(t, plan) * batch_bytes(t, plan);
    size_t sender = sender_bytes(t, plan);
    return (TrainBytes){.params = plan->param_part_bytes,
                        .gradients = plan->gradient_part_bytes,
                        .state = plan->state_bytes,
                        .activations = plan->activation_bytes,
                        .cache = plan->cache_bytes,
                        .workspace = plan->workspace_bytes,
                        .messages = plan->message_bytes + sender,
                        .data = data,
                        .all = plan_bytes(plan) + sender + data};
}

/* Adds the kB of the lines that begin with `key`; -1 where there is no such file or line. */
static double sum_lines(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    char line[256];
    double sum = -1, kb;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%lf", &kb) == 1)
            sum = (sum < 0 ? 0 : sum) + 1024 * kb;
    fclose(file);
    return sum;
}

MemoryUse memory_use(void)
{
    malloc_trim(0);
    double private = sum_lines("/proc/self/smaps_rollup", "Pss_Anon:");
    double shared = sum_lines("/proc/self/smaps_rollup", "Pss_Shmem:");
    return (MemoryUse){.own_bytes = private < 0 || shared < 0 ? -1 : private + shared,
                       .peak_bytes = sum_lines("/proc/self/status", "VmHWM:")};
}
