/* Sets up the optimizer of a run: which rule updates each parameter, what planning needs to know
 * about it, and how a tensor that a rule needs whole is assembled from a tensor-parallel group.
 * Replicas never cut such a tensor (src/pipeline/plan/whole.c), so it needs no message between
 * them. */
#include "optimizer.h"

#include "shards.h"

#include <string.h>

/* ---- rules of parameters ---- */

/* Role of a parameter of the whole model. A tied parameter has the role of the one that it is tied
 * to. */
static ParamRole role_of(const Graph *g, int param)
{
    int source = g->param[param].tied >= 0 ? g->param[param].tied : param;
    const Param *p = &g->param[source];
    const OpInfo *info = op_info(g->node[p->node].spec.kind);
    if (info->params == PARAMS_NORM) return PARAM_NORM;
    if (info->params == PARAMS_TABLE) return PARAM_EMBEDDING;
    if (p->shape.ndim < 2) return PARAM_BIAS;
    return p->node == g->logits ? PARAM_HEAD : PARAM_WEIGHT;
}

/* Lists the parameters that are not tied to another one, in the model's order. */
static int list_tensors(const Graph *g, OptimTensor *tensor, int *param)
{
    int count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->info.buffer || p->tied >= 0) continue;
        param[count] = i;
        tensor[count++] = (OptimTensor){
            .name = p->name, .shape = p->shape, .role = role_of(g, i), .frozen = p->frozen};
    }
    return count;
}

/* Lists the sparse tables, which come after the parameters. */
static void list_tables(const Graph *g, OptimTensor *tensor)
{
    for (int i = 0; i < g->table_count; ++i) {
        const SparseTable *t = &g->table[i];
        int64_t rows = t->rows > 0 && t->rows < INT64_MAX ? (int64_t)t->rows : 1;
        tensor[i] = (OptimTensor){.name = t->name,
                                  .shape = shape_of(2, rows, t->width, 1, 1),
                                  .role = PARAM_TABLE,
                                  .frozen = t->frozen};
    }
}

/* Bytes that a rank needs to assemble a sliced tensor: its slice, and the slices of all ranks, each
 * as large as the largest. */
static size_t slices_bytes(const Graph *g, int param)
{
    if (g->param[param].cut.parts == 0) return 0;
    return (size_t)(g->ranks + 1) * (size_t)param_slice_count(g, param, 0) * sizeof(float);
}

static void fill_updates(Trainer *t, const OptimTensor *tensor, const int *param, int count,
                         const int *rule)
{
    const Graph *g = t->graph;
    int *depth_group = mem_new((size_t)(g->param_count + 1) * sizeof *depth_group);
    for (int k = 0; k < count; ++k) {
        OptimNeed need = optim_need(t->config, &tensor[k], rule[k]);
        t->rule[param[k]] = rule[k];
        if (tensor[k].frozen) continue;
        t->updates[param[k]] = (ParamUpdate){
            .slots = need.slots,
            .scratch = need.scratch,
            .whole = need.whole,
            .whole_bytes = need.whole_bytes,
            .slice_bytes = need.whole ? slices_bytes(g, param[k]) : 0,
        };
    }
    for (int i = 0; i < g->param_count; ++i) {
        if (g->param[i].tied < 0) continue;
        t->rule[i] = t->rule[g->param[i].tied];
        t->updates[i] = t->updates[g->param[i].tied];
    }
    int depth_groups = graph_depth_groups(g, depth_group);
    for (int i = 0; i < g->param_count; ++i)
        t->lr_scale[i] = optim_depth_scale(t->config, t->rule[i], depth_group[i], depth_groups);
    mem_free(&depth_group);
}

static Status check_slim(const Trainer *t, const Graph *g)
{
    bool any = t->config->optim.slim == 0;
    for (int i = 0; i < g->param_count && !any; ++i)
        any = g->param[i].info.channel_scale && !g->param[i].frozen;
    if (any) return OK;
    return config_fail_key(t->config, "optim.slim",
                           "the model has no batch norm that is trained, whose scales it is for");
}

