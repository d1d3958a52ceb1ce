/* The rows (OpInfo) of about half of the operations: what each operation computes, which sizes it
 * accepts on every backend, and the facts that other modules need. The rows of the other operations
 * are in their own files in cpu/. This file also has functions on the rows, and the names and facts
 * of activations. */
#include "tensor.h"
#include "tensor/op_list.h"

#define DECLARE(OP, name, where) extern const OpInfo info_##name;
#define ENTRY(OP, name, where)   [OP_##OP] = &info_##name,
OPERATIONS(DECLARE)
static const OpInfo *const infos[OP_KINDS] = {OPERATIONS(ENTRY)};
#undef DECLARE
#undef ENTRY

_Static_assert(ACTS <= 8 * sizeof(unsigned), "OpInfo.acts has a bit for each");
enum {
    RELU = 1u << ACT_RELU,
    RELU6 = 1u << ACT_RELU6,
    GELU = 1u << ACT_GELU,
    SILU = 1u << ACT_SILU
};

const OpInfo *op_info(OpKind kind)
{
    return kind > OP_NONE && kind < OP_KINDS ? infos[kind] : NULL;
}

bool op_waits_for_ranks(const OpSpec *spec)
{
    OpCommunication communication = infos[spec->kind]->communication;
    const bool joins_tokens = spec->token_slices.total > spec->token_slices.count;
    return spec->synced || joins_tokens || communication == COMMUNICATES_ALWAYS ||
           (communication == COMMUNICATES_IF_SLICED && spec->slice.ranks > 0);
}

const char *act_name(Act act)
{
#define NAME(ACT, name, facts) name,
    static const char *const names[ACTS] = {ACTIVATIONS(NAME)};
#undef NAME
    return names[act];
}

unsigned act_facts(Act act)
{
#define FACTS(ACT, name, facts) facts,
    static const unsigned char all[ACTS] = {ACTIVATIONS(FACTS)};
#undef FACTS
    return all[act];
}

OpSpec reorder_spec(Desc from, Desc to)
{
    return (OpSpec){.kind = OP_REORDER, .x_count = 1, .x = {from}, .y = to};
}

/* ---- checks of sizes ---- */

/* Fails if the fused activation is neither relu nor relu6. */
static Status fused_check(const OpSpec *s)
{
    if (s->act == ACT_NONE || s->act == ACT_RELU || s->act == ACT_RELU6) return OK;
    return fail(ERR_BUG, "%s: only relu and relu6 can be fused", infos[s->kind]->name);
}

static Status batch_norm_check(const OpSpec *s)
{
    if (s->act != ACT_SILU) return fused_check(s);
    if (op_fuses_silu(s)) return OK;
    return fail(ERR_BUG, "batch_norm: silu needs statistics of the batch, and no residual");
}

static Status attention_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape x = s->x[0].shape, y = s->y.shape;
    const int kv_heads = attention_kv_heads(s);
    bool fits = x.ndim == 3 && y.ndim == 3 && x.dim[0] == y.dim[0] && x.dim[1] == y.dim[1] &&
                s->heads > 0 && s->heads % kv_heads == 0 && y.dim[2] % s->heads == 0 &&
                x.dim[2] == y.dim[2] + 2 * (y.dim[2] / s->heads) * kv_heads;
    if (!fits)
        return fail(ERR_CONFIG, "attention: input %s, output %s and %d heads do not match",
                    shape_text(x, a), shape_text(y, b), s->heads);
    if (s->rotary && y.dim[2] / s->heads % 2 != 0)
        return fail(ERR_CONFIG, "attention: rotary needs an even width of a head, not %lld",
                    (long long)(y.dim[2] / s->heads));
    return OK;
}

static Status conv2d_check(const OpSpec *s)
{
    char a[64], b[64], c[64];
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim, *w = s->w[0].dim;
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    bool fits = s->x[0].shape.ndim == 4 && s->y.shape.ndim == 4 && s->w[0].ndim == 4 &&
                y[1] == w[0] && x[1] == w[1] * groups && y[1] % groups == 0;
    for (int d = 0; d < 2; ++d)
        fits = fits && w[2 + d] == s->kernel[d] && s->stride[d] > 0 &&
               y[2 + d] == (x[2 + d] + 2 * s->pad[d] - s->kernel[d]) / s->stride[d] + 1;
    if (fits) return OK;
    return fail(ERR_CONFIG, "conv2d: input %s, weight %s, %d groups and output %s do not match",
                shape_text(s->x[0].shape, a), shape_text(s->w[0], b), (int)groups,
                shape_text(s->y.shape, c));
}

