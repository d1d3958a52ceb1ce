/* Tensor parallelism: one rank's slice of a graph (Shoeybi et al. 2019, "Megatron-LM"; Korthikanti
 * et al. 2022). A dense layer is divided by its outputs and the next one by its inputs; layers
 * between them (activations, swiglu, dropout, attention by heads) work on the slice, and a sum over
 * the ranks follows the second. Embedding and softmax loss are divided by vocabulary. Every rank
 * runs all other layers on its slice of the sequence or, if one of them does not allow that, on the
 * whole. Slices need not be equal. ERR_CONFIG for models without such pairs, or if a rank would get
 * nothing. */
#include "build.h"

#include <string.h>

typedef enum Role {
    ROLE_REST,
    /* dense layer divided by its outputs */
    ROLE_COLUMN,
    /* works on a slice of the last dimension */
    ROLE_BETWEEN,
    /* dense layer divided by its inputs; each rank's output is a part of a sum */
    ROLE_ROW,
    /* embedding divided by rows; each rank's output is a part of a sum */
    ROLE_EMBED,
    /* dense layer divided by its outputs, whose slices the loss reads */
    ROLE_HEAD,
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
    /* number of readers of node i's output; the last of them */
    int *uses, *reader;
    /* the node of `to` that gives node i's output */
    int *new_index;
    /* the exchange node that gives node i's whole output to divided layers; -1: none yet */
    int *exchanged;
} Splitter;

static Status too_few_fail(const Splitter *s, const char *layer, const char *what, int64_t have)
{
    return config_fail_key(s->config, "grid.tp",
                           "%d ranks cannot divide layer %s, which has %lld %s: set grid.tp to at "
                           "most %lld",
                           s->ranks, layer, (long long)have, what, (long long)have);
}

/* ---- the role of each layer ---- */

/* True if the parameter is tied to another, or another to it; *with: the node of the other one. */
static bool shares_value(const Graph *g, int param, int *with)
{
    int other = g->param[param].tied;
    for (int i = 0; i < g->param_count && other < 0; ++i)
        if (g->param[i].tied == param) other = i;
    if (other >= 0) *with = g->param[other].node;
    return other >= 0;
}

static bool splits(const Node *node, OpSplit how)
{
    return node_info(node)->split == how;
}

