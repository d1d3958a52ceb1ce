/* Makes one rank's slice of a graph, for tensor parallelism (Shoeybi et al. 2019, "Megatron-LM";
 * Korthikanti et al. 2022). A dense layer is divided by its outputs and the next one by its inputs;
 * layers between them (activations, swiglu, dropout, attention by heads) work on the slice, and a
 * sum over the ranks follows the second dense layer. Embedding and softmax loss are divided by
 * vocabulary. Every rank runs all other layers on its slice of the sequence or, if one of them does
 * not allow that, on the whole sequence. Slices need not be equal. ERR_CONFIG for models without
 * such pairs, or if a rank would get nothing. */
#include "build.h"

#include <string.h>

/* How a node is divided among the ranks. */
typedef enum Role {
    /* not divided, but may work on a slice of the sequence */
    ROLE_REST,
    /* dense layer divided by its outputs */
    ROLE_COLUMN,
    /* between column and row layer: works on a slice of the last dimension */
    ROLE_BETWEEN,
    /* dense layer divided by its inputs; the sum of all ranks' outputs is the result */
    ROLE_ROW,
    /* embedding divided by rows; the sum of all ranks' outputs is the result */
    ROLE_EMBED,
    /* dense layer divided by its outputs; the loss reads the slices */
    ROLE_HEAD,
    /* loss on a slice of the classes */
    ROLE_LOSS,
} Role;

typedef struct Splitter {
    /* borrowed */
    const Graph *from;
    /* borrowed */
    const Config *config;
    /* the new graph; the caller's once it is complete */
    Graph *to;
    int rank, ranks;
    /* undivided layers work on slices of the sequence */
    bool sequence;
    /* role of each node; owned, as are all arrays here */
    Role *role;
    /* number of units into which a node's last dimension is divided: key heads, or single values */
    int64_t *units;
    /* number of readers of node i's output */
    int *uses;
    /* the last reader of node i's output */
    int *reader;
    /* the node of `to` that gives node i's output */
    int *new_index;
    /* the exchange node that gives node i's whole output to divided layers; -1: none yet */
    int *exchanged;
} Splitter;

/* Fails because a layer has fewer units ("heads") than there are ranks. */
static Status too_few_fail(const Splitter *s, const char *layer, const char *units, int64_t count)
{
    return config_fail_key(s->config, "grid.tp",
                           "%d ranks cannot divide layer %s, which has %lld %s: set grid.tp to at "
                           "most %lld",
                           s->ranks, layer, (long long)count, units, (long long)count);
}

/* ---- the role of each layer ---- */

/* True if the parameter is tied to another, or another to it; *node: the node of the other one. */
static bool is_tied(const Graph *g, int param, int *node)
{
    int other = g->param[param].tied;
    for (int i = 0; i < g->param_count && other < 0; ++i)
        if (g->param[i].tied == param) other = i;
    if (other >= 0) *node = g->param[other].node;
    return other >= 0;
}

static bool splits_by(const Node *node, OpSplit split)
{
    return node_info(node)->split == split;
}

static bool has_tied_param(const Graph *g, const Node *node)
{
    int other;
    for (int k = 0; k < node->spec.w_count; ++k)
        if (is_tied(g, node->param[k], &other)) return true;
    return false;
}

/* The layers between two dense layers, as far as slicing depends on them. */
typedef struct Between {
    /* number of key heads of an attention; 0: there is none */
    int heads;
    /* several query heads share a key head */
    bool shared;
    /* there is a layer that combines two halves */
    bool halves;
} Between;

/* Follows single readers from a dense layer to the next dense layer and returns it, or -1. It stops
 * at attention or swiglu after dropout, and at swiglu after attention or the reverse: on a rank,
 * the input of the later layer would be several slices of the whole side by side, but a TensorSlice
 * describes only one. */
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
            between->heads = attention_kv_heads(&node->spec);
            between->shared = between->heads < node->spec.heads;
        } else if (info->split == SPLIT_HALVES && undivided)
            between->halves = true;
        else if (info->split == SPLIT_ELEMENTS)
            dropped = dropped || info->tokens == TOKENS_BY_POSITION;
        else
            return -1;
    }
    return -1;
}

