/* Makes one rank's slice of a graph, for tensor parallelism (Shoeybi et al. 2019, "Megatron-LM";
 * Korthikanti et al. 2022). Dense layers are divided in pairs: the first by its outputs (columns),
 * the second by its inputs (rows). Layers between them (activations, swiglu, dropout, attention by
 * heads) work on a rank's slice, and after the second dense layer the ranks' outputs are added up.
 * Embedding and softmax loss are divided by vocabulary. All other layers are undivided: every rank
 * runs them, on a slice of the sequence if all of them allow that, else on the whole sequence.
 *
 * Slices need not be equal. With several ranks it is ERR_CONFIG if the model has no pair of dense
 * layers that can be divided, or if a rank would get nothing. If graph_split's argument `slices` is
 * above 0, sums over a divided dimension are cut into the same slices on any number of ranks, so
 * that results do not depend on this number. */
#include "split.h"

#include <string.h>

/* Returns this rank's slice of a tensor that a block of `ranks` neighbouring ranks divides; each
 * block has a tensor of its own. The dimension `dim` is divided; it has `items` items of `unit`
 * elements each. */
static TensorSlice slice_of_block(const Splitter *s, int ranks, int dim, int64_t items,
                                  int64_t unit)
{
    const int rank = s->rank % ranks;
    int64_t first = slice_first(items, ranks, rank);
    int64_t end = slice_first(items, ranks, rank + 1);
    return (TensorSlice){.dim = dim,
                         .rank = rank,
                         .ranks = ranks,
                         .first = first * unit,
                         .count = (end - first) * unit,
                         .whole = items * unit};
}

/* Returns this rank's slice of a tensor that all ranks of the group divide. */
static TensorSlice slice_of(const Splitter *s, int dim, int64_t items, int64_t unit)
{
    return slice_of_block(s, s->ranks, dim, items, unit);
}

/* Returns the slices of a sum over one part of `units` units, and which of them this rank
 * computes. */
static SumSlices sum_slices(const Splitter *s, int64_t units)
{
    return (SumSlices){.total = s->slices,
                       .first = s->slices / s->ranks * s->rank,
                       .count = s->slices / s->ranks,
                       .units = units,
                       .other_units = units,
                       .first_unit_ratio = 1,
                       .parts = 1};
}

static TensorSlice sequence_slice(const Splitter *s)
{
    return slice_of(s, 1, s->from->input.shape.dim[1], 1);
}

/* Appends a node to the new graph, and sets the shapes of its inputs. */
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

/* Adds an exchange to the new graph, which reads node `in` of the new graph and is called
 * NAME.SUFFIX. slice: this rank's slice of the dimension that is gathered or scattered. Returns its
 * index. */
static int add_exchange(Splitter *s, const char *name, const char *suffix, int in,
                        ExchangeKind kind, TensorSlice slice)
{
    Node node = {.name = mem_format("%s.%s", name, suffix), .kind = &layer_exchange, .in = {in}};
    node.spec = (OpSpec){.kind = layer_exchange.op, .exchange = kind, .x_count = 1};
    node.spec.slice = slice;
    if (s->slices > 0) node.spec.slices = sum_slices(s, 1);
    node.spec.y = graph_output(s->to, in);
    if (kind == EXCHANGE_ALL_GATHER) node.spec.y.shape.dim[1] = slice.whole;
    if (kind == EXCHANGE_REDUCE_SCATTER) node.spec.y.shape.dim[1] = slice.count;
    if (kind == EXCHANGE_KEYS) node.spec.y.shape.dim[2] += 2 * (slice.whole - slice.count);
    append_node(s, node);
    return s->to->node_count - 1;
}

/* Returns the node of the new graph that the attention node i reads. If several ranks share each
 * key head, it is an exchange: each rank that shares a head computes a slice of the head's columns
 * of keys and values, and the exchange gives it the other ranks' slices. */
static int attention_input(Splitter *s, int i)
{
    const Node *node = &s->from->node[i];
    const int in = s->new_index[node->in[0]], kv_heads = attention_kv_heads(&node->spec);
    if (s->ranks <= kv_heads) return in;
    return add_exchange(s, node->name, "keys", in, EXCHANGE_KEYS,
                        slice_of_block(s, s->ranks / kv_heads, 2, head_width(&node->spec), 1));
}

/* Returns the node of the new graph that node i reads as its input k. If node i is divided by its
 * outputs, it reads an exchange. Several such layers can read the same output. If sums are not cut
 * into slices, they share one exchange. If sums are cut, each layer has an exchange of its own,
 * because its gradient must be summed over the ranks before it is added to the gradient of another
 * reader. */
