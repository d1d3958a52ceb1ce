/* Decides how each node of a graph is divided among the ranks of a tensor-parallel group (split.h),
 * and into how many slices sums over divided dimensions are cut. */
#include "split.h"

/* Fails because a layer has fewer units than there are ranks. units: their name, such as "heads";
 * count: their number. */
static Status too_few_fail(const Splitter *s, const char *layer, const char *units, int64_t count)
{
    return config_fail_key(s->config, "grid.tp",
                           "%d ranks cannot divide layer %s, which has %lld %s: set grid.tp to at "
                           "most %lld",
                           s->ranks, layer, (long long)count, units, (long long)count);
}

/* Fails because attention has fewer key heads than there are ranks, and its key heads cannot be
 * divided. */
static Status too_few_keys_fail(const Splitter *s, const char *layer, int kv_heads)
{
    return config_fail_key(s->config, "grid.tp",
                           "%d ranks cannot divide layer %s, which has %d kv_heads: set grid.tp to "
                           "at most %d; more ranks share key heads only with train.device: cpu, "
                           "train.precision: fp32, and a grid.tp and train.sum_slices that are "
                           "multiples of kv_heads",
                           s->ranks, layer, kv_heads, kv_heads);
}

/* Returns whether the parameter is tied to another one, or another one is tied to it. *node: set to
 * the node of that other parameter. */
static bool is_tied(const Graph *g, int param, int *node)
{
    int other = g->param[param].tied_param;
    for (int i = 0; i < g->param_count && other < 0; ++i)
        if (g->param[i].tied_param == param) other = i;
    if (other >= 0) *node = g->param[other].node;
    return other >= 0;
}

static bool has_tied_param(const Graph *g, const Node *node)
{
    int other;
    for (int k = 0; k < node->spec.w_count; ++k)
        if (is_tied(g, node->param[k], &other)) return true;
    return false;
}

/* Facts about the layers between two dense layers. */
typedef struct Between {
    /* number of query heads of the attention; 0: there is no attention */
    int heads;
    /* number of key heads of the attention; 0: there is no attention */
    int kv_heads;
    /* true: there is a layer that combines two halves (swiglu) */
    bool halves;
} Between;

/* Returns the dense layer that can be divided by its inputs, as the partner of a dense layer that
 * is divided by its outputs; -1: there is none. The search goes from each layer to its only reader.
 * It stops at attention or swiglu after dropout, at swiglu after attention, and at attention after
 * swiglu: on a rank, the input of the later layer would be several slices side by side, but a
 * TensorSlice describes only one. Fills *between. */
static int find_row_layer(const Splitter *s, int column, Between *between)
{
    const Graph *g = s->from;
    bool dropped = false;
    *between = (Between){0};
    for (int i = column; s->uses[i] == 1;) {
        i = s->reader[i];
        const Node *node = &g->node[i];
        const OpInfo *info = node_info(node);
        if (info->split == SPLIT_PRODUCT) return s->role[i] == ROLE_REST ? i : -1;
        const bool undivided = between->heads == 0 && !between->halves && !dropped;
        if (info->split == SPLIT_HEADS && undivided) {
            between->heads = node->spec.heads;
            between->kv_heads = attention_kv_heads(&node->spec);
        } else if (info->split == SPLIT_HALVES && undivided)
            between->halves = true;
        else if (info->split == SPLIT_ELEMENTS)
            dropped = dropped || info->tokens == TOKENS_BY_POSITION;
        else
            return -1;
    }
    return -1;
}

/* Returns the number of parts, over all ranks, whose sums are computed separately and then added:
 * the slices or, if sums are not cut, the ranks. */
static int sum_parts(const Splitter *s)
{
    return s->slices > 0 ? s->slices : s->ranks;
}

/* Returns whether attention with shared keys can be divided by query heads, and its keys and values
 * by columns. The number of parts (sum_parts) must be a multiple of the number of key heads. 16-bit
 * types are excluded because the parts of a key head's gradient would be rounded before they are
 * added. GPUs are excluded because their operations cannot compute such parts. */
