/* Attention as graphs of operations that cuDNN recognises as attention (its "SDPA" patterns, Dao et
 * al. 2023) and fuses. The backward graph takes the form whose dq is a product of stored score
 * gradients, not a sum by atomics: so it gives the same bits each time, and its workspace holds a T
 * x T matrix of them for each head, for one group of samples at a time. */
#include "cudnn_attention.h"

#include <math.h>
#include <stdlib.h>

enum {
    WIDTH_STEP = 8,
    /* log_sum and dots of a group begin at multiples of this many floats: 16 bytes */
    ROW_STEP = 4,
    TILE_QUERIES = 64,
    TILE_KEYS = 128,
    SCRATCH_BASE = 256,
};

/* Most bytes of a group's scratch, where a group can be that small. WEFT_ATTENTION_SCRATCH sets
 * another size. */
static size_t max_scratch_bytes = (size_t)1 << 30;

Status fused_read_scratch(void)
{
    enum { MIB_MOST = 1 << 16 };
    const char *text = getenv("WEFT_ATTENTION_SCRATCH");
    char *end = NULL;
    if (!text) return OK;
    long mib = strtol(text, &end, 10);
    if (end == text || *end || mib < 1 || mib > MIB_MOST)
        return fail(
            ERR_CONFIG,
            "the environment says WEFT_ATTENTION_SCRATCH=%s: expected MiB from 1 to %d, for "
            "the gradients of attention's scores; without it they are 1024",
            text, MIB_MOST);
    max_scratch_bytes = (size_t)mib << 20;
    return OK;
}

/* ---- the tensors ---- */
enum {
    NONE,
    /* in memory; names with _T have rows and columns exchanged */
    Q,
    K_T,
    V,
    V_T,
    Y,
    DY,
    DQ,
    DK,
    DV,
    /* log of the sum of a row's exponentials */
    LOG_SUM,
    /* product of each row of dy with its row of y */
    DOTS,
    /* single numbers from the host: factor of the scores, minus infinity, 1 */
    SCALE,
    LEAST,
    ONE,
    /* passed between operations of the forward graph */
    RAW,
    SCORES,
    QUERY_AT,
    KEY_AT,
    SEEN,
    CAUSAL,
    MOST,
    BELOW_MOST,
    WEIGHTS,
    TOTAL,
    LOG_TOTAL,
    SHARES,
    /* passed between operations of the backward graph, which has RAW to CAUSAL, too */
    DY_Y,
    DY_Y_SUM,
    BELOW_SUM,
    P,
    P_T,
    DP,
    DP_LESS,
    DP_P,
    DS,
    DS_T,
    K,
    TENSORS
};

/* Dimensions are [samples, heads, rows, columns], exchanged in names with _T. In order: a head's
 * queries or keys in x or in `turned`; a head's values in x, or gradients in dx; a head's part of
 * y; scores of all pairs; one number a row; one number. */
typedef enum Layout {
    IN_QK,
    IN_QK_T,
    IN_X,
    IN_X_T,
    IN_Y,
    PAIRS,
    PAIRS_T,
    ROWS,
    NUMBER,
} Layout;

/* HALF: bf16 or fp16, as the shape says; WHOLE: fp32. */
typedef enum Type { HALF, WHOLE, INDICES, TRUTHS } Type;
typedef struct Role {
    Layout layout;
    DnnPlace place;
    Type type;
} Role;

/* An element of 2 bytes, for pointer arithmetic only. */
typedef uint16_t Half;

static const Role roles[TENSORS] = {
    [Q] = {IN_QK, DNN_MEMORY, HALF},
    [K_T] = {IN_QK_T, DNN_MEMORY, HALF},
    [V] = {IN_X, DNN_MEMORY, HALF},
    [V_T] = {IN_X_T, DNN_MEMORY, HALF},
    [Y] = {IN_Y, DNN_MEMORY, HALF},
    [DY] = {IN_Y, DNN_MEMORY, HALF},
    [DQ] = {IN_X, DNN_MEMORY, HALF},
    [DK] = {IN_X, DNN_MEMORY, HALF},
    [DV] = {IN_X, DNN_MEMORY, HALF},
    [LOG_SUM] = {ROWS, DNN_MEMORY, WHOLE},
    [DOTS] = {ROWS, DNN_MEMORY, WHOLE},
    [SCALE] = {NUMBER, DNN_VALUE, WHOLE},
    [LEAST] = {NUMBER, DNN_VALUE, WHOLE},
    [ONE] = {NUMBER, DNN_VALUE, WHOLE},
    [RAW] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [SCORES] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [QUERY_AT] = {PAIRS, DNN_VIRTUAL, INDICES},
    [KEY_AT] = {PAIRS, DNN_VIRTUAL, INDICES},
    [SEEN] = {PAIRS, DNN_VIRTUAL, TRUTHS},
    [CAUSAL] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [MOST] = {ROWS, DNN_VIRTUAL, WHOLE},
    [BELOW_MOST] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [WEIGHTS] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [TOTAL] = {ROWS, DNN_VIRTUAL, WHOLE},
    [LOG_TOTAL] = {ROWS, DNN_VIRTUAL, WHOLE},
    [SHARES] = {PAIRS, DNN_VIRTUAL, HALF},
    [DY_Y] = {IN_Y, DNN_VIRTUAL, WHOLE},
    [DY_Y_SUM] = {ROWS, DNN_VIRTUAL, WHOLE},
    [BELOW_SUM] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [P] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [P_T] = {PAIRS_T, DNN_VIRTUAL, HALF},
    [DP] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [DP_LESS] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [DP_P] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [DS] = {PAIRS, DNN_VIRTUAL, WHOLE},
    [DS_T] = {PAIRS_T, DNN_VIRTUAL, HALF},
    [K] = {IN_QK, DNN_VIRTUAL, WHOLE},
};

