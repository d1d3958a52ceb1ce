/* Attention as graphs of operations that cuDNN recognises as attention (its "SDPA" patterns, Dao et
 * al. 2023) and fuses. In the backward graph, the gradients of the scores, a T x T matrix for each
 * head, are stored, and dq is the product of this matrix and the keys. So no sum needs atomics, and
 * the graph gives the same bits each time, but it needs a workspace for the gradients of all
 * scores. One group of samples is computed at a time, which limits this workspace. */
#include "cudnn_attention.h"

#include <math.h>
#include <stdlib.h>

enum {
    /* the number of columns of a head must be a multiple of this number */
    WIDTH_STEP = 8,
    /* alignment, in floats, of log_sum and dots of a group: 16 bytes */
    ROW_STEP = 4,
    /* TILE_QUERIES: rows of a tile of scores in cuDNN's kernels; TILE_KEYS: columns of a tile */
    TILE_QUERIES = 64,
    TILE_KEYS = 128,
    /* bytes of cuDNN's workspace in addition to the gradients of the scores */
    WORKSPACE_BASE = 256,
};

/* limit for the workspace of a group, in bytes; only the smallest possible group may exceed it; the
 * environment variable WEFT_ATTENTION_SCRATCH sets another limit */
static size_t workspace_bytes_max = (size_t)1 << 30;

Status cudnn_attention_read_workspace_limit(void)
{
    enum { MIB_MAX = 1 << 16 };
    const char *text = getenv("WEFT_ATTENTION_SCRATCH");
    char *end = NULL;
    if (!text) return OK;
    long mib = strtol(text, &end, 10);
    if (end == text || *end || mib < 1 || mib > MIB_MAX)
        return fail(
            ERR_CONFIG,
            "environment variable WEFT_ATTENTION_SCRATCH=%s: expected MiB from 1 to %d, the "
            "memory for the gradients of attention's scores; the default is 1024",
            text, MIB_MAX);
    workspace_bytes_max = (size_t)mib << 20;
    return OK;
}

/* ---- the tensors ---- */
enum {
    NONE,
    /* tensors in memory; names with _T are transposed */
    Q,
    K_T,
    V,
    V_T,
    Y,
    DY,
    DQ,
    DK,
    DV,
    /* log of the sum of each row's exponentials */
    LOG_SUM,
    /* dot product of each row of dy with its row of y */
    DOTS,
    /* SCALE to ONE: single numbers from the host: the factor of the scores, minus infinity, 1 */
    SCALE,
    MINUS_INFINITY,
    ONE,
    /* QK to SOFTMAX: only inside the kernels of the forward graph; lines of forward_nodes define
     * them */
    QK,
    SCORES,
    QUERY_INDEX,
    KEY_INDEX,
    MASK,
    MASKED,
    ROW_MAX,
    SCORES_MINUS_MAX,
    EXP_SCORES,
    EXP_SUM,
    LOG_EXP_SUM,
    SOFTMAX,
    /* DY_Y to K: only inside the kernels of the backward graph, which also uses QK to MASKED */
    DY_Y,
    DY_Y_SUM,
    SCORES_MINUS_LOG_SUM,
    /* softmax of the scores, computed again, in fp32 */
    P,
    P_T,
    /* gradient of P */
    DP,
    DP_MINUS_DOTS,
    /* product of DP_MINUS_DOTS and P: the gradient of SCORES */
    DP_P,
    /* gradient of QK */
    DS,
    DS_T,
    K,
    TENSORS
};

/* Layout of a tensor in memory. Dimensions are (samples, heads, rows, columns). In layouts whose
 * name ends in _T, rows and columns are exchanged. */
typedef enum Layout {
    /* the queries or keys of a head, in x or in AttentionRun.rotated */
    IN_QK,
    IN_QK_T,
    /* the values of a head in x, or gradients of a head in dx */
    IN_X,
    IN_X_T,
    /* the part of y of a head */
    IN_Y,
    /* a number for each pair of a query and a key */
    PAIRS,
    PAIRS_T,
    /* a number for each query */
    ROWS,
    /* a single number */
    NUMBER,
} Layout;

/* HALF: bf16 or fp16, depending on AttentionShape. */
typedef enum Type { HALF, FP32, INT32, BOOLEAN } Type;
typedef struct Role {
    Layout layout;
    DnnPlace place;
    Type type;
} Role;