static Status pool_check(const OpSpec *s)
{
    if (s->act != ACT_NONE && s->act != ACT_RELU)
        return fail(ERR_BUG, "pool: only relu can be fused");
    if (s->x[0].shape.ndim != 4 || s->y.shape.ndim != 4)
        return fail(ERR_CONFIG, "pool: needs an image (N,C,H,W)");
    for (int d = 0; d < 2 && s->pool != POOL_GLOBAL_AVG; ++d)
        if (s->kernel[d] < 1 || s->stride[d] < 1 || s->pad[d] < 0 || 2 * s->pad[d] > s->kernel[d])
            return fail(ERR_CONFIG,
                        "pool: kernel %d, stride %d, pad %d: kernel and stride must be at "
                        "least 1, pad at most half the kernel",
                        s->kernel[d], s->stride[d], s->pad[d]);
    if (s->pool == POOL_MAX && s->kernel[0] * s->kernel[1] >= POOL_NO_POSITION)
        return fail(ERR_CONFIG, "pool: a kernel of %dx%d is too large: at most %d pixels",
                    s->kernel[0], s->kernel[1], POOL_NO_POSITION - 1);
    return OK;
}

static Status dropout_check(const OpSpec *s)
{
    if (s->drop_channels && s->x[0].shape.ndim != 4)
        return fail(ERR_CONFIG, "dropout: only images (N,C,H,W) have channels to drop");
    if (s->drop >= 0.0f && s->drop < 1.0f) return OK;
    return fail(ERR_CONFIG, "dropout: p is %g, but must be 0 or more and less than 1",
                (double)s->drop);
}

static Status positions_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape x = s->x[0].shape, w = s->w[0];
    if (x.ndim == 3 && w.ndim == 2 && w.dim[1] == x.dim[2] && w.dim[0] >= s->slice.first + x.dim[1])
        return OK;
    return fail(ERR_CONFIG, "positions: a table of shape %s does not fit an input of shape %s",
                shape_text(w, a), shape_text(x, b));
}

/* ---- costs ---- */

/* Returns the multiply-adds of dense and conv2d. Each element of y is a dot product, whose number
 * of terms is the number of weights of one output feature or channel: count(w) / w.dim[0]. */
static double product_macs(const OpSpec *s)
{
    Shape w = s->w[0];
    return (double)shape_count(s->y.shape) * (double)(shape_count(w) / w.dim[0]);
}

/* Returns the multiply-adds of attention. For each pair of a query and a key that it attends to, a
 * head computes two products of its width: the score, and the weighted value. */
static double attention_macs(const OpSpec *s)
{
    return 2 * (double)(s->y.shape.dim[0] * s->y.shape.dim[2]) *
           attention_pairs(s, s->y.shape.dim[1]);
}

/* ---- the rows ---- */

/* y[N,out] = act(x[N,in] w[out,in]^T + b[out] (+ x[1] if residual)). Also computes (N,T,out) from
 * (N,T,in). */
const OpInfo info_dense = {
    .name = "dense",
    .macs = product_macs,
    .split = SPLIT_PRODUCT,
    .fuse = FUSE_X_ACT,
    .residual = RESIDUAL_BY_BACKEND,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SUMMED,
    .params = PARAMS_PLAIN_WEIGHT,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = RELU | GELU,
};

/* y[N,O,P,Q] = act(conv(x[N,C,H,W], w[O,C/groups,R,S]) + b[O]). */
const OpInfo info_conv2d = {
    .name = "conv2d",
    .check = conv2d_check,
    .macs = product_macs,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_WEIGHT,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = RELU,
};

/* y = act(norm_C(x) * w0[C] + w1[C] (+ x[1] if residual)); w2 and w3 are the running mean and
 * variance. x is (N,C) or (N,C,H,W). In training the statistics are over the first
 * OpRun.sample_count samples. If spec.synced is true, they are over the first OpRun.sample_count
 * samples of every replica. In evaluation, and with fixed_stats, they are the running
 * statistics. */
const OpInfo info_batch_norm = {
    .name = "batch_norm",
    .check = batch_norm_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_ALWAYS,
    .communication = COMMUNICATES_IF_SYNCED,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NORM,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_TWICE,
    .dx = DX_WRITTEN,
    .acts = RELU | RELU6 | SILU,
};