Status train_assign_rules(Trainer *t)
{
    const Graph *g = graph_whole(t->graph);
    size_t tables = (size_t)g->table_count, room = (size_t)g->param_count + tables + 1;
    OptimTensor *tensor = mem_new(room * sizeof *tensor);
    int *param = mem_new(room * sizeof *param), *rule = mem_new(room * sizeof *rule);
    int count = list_tensors(g, tensor, param);
    list_tables(g, tensor + count);
    t->table_rule = mem_new((tables + 1) * sizeof *t->table_rule);
    t->rule = mem_new(room * sizeof *t->rule);
    t->updates = mem_new(room * sizeof *t->updates);
    t->lr_scale = mem_new(room * sizeof *t->lr_scale);
    Status st = check_slim(t, g);
    if (st == OK) st = optim_assign(t->config, tensor, count + g->table_count, rule);
    memcpy(t->table_rule, rule + count, tables * sizeof *rule);
    if (st == OK) fill_updates(t, tensor, param, count, rule);
    mem_free(&tensor);
    mem_free(&param);
    mem_free(&rule);
    return st;
}

/* ---- whole tensors ---- */

/* Assembles a whole tensor in plain order; if it is sliced, from the slices of the tensor-parallel
 * group. */
static void whole_get(void *user, int range, const float *stored, float *plain)
{
    const Trainer *t = user;
    const Graph *g = t->graph;
    int param = t->range_param[range];
    const Param *p = &g->param[param];
    Op *op = g->node[p->node].op;
    if (p->cut.parts == 0) {
        op_unpack(op, p->slot, stored, plain);
        return;
    }
    size_t count = (size_t)param_slice_count(g, param, 0);
    float *mine = t->slices, *all = mine + count;
    op_unpack(op, p->slot, stored, mine);
    world_gather(&t->grid.tp_world, mine, count * sizeof *mine, all);
    for (int r = 0; r < g->ranks; ++r) param_slice_put(g, param, r, all + (size_t)r * count, plain);
}

static void whole_put(void *user, int range, const float *plain, float *stored)
{
    const Trainer *t = user;
    const Graph *g = t->graph;
    int param = t->range_param[range];
    const Param *p = &g->param[param];
    if (p->cut.parts > 0) {
        param_slice_get(g, param, g->rank, plain, t->slices);
        plain = t->slices;
    }
    op_pack(g->node[p->node].op, p->slot, plain, stored);
}

/* ---- parameters that this rank updates ---- */

static int list_ranges(Trainer *t, OptimRange *range)
{
    const Graph *g = t->graph, *whole = graph_whole(t->graph);
    int count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->info.buffer || p->frozen || !train_owns(t, i)) continue;
        t->range_param[count] = i;
        range[count++] = (OptimRange){
            .offset = t->plan->param_offset[i],
            .elements = p->elements,
            .decay = p->info.decay,
            .channel_scale = p->info.channel_scale,
            .rule = t->rule[i],
            .lr_scale = t->lr_scale[i],
            .tensor = {.name = p->name, .shape = whole->param[i].shape, .role = role_of(whole, i)}};
    }
    return count;
}

Status train_make_optimizer(Trainer *t)
{
    size_t room = (size_t)t->graph->param_count + 1;
    OptimRange *range = mem_new(room * sizeof *range);
    t->range_param = mem_new(room * sizeof *t->range_param);
    int count = list_ranges(t, range);
    Status st;
    if (t->plan->zero || (t->shape.tp > 1 && optim_has_norms(t->config))) {
        t->shares = shards_new(t, range, count);
        OptimShard mine = shards_mine(t->shares);
        st = optim_new_shard(&t->optim, t->config, t->backend, range, count, &mine);
    } else {
        st = optim_new(&t->optim, t->config, t->backend, range, count, t->plan->trained_elements);
    }
    mem_free(&range);
    TRY(st);
    /* the buffer for the largest sliced tensor that this rank updates */
    for (int i = 0; t->optim->any_whole && i < count; ++i) {
        size_t bytes = t->updates[t->range_param[i]].slice_bytes;
        if (t->optim->piece[i].elements > 0 && bytes > t->slices_bytes) t->slices_bytes = bytes;
    }
    if (t->slices_bytes > 0) t->slices = mem_pages_new(t->slices_bytes);
    t->update_clips = t->config->optim.clip > 0 && t->shape.pp == 1 && t->shape.tp == 1 &&
                      !t->scale.moves && t->graph->table_count == 0 && optim_can_clip(t->optim);
    optim_use_whole(t->optim, (OptimWhole){.get = whole_get, .put = whole_put, .user = t});
    return OK;
}

void train_free_optimizer(Trainer *t)
{
    optim_free(&t->optim);
    shards_free(&t->shares);
    if (t->slices) mem_pages_free(t->slices, t->slices_bytes);
    t->slices = NULL;
    mem_free(&t->range_param);
    mem_free(&t->rule);
    mem_free(&t->table_rule);
    mem_free(&t->updates);
    mem_free(&t->lr_scale);
}