/* ---- the operations ---- */
#define EACH(op, to, ...)                                                                          \
    {                                                                                              \
        .kind = DNN_POINTWISE, .mode = CUDNN_POINTWISE_##op, .y = (to), .in = { __VA_ARGS__ }      \
    }
#define INDEX(to, like, along)                                                                     \
    {                                                                                              \
        .kind = DNN_POINTWISE, .mode = CUDNN_POINTWISE_GEN_INDEX, .y = (to), .in = {like},         \
        .axis = (along)                                                                            \
    }
#define MATMUL(to, a, b)                                                                           \
    {                                                                                              \
        .kind = DNN_MATMUL, .y = (to), .in = { a, b }                                              \
    }
#define REDUCE(op, to, from)                                                                       \
    {                                                                                              \
        .kind = DNN_REDUCE, .mode = CUDNN_REDUCE_TENSOR_##op, .y = (to), .in = { from }            \
    }
#define RESHAPE(to, from)                                                                          \
    {                                                                                              \
        .kind = DNN_RESHAPE, .y = (to), .in = { from }                                             \
    }
static const DnnNode forward_nodes[] = {
    MATMUL(RAW, Q, K_T),
    EACH(MUL, SCORES, RAW, SCALE),
    INDEX(QUERY_AT, SCORES, 2),
    INDEX(KEY_AT, SCORES, 3),
    EACH(CMP_GE, SEEN, QUERY_AT, KEY_AT),
    EACH(BINARY_SELECT, CAUSAL, SCORES, LEAST, SEEN),
    REDUCE(MAX, MOST, CAUSAL),
    EACH(SUB, BELOW_MOST, CAUSAL, MOST),
    EACH(EXP, WEIGHTS, BELOW_MOST),
    REDUCE(ADD, TOTAL, WEIGHTS),
    EACH(LOG, LOG_TOTAL, TOTAL),
    EACH(ADD, LOG_SUM, MOST, LOG_TOTAL),
    EACH(DIV, SHARES, WEIGHTS, TOTAL),
    MATMUL(Y, SHARES, V),
};

static const DnnNode backward_nodes[] = {
    EACH(MUL, DY_Y, DY, Y),
    REDUCE(ADD, DY_Y_SUM, DY_Y),
    EACH(MUL, DOTS, DY_Y_SUM, ONE),
    MATMUL(RAW, Q, K_T),
    EACH(MUL, SCORES, RAW, SCALE),
    EACH(SUB, BELOW_SUM, SCORES, LOG_SUM),
    INDEX(QUERY_AT, BELOW_SUM, 2),
    INDEX(KEY_AT, BELOW_SUM, 3),
    EACH(CMP_GE, SEEN, QUERY_AT, KEY_AT),
    EACH(BINARY_SELECT, CAUSAL, BELOW_SUM, LEAST, SEEN),
    EACH(EXP, P, CAUSAL),
    RESHAPE(P_T, P),
    MATMUL(DV, P_T, DY),
    MATMUL(DP, DY, V_T),
    EACH(SUB, DP_LESS, DP, DOTS),
    EACH(MUL, DP_P, DP_LESS, P),
    EACH(MUL, DS, DP_P, SCALE),
    RESHAPE(DS_T, DS),
    MATMUL(DK, DS_T, Q),
    RESHAPE(K, K_T),
    MATMUL(DQ, DS, K),
};

/* ---- plans ---- */
static void set_layout(DnnTensor *t, int64_t rows, int64_t columns, int64_t sample, int64_t head,
                       int64_t row, AttentionShape s, bool transposed)
{
    *t = (DnnTensor){
        .type = t->type,
        .place = t->place,
        .dim = {s.samples, s.heads, transposed ? columns : rows, transposed ? rows : columns},
        .stride = {sample, head, transposed ? 1 : row, transposed ? row : 1}};
}