static int input_of(Splitter *s, int i, int k)
{
    int from = s->from->node[i].in[k];
    if (from == NODE_INPUT) return NODE_INPUT;
    if (split_cuts_keys(s, i)) return attention_input(s, i);
    if (s->role[i] != ROLE_COLUMN && s->role[i] != ROLE_HEAD) return s->new_index[from];
    const bool first = s->exchange_of[from] < 0;
    if (first || s->slices > 0)
        s->exchange_of[from] = add_exchange(
            s, s->from->node[first ? from : i].name, s->divides_sequence ? "gather" : "enter",
            s->new_index[from], s->divides_sequence ? EXCHANGE_ALL_GATHER : EXCHANGE_ENTER,
            sequence_slice(s));
    return s->exchange_of[from];
}

/* Sets Param.split of a parameter that is divided along dimension `dim`, and its shape on this
 * rank. split: dim and unit_rows are not set yet. */
static void cut_param(Splitter *s, int param, int dim, ParamSplit split)
{
    Param *p = &s->to->param[param];
    const int64_t others = split.parts - 1;
    split.dim = dim;
    split.unit_rows =
        p->shape.dim[dim] / (split.first_unit_ratio * split.units + others * split.other_units);
    p->split = split;
    p->shape.dim[dim] =
        split.first_unit_ratio * slice_of(s, dim, split.units, split.unit_rows).count +
        others * slice_of(s, dim, split.other_units, split.unit_rows).count;
}

/* Returns the cut of a parameter that is one part with the units of node i. */
static ParamSplit plain_cut(const Splitter *s, int i)
{
    return (ParamSplit){
        .parts = 1, .units = s->units[i], .other_units = s->units[i], .first_unit_ratio = 1};
}

/* Returns the cut of a column layer. It has three parts before attention (queries, keys, values),
 * two parts before swiglu, and otherwise one. A unit of queries is all query heads that share a key
 * head or, if keys and values are divided by columns, one query head. */
static ParamSplit column_cut(const Splitter *s, int column)
{
    ParamSplit split = plain_cut(s, column);
    for (int i = column; s->uses[i] == 1 && s->role[i] != ROLE_ROW; i = s->reader[i]) {
        const Node *node = &s->from->node[i];
        if (splits_by(node, SPLIT_HEADS)) {
            split.parts = 3;
            split.first_unit_ratio = node->spec.heads / attention_kv_heads(&node->spec);
        }
        if (split_cuts_keys(s, i)) {
            split.first_unit_ratio = head_width(&node->spec);
            split.other_units = attention_kv_heads(&node->spec) * split.first_unit_ratio;
        }
        if (splits_by(node, SPLIT_HALVES)) split.parts = 2;
    }
    return split;
}

/* Divides the parameters and the output of a dense layer by outputs. node: copy of node i for the
 * new graph. */
static void split_columns(Splitter *s, int i, Node *node)
{
    const ParamSplit split = s->role[i] == ROLE_COLUMN ? column_cut(s, i) : plain_cut(s, i);
    for (int k = 0; k < node->spec.w_count; ++k) cut_param(s, node->param[k], 0, split);
    int64_t width = s->to->param[node->param[0]].shape.dim[0];
    node->spec.y.shape = s->from->node[i].spec.y.shape;
    node->spec.y.shape.dim[node->spec.y.shape.ndim - 1] = width;
}

/* Sets the output's shape of a layer between two dense layers to that of this rank's slice.
 * Attention gets this rank's heads. node: copy of node i for the new graph. */
static void split_between(Splitter *s, int i, Node *node)
{
    Shape x = graph_output(s->to, node->in[0]).shape;
    int last = x.ndim - 1;
    if (splits_by(node, SPLIT_HEADS)) {
        const OpSpec *whole = &s->from->node[i].spec;
        const int kv_heads = attention_kv_heads(whole),
                  units = (int)slice_of(s, last, s->units[i], 1).count;
        const bool cuts_keys = split_cuts_keys(s, i);
        node->spec.heads = cuts_keys ? units : units * (whole->heads / kv_heads);
        if (whole->kv_heads > 0) node->spec.kv_heads = units;
        if (cuts_keys) node->spec.kv_heads = s->ranks < kv_heads ? kv_heads / s->ranks : 1;
        x.dim[last] = node->spec.heads * head_width(whole);
    }
    if (splits_by(node, SPLIT_HALVES)) x.dim[last] /= 2;
    if (node_info(node)->tokens == TOKENS_BY_POSITION) {
        int64_t whole = s->from->node[i].spec.y.shape.dim[last];
        node->spec.slice = slice_of(s, last, s->units[i], whole / s->units[i]);
    }
    node->spec.y.shape = x;
}

/* Makes an undivided layer work on this rank's slice of the sequence, if the sequence is
 * divided. */