/* Sets the roles of a pair of dense layers and of all layers between them. */
static Status assign_pair(Splitter *s, int column, int row, Between between)
{
    const Graph *g = s->from;
    const char *name = g->node[column].name;
    int64_t width = g->node[column].spec.w[0].dim[0] / (between.halves ? 2 : 1);
    int64_t units = between.heads > 0 ? between.heads : width;
    if (units < s->ranks)
        return too_few_fail(s, name,
                            between.heads == 0 ? "outputs"
                            : between.shared   ? "kv_heads"
                                               : "heads",
                            units);
    for (int i = column; i != row; i = s->reader[i]) {
        s->role[i] = i == column ? ROLE_COLUMN : ROLE_BETWEEN;
        s->units[i] = units;
    }
    s->role[row] = ROLE_ROW;
    s->units[row] = units;
    return OK;
}

/* Sets the roles of all pairs. *pairs: number of pairs. */
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

/* Sets the roles of layers that are divided by vocabulary: embedding, head and loss. If embedding
 * and head share a weight, both are divided or none. */
static Status assign_vocabulary(Splitter *s)
{
    const Graph *g = s->from;
    const Node *head = &g->node[g->logits_node];
    bool divide_head = splits_by(head, SPLIT_PRODUCT) && s->uses[g->logits_node] == 1 &&
                       splits_by(&g->node[g->loss_node], SPLIT_CLASSES) &&
                       s->role[g->logits_node] == ROLE_REST;
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

/* True if the sequence can be divided: every undivided layer works token by token. */
static bool can_divide_sequence(const Splitter *s)
{
    const Graph *g = s->from;
    bool can = g->input.dtype == DTYPE_I32 && s->role[g->loss_node] == ROLE_LOSS &&
               g->input.shape.dim[1] >= s->ranks;
    for (int i = 0; i < g->node_count; ++i)
        if (s->role[i] == ROLE_REST)
            can = can && node_info(&g->node[i])->tokens != TOKENS_TOGETHER &&
                  g->node[i].spec.y.shape.ndim == 3;
    return can;
}

static Status assign_roles(Splitter *s)
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
    s->sequence = can_divide_sequence(s);
    return OK;
}

/* ---- the new graph ---- */

/* Returns this rank's slice of dimension dim, which has `items` items of `unit` elements. */
static TensorSlice slice_of(const Splitter *s, int dim, int64_t items, int64_t unit)
{
    int64_t first = slice_first(items, s->ranks, s->rank);
    int64_t end = slice_first(items, s->ranks, s->rank + 1);
    return (TensorSlice){.dim = dim,
                         .rank = s->rank,
                         .ranks = s->ranks,
                         .first = first * unit,
                         .count = (end - first) * unit,
                         .whole = items * unit};
}

static TensorSlice sequence_slice(const Splitter *s)
{
    return slice_of(s, 1, s->from->input.shape.dim[1], 1);
}

/* Appends a node to the new graph. */
static void append_node(Splitter *s, Node node)
{
    Graph *to = s->to;
    for (int k = 0; k < node.spec.x_count; ++k) node.spec.x[k] = graph_output(to, node.in[k]);
    if (to->node_count == to->node_capacity) {
        to->node_capacity = 2 * to->node_count + 16;
        to->node = mem_resize(to->node, (size_t)to->node_capacity * sizeof *to->node);
    }
    to->node[to->node_count++] = node;
}

/* Adds an exchange after node `in` of the new graph, named NAME.SUFFIX, and returns its index. */
static int add_exchange(Splitter *s, const char *name, const char *suffix, int in,
                        ExchangeKind kind)
{
    Node node = {.name = mem_format("%s.%s", name, suffix), .kind = &layer_exchange, .in = {in}};
    node.spec = (OpSpec){.kind = layer_exchange.op, .exchange = kind, .x_count = 1};
    node.spec.slice = sequence_slice(s);
    node.spec.y = graph_output(s->to, in);
    if (kind == EXCHANGE_GATHER) node.spec.y.shape.dim[1] = node.spec.slice.whole;
    if (kind == EXCHANGE_SCATTER) node.spec.y.shape.dim[1] = node.spec.slice.count;
    append_node(s, node);
    return s->to->node_count - 1;
}

