/* Sets up the optimizer of a run: the rule of each parameter, the memory that the plan must reserve
 * for its update, and the assembly of whole tensors from the slices of a tensor-parallel group, for
 * rules that need whole tensors. ZeRO never shards such a tensor (src/pipeline/plan/whole.c), so
 * its assembly needs no message between replicas.
 *
 * Terms: a range is one tensor in this rank's arenas. With tensor parallelism it is a slice of the
 * model's tensor. A piece is the part of a range that this rank updates: all of it, or with ZeRO a
 * shard. */
#include "optimizer.h"

#include "mode/step_mode.h"
#include "shards.h"

#include <string.h>

/* ---- rules of parameters ---- */

/* Returns the role of a parameter of the whole model. A tied parameter has the role of the
 * parameter to which it is tied. */
static ParamRole role_of(const Graph *g, int param)
{
    int source = g->param[param].tied_param >= 0 ? g->param[param].tied_param : param;
    const Param *p = &g->param[source];
    const OpInfo *info = op_info(g->node[p->node].spec.kind);
    if (info->params == PARAMS_NORM) return PARAM_NORM;
    if (info->params == PARAMS_EMBEDDING) return PARAM_EMBEDDING;
    if (p->shape.ndim < 2) return PARAM_BIAS;
    return graph_is_output(g, p->node) ? PARAM_HEAD : PARAM_WEIGHT;
}

/* Lists in tensor[] the parameters that are not tied to another one, without running statistics, in
 * the model's order. Sets param[] to their numbers in the graph. Returns the length of the list. */
static int list_tensors(const Graph *g, OptimTensor *tensor, int *param)
{
    int count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->info.is_statistic || p->tied_param >= 0) continue;
        param[count] = i;
        tensor[count++] = (OptimTensor){
            .name = p->name, .shape = p->shape, .role = role_of(g, i), .frozen = p->frozen};
    }
    return count;
}

/* Lists the sparse tables in tensor[], which here begins after the last parameter. */
static void list_tables(const Graph *g, OptimTensor *tensor)
{
    for (int i = 0; i < g->table_count; ++i) {
        const SparseTable *t = &g->table[i];
        int64_t rows = t->rows > 0 && t->rows < INT64_MAX ? (int64_t)t->rows : 1;
        tensor[i] = (OptimTensor){.name = t->name,
                                  .shape = shape_of(2, rows, t->width, 1, 1),
                                  .role = PARAM_SPARSE_TABLE,
                                  .frozen = t->frozen};
    }
}

/* Returns the bytes in which a sliced tensor is assembled: ranks + 1 times the largest slice, for
 * this rank's slice and those of all ranks. 0: the tensor is not sliced. */
static size_t slices_bytes(const Graph *g, int param)
{
    if (g->param[param].split.parts == 0) return 0;
    return (size_t)(g->tp_ranks + 1) * (size_t)param_slice_count(g, param, 0) * sizeof(float);
}

/* Fills t->rule, t->updates and t->lr_scale for each parameter. tensor, param: the lists that
 * list_tensors has filled, of `count` tensors. rule: the rule of each of them. */
static void fill_per_parameter(Trainer *t, const OptimTensor *tensor, const int *param, int count,
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
            .needs_scratch = need.needs_scratch,
            .is_uncut = need.is_uncut,
            .whole_bytes = need.whole_bytes,
            .slice_bytes = need.is_uncut ? slices_bytes(g, param[k]) : 0,
        };
    }
    for (int i = 0; i < g->param_count; ++i) {
        if (g->param[i].tied_param < 0) continue;
        t->rule[i] = t->rule[g->param[i].tied_param];
        t->updates[i] = t->updates[g->param[i].tied_param];
    }
    int depth_groups = graph_depth_groups(g, depth_group);
    for (int i = 0; i < g->param_count; ++i)
        t->lr_scale[i] = optim_depth_scale(t->config, t->rule[i], depth_group[i], depth_groups);
    mem_free(&depth_group);
}

static Status check_slim(const Trainer *t, const Graph *g)
{
    if (t->config->optim.slim == 0) return OK;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].info.channel_scale && !g->param[i].frozen) return OK;
    return config_fail_key(t->config, "optim.slim",
                           "needs a batch norm that is trained, and the model has none");
}

/* Refuses options with which two steps at the same parameters have different gradients. A rule that
 * updates all parameters together needs the gradient of the same training set in each step. */