static void split_rest(Splitter *s, Node *node)
{
    if (!s->divides_sequence) return;
    TensorSlice slice = sequence_slice(s);
    node->spec.y.shape.dim[1] = slice.count;
    if (node_info(node)->tokens == TOKENS_BY_POSITION) node->spec.slice = slice;
    /* The executor sums the gradient of a parameter over the ranks if Param.partial is true. If
     * sums are not cut into slices, it is true for all parameters of undivided layers. If sums are
     * cut, it is true only for the positions, because operations with TOKENS_SUMMED sum their
     * gradients themselves. */
    for (int k = 0; k < node->spec.w_count; ++k)
        s->to->param[node->param[k]].partial =
            s->slices == 0 || node_info(node)->tokens == TOKENS_BY_POSITION;
}

/* Adds the exchange that sums the output of node i, a row layer or an embedding, over the ranks.
 * The layer's bias moves to the exchange, which adds it after the sum. bias: index of that
 * parameter, or -1. */
static void add_sum_exchange(Splitter *s, int i, int bias)
{
    int exchange = add_exchange(
        s, s->from->node[i].name, s->divides_sequence ? "scatter" : "sum", s->to->node_count - 1,
        s->divides_sequence ? EXCHANGE_REDUCE_SCATTER : EXCHANGE_LEAVE, sequence_slice(s));
    s->new_index[i] = exchange;
    if (bias < 0) return;
    Node *node = &s->to->node[exchange];
    node->spec.w_count = 1;
    node->spec.token_slices = s->from->node[i].spec.token_slices;
    node->param[0] = bias;
    Param *p = &s->to->param[bias];
    p->partial = s->divides_sequence && s->slices == 0;
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

/* Sets the slices into which the sums of node i are cut. spec: that of node i in the undivided
 * graph. */
static void cut_sums(Splitter *s, int i, OpSpec *spec)
{
    const SplitRole role = s->role[i];
    const bool shares_tokens = role == ROLE_REST || role == ROLE_ROW;
    if (s->divides_sequence && shares_tokens && spec->w_count > 0)
        spec->token_slices = sum_slices(s, s->from->input.shape.dim[1]);
    const bool cuts_keys = split_cuts_keys(s, i);
    if (role == ROLE_REST || (role == ROLE_BETWEEN && !cuts_keys)) return;
    spec->slices = sum_slices(s, s->units[i]);
    spec->slices_inputs = role == ROLE_ROW;
    if (role != ROLE_COLUMN) return;
    const ParamSplit split = column_cut(s, i);
    spec->slices.parts = split.parts;
    spec->slices.first_unit_ratio = split.first_unit_ratio;
    spec->slices.other_units = split.other_units;
}

/* Makes s->to: this rank's slice of each node, the exchanges between nodes, and the parameters with
 * their cuts. */
static void make_graph(Splitter *s)
{
    const Graph *from = s->from;
    Graph *to = s->to = mem_new(sizeof *to);
    *to = (Graph){.input = from->input,
                  .step_input = from->step_input,
                  .steps = from->steps,
                  .classes = from->classes,
                  .box_rows = from->box_rows,
                  .weights_vary = from->weights_vary,
                  .param_count = from->param_count,
                  .tp_rank = s->rank,
                  .tp_ranks = s->ranks};
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
    graph_set_need_dx(to);
}

Status graph_split(Graph **graph, const Config *config, int rank, int ranks, int slices)
{
    const Graph *from = *graph;
    size_t n = (size_t)from->node_count + 1;
    Splitter s = {.from = from, .config = config, .rank = rank, .ranks = ranks, .slices = slices};
    TRY(split_check_slices(&s));
    s.role = mem_new(n * sizeof *s.role);
    s.units = mem_new(n * sizeof *s.units);
    s.uses = mem_new(n * sizeof *s.uses);
    s.reader = mem_new(n * sizeof *s.reader);
    s.new_index = mem_new(n * sizeof *s.new_index);
    s.exchange_of = mem_new(n * sizeof *s.exchange_of);
    for (size_t i = 0; i < n; ++i) s.exchange_of[i] = -1;
    Status st = split_assign_roles(&s);
    /* with one rank it is no error if the graph cannot be divided */
    const bool cuts = st == OK && s.slices > 0;
    for (int i = 0; i < from->node_count && cuts; ++i) cut_sums(&s, i, &(*graph)->node[i].spec);
    if (ranks == 1) st = OK;
    if (st == OK && ranks > 1) {
        make_graph(&s);
        s.to->undivided = *graph;
        *graph = s.to;
    }
    mem_free(&s.role);
    mem_free(&s.units);
    mem_free(&s.uses);
    mem_free(&s.reader);
    mem_free(&s.new_index);
    mem_free(&s.exchange_of);
    return st;
}