/* an element of 2 bytes, used only to compute addresses */
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
    [LOG_SUM] = {ROWS, DNN_MEMORY, FP32},
    [DOTS] = {ROWS, DNN_MEMORY, FP32},
    [SCALE] = {NUMBER, DNN_VALUE, FP32},
    [MINUS_INFINITY] = {NUMBER, DNN_VALUE, FP32},
    [ONE] = {NUMBER, DNN_VALUE, FP32},
    [QK] = {PAIRS, DNN_VIRTUAL, FP32},
    [SCORES] = {PAIRS, DNN_VIRTUAL, FP32},
    [QUERY_INDEX] = {PAIRS, DNN_VIRTUAL, INT32},
    [KEY_INDEX] = {PAIRS, DNN_VIRTUAL, INT32},
    [MASK] = {PAIRS, DNN_VIRTUAL, BOOLEAN},
    [MASKED] = {PAIRS, DNN_VIRTUAL, FP32},
    [ROW_MAX] = {ROWS, DNN_VIRTUAL, FP32},
    [SCORES_MINUS_MAX] = {PAIRS, DNN_VIRTUAL, FP32},
    [EXP_SCORES] = {PAIRS, DNN_VIRTUAL, FP32},
    [EXP_SUM] = {ROWS, DNN_VIRTUAL, FP32},
    [LOG_EXP_SUM] = {ROWS, DNN_VIRTUAL, FP32},
    [SOFTMAX] = {PAIRS, DNN_VIRTUAL, HALF},
    [DY_Y] = {IN_Y, DNN_VIRTUAL, FP32},
    [DY_Y_SUM] = {ROWS, DNN_VIRTUAL, FP32},
    [SCORES_MINUS_LOG_SUM] = {PAIRS, DNN_VIRTUAL, FP32},
    [P] = {PAIRS, DNN_VIRTUAL, FP32},
    [P_T] = {PAIRS_T, DNN_VIRTUAL, HALF},
    [DP] = {PAIRS, DNN_VIRTUAL, FP32},
    [DP_MINUS_DOTS] = {PAIRS, DNN_VIRTUAL, FP32},
    [DP_P] = {PAIRS, DNN_VIRTUAL, FP32},
    [DS] = {PAIRS, DNN_VIRTUAL, FP32},
    [DS_T] = {PAIRS_T, DNN_VIRTUAL, HALF},
    [K] = {IN_QK, DNN_VIRTUAL, FP32},
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
    MATMUL(QK, Q, K_T),
    EACH(MUL, SCORES, QK, SCALE),
    INDEX(QUERY_INDEX, SCORES, 2),
    INDEX(KEY_INDEX, SCORES, 3),
    EACH(CMP_GE, MASK, QUERY_INDEX, KEY_INDEX),
    EACH(BINARY_SELECT, MASKED, SCORES, MINUS_INFINITY, MASK),
    REDUCE(MAX, ROW_MAX, MASKED),
    EACH(SUB, SCORES_MINUS_MAX, MASKED, ROW_MAX),
    EACH(EXP, EXP_SCORES, SCORES_MINUS_MAX),
    REDUCE(ADD, EXP_SUM, EXP_SCORES),
    EACH(LOG, LOG_EXP_SUM, EXP_SUM),
    EACH(ADD, LOG_SUM, ROW_MAX, LOG_EXP_SUM),
    EACH(DIV, SOFTMAX, EXP_SCORES, EXP_SUM),
    MATMUL(Y, SOFTMAX, V),
};

static const DnnNode backward_nodes[] = {
    EACH(MUL, DY_Y, DY, Y),
    REDUCE(ADD, DY_Y_SUM, DY_Y),
    EACH(MUL, DOTS, DY_Y_SUM, ONE),
    MATMUL(QK, Q, K_T),
    EACH(MUL, SCORES, QK, SCALE),
    EACH(SUB, SCORES_MINUS_LOG_SUM, SCORES, LOG_SUM),
    INDEX(QUERY_INDEX, SCORES_MINUS_LOG_SUM, 2),
    INDEX(KEY_INDEX, SCORES_MINUS_LOG_SUM, 3),
    EACH(CMP_GE, MASK, QUERY_INDEX, KEY_INDEX),
    EACH(BINARY_SELECT, MASKED, SCORES_MINUS_LOG_SUM, MINUS_INFINITY, MASK),
    EACH(EXP, P, MASKED),
    RESHAPE(P_T, P),
    MATMUL(DV, P_T, DY),
    MATMUL(DP, DY, V_T),
    EACH(SUB, DP_MINUS_DOTS, DP, DOTS),
    EACH(MUL, DP_P, DP_MINUS_DOTS, P),
    EACH(MUL, DS, DP_P, SCALE),
    RESHAPE(DS_T, DS),
    MATMUL(DK, DS_T, Q),
    RESHAPE(K, K_T),
    MATMUL(DQ, DS, K),
};