static Status check_same_gradient(const Trainer *t, const char *word)
{
    const Config *c = t->config;
    if (c->data.refresh != REFRESH_NEVER)
        return config_fail_key(c, "data.refresh",
                               "optim.name %s needs the gradient of the same samples in each step, "
                               "and files that appear change it: remove this key, or choose "
                               "another rule",
                               word);
    if (c->data.patch.rows > 0)
        return config_fail_key(c, "data.patch",
                               "optim.name %s needs the gradient of the same samples in each step, "
                               "and patches are at other places in each epoch: remove this key, or "
                               "choose another rule",
                               word);
    if (t->train_set.samples <= t->batch) return OK;
    return config_fail_key(c, "train.batch",
                           "optim.name %s needs the gradient of the whole training set in each "
                           "step: set it to %lld",
                           word, (long long)t->train_set.samples);
}

/* Refuses options that exclude a rule which updates all parameters together
 * (OptimTable.update_all): such a rule needs all parameters on each rank. */
static Status check_together(const Trainer *t)
{
    const Config *c = t->config;
    const OptimTable *table = optim_rule(c, 0).table;
    const char *word = table->word.word;
    const struct {
        bool set;
        const char *key;
    } cut[] = {{t->shape.pp > 1, "grid.pp"},
               {t->shape.tp > 1, "grid.tp"},
               {c->grid.zero > 0, "grid.zero"},
               {t->mode != &mode_sync, "grid.mode"}};
    if (!table->update_all || !t->trains) return OK;
    for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i)
        if (cut[i].set)
            return config_fail_key(c, cut[i].key,
                                   "optim.name %s updates all parameters together, on each rank: "
                                   "remove it, and divide the batch by grid.dp alone",
                                   word);
    return check_same_gradient(t, word);
}

Status train_assign_rules(Trainer *t)
{
    TRY(check_together(t));
    const Graph *g = graph_undivided(t->graph);
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
    if (st == OK) fill_per_parameter(t, tensor, param, count, rule);
    mem_free(&tensor);
    mem_free(&param);
    mem_free(&rule);
    return st;
}

/* ---- whole tensors ---- */

/* Sets plain to the whole tensor, in plain order, of which `stored` has this rank's range. If the
 * tensor is sliced, gathers the slices of the tensor-parallel group (OptimWhole.get). */
static void gather_whole_tensor(void *user, int range, const float *stored, float *plain)
{
    const Trainer *t = user;
    const Graph *g = t->graph;
    int param = t->range_param[range];
    const Param *p = &g->param[param];
    Op *op = g->node[p->node].op;
    if (p->split.parts == 0) {
        op_unpack(op, p->slot, stored, plain);
        return;
    }
    size_t count = (size_t)param_slice_count(g, param, 0);
    float *mine = t->slices, *all = mine + count;
    op_unpack(op, p->slot, stored, mine);
    world_allgather(&t->grid.tp_world, mine, count * sizeof *mine, all);
    for (int r = 0; r < g->tp_ranks; ++r)
        param_slice_put(g, param, r, all + (size_t)r * count, plain);
}

/* Stores the whole tensor `plain`, which is in plain order, in this rank's range; if the tensor is
 * sliced, stores only this rank's slice (OptimWhole.put). */
static void scatter_whole_tensor(void *user, int range, const float *plain, float *stored)
{
    const Trainer *t = user;
    const Graph *g = t->graph;
    int param = t->range_param[range];
    const Param *p = &g->param[param];
    if (p->split.parts > 0) {
        param_slice_get(g, param, g->tp_rank, plain, t->slices);
        plain = t->slices;
    }
    op_pack(g->node[p->node].op, p->slot, plain, stored);
}

/* ---- parameters that this rank updates ---- */

/* Returns whether the parameter is a bias; biases of norms are included. */
static bool is_bias(const Param *p)
{
    const char *dot = strrchr(p->name, '.');
    return p->shape.ndim == 1 && strcmp(dot ? dot + 1 : p->name, "bias") == 0;
}

/* Returns whether sums are cut into slices, so that results do not depend on the number of ranks in
 * a tensor-parallel group. */
static bool cuts_sums(const Graph *g)
{
    for (int i = 0; i < g->node_count; ++i)
        if (g->node[i].spec.slices.total > 0) return true;
    return false;
}

/* Appends to range[], which has `count` entries, the ranges of this rank's trained parameters.
 * statistics = true: appends instead those of the running statistics that training updates and
 * train.ema averages. Returns the new number of entries. */