static bool can_cut_keys(const Splitter *s, const Between *between)
{
    return between->kv_heads < between->heads && s->config->train.device != DEVICE_CUDA &&
           s->config->train.precision == PRECISION_FP32 && sum_parts(s) % between->kv_heads == 0;
}

bool split_cuts_keys(const Splitter *s, int i)
{
    const Node *node = &s->from->node[i];
    return s->role[i] == ROLE_BETWEEN && splits_by(node, SPLIT_HEADS) &&
           s->units[i] > attention_kv_heads(&node->spec);
}

/* Returns the number of columns of all keys of an attention node. */
static int64_t key_columns(const Node *attention)
{
    return attention_kv_heads(&attention->spec) * head_width(&attention->spec);
}

/* Sets role and units of a pair of dense layers and of all layers between them. */
static Status assign_pair(Splitter *s, int column, int row, Between between)
{
    const Graph *g = s->from;
    const char *name = g->node[column].name;
    const int64_t width = g->node[column].spec.w[0].dim[0];
    int64_t units = between.halves ? width / 2 : width;
    if (between.heads > 0) units = can_cut_keys(s, &between) ? between.heads : between.kv_heads;
    if (units < s->ranks && units < between.heads) return too_few_keys_fail(s, name, (int)units);
    if (units < s->ranks)
        return too_few_fail(s, name, between.heads == 0 ? "outputs" : "heads", units);
    for (int i = column; i != row; i = s->reader[i]) {
        s->role[i] = i == column ? ROLE_COLUMN : ROLE_BETWEEN;
        s->units[i] = units;
        if (split_cuts_keys(s, i) && key_columns(&g->node[i]) < s->ranks)
            return too_few_fail(s, name, "columns of keys", key_columns(&g->node[i]));
    }
    s->role[row] = ROLE_ROW;
    s->units[row] = units;
    return OK;
}

/* Finds all pairs of dense layers that can be divided, and sets their roles. *pairs: incremented
 * for each pair. */
static Status assign_pairs(Splitter *s, int *pairs)
{
    const Graph *g = s->from;
    for (int i = 0; i < g->node_count; ++i) {
        int row;
        Between between;
        if (!splits_by(&g->node[i], SPLIT_PRODUCT) || s->role[i] != ROLE_REST) continue;
        row = find_row_layer(s, i, &between);
        if (row < 0 || has_tied_param(g, &g->node[i]) || has_tied_param(g, &g->node[row])) continue;
        TRY(assign_pair(s, i, row, between));
        ++*pairs;
    }
    return OK;
}

/* Sets the roles of the layers that are divided by vocabulary: embedding, head and loss. If
 * embedding and head share a weight, either both are divided or neither is. */
static Status assign_vocabulary(Splitter *s)
{
    const Graph *g = s->from;
    const Node *head = &g->node[g->logits_node];
    bool divide_head = splits_by(head, SPLIT_PRODUCT) && s->uses[g->logits_node] == 1 &&
                       splits_by(&g->node[g->loss_node], SPLIT_CLASSES) &&
                       head->spec.y.shape.ndim < 4 && s->role[g->logits_node] == ROLE_REST;
    for (int i = 0; i < g->node_count; ++i) {
        int other = -1;
        const Node *node = &g->node[i];
        if (!splits_by(node, SPLIT_ROWS)) continue;
        if (is_tied(g, node->param[0], &other) && (other != g->logits_node || !divide_head))
            continue;
        if (node->spec.w[0].dim[0] < s->ranks)
            return too_few_fail(s, node->name, "tokens", node->spec.w[0].dim[0]);
        s->role[i] = ROLE_EMBED;
        s->units[i] = node->spec.w[0].dim[0];
    }
    int other = -1;
    if (divide_head && is_tied(g, head->param[0], &other))
        divide_head = s->role[other] == ROLE_EMBED;
    if (!divide_head) return OK;
    if (g->classes < s->ranks) return too_few_fail(s, head->name, "outputs", g->classes);
    s->role[g->logits_node] = ROLE_HEAD;
    s->role[g->loss_node] = ROLE_LOSS;
    s->units[g->logits_node] = s->units[g->loss_node] = g->classes;
    return OK;
}