static bool any_shared(const Graph *g, const Node *node)
{
    int with;
    for (int k = 0; k < node->spec.w_count; ++k)
        if (shares_value(g, node->param[k], &with)) return true;
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

/* Follows single readers from a dense layer to the next one and returns it, or -1. It does not pass
 * dropout before attention or swiglu, nor swiglu after attention or the reverse: the input of the
 * later layer would on a rank be several slices of the whole side by side, and a TensorSlice
 * describes only one. */
static int row_partner(const Splitter *s, int column, Between *between)
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

static Status find_pairs(Splitter *s, int *pairs)
{
    const Graph *g = s->from;
    for (int i = 0; i < g->node_count; ++i) {
        int row;
        Between between;
        if (!splits(&g->node[i], SPLIT_PRODUCT) || s->role[i] != ROLE_REST) continue;
        row = row_partner(s, i, &between);
        if (row < 0 || any_shared(g, &g->node[i]) || any_shared(g, &g->node[row])) continue;
        TRY(assign_pair(s, i, row, between));
        ++*pairs;
    }
    return OK;
}

/* Divides embedding and head by vocabulary; if they share a weight, both or none. */
static Status find_vocabulary(Splitter *s)
{
    const Graph *g = s->from;
    const Node *head = &g->node[g->logits];
    bool by_class = splits(head, SPLIT_PRODUCT) && s->uses[g->logits] == 1 &&
                    splits(&g->node[g->loss], SPLIT_CLASSES) && s->role[g->logits] == ROLE_REST;
    for (int i = 0; i < g->node_count; ++i) {
        int with = -1;
        const Node *node = &g->node[i];
        if (!splits(node, SPLIT_ROWS)) continue;
        if (shares_value(g, node->param[0], &with) && (with != g->logits || !by_class)) continue;
        if (node->spec.w[0].dim[0] < s->ranks)
            return too_few_fail(s, node->name, "tokens", node->spec.w[0].dim[0]);
        s->role[i] = ROLE_EMBED;
        s->units[i] = node->spec.w[0].dim[0];
    }
    int with = -1;
    if (by_class && shares_value(g, head->param[0], &with)) by_class = s->role[with] == ROLE_EMBED;
    if (!by_class) return OK;
    if (g->classes < s->ranks) return too_few_fail(s, head->name, "outputs", g->classes);
    s->role[g->logits] = ROLE_HEAD;
    s->role[g->loss] = ROLE_LOSS;
    s->units[g->logits] = s->units[g->loss] = g->classes;
    return OK;
}

/* True if the sequence can be divided: every undivided layer works token by token. */
static bool cuts_sequence(const Splitter *s)
{
    const Graph *g = s->from;
    bool cuts = g->input.dtype == DTYPE_I32 && s->role[g->loss] == ROLE_LOSS &&
                g->input.shape.dim[1] >= s->ranks;
    for (int i = 0; i < g->node_count; ++i)
        if (s->role[i] == ROLE_REST)
            cuts = cuts && node_info(&g->node[i])->tokens != TOKENS_TOGETHER &&
                   g->node[i].spec.y.shape.ndim == 3;
    return cuts;
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
    TRY(find_pairs(s, &pairs));
    if (pairs == 0)
        return config_fail_key(s->config, "grid.tp",
                               "the model has nothing to divide: tensor parallelism needs two "
                               "dense layers with only activations, swiglu, dropout or attention "
                               "between them; use grid.dp or grid.pp");
    TRY(find_vocabulary(s));
    s->sequence = cuts_sequence(s);
    return OK;
}

/* ---- the new graph ---- */

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

static Node *push(Splitter *s, Node node)
{
    Graph *to = s->to;
    for (int k = 0; k < node.spec.x_count; ++k) node.spec.x[k] = graph_output(to, node.in[k]);
    if (to->node_count == to->node_room) {
        to->node_room = 2 * to->node_count + 16;
        to->node = mem_resize(to->node, (size_t)to->node_room * sizeof *to->node);
    }
    to->node[to->node_count] = node;
    return &to->node[to->node_count++];
}

/* Adds an exchange after node `in` of the new graph. */
static int add_exchange(Splitter *s, const char *name, const char *how, int in, ExchangeKind kind)
{
    Node node = {.name = mem_format("%s.%s", name, how), .kind = &layer_exchange, .in = {in}};
    node.spec = (OpSpec){.kind = layer_exchange.op, .exchange = kind, .x_count = 1};
    node.spec.slice = sequence_slice(s);
    node.spec.y = graph_output(s->to, in);
    if (kind == EXCHANGE_GATHER) node.spec.y.shape.dim[1] = node.spec.slice.whole;
    if (kind == EXCHANGE_SCATTER) node.spec.y.shape.dim[1] = node.spec.slice.count;
    push(s, node);
    return s->to->node_count - 1;
}

/* Returns the node of the new graph that gives input k of node i: for divided layers an exchange,
 * which all readers share. */
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

static void cut_param(Splitter *s, int param, int dim, ParamCut cut)
{
    Param *p = &s->to->param[param];
    const int64_t width = cut.parts - 1 + cut.lead;
    cut.dim = dim;
    cut.unit = p->shape.dim[dim] / width / cut.units;
    p->cut = cut;
    p->shape.dim[dim] = width * slice_of(s, dim, cut.units, cut.unit).count;
}

/* The cut of a parameter into one part with node i's units. */
static ParamCut plain_cut(const Splitter *s, int i)
{
    return (ParamCut){.parts = 1, .units = s->units[i], .lead = 1};
}

/* The cut of a column layer: three parts for queries, keys and values, two for swiglu's halves,
 * else one. */
static ParamCut column_cut(const Splitter *s, int column)
{
    ParamCut cut = plain_cut(s, column);
    for (int i = column; s->uses[i] == 1 && s->role[i] != ROLE_ROW; i = s->reader[i]) {
        const Node *node = &s->from->node[i];
        if (splits(node, SPLIT_HEADS)) {
            cut.parts = 3;
            cut.lead = node->spec.heads / attention_kv_heads(&node->spec);
        }
        if (splits(node, SPLIT_HALVES)) cut.parts = 2;
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

/* Layers between two dense layers keep the slice of their input; attention gets this rank's
 * heads. */
static void split_between(Splitter *s, int i, Node *node)
{
    Shape x = graph_output(s->to, node->in[0]).shape;
    int last = x.ndim - 1;
    if (splits(node, SPLIT_HEADS)) {
        const int kv_heads = attention_kv_heads(&node->spec), group = node->spec.heads / kv_heads;
        const int mine = (int)slice_of(s, last, s->units[i], 1).count;
        x.dim[last] = x.dim[last] / (group + 2) * group;
        node->spec.heads = mine * group;
        if (node->spec.kv_heads > 0) node->spec.kv_heads = mine;
    }
    if (splits(node, SPLIT_HALVES)) x.dim[last] /= 2;
    if (node_info(node)->tokens == TOKENS_BY_POSITION) {
        int64_t whole = s->from->node[i].spec.y.shape.dim[last];
        node->spec.slice = slice_of(s, last, s->units[i], whole / s->units[i]);
    }
    node->spec.y.shape = x;
}

/* Undivided layers get this rank's slice of the sequence. */
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
    int at = add_exchange(s, s->from->node[i].name, s->sequence ? "scatter" : "sum",
                          s->to->node_count - 1, s->sequence ? EXCHANGE_SCATTER : EXCHANGE_LEAVE);
    s->new_index[i] = at;
    if (bias < 0) return;
    Node *node = &s->to->node[at];
    node->spec.w_count = 1;
    node->param[0] = bias;
    Param *p = &s->to->param[bias];
    p->partial = s->sequence;
    p->node = at;
    p->slot = 0;
}

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
    push(s, node);
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
    to->logits = s->new_index[from->logits];
    to->loss = s->new_index[from->loss];
    graph_name_nodes(to);
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