/* y = norm(x) * w0[C] + w1[C], normalised over the last dimension C. */
const OpInfo info_layer_norm = {
    .name = "layer_norm",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SUMMED,
    .params = PARAMS_NORM,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y = act(x). */
const OpInfo info_activation = {
    .name = "activation",
    .split = SPLIT_ELEMENTS,
    .fuse = FUSE_ACT,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SEPARATE,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y = pool(x), or relu(pool(x)): the maximum or the average over each window (kernel, stride, pad),
 * or the average over the whole image, which gives y (N,C,1,1). */
const OpInfo info_pool = {
    .name = "pool",
    .check = pool_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_RELU_BEFORE_MAX,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y = act(x0 + x1 + ...). */
const OpInfo info_add = {
    .name = "add",
    .check = fused_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_ADD,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_SEPARATE,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_IS_DY,
    .acts = RELU,
    .layer_inputs = 2,
    .layer_help = "the sum of two layers' outputs (a residual connection)",
    .layer_onnx = "Add",
};

/* Concatenates inputs along the channels (dim 1). */
const OpInfo info_concat = {
    .name = "concat",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y (N, product of the other dimensions of x) is x (N, ...) in the same memory. */
const OpInfo info_flatten = {
    .name = "flatten",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_IS_DY,
    .acts = ACTS_NONE,
};

/* In training y = x * mask / (1-p), else y = x. The mask is not stored: backward computes it again
 * from the seed, the step, the node's name, the sample's number, and an index: that of the element
 * in plain order or, with drop_channels, that of the channel. */
const OpInfo info_dropout = {
    .name = "dropout",
    .check = dropout_check,
    .split = SPLIT_ELEMENTS,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_BY_POSITION,
    .params = PARAMS_NONE,
    .reads = READS_SAMPLES,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y[N,T,C] = row x[N,T] of w[V,C]; x is int32. If w has only a slice of the table's rows
 * (spec.slice), y is -0 for tokens whose rows are not in w. */
const OpInfo info_embedding = {
    .name = "embedding",
    .split = SPLIT_ROWS,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_EMBEDDING,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_LOOK_UP,
    .dx = DX_NONE,
    .acts = ACTS_NONE,
};

/* y[N,T,C] = x + w[t,C]. w is a learned table of positions. t counts from the sequence's first
 * token, even if x is only a slice of the sequence (spec.slice). */
const OpInfo info_positions = {
    .name = "positions",
    .check = positions_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_BY_POSITION,
    .params = PARAMS_EMBEDDING,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_IS_DY,
    .acts = ACTS_NONE,
};

/* Self-attention, causal unless spec.bidirectional is true. x (N,T,3C) has queries, keys and values
 * side by side, each with `heads` heads of C/heads elements; y is (N,T,C). Scores are scaled by
 * 1/sqrt(C/heads). Saves one number for each sample, head and token, never a T x T matrix (Dao et
 * al. 2022, "FlashAttention"). rotary: queries and keys are first rotated by their position (Su et
 * al. 2021): element i of a head of width D = C/heads is rotated together with element i + D/2.
 * kv_heads (Ainslie et al. 2023, "GQA"): keys and values have that number of heads, each of which
 * is shared by heads / kv_heads neighbouring query heads; x is then (N,T,C + 2 kv_heads C/heads).
 * window (Beltagy et al. 2020; Jiang et al. 2023, "Mistral 7B"): a query attends to its own key and
 * the window - 1 keys before it. */
const OpInfo info_attention = {
    .name = "attention",
    .check = attention_check,
    .macs = attention_macs,
    .macs_note = "attended pairs of tokens",
    .split = SPLIT_HEADS,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* x: logits (N,K), (N,T,K) or (N,C,H,W); labels: int32. y (rows, LOSS_COLUMNS): the loss; the rank
 * of the label's logit; the index of the largest logit. The rank is the number of logits that are
 * larger than the label's, or equal to it with a lower index; -1 if there is no label. If the rank
 * is 0, the prediction is right. If it is below 5, the label is among the five likeliest classes.
 * With label smoothing s (Szegedy et al. 2016), only in training, the target is s/K for each class,
 * plus 1-s for the label. cpu/loss/pixel_loss.c has the formula for pixels (N,C,H,W) and
 * class_weights. */
const OpInfo info_softmax_loss = {
    .name = "softmax_loss",
    .split = SPLIT_CLASSES,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_IF_SLICED,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_LABELS,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* x (N,K), (N,C,L) or (N,C,H,W); targets: floats of the same shape; w: weights of a sample's
 * targets. Let e be the value at x - target of the function that spec.point selects. The loss of a
 * sample is sum(w e) / sum(w) over its targets that are not NaN; it is 0 if all are NaN. y (N,
 * LOSS_COLUMNS): the loss, 0, 0. */
const OpInfo info_point_loss = {
    .name = "point_loss",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_TARGETS,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* y has the values of x in another layout or number format. */
const OpInfo info_reorder = {
    .name = "reorder",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

/* Sums a tensor over the ranks of a tensor-parallel group, or gathers their slices: see
 * ExchangeKind. */
const OpInfo info_exchange = {
    .name = "exchange",
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_ALWAYS,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};