/* Returns the node of the new graph that gives input k of node i. For divided layers it is an
 * exchange, which all readers of the same output share. */
static int input_of(Splitter *s, int i, int k)
{
    int from = s->from->node[i].in[k];
    if (from == NODE_INPUT) return NODE_INPUT;
    if (s->role[i] != ROLE_COLUMN && s->role[i] != ROLE_HEAD) return s->new_index[from];
    if (s->exchanged[from] < 0)
        s->exchanged[from] =
            add_exchange(s, s->from->node[from].name, s->sequence ? "gather" : "enter",
                         s->new_index[from], s->sequence ? EXCHANGE_GATHER : EXCHANGE_ENTER);
    return s->exchanged[from];
}

/* Sets how the parameter is cut along dimension dim, and the shape of this rank's slice. */
static void cut_param(Splitter *s, int param, int dim, ParamCut cut)
{
    Param *p = &s->to->param[param];
    const int64_t width = cut.parts - 1 + cut.lead;
    cut.dim = dim;
    cut.unit = p->shape.dim[dim] / width / cut.units;
    p->cut = cut;
    p->shape.dim[dim] = width * slice_of(s, dim, cut.units, cut.unit).count;
}

/* Returns the cut of a parameter into one part with node i's units. */
static ParamCut plain_cut(const Splitter *s, int i)
{
    return (ParamCut){.parts = 1, .units = s->units[i], .lead = 1};
}

/* Returns the cut of a column layer: three parts for queries, keys and values, two for swiglu's
 * halves, else one. */
static ParamCut column_cut(const Splitter *s, int column)
{
    ParamCut cut = plain_cut(s, column);
    for (int i = column; s->uses[i] == 1 && s->role[i] != ROLE_ROW; i = s->reader[i]) {
        const Node *node = &s->from->node[i];
        if (splits_by(node, SPLIT_HEADS)) {
            cut.parts = 3;
            cut.lead = node->spec.heads / attention_kv_heads(&node->spec);
        }
        if (splits_by(node, SPLIT_HALVES)) cut.parts = 2;
    }
    return cut;
}

static void split_columns(Splitter *s, int i, Node *node)
{
    const ParamCut cut = s->role[i] == ROLE_COLUMN ? column_cut(s, i) : plain_cut(s, i);
    for (int k = 0; k < node->spec.w_count; ++k) cut_param(s, node->param[k], 0, cut);
    int64_t width = s->to->param[node->param[0]].shape.dim[0];
    node->spec.y.shape = s->from->node[i].spec.y.shape;
    node->spec.y.shape.dim[node->spec.y.shape.ndim - 1] = width;
}

/* Gives a layer between two dense layers the slice of its input; attention gets this rank's
 * heads. */
static void split_between(Splitter *s, int i, Node *node)
{
    Shape x = graph_output(s->to, node->in[0]).shape;
    int last = x.ndim - 1;
    if (splits_by(node, SPLIT_HEADS)) {
        const int kv_heads = attention_kv_heads(&node->spec), group = node->spec.heads / kv_heads;
        const int own_kv_heads = (int)slice_of(s, last, s->units[i], 1).count;
        x.dim[last] = x.dim[last] / (group + 2) * group;
        node->spec.heads = own_kv_heads * group;
        if (node->spec.kv_heads > 0) node->spec.kv_heads = own_kv_heads;
    }
    if (splits_by(node, SPLIT_HALVES)) x.dim[last] /= 2;
    if (node_info(node)->tokens == TOKENS_BY_POSITION) {
        int64_t whole = s->from->node[i].spec.y.shape.dim[last];
        node->spec.slice = slice_of(s, last, s->units[i], whole / s->units[i]);
    }
    node->spec.y.shape = x;
}

/* Gives an undivided layer this rank's slice of the sequence, if the sequence is divided. */
static void split_rest(Splitter *s, Node *node)
{
    if (!s->sequence) return;
    TensorSlice slice = sequence_slice(s);
    node->spec.y.shape.dim[1] = slice.count;
    if (node_info(node)->tokens == TOKENS_BY_POSITION) node->spec.slice = slice;
    for (int k = 0; k < node->spec.w_count; ++k) s->to->param[node->param[k]].partial = true;
}