static cudnnDataType_t number_of(Type type, bool fp16)
{
    const cudnnDataType_t types[] = {[HALF] = dnn_number(fp16 ? DTYPE_F16 : DTYPE_BF16),
                                     [WHOLE] = dnn_number(DTYPE_F32),
                                     [INDICES] = CUDNN_DATA_INT32,
                                     [TRUTHS] = CUDNN_DATA_BOOLEAN};
    return types[type];
}

static DnnTensor tensor_of(Role role, AttentionShape s)
{
    DnnTensor t = {.type = number_of(role.type, s.fp16), .place = role.place};
    const int64_t columns = s.heads * s.width, in_x = 3 * columns,
                  in_qk = s.turned ? 2 * columns : in_x, pairs = s.length * s.length;
    const bool transposed =
        role.layout == IN_QK_T || role.layout == IN_X_T || role.layout == PAIRS_T;
    switch (role.layout) {
    case IN_QK:
    case IN_QK_T:
        set_layout(&t, s.length, s.width, s.length * in_qk, s.width, in_qk, s, transposed);
        break;
    case IN_X:
    case IN_X_T:
        set_layout(&t, s.length, s.width, s.length * in_x, s.width, in_x, s, transposed);
        break;
    case IN_Y:
        set_layout(&t, s.length, s.width, s.length * columns, s.width, columns, s, false);
        break;
    case PAIRS:
    case PAIRS_T:
        set_layout(&t, s.length, s.length, s.heads * pairs, pairs, s.length, s, transposed);
        break;
    case ROWS:
        set_layout(&t, s.length, 1, s.heads * s.length, s.length, 1, s, false);
        break;
    case NUMBER:
        set_layout(&t, 1, 1, 1, 1, 1, (AttentionShape){.samples = 1, .heads = 1}, false);
        break;
    }
    return t;
}

static bool make_plans(FusedAttention *f, DnnTarget target)
{
    DnnTensor tensor[TENSORS];
    for (int i = 1; i < TENSORS; ++i) tensor[i] = tensor_of(roles[i], f->shape);
    const DnnGraph forward = {.tensor = tensor,
                              .tensors = TENSORS,
                              .node = forward_nodes,
                              .nodes = sizeof forward_nodes / sizeof *forward_nodes};
    const DnnGraph backward = {.tensor = tensor,
                               .tensors = TENSORS,
                               .node = backward_nodes,
                               .nodes = sizeof backward_nodes / sizeof *backward_nodes};
    return dnn_plan(&f->forward, &forward, target, f->why_not) &&
           dnn_plan(&f->backward, &backward, target, f->why_not);
}

static bool takes_width(FusedAttention *f)
{
    const int64_t width = f->shape.width;
    if (width % WIDTH_STEP == 0 && width <= ATTENTION_WIDTH) return true;
    snprintf(f->why_not, sizeof f->why_not, "heads %lld wide are no multiple of %d up to %d",
             (long long)width, WIDTH_STEP, ATTENTION_WIDTH);
    return false;
}

static bool takes_version(FusedAttention *f)
{
    size_t version = cudnn.get_version();
    if (version >= FUSED_OLDEST) return true;
    snprintf(f->why_not, sizeof f->why_not, "version %zu is older than %d", version, FUSED_OLDEST);
    log_warn("cuDNN %zu is older than %d: attention over %lld tokens runs on weft's own kernels, "
             "several times slower; put a newer libcudnn.so first in LD_LIBRARY_PATH",
             version, FUSED_OLDEST, (long long)f->shape.length);
    return false;
}

bool fused_init(FusedAttention *f, AttentionShape shape, DnnTarget target)
{
    *f = (FusedAttention){.shape = shape};
    return f->available = takes_version(f) && takes_width(f) && make_plans(f, target);
}

void fused_fini(FusedAttention *f)
{
    dnn_fini(&f->forward);
    dnn_fini(&f->backward);
}

static int64_t round_up(int64_t count, int64_t step)
{
    return (count + step - 1) / step * step;
}

/* Score gradients in 16 bits, padded to whole tiles: the size that cuDNN 9.19 needs for every
 * tested shape. */
size_t fused_scratch_bytes(AttentionShape s)
{
    int64_t pairs = round_up(s.length, TILE_QUERIES) * round_up(s.length, TILE_KEYS);
    return (size_t)(s.samples * s.heads * pairs) * sizeof(Half) + SCRATCH_BASE;
}

