/* Lists a checkpoint's tensors, and finds the memory of their values. The list does not need the
 * memory, so it can be made in a dry run. */
#include "tensors.h"

int tensors_param(const Tensors *list, int i)
{
    const Graph *g = list->trainer->graph;
    int param = list->param[i];
    if (list->plan->param_offset[param] >= 0) return param;
    for (int p = 0; p < g->param_count; ++p)
        if (g->param[p].tied_param == param && list->plan->param_offset[p] >= 0) return p;
    return -1;
}

static OptimRule rule_of(const Trainer *t, int param)
{
    return optim_rule(t->config, t->rule[param]);
}

int tensor_piece(const Trainer *t, int param)
{
    int range = 0;
    while (t->range_param[range] != param) ++range;
    return range;
}

char *tensor_path(const Trainer *t, int param, int slot)
{
    const Param *p = &t->graph->param[param];
    if (slot == TENSOR_VALUE) return checkpoint_param_path(p);
    if (slot == TENSOR_AVERAGE) return mem_format(CHECKPOINT_EMA "%s", p->name);
    return mem_format("/optim/%s/%s", rule_of(t, param).table->slot_name[slot], p->name);
}

bool tensors_sharded(const Tensors *list, int i)
{
    bool frozen = list->trainer->graph->param[list->param[i]].frozen;
    return list->plan->zero && (list->slot[i] >= 0 || (list->plan->gathers && !frozen));
}

bool tensors_sliced(const Tensors *list, int i)
{
    const Trainer *t = list->trainer;
    return t->shape.tp > 1 && t->graph->param[tensors_param(list, i)].split.parts > 0;
}

bool tensors_unused(const Tensors *list, int i)
{
    const int slot = list->slot[i];
    return slot >= 0 && slot != TENSOR_AVERAGE &&
           slot >= rule_of(list->trainer, list->param[i]).slots;
}

int64_t tensors_replica_floats(const Tensors *list, int i, int dp_rank)
{
    int param = tensors_param(list, i);
    int64_t first, count = list->trainer->graph->param[param].elements;
    if (tensors_sharded(list, i)) plan_shard(list->plan, param, dp_rank, &first, &count);
    return count;
}

float *tensors_memory(const Tensors *list, int i)
{
    Trainer *t = list->trainer;
    int slot = list->slot[i], param = tensors_param(list, i);
    if (slot == TENSOR_VALUE) return executor_param(t->executor, param);
    const OptimPiece *piece = &t->optim->piece[tensor_piece(t, param)];
    if (slot == TENSOR_AVERAGE) return t->optim->average + piece->average_offset;
    return t->optim->state[slot] + piece->state[slot];
}

int tensors_stage(const Trainer *t, int node)
{
    int chunk = 0;
    while (node >= t->chunk_begin[chunk + 1]) ++chunk;
    return schedule_stage(t->schedule, chunk);
}

static void tensors_add(Tensors *list, int param, int slot)
{
    const Trainer *t = list->trainer;
    const Param *p = &t->graph->param[param];
    int ranks = t->shape.dp * t->shape.tp;
    list->tensor[list->count] =
        (CheckpointTensor){.path = tensor_path(t, param, slot),
                           .shape = graph_undivided(t->graph)->param[param].shape,
                           .rank_first = tensors_stage(t, p->node) * ranks,
                           .rank_count = ranks};
    list->param[list->count] = param;
    list->slot[list->count++] = slot;
}

/* Returns true if a checkpoint of the trainer has this slot of the parameter. */
static bool has_slot(const Trainer *t, int param, int slot)
{
    const Param *p = &t->graph->param[param];
    if (p->tied_param >= 0) return false;
    if (slot == TENSOR_VALUE) return true;
    if (slot == TENSOR_AVERAGE) return t->config->train.ema > 0 && !p->frozen;
    return !p->info.is_statistic && !p->frozen && slot < rule_of(t, param).table->slots;
}

void tensors_init(Tensors *list, const Trainer *t, const Plan *plan, bool params_only)
{
    const int last = params_only ? TENSOR_VALUE : TENSOR_AVERAGE, params = t->graph->param_count;
    size_t most = (size_t)params * (size_t)(last + 2) + 1;
    *list = (Tensors){.trainer = (Trainer *)(uintptr_t)t,
                      .plan = plan,
                      .tensor = mem_new(most * sizeof *list->tensor),
                      .param = mem_new(most * sizeof *list->param),
                      .slot = mem_new(most * sizeof *list->slot)};
    for (int slot = TENSOR_VALUE; slot <= last; ++slot)
        for (int i = 0; i < params; ++i)
            if (has_slot(t, i, slot)) tensors_add(list, i, slot);
}

void tensors_fini(Tensors *list)
{
    for (int i = 0; i < list->count; ++i) {
        char *path = (char *)(uintptr_t)list->tensor[i].path;
        mem_free(&path);
    }
    mem_free(&list->tensor);
    mem_free(&list->param);
    mem_free(&list->slot);
}

size_t tensors_largest_bytes(const Trainer *t)
{
    size_t largest = 1;
    for (int i = 0; i < t->graph->param_count; ++i)
        if ((size_t)t->graph->param[i].elements > largest)
            largest = (size_t)t->graph->param[i].elements;
    return largest * sizeof(float);
}

size_t tensors_largest_whole_bytes(const Trainer *t)
{
    const Graph *g = graph_undivided(t->graph);
    size_t largest = 1;
    for (int i = 0; i < g->param_count; ++i)
        if ((size_t)shape_count(g->param[i].shape) > largest)
            largest = (size_t)shape_count(g->param[i].shape);
    return largest * sizeof(float);
}