/* Adds the exchange that sums a row layer's or an embedding's output; the layer's bias moves to it,
 * to be added after the sum. */
static void add_sum_exchange(Splitter *s, int i, int bias)
{
    int exchange =
        add_exchange(s, s->from->node[i].name, s->sequence ? "scatter" : "sum",
                     s->to->node_count - 1, s->sequence ? EXCHANGE_SCATTER : EXCHANGE_LEAVE);
    s->new_index[i] = exchange;
    if (bias < 0) return;
    Node *node = &s->to->node[exchange];
    node->spec.w_count = 1;
    node->param[0] = bias;
    Param *p = &s->to->param[bias];
    p->partial = s->sequence;
    p->node = exchange;
    p->slot = 0;
}

/* Adds this rank's slice of node i to the new graph, with the exchanges that it needs. */
static void split_node(Splitter *s, int i)
{
    const Node *old = &s->from->node[i];
    Node node = *old;
    int bias = -1;
    for (int k = 0; k < node.spec.x_count; ++k) node.in[k] = input_of(s, i, k);
    node.name = mem_text(old->name);
    switch (s->role[i]) {
    case ROLE_COLUMN:
    case ROLE_HEAD:
        split_columns(s, i, &node);
        break;
    case ROLE_BETWEEN:
        split_between(s, i, &node);
        break;
    case ROLE_ROW:
        cut_param(s, node.param[0], 1, plain_cut(s, i));
        if (node.spec.w_count > 1) bias = node.param[1];
        node.spec.w_count = 1;
        break;
    case ROLE_EMBED:
        cut_param(s, node.param[0], 0, plain_cut(s, i));
        node.spec.slice = slice_of(s, 0, s->units[i], 1);
        break;
    case ROLE_LOSS:
        node.spec.slice = slice_of(s, 0, s->units[i], 1);
        break;
    case ROLE_REST:
        split_rest(s, &node);
        break;
    }
    s->new_index[i] = s->to->node_count;
    for (int k = 0; k < node.spec.w_count; ++k) s->to->param[node.param[k]].node = s->new_index[i];
    append_node(s, node);
    if (s->role[i] == ROLE_ROW || s->role[i] == ROLE_EMBED) add_sum_exchange(s, i, bias);
}

static void make_graph(Splitter *s)
{
    const Graph *from = s->from;
    Graph *to = s->to = mem_new(sizeof *to);
    *to = (Graph){.input = from->input,
                  .classes = from->classes,
                  .param_count = from->param_count,
                  .rank = s->rank,
                  .ranks = s->ranks};
    to->param = mem_new((size_t)(from->param_count + 1) * sizeof *to->param);
    for (int i = 0; i < from->param_count; ++i) {
        to->param[i] = from->param[i];
        to->param[i].name = mem_text(from->param[i].name);
    }
    for (int i = 0; i < from->node_count; ++i) split_node(s, i);
    for (int i = 0; i < to->param_count; ++i) {
        const Param *p = &to->param[i];
        to->node[p->node].spec.w[p->slot] = p->shape;
    }
    to->logits_node = s->new_index[from->logits_node];
    to->loss_node = s->new_index[from->loss_node];
    graph_index_names(to);
    graph_need_dx(to);
}

Status graph_split(Graph **graph, const Config *config, int rank, int ranks)
{
    const Graph *from = *graph;
    size_t n = (size_t)from->node_count + 1;
    Splitter s = {.from = from, .config = config, .rank = rank, .ranks = ranks};
    s.role = mem_new(n * sizeof *s.role);
    s.units = mem_new(n * sizeof *s.units);
    s.uses = mem_new(n * sizeof *s.uses);
    s.reader = mem_new(n * sizeof *s.reader);
    s.new_index = mem_new(n * sizeof *s.new_index);
    s.exchanged = mem_new(n * sizeof *s.exchanged);
    for (size_t i = 0; i < n; ++i) s.exchanged[i] = -1;
    Status st = assign_roles(&s);
    if (st == OK) {
        make_graph(&s);
        s.to->whole = *graph;
        *graph = s.to;
    }
    mem_free(&s.role);
    mem_free(&s.units);
    mem_free(&s.uses);
    mem_free(&s.reader);
    mem_free(&s.new_index);
    mem_free(&s.exchanged);
    return st;
}
