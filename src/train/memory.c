/* The planned and the measured memory of a run, for its summary and `weft plan`. Arenas, the
 * loader's micro-batches and messages are planned. Memory inside oneDNN and HDF5 cannot be planned.
 * When the graph has been planned, these libraries have allocated this memory, except for packed
 * weights (Op.packing_bytes); the amount is about the same on every rank, because each rank plans
 * the whole graph. Therefore a run and `weft plan` measure this memory at that time, before the
 * first arena is allocated. */
#include "data/field_read.h"
#include "chunk_share.h"
#include "state/save_copy.h"
#include "mode/sparse.h"
#include "transport.h"

#include <malloc.h>
#include <string.h>

/* GPU memory, 256 MiB, that is left free for allocations after the check of the plan: CUDA graphs,
 * and kernels that the driver loads at their first call. On an H200 at most 18 MB were measured
 * (gpt2, resnet50, lenet, micro-batches up to 354). */
static const size_t ALONE_RESERVE_BYTES = (size_t)1 << 28;
/* Replaces ALONE_RESERVE_BYTES in runs with NCCL: 1.5 GiB. NCCL's buffers have not been
 * measured. */
static const size_t NCCL_RESERVE_BYTES = (size_t)3 << 29;

int train_data_slots(const Trainer *t, const Plan *plan)
{
    int ahead = t->backend->table->host_memory ? 0 : DATA_AHEAD;
    return (int)t->config->data.prefetch + plan->batches_in_use + ahead;
}

/* Returns the bytes of one micro-batch in the loader: samples with their ids; labels, twice if
 * images are mixed, boxes, or targets with weights that vary; and the numbers of its samples in the
 * data set. */
static size_t batch_bytes(const Trainer *t, const Plan *plan)
{
    const Graph *g = t->graph;
    const DataSet *set = &t->train_set;
    const int64_t values = set->target_width ? set->target_width : data_labels_per_sample(set);
    const int64_t rows = t->micro_batch * values;
    const bool weights_vary = data_has_fields(set) && field_loss_weights_vary(&set->field_set);
    size_t bytes = (size_t)t->micro_batch * sizeof(int64_t);
    if (plan->reads_data) bytes += desc_bytes(g->input) + data_ids_bytes(set, t->micro_batch);
    if (plan->reads_labels) bytes += data_box_bytes(set, t->config, t->micro_batch);
    if (plan->reads_labels) bytes += (size_t)rows * sizeof(int32_t);
    if (plan->reads_labels && weights_vary) bytes += (size_t)rows * sizeof(float);
    if (plan->reads_labels && data_mixes_images(t->config)) bytes += (size_t)rows * sizeof(int32_t);
    return bytes;
}

/* Returns the bytes of the labels of a set of boxes. The loader keeps all labels, because they also
 * determine how pictures are placed. */
static size_t label_bytes(const Trainer *t, const Plan *plan)
{
    return plan->reads_data || plan->reads_labels ? data_boxes_bytes(&t->train_set) : 0;
}

/* Returns the bytes of unpacked chunks of fields that this rank keeps for both sets. If the ranks
 * of a node share the chunks, each rank, also one that reads nothing, counts an equal part of
 * them. */
static size_t chunk_bytes(const Trainer *t, const Plan *plan)
{
    if (!plan->reads_data && !plan->reads_labels && !chunk_share_possible(t)) return 0;
    return chunk_share_bytes(t, &t->train_set) + chunk_share_bytes(t, &t->test_set);
}

/* Returns the bytes that the loader's threads need to decode, resample, crop or recolour pictures;
 * 0 if the set needs none of this. */
static size_t worker_bytes(const Trainer *t, const Plan *plan)
{
    const DataSet *set = &t->train_set;
    if (!plan->reads_data || !data_needs_picture_converter(set, t->config)) return 0;
    return (size_t)train_workers(t, set) * picture_converter_bytes(set);
}

int train_workers(const Trainer *t, const DataSet *set)
{
    return data_workers(set, t->config, t->backend->options.threads);
}