static int list_ranges(Trainer *t, OptimRange *range, int count, bool statistics)
{
    const Graph *g = t->graph, *whole = graph_undivided(t->graph);
    const bool exact = cuts_sums(g);
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->info.is_statistic != statistics || p->frozen || !train_owns(t, i)) continue;
        t->range_param[count] = i;
        range[count++] = (OptimRange){
            .offset = t->plan->param_offset[i],
            .elements = p->elements,
            .decay = p->info.decay,
            .channel_scale = p->info.channel_scale,
            .bias = is_bias(p),
            .statistic = statistics,
            .rule = t->rule[i],
            .lr_scale = t->lr_scale[i],
            .exact = exact,
            .tensor = {.name = p->name, .shape = whole->param[i].shape, .role = role_of(whole, i)}};
    }
    return count;
}

/* Creates t->optim, with shards for ZeRO or for norms of tensors that are sliced. */
static Status make_for_ranges(Trainer *t, const OptimRange *range, int count)
{
    const bool norms_of_slices = t->shape.tp > 1 && optim_has_norms(t->config);
    if (!t->plan->zero && !norms_of_slices)
        return optim_new(&t->optim, t->config, t->backend, range, count, t->plan->trained_elements);
    t->shards = shards_new(t, range, count);
    OptimShard mine = shards_mine(t->shards);
    return optim_new_shard(&t->optim, t->config, t->backend, range, count, &mine);
}

/* Allocates the buffer for the largest sliced tensor that this rank updates as a whole. */
static void make_slices(Trainer *t)
{
    for (int i = 0; t->optim->needs_whole_tensors && i < t->optim->range_count; ++i) {
        size_t bytes = t->updates[t->range_param[i]].slice_bytes;
        if (t->optim->piece[i].elements > 0 && bytes > t->slices_bytes) t->slices_bytes = bytes;
    }
    if (t->slices_bytes > 0) t->slices = mem_pages_new(t->slices_bytes);
}

/* Returns whether the optimizer can clip without a wait of the host. All gradients of the model
 * must be in this rank's arena. There must be no loss scale (fp16): with one, the host checks for
 * overflow before the update. */
static bool can_clip_on_device(const Trainer *t)
{
    const bool all_gradients = t->shape.pp == 1 && t->shape.tp == 1 && t->graph->table_count == 0;
    const bool scales_loss = t->loss_scale.dynamic;
    return all_gradients && !scales_loss && optim_can_clip(t->optim);
}

/* Lets updates write the copies of parameters that operations read in 16-bit types. */
static void use_copies(Trainer *t)
{
    if (!optim_can_copy(t->optim)) return;
    void **copy = mem_new((size_t)(t->graph->param_count + 1) * sizeof *copy);
    void **of_range = mem_new((size_t)(t->optim->range_count + 1) * sizeof *of_range);
    const DType type = executor_use_copies(t->executor, copy);
    for (int i = 0; i < t->optim->range_count; ++i) of_range[i] = copy[t->range_param[i]];
    optim_use_copies(t->optim, of_range, type);
    mem_free(&copy);
    mem_free(&of_range);
}

Status train_make_optimizer(Trainer *t)
{
    size_t room = (size_t)t->graph->param_count + 1;
    OptimRange *range = mem_new(room * sizeof *range);
    t->range_param = mem_new(room * sizeof *t->range_param);
    int count = list_ranges(t, range, 0, false);
    if (t->config->train.ema > 0) count = list_ranges(t, range, count, true);
    Status st = make_for_ranges(t, range, count);
    mem_free(&range);
    TRY(st);
    make_slices(t);
    use_copies(t);
    t->update_clips = t->config->optim.clip > 0 && can_clip_on_device(t);
    optim_use_whole(
        t->optim, (OptimWhole){.get = gather_whole_tensor, .put = scatter_whole_tensor, .user = t});
    optim_use_merge(t->optim, shards_merge(t));
    return OK;
}

void train_free_optimizer(Trainer *t)
{
    optim_free(&t->optim);
    shards_free(&t->shards);
    if (t->slices) mem_pages_free(t->slices, t->slices_bytes);
    t->slices = NULL;
    mem_free(&t->range_param);
    mem_free(&t->rule);
    mem_free(&t->table_rule);
    mem_free(&t->updates);
    mem_free(&t->lr_scale);
}