/* Returns whether the sequence can be divided. The data must be tokens, the loss must be divided by
 * vocabulary, a sequence must have a token for each rank and each slice, and every undivided layer
 * must process tokens separately. If sums are cut into slices, no undivided layer may be dense: its
 * gradient would need memory for each slice. */
static bool can_divide_sequence(const Splitter *s)
{
    const Graph *g = s->from;
    bool can = g->input.dtype == DTYPE_I32 && s->role[g->loss_node] == ROLE_LOSS &&
               g->input.shape.dim[1] >= (s->slices > s->ranks ? s->slices : s->ranks);
    for (int i = 0; i < g->node_count; ++i)
        if (s->role[i] == ROLE_REST)
            can = can && node_info(&g->node[i])->tokens != TOKENS_TOGETHER &&
                  g->node[i].spec.y.shape.ndim == 3 &&
                  !(s->slices > 0 && splits_by(&g->node[i], SPLIT_PRODUCT));
    return can;
}

/* Halves the number of slices until each divided layer has a unit for every slice, and keys that
 * are divided by columns have a column for every slice. If the number becomes 1, sets it to 0: sums
 * are not cut. */
static void limit_slices(Splitter *s)
{
    for (int i = 0; i < s->from->node_count; ++i) {
        while (s->role[i] != ROLE_REST && s->slices > s->units[i]) s->slices /= 2;
        while (split_cuts_keys(s, i) && s->slices > key_columns(&s->from->node[i])) s->slices /= 2;
    }
    if (s->slices == 1) s->slices = 0;
}

/* Divides attention by key heads again if there is a key head for every part of a sum (sum_parts),
 * so that its keys need not be divided by columns. */
static void keep_whole_keys(Splitter *s)
{
    const Graph *g = s->from;
    for (int i = 0; i < g->node_count; ++i) {
        const int kv_heads = attention_kv_heads(&g->node[i].spec);
        if (!split_cuts_keys(s, i) || kv_heads < sum_parts(s)) continue;
        int first = i, last = i;
        while (s->role[first] != ROLE_COLUMN) first = g->node[first].in[0];
        while (s->role[last] != ROLE_ROW) last = s->reader[last];
        for (int k = first; k != last; k = s->reader[k]) s->units[k] = kv_heads;
        s->units[last] = kv_heads;
    }
}

Status split_check_slices(const Splitter *s)
{
    static const char *const other =
        "with train.sum_slices: 1 grid.tp may be any number, but results "
        "then depend on it";
    if (s->slices > 0 && (s->ranks & (s->ranks - 1)) != 0)
        return config_fail_key(s->config, "grid.tp",
                               "%d is no power of two, which is needed for the same bits on every "
                               "grid: choose 2, 4 or 8; %s",
                               s->ranks, other);
    if (s->slices > 0 && s->ranks > s->slices)
        return config_fail_key(s->config, "grid.tp",
                               "%d is more than the slices into which sums are cut: set "
                               "train.sum_slices to %d, which changes bits; %s",
                               s->ranks, s->ranks, other);
    return OK;
}

Status split_assign_roles(Splitter *s)
{
    int pairs = 0;
    const Graph *g = s->from;
    if (g->bag_count > 0)
        return config_fail_key(s->config, "grid.tp",
                               "layer %s has sparse tables, which no tensor group divides: use "
                               "grid.dp or grid.pp",
                               g->node[g->table[0].node].name);
    graph_count_uses(g, s->uses);
    for (int i = 0; i < g->node_count; ++i)
        for (int k = 0; k < g->node[i].spec.x_count; ++k)
            if (g->node[i].in[k] != NODE_INPUT) s->reader[g->node[i].in[k]] = i;
    TRY(assign_pairs(s, &pairs));
    if (pairs == 0)
        return config_fail_key(s->config, "grid.tp",
                               "the model has nothing to divide: tensor parallelism needs two "
                               "dense layers with only activations, swiglu, dropout or attention "
                               "between them; use grid.dp or grid.pp");
    TRY(assign_vocabulary(s));
    limit_slices(s);
    keep_whole_keys(s);
    s->divides_sequence = can_divide_sequence(s);
    return OK;
}