int train_box_grids(const Trainer *t, BoxGrid grid[BOX_LEVELS])
{
    const OpSpec *loss = &t->graph->node[t->graph->loss_node].spec;
    if (op_info(loss->kind)->reads != READS_BOXES) return 0;
    for (int l = 0; l < loss->x_count; ++l) grid[l] = box_grid(loss, l);
    return loss->x_count;
}

/* Returns the bytes of the buffers for sums over replicas through NCCL or MPI; 0 in shared
 * memory. */
static size_t staging_bytes(const Trainer *t, const Plan *plan)
{
    if (plan->shape.dp > 1 && train_gpus_joined(t))
        return comm_nccl_scratch(plan->shape.dp, plan->micro_grad_elements);
    if (!train_sums_by_mpi(t)) return 0;
    int width = t->comm ? t->comm->group_width : 1;
    return comm_mpi_staging(plan->shape.dp, width, plan->micro_grad_elements);
}

/* Returns the bytes that were measured before the first arena, plus the bytes that will be
 * allocated when this stage's weights are packed. */
static size_t program_bytes(const Trainer *t, const Plan *plan)
{
    size_t bytes = t->program_bytes;
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int i = plan->chunk[c].first; i < plan->chunk[c].end; ++i)
            bytes += plan->graph->node[i].op->packing_bytes;
    return bytes;
}

static bool uses_nccl(const Trainer *t)
{
    return t->shape.dp * t->shape.pp * t->shape.tp > 1 && train_gpus_joined(t);
}

const char *train_reserved_for(const Trainer *t)
{
    return uses_nccl(t) ? "CUDA graphs, kernels and NCCL's buffers" : "CUDA graphs and kernels";
}

TrainBytes train_bytes(const Trainer *t, const Plan *plan)
{
    /* A device stores the micro-batches in use and those being copied; the loader's micro-batches
     * are in host memory. */
    bool device = t->backend->table->memory;
    size_t batch = batch_bytes(t, plan);
    size_t loader = (size_t)train_data_slots(t, plan) * batch + worker_bytes(t, plan) +
                    label_bytes(t, plan) + chunk_bytes(t, plan);
    size_t data = device ? (size_t)(plan->batches_in_use + DATA_AHEAD) * batch : loader;
    size_t program = program_bytes(t, plan);
    /* In shared memory only the receiver has a channel's slots; with MPI and NCCL the sender has
     * slots, too. On several nodes any channel may go through MPI. */
    const bool sender_stores = t->config->grid.transport == TRANSPORT_MPI ||
                               !t->backend->table->host_memory ||
                               !transport_one_node(t, t->shape.dp * t->shape.tp * t->shape.pp);
    size_t messages =
        plan->message_bytes + (sender_stores ? plan->send_slot_bytes : 0) + staging_bytes(t, plan);
    size_t copy = t->saves_in_background ? save_copy_bytes(t, plan) : 0;
    size_t reserved = uses_nccl(t) ? NCCL_RESERVE_BYTES : ALONE_RESERVE_BYTES;
    size_t tables = sparse_buffer_bytes(t, plan) + sparse_row_bytes(t, plan);
    size_t deferred = (size_t)table_staleness(t->config) * plan->gradient_bytes;
    return (TrainBytes){.tables = tables,
                        .params = plan->param_part_bytes,
                        .gradients = plan->gradient_part_bytes + deferred,
                        .state = plan->state_bytes,
                        .average = plan->average_bytes,
                        .activations = plan->activation_bytes,
                        .cache = plan->cache_bytes,
                        .workspace = plan->workspace_bytes,
                        .messages = messages,
                        .data = data,
                        .program = program,
                        .checkpoint = copy,
                        .reserved = device ? reserved : 0,
                        .host = device ? loader + plan->staged_bytes + copy : 0,
                        .all = plan_bytes(plan) - plan->message_bytes + messages + data + program +
                               tables + deferred + (device ? 0 : copy)};
}

MemoryUse memory_use(void)
{
    malloc_trim(0);
    /* Slow: for each read of this file Linux visits all pages of the process. */
    double process_bytes = proc_bytes("/proc/self/smaps_rollup", "Pss_Anon:Pss_Shmem:");
    return (MemoryUse){.own_bytes = process_bytes,
                       .peak_bytes = proc_bytes("/proc/self/status", "VmHWM:")};
}