int64_t fused_group(AttentionShape s)
{
    AttentionShape group = s;
    for (; group.samples > 1; --group.samples) {
        bool whole = group.samples == s.samples,
             aligned = group.samples * s.heads * s.length % ROW_STEP == 0;
        if (s.samples % group.samples == 0 && (whole || aligned) &&
            fused_scratch_bytes(group) <= max_scratch_bytes)
            return group.samples;
    }
    return s.heads * s.length % ROW_STEP == 0 ? 1 : s.samples;
}

static void find_plans(FusedAttention *f, CudaState *state, AttentionShape shape)
{
    if (cuda_has_gpu(state)) {
        if (!fused_init(f, shape, cudnn_target(state))) fused_fini(f);
    } else {
        *f = (FusedAttention){.shape = shape,
                              .backward.workspace_bytes = fused_scratch_bytes(shape)};
        f->available = takes_width(f);
    }
    if (f->available)
        snprintf(f->words, sizeof f->words, "cuDNN's fused kernels");
    else
        snprintf(f->words, sizeof f->words, "weft's own kernels, for cuDNN has none: %s",
                 f->why_not);
}

const FusedAttention *fused_attention(CudaState *state, AttentionShape shape)
{
    shape.samples = fused_group(shape);
    for (FusedAttention *f = state->attention; f; f = f->next)
        if (f->shape.samples == shape.samples && f->shape.length == shape.length &&
            f->shape.heads == shape.heads && f->shape.width == shape.width &&
            f->shape.turned == shape.turned && f->shape.fp16 == shape.fp16)
            return f;
    FusedAttention *f = mem_new(sizeof *f);
    find_plans(f, state, shape);
    f->next = state->attention;
    return state->attention = f;
}

void fused_close(CudaState *state)
{
    while (state->attention) {
        FusedAttention *f = state->attention;
        state->attention = f->next;
        fused_fini(f);
        mem_free(&f);
    }
}

size_t fused_workspace_bytes(const FusedAttention *f)
{
    size_t a = f->forward.workspace_bytes, b = f->backward.workspace_bytes;
    return a > b ? a : b;
}

/* ---- runs ---- */
static const float minus_infinity = -INFINITY, one = 1;

/* The part of `run` that belongs to the group whose first sample is `first`. */
static AttentionRun group_at(AttentionRun run, int64_t first)
{
    int64_t y = first * run.length * run.heads * run.width, row = first * run.heads * run.length;
    run.x = (const Half *)run.x + 3 * y;
    run.y = (Half *)run.y + y;
    run.log_sum += row;
    run.dots += row;
    if (run.dy) run.dy = (const Half *)run.dy + y;
    if (run.dx) run.dx = (Half *)run.dx + 3 * y;
    if (run.turned) run.turned = (Half *)run.turned + 2 * y;
    return run;
}

/* Fills in the addresses of the tensors of one group. */
static void fill_addresses(void *at[TENSORS], const AttentionRun *run)
{
    const int64_t columns = run->heads * run->width;
    Half *x = (Half *)(uintptr_t)run->x, *dx = run->dx, *queries = run->turned ? run->turned : x;
    at[Q] = queries;
    at[K_T] = queries + columns;
    at[V] = at[V_T] = x + 2 * columns;
    at[Y] = run->y;
    at[DY] = (void *)(uintptr_t)run->dy;
    at[LOG_SUM] = run->log_sum;
    at[DOTS] = run->dots;
    at[SCALE] = (void *)(uintptr_t)&run->scale;
    at[LEAST] = (void *)(uintptr_t)&minus_infinity;
    at[ONE] = (void *)(uintptr_t)&one;
    if (!dx) return;
    at[DQ] = dx;
    at[DK] = dx + columns;
    at[DV] = dx + 2 * columns;
}

static void run_groups(const CudaState *state, const FusedAttention *f, const DnnPlan *plan,
                       AttentionRun all, void *workspace, const int64_t *uid, int count)
{
    for (int64_t first = 0; first < all.real; first += f->shape.samples) {
        void *at[TENSORS], *given[TENSORS];
        AttentionRun run = group_at(all, first);
        fill_addresses(at, &run);
        for (int i = 0; i < count; ++i) given[i] = at[uid[i]];
        dnn_run(plan, state->dnn, count, uid, given, workspace);
    }
}

void fused_forward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                   void *workspace)
{
    static const int64_t uid[] = {Q, K_T, V, Y, LOG_SUM, SCALE, LEAST};
    run_groups(state, f, &f->forward, run, workspace, uid, sizeof uid / sizeof *uid);
}

void fused_backward(const CudaState *state, const FusedAttention *f, AttentionRun run,
                    void *workspace)
{
    static const int64_t uid[] = {Q, K_T, V_T, Y, DY, DQ, DK, DV, LOG_SUM, DOTS, SCALE, LEAST, ONE};
    run_groups(state, f, &f->backward, run, workspace, uid, sizeof uid / sizeof *uid);
}