/* ---- plans ---- */
/* Sets dimensions and strides of a tensor. sample, head, row: strides in elements. */
static void set_layout(DnnTensor *t, int64_t rows, int64_t columns, int64_t sample, int64_t head,
                       int64_t row, AttentionShape s, bool transposed)
{
    *t = (DnnTensor){
        .type = t->type,
        .place = t->place,
        .dim = {s.samples, s.heads, transposed ? columns : rows, transposed ? rows : columns},
        .stride = {sample, head, transposed ? 1 : row, transposed ? row : 1}};
}

static cudnnDataType_t cudnn_type(Type type, bool fp16)
{
    const cudnnDataType_t types[] = {[HALF] = dnn_type(fp16 ? DTYPE_F16 : DTYPE_BF16),
                                     [FP32] = dnn_type(DTYPE_F32),
                                     [INT32] = CUDNN_DATA_INT32,
                                     [BOOLEAN] = CUDNN_DATA_BOOLEAN};
    return types[type];
}

static DnnTensor make_tensor(Role role, AttentionShape s)
{
    DnnTensor t = {.type = cudnn_type(role.type, s.fp16), .place = role.place};
    const int64_t all_heads = s.heads * s.width, in_x = 3 * all_heads,
                  in_qk = s.rotated ? 2 * all_heads : in_x, pairs = s.length * s.length;
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
        set_layout(&t, s.length, s.width, s.length * all_heads, s.width, all_heads, s, false);
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

static bool make_plans(CudnnAttention *f, DnnTarget target)
{
    DnnTensor tensor[TENSORS];
    for (int i = 1; i < TENSORS; ++i) tensor[i] = make_tensor(roles[i], f->shape);
    const DnnGraph forward = {.tensor = tensor,
                              .tensors = TENSORS,
                              .node = forward_nodes,
                              .nodes = sizeof forward_nodes / sizeof *forward_nodes};
    const DnnGraph backward = {.tensor = tensor,
                               .tensors = TENSORS,
                               .node = backward_nodes,
                               .nodes = sizeof backward_nodes / sizeof *backward_nodes};
    return dnn_plan(&f->forward, &forward, target, f->reason) &&
           dnn_plan(&f->backward, &backward, target, f->reason);
}

static bool check_width(CudnnAttention *f)
{
    const int64_t width = f->shape.width;
    if (width % WIDTH_STEP == 0 && width <= ATTENTION_WIDTH) return true;
    snprintf(f->reason, sizeof f->reason,
             "heads of %lld columns: a multiple of %d up to %d is needed", (long long)width,
             WIDTH_STEP, ATTENTION_WIDTH);
    return false;
}

static bool check_version(CudnnAttention *f)
{
    size_t version = cudnn.get_version();
    if (version >= CUDNN_ATTENTION_OLDEST) return true;
    snprintf(f->reason, sizeof f->reason, "version %zu is older than %d", version,
             CUDNN_ATTENTION_OLDEST);
    log_warn("cuDNN %zu is older than %d: attention over %lld tokens runs on weft's own kernels, "
             "several times slower; put a newer libcudnn.so first in LD_LIBRARY_PATH",
             version, CUDNN_ATTENTION_OLDEST, (long long)f->shape.length);
    return false;
}

bool cudnn_attention_init(CudnnAttention *f, AttentionShape shape, DnnTarget target)
{
    *f = (CudnnAttention){.shape = shape};
    return f->available = check_version(f) && check_width(f) && make_plans(f, target);
}

void cudnn_attention_fini(CudnnAttention *f)
{
    dnn_fini(&f->forward);
    dnn_fini(&f->backward);
}

static int64_t round_up(int64_t count, int64_t step)
{
    return (count + step - 1) / step * step;
}

/* Returns the bytes of the gradients of the scores, in 16 bits and padded to complete tiles, and a
 * little more: cuDNN 9.19 needs this size for every tested shape. */
size_t cudnn_attention_expected_workspace_bytes(AttentionShape s)
{
    int64_t pairs = round_up(s.length, TILE_QUERIES) * round_up(s.length, TILE_KEYS);
    return (size_t)(s.samples * s.heads * pairs) * sizeof(Half) + WORKSPACE_BASE;
}

int64_t cudnn_attention_group(AttentionShape s)
{
    AttentionShape group = s;
    int64_t smallest = s.samples;
    for (; group.samples > 0; --group.samples) {
        bool aligned =
            group.samples == s.samples || group.samples * s.heads * s.length % ROW_STEP == 0;
        if (s.samples % group.samples != 0 || !aligned) continue;
        if (cudnn_attention_expected_workspace_bytes(group) <= workspace_bytes_max)
            return group.samples;
        smallest = group.samples;
    }
    return smallest;
}

static void find_plans(CudnnAttention *f, CudaState *state, AttentionShape shape)
{
    if (cuda_has_gpu(state)) {
        if (!cudnn_attention_init(f, shape, cudnn_target(state))) cudnn_attention_fini(f);
    } else {
        *f = (CudnnAttention){.shape = shape,
                              .backward.workspace_bytes =
                                  cudnn_attention_expected_workspace_bytes(shape)};
        f->available = check_width(f);
    }
    if (f->available)
        snprintf(f->kernels, sizeof f->kernels, "cuDNN's fused kernels");
    else
        snprintf(f->kernels, sizeof f->kernels, "weft's own kernels, because cuDNN has none: %s",
                 f->reason);
}

const CudnnAttention *cudnn_attention_of(CudaState *state, AttentionShape shape)
{
    shape.samples = cudnn_attention_group(shape);
    for (CudnnAttention *f = state->attention; f; f = f->next)
        if (f->shape.samples == shape.samples && f->shape.length == shape.length &&
            f->shape.heads == shape.heads && f->shape.width == shape.width &&
            f->shape.rotated == shape.rotated && f->shape.fp16 == shape.fp16)
            return f;
    CudnnAttention *f = mem_new(sizeof *f);
    find_plans(f, state, shape);
    f->next = state->attention;
    return state->attention = f;
}

void cudnn_attention_close(CudaState *state)
{
    while (state->attention) {
        CudnnAttention *f = state->attention;
        state->attention = f->next;
        cudnn_attention_fini(f);
        mem_free(&f);
    }
}

size_t cudnn_attention_workspace_bytes(const CudnnAttention *f)
{
    size_t a = f->forward.workspace_bytes, b = f->backward.workspace_bytes;
    return a > b ? a : b;
}

/* ---- runs ---- */
static const float minus_infinity = -INFINITY, one = 1;

/* Returns the part of `run` for the group of samples that begins at sample `first`. */
static AttentionRun group_run(AttentionRun run, int64_t first)
{
    int64_t y = first * run.length * run.heads * run.width, row = first * run.heads * run.length;
    run.x = (const Half *)run.x + 3 * y;
    run.y = (Half *)run.y + y;
    run.log_sum += row;
    run.dots += row;
    if (run.dy) run.dy = (const Half *)run.dy + y;
    if (run.dx) run.dx = (Half *)run.dx + 3 * y;
    if (run.rotated) run.rotated = (Half *)run.rotated + 2 * y;
    return run;
}

/* Sets the addresses of tensors in memory, for one group of samples, and of the single numbers. */
static void set_addresses(void *at[TENSORS], const AttentionRun *run)
{
    const int64_t all_heads = run->heads * run->width;
    Half *x = (Half *)(uintptr_t)run->x, *dx = run->dx, *queries = run->rotated ? run->rotated : x;
    at[Q] = queries;
    at[K_T] = queries + all_heads;
    at[V] = at[V_T] = x + 2 * all_heads;
    at[Y] = run->y;
    at[DY] = (void *)(uintptr_t)run->dy;
    at[LOG_SUM] = run->log_sum;
    at[DOTS] = run->dots;
    at[SCALE] = (void *)(uintptr_t)&run->scale;
    at[MINUS_INFINITY] = (void *)(uintptr_t)&minus_infinity;
    at[ONE] = (void *)(uintptr_t)&one;
    if (!dx) return;
    at[DQ] = dx;
    at[DK] = dx + all_heads;
    at[DV] = dx + 2 * all_heads;
}

/* Runs the plan for each group of samples. uid: numbers of the plan's tensors that have an address,
 * [count]. */
static void run_groups(const CudaState *state, const CudnnAttention *f, const DnnPlan *plan,
                       AttentionRun all, void *workspace, const int64_t *uid, int count)
{
    for (int64_t first = 0; first < all.real; first += f->shape.samples) {
        void *at[TENSORS], *used[TENSORS];
        AttentionRun run = group_run(all, first);
        set_addresses(at, &run);
        for (int i = 0; i < count; ++i) used[i] = at[uid[i]];
        dnn_run(plan, state->dnn, count, uid, used, workspace);
    }
}

void cudnn_attention_forward(const CudaState *state, const CudnnAttention *f, AttentionRun run,
                             void *workspace)
{
    static const int64_t uid[] = {Q, K_T, V, Y, LOG_SUM, SCALE, MINUS_INFINITY};
    run_groups(state, f, &f->forward, run, workspace, uid, sizeof uid / sizeof *uid);
}

void cudnn_attention_backward(const CudaState *state, const CudnnAttention *f, AttentionRun run,
                              void *workspace)
{
    static const int64_t uid[] = {
        Q, K_T, V_T, Y, DY, DQ, DK, DV, LOG_SUM, DOTS, SCALE, MINUS_INFINITY, ONE};
    run_groups(state, f, &f->backward, run, workspace, uid, sizeof uid / sizeof *uid);
}
