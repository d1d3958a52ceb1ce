/* tensor: shapes, descriptions, and the backends that hold memory and compute. A backend is a const table of typed
 * slots; an operation (Op) is planned once for fixed shapes and then run with pointers only: no allocation, no shape
 * logic in a step. Buffers own, everything else points. Nothing here is collective.
 *
 * Letters: N micro-batch, C channels, H W image, T sequence, K classes. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "base.h"

#include <string.h>

enum { SHAPE_DIMS = 4 };
typedef struct
    Shape { /* dim[0] is the micro-batch; images (N,C,H,W), sequences (N,T,C), vectors (N,C) */
    int ndim;
    int64_t dim[SHAPE_DIMS]; /* unused ones are 1 */
} Shape;
typedef enum DType { DTYPE_F32, DTYPE_I32, DTYPE_BF16, DTYPE_F16 } DType;
size_t dtype_bytes(DType type); /* of one element */

Shape shape_of(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
int64_t shape_count(Shape shape);
bool shape_equal(Shape a, Shape b);
char *shape_text(Shape shape, char *out); /* "8x64x28x28", into at least 64 chars, returned */

/* How an activation lies in memory: its channels (dim[1] of a 4-d shape) in blocks of `block`, memory order
 * [N][ceil(C/block)][H][W][block], zero-padded. block 1 is plain NCHW; block C is channels-last; 8 and 16 are what
 * vector units like. Everything but 4-d shapes is row-major, its rows (the last dimension) zero-padded to whole blocks: what
 * tensor cores like of a width that is not even.
 * flat: a (N, C*H*W) view whose memory is still the 4-d `image` in its blocked order (flatten moves nothing; dense
 * reads it as it lies). flat is false for all others, and image unused. */
typedef struct Desc {
    Shape shape;
    DType dtype;
    int block;
    bool flat;
    Shape image;
} Desc;
/* bf16 is the upper half of a float. Rounding is to nearest, ties to even, denormals too; a NaN stays one. */
typedef struct Bf16 {
    uint16_t bits;
} Bf16;
static inline float bf16_value(Bf16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline Bf16 bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (Bf16){(uint16_t)((nan ? quiet : rounded) >> 16)};
}

/* fp16 as IEEE 754 has it; half.c. Rounding is to nearest, ties to even; what is too large becomes infinite. */
typedef struct F16 {
    uint16_t bits;
} F16;
float f16_value(F16 x);
F16 f16_of(float value);

Desc desc_plain(Shape shape, DType dtype);
bool desc_equal(Desc a, Desc b);
bool desc_is_plain(
    Desc d); /* row-major in memory without padding (a flat view of a block-1 image is) */
int64_t desc_row(Desc d);      /* elements from a row to the next; not of images */
int64_t desc_elements(Desc d); /* in memory, padding included */
size_t desc_bytes(Desc d);

/* ---- slices: tensor parallelism ---- */
/* A dimension of `items` is cut among ranks in order: rank r has items slice_first(items, ranks, r) up to
 * slice_first(items, ranks, r + 1), the first ones one more where it does not go up evenly. */
int64_t slice_first(int64_t items, int ranks, int rank);
typedef struct
    TensorSlice { /* one rank's part of one dimension of a tensor; ranks 0: the tensor is whole */
    int dim, rank, ranks;
    int64_t first, count, whole; /* items */
} TensorSlice;
/* A tensor as `runs` equal runs one behind the other, each of `items` items of `unit` elements, of which every rank has its
 * slice of each run, packed. */
typedef struct Slices {
    int64_t runs, items, unit;
    DType type; /* fp32 or bf16; on GPUs fp16, too */
} Slices;
size_t slices_run(const Slices *s, int ranks, int rank); /* bytes of a rank's slice of one run */
/* The ranks that hold the slices of one tensor, for operations that need the others'. Calls are collective on them, the same
 * in the same order, on the backend's memory; what they do is queued on its compute stream. */
typedef struct Exchange Exchange;
struct Exchange {
    int rank, size;
    void *user;
    void (*gather)(const Exchange *x, Slices s, const void *mine, void *whole);
    /* mine = this rank's slice of the sum of every rank's whole: added in the ranks' order in fp32, rounded once */
    void (*reduce)(const Exchange *x, Slices s, const void *whole, void *mine);
};

/* ---- operations ---- */
typedef enum OpKind {
    OP_DENSE,
    OP_CONV2D,
    OP_BATCH_NORM,
    OP_LAYER_NORM,
    OP_ACTIVATION,
    OP_POOL,
    OP_ADD,
    OP_CONCAT,
    OP_FLATTEN,
    OP_DROPOUT,
    OP_EMBEDDING,
    OP_POSITIONS,
    OP_ATTENTION,
    OP_SOFTMAX_LOSS,
    OP_MSE_LOSS,
    OP_REORDER,
    OP_EXCHANGE,
    OP_RMS_NORM,
    OP_GROUP_NORM,
    OP_SWIGLU,
    OP_KINDS
} OpKind;
/* How an OP_EXCHANGE changes what the ranks of a tensor group hold. Forward and backward are each other's mirror. */
typedef enum ExchangeKind {
    EXCHANGE_ENTER, /* whole x to layers that are divided: y is x; dx the sum of dy over the ranks */
    EXCHANGE_LEAVE, /* back: y the sum of x over the ranks (+ w[C]); dx is dy */
    EXCHANGE_GATHER, /* a sequence's slices to such layers: y all of dim 1; dx the slice of the sum of dy */
    EXCHANGE_SCATTER, /* back: y the slice of dim 1 of the sum of x (+ w[C]); dx all of dy */
} ExchangeKind;
typedef enum Act { ACT_NONE, ACT_RELU, ACT_RELU6, ACT_GELU, ACT_SILU } Act; /* gelu: tanh form */
typedef enum PoolMode {
    POOL_MAX,
    POOL_AVG,
    POOL_GLOBAL_AVG
} PoolMode; /* avg counts only real pixels */
enum {
    POOL_CUT = 255
}; /* the place of a maximum in its window, where relu cut it off: windows have fewer pixels */
enum { OP_INPUTS = 8, OP_PARAMS = 4, LOSS_COLUMNS = 3 };

/* What an operation is: plain data, filled by a layer kind, completed by the backend (layouts).
 *   dense          y[N,out] = act(x[N,in] w[out,in]^T + b[out] (+ x[1] if residual)); (N,T,in) -> (N,T,out) too
 *   conv2d         y[N,O,P,Q] = act(conv(x[N,C,H,W], w[O,C/groups,R,S]) + b[O])
 *   batch_norm     y = act(norm_C(x) * w0[C] + w1[C] (+ x[1] if residual)); w2, w3: running mean and variance.
 *                  (N,C) and (N,C,H,W). Statistics over the first `rows` samples only.
 *   layer_norm     over the last dimension; w0 scale, w1 shift
 *   rms_norm       y = x / sqrt(mean(x^2) + eps) * w0 over the last dimension (Zhang & Sennrich 2019)
 *   group_norm     (N,C,H,W): y = act(norm(x) * w0[C] + w1[C]) over each of `groups` equal groups of neighbouring channels
 *                  of a sample (Wu & He 2018)
 *   activation     y = act(x)
 *   swiglu         x (N,2F) or (N,T,2F): a gate and what it lets through, side by side -> y = silu(gate) * through, (N,F)
 *                  or (N,T,F) (Shazeer 2020)
 *   pool           max, avg (kernel, stride, pad), global average -> (N,C,1,1). act RELU may be fused: y = relu(pool(x))
 *   add            y = act(x0 + x1)         concat: along channels (dim 1)
 *   dropout        y = x * keep / (1-p); the mask is recomputed from (key, sample id, element of the plain order)
 *   embedding      x int32 (N,T) -> y (N,T,C) from w[V,C]
 *   positions      y[N,T,C] = x + w[t,C], the first T rows of a learned table of positions
 *   attention      x (N,T,3C): queries, keys, values side by side, each `heads` heads of C/heads -> y (N,T,C). Causal,
 *                  scores scaled by 1/sqrt(C/heads). rotary: queries and keys are turned by their position first (Su et
 *                  al. 2021, halves form). Keeps a number per (N, head, T), never a T x T matrix (Dao et al. 2022,
 *                  "FlashAttention"). With kv_heads (Ainslie et al. 2023, "GQA") keys and values have so many heads only,
 *                  each for heads / kv_heads neighbouring heads of queries: x (N,T,C + 2 kv_heads C/heads)
 *   softmax_loss   x logits (N,K) or (N,T,K), labels int32 -> y (rows, LOSS_COLUMNS): loss, how many logits beat the
 *                  true one (0: right; < 5: in the top five), the arg max. Label smoothing as in Szegedy et al. 2016:
 *                  target (1-s) at the label + s/K everywhere.
 *   mse_loss       x (N,K), targets float (N,K): loss = mean over K of squared error; the other two columns 0
 *   reorder        same shape, other layout or number format
 *   exchange       between the ranks of a tensor group: see ExchangeKind
 * Where `slice` says so, an operation has one rank's slice of what it would else have whole: embedding its rows of w (other
 * ranks' tokens give 0), softmax_loss its logits (y is of all of them), positions and dropout of x.
 * Where the backend's precision is bf16 or fp16, activations and their gradients are such, and every operation computes in fp32 on
 * what it loads and rounds what it stores; attention rounds the factors of its inner products, too. All else stays fp32: parameters and dw, `saved`, a loss's y, float data and
 * targets. An operation that is given fp32 data wishes the precision, and a reorder converts it. */
typedef struct OpSpec {
    OpKind kind;
    int kernel[2], stride[2], pad[2]; /* conv2d, pool: height, width */
    int groups;                       /* conv2d, group_norm */
    PoolMode pool;
    Act act; /* fused on the output; ACT_NONE if none */
    /* Of two dense, one behind the other, the second does for the first's act what backward has to do: its x_act is that act,
     * and dx[0] the gradient of act's input, which is what the first, act_passed, gets as dy. */
    Act x_act;
    bool act_passed;
    bool residual;         /* batch_norm, dense: x[1], of y's shape, is added before act */
    float eps, momentum;   /* norms; momentum of the running statistics (0.1: PyTorch's) */
    float drop, smoothing; /* dropout probability; label smoothing */
    uint64_t seed_name;    /* dropout: hash of the node's name */
    int heads;             /* attention */
    int kv_heads;          /* of keys and values; 0: heads. Divides heads */
    float rotary_base;     /* of the angles; 0: 10000 */
    bool rotary;
    TensorSlice slice;
    ExchangeKind exchange;
    bool
        plain_weight; /* dense: w is stored in its plain order (another operation has the same w) */
    int x_count, w_count;    /* w: parameters first, then running statistics */
    bool need_dx[OP_INPUTS]; /* false: nobody wants this gradient (the data) */
    bool x_shared;           /* a later operation reads x[0], too: dx[0] may come with dx_add */
    Shape w[OP_PARAMS];      /* in the model's own order: OIHW, out x in, V x C */
    Desc x[OP_INPUTS],
        y; /* x: given by the producers. y.shape by the layer kind, y's layout by the backend */
} OpSpec;

/* An attention's heads of keys and of values. */
static inline int attention_kv_heads(const OpSpec *spec)
{
    return spec->kv_heads > 0 ? spec->kv_heads : spec->heads;
}

/* The base of its rotary angles: pair i of a head that is w wide turns by position * base^(-2 i / w). */
static inline double attention_rotary_base(const OpSpec *spec)
{
    return spec->rotary_base > 0 ? (double)spec->rotary_base : 10000.0;
}

/* What queued work reads when it runs, in the backend's memory, so that work that is recorded once serves every step. */
typedef struct StepNumbers {
    uint64_t step;    /* of the dropout */
    float loss_scale; /* as OpRun's */
} StepNumbers;

/* What one run of an operation touches: pointers into arenas, all on the backend's device. Gradients of inputs are
 * written, and added to only with dx_add. */
typedef struct OpRun {
    const void *x[OP_INPUTS];
    void *y;
    void *dy;            /* may be overwritten by backward_begin */
    void *dx[OP_INPUTS]; /* NULL where need_dx is false */
    bool dx_add; /* dx[0] has what x[0]'s other readers gave, and is added to (op->dx_adds) */
    const float *w
        [OP_PARAMS]; /* in the op's stored order; for refresh, forward and backward_data, else anything */
    float *dw
        [OP_PARAMS]; /* like w; written by backward_weight. For running statistics: this micro-batch's mean and
                     * (unbiased) variance */
    void *saved; /* saved_bytes: written by forward, read by backward of the same micro-batch */
    const void *x_saved;      /* x_act: what x[0]'s producer has written there */
    void *cache;              /* cache_bytes: other forms of w, written by refresh */
    void *workspace;          /* workspace_bytes: scratch within one call */
    const Exchange *exchange; /* where slices are exchanged */
    const int32_t *labels;    /* losses */
    const float *targets;
    const int64_t *sample; /* dropout: id of each of the N samples */
    uint64_t seed, step;   /* dropout */
    int rows;         /* samples that are real: the first `rows` of N. The rest is zero padding */
    float loss_scale; /* dx of a loss = d(loss_scale * sum over rows)/dx; padded rows get 0 */
    bool training;
    const StepNumbers *numbers; /* those hold in place of step and loss_scale; NULL: these hold */
} OpRun;

typedef struct Backend Backend;
typedef struct Op Op;

/* One operation on one backend. NULL slots mean "nothing to do" but for plan and forward. */
typedef struct OpTable {
    const char *name;
    /* Chooses layouts and kernels by spec alone. On entry op->spec is set with x[] as the producers give them. It may
     * set spec.y's layout, and *preferred (in: x[0..]; an entry may be changed to a layout this op would rather have: the
     * planner then inserts a reorder and calls plan again with that x). Fills the sizes in Op. */
    Status (*plan)(Op *op, Desc preferred[OP_INPUTS]);
    void (*refresh)(Op *op,
                    const OpRun *run); /* after the parameters changed, or came into memory again */
    void (*forward)(Op *op, const OpRun *run);
    /* May change dy in place where spec.act is not ACT_NONE (the fused activation's mask). */
    void (*backward_begin)(Op *op, const OpRun *run);
    /* Writes dx[]; where not weight_later, perhaps dw[], too, if there is a dx[0], in place of backward_weight. */
    void (*backward_data)(Op *op, const OpRun *run);
    void (*backward_weight)(Op *op, const OpRun *run); /* writes dw[] */
    void (*pack)(Op *op, int i, const float *plain,
                 float *stored); /* NULL: stored order is the plain one */
    void (*unpack)(Op *op, int i, const float *stored, float *plain); /* host pointers */
    void (*free)(Op *op);                                             /* releases impl */
} OpTable;

struct Op {
    const OpTable *table;
    Backend *backend; /* borrowed */
    OpSpec spec;
    void *impl;                    /* the backend's own, released by table->free */
    int64_t w_elements[OP_PARAMS]; /* stored floats of each parameter, padding included */
    size_t saved_bytes, cache_bytes, workspace_bytes;
    size_t packing_bytes;             /* about what pack and unpack make for themselves and keep */
    size_t workspace_spare;           /* of it nothing touches about so many bytes, in an arena */
    bool needs_x[OP_INPUTS], needs_y; /* backward reads them */
    bool y_inplace;                   /* y may be x[0]'s memory */
    bool dx_inplace;                  /* dx[0] may be dy's memory */
    bool dx_adds;                     /* the gradient may be added to what is in dx[0] */
    bool dx_alias
        [OP_INPUTS]; /* dx[i] IS dy (after backward_begin): nothing is written (add, residual) */
    bool y_alias;    /* y IS x[0]: nothing is written (flatten) */
    /* dx[0] may be x[0]'s memory, where nobody else reads x[0] after forward (softmax_loss): it may hold either from there on,
     * for forward of a run that is `training` may write dx[0] already, and backward_data then does not. loss_scale and `numbers`
     * must hold at forward, and stay for backward. */
    bool dx_over_x;
    bool
        weight_later; /* backward_weight may run long after backward_data: it reads x and dy only */
    double flops_forward, flops_backward; /* of one run, multiply and add counted as two */
    const char *kernels; /* whose, in words, where there was a choice; else NULL. The backend's */
};

/* ---- streams, memory, flat ranges ---- */
typedef struct Stream Stream; /* a CPU backend has one, and works at once; a GPU queues */
typedef struct Event Event;

/* What of an update is another number at every step: see StepNumbers. */
typedef struct UpdateNumbers {
    float lr, grad_scale, correct1, correct2;
} UpdateNumbers;
typedef struct SgdArgs {
    float lr, momentum, weight_decay, grad_scale;
    bool nesterov, first;
    const UpdateNumbers *
        now; /* those hold in place of lr and grad_scale; NULL, as where nothing is recorded: these */
} SgdArgs;
typedef struct AdamArgs {
    float lr, beta1, beta2, eps, weight_decay, grad_scale;
    float correct1, correct2; /* 1 - beta^t */
    bool decoupled;           /* AdamW */
    const UpdateNumbers *now; /* as SgdArgs', the corrections, too */
} AdamArgs;
enum { FLAT_CHUNK = 4096 }; /* elements a partial norm covers, from each tensor's own start */
enum { FLAT_PUT = 64 };     /* bytes that put takes at most */
/* What loss_sums counts: the losses' sum, lines, right ones, those among the top five, and that there are any. */
enum { LOSS_SUM, LOSS_LINES, LOSS_TOP1, LOSS_TOP5, LOSS_ANY, LOSS_SUMS };

/* Elementwise work on flat ranges of fp32, device pointers. */
typedef struct FlatTable {
    void (*fill)(Stream *s, float *to, float value, int64_t n); /* -0 is another value than 0 */
    void (*add)(Stream *s, float *out, const float *a, const float *b,
                int64_t n); /* out may be a or b */
    /* The same in bf16 and fp16, for gradients of activations; NULL where the backend lacks the type. */
    void (*add_bf16)(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n);
    void (*add_f16)(Stream *s, F16 *out, const F16 *a, const F16 *b, int64_t n);
    /* *found = 1 where an element of x is infinite or no number; else it stays. NULL where add_f16 is. */
    void (*find_overflow)(Stream *s, float *found, const float *x, int64_t n);
    void (*scale_add)(Stream *s, float *y, float alpha, const float *x, float beta,
                      int64_t n); /* y = alpha x + beta y */
    /* out[n] = the sum of `count` slices of so many elements of `type`, `stride` of them apart, in their order in fp32, rounded
     * once. out may be one of them. NULL in host memory, where slices are added as they come */
    void (*add_slices)(Stream *s, DType type, void *out, const void *slices, int count,
                       int64_t stride, int64_t n);
    /* out[i] = sum of squares of chunk i (FLAT_CHUNK elements), ceil(n/FLAT_CHUNK) of them, same bits however x lies */
    void (*squares)(Stream *s, double *out, const float *x, int64_t n);
    /* SGD as PyTorch's: g += wd w; m = momentum m + g (first: m = g); w -= lr (nesterov ? g + momentum m : m) */
    void (*sgd)(Stream *s, const SgdArgs *a, float *w, const float *g, float *m, int64_t n);
    /* Adam, AdamW as PyTorch's (Kingma & Ba 2015; Loshchilov & Hutter 2019) */
    void (*adam)(Stream *s, const AdamArgs *a, float *w, const float *g, float *m, float *v,
                 int64_t n);
    /* LAMB's direction (You et al. 2020): updates m, v; u = mhat/(sqrt(vhat)+eps) + wd w */
    void (*adam_direction)(Stream *s, const AdamArgs *a, float *u, const float *w, const float *g,
                           float *m, float *v, int64_t n);
    /* *to = the bytes at from, host memory, which is read before the call returns, and the host does not wait */
    void (*put)(Stream *s, void *to, const void *from, size_t bytes);
    /* out[LOSS_SUMS], of a loss's y (lines, LOSS_COLUMNS); lines added in double, in an order that their number decides */
    void (*loss_sums)(Stream *s, float *out, const float *columns, int64_t lines);
    /* out[i] = sum of x[first[i]] .. x[first[i + 1] - 1], in an order that their number decides; first: count + 1 of them */
    void (*range_sums)(Stream *s, double *out, const double *x, const int64_t *first, int count);
    /* *grad_scale = limit / norm where that is less than 1, else 1. norm: root of the sum of count squares, in order. A
     * backend that records has it */
    void (*clip)(Stream *s, float *grad_scale, const double *squares, int count, double limit);
} FlatTable;

typedef struct BackendOptions {
    int threads;     /* CPU threads of this rank */
    DType precision; /* of activations and their gradients: DTYPE_F32, DTYPE_BF16 or DTYPE_F16 */
    bool tf32; /* fp32 matrix products and convolutions may round their factors to TF32 (10 bits) */
    int device; /* in: this rank's number on its node; a GPU backend's open makes it the GPU's ordinal, or -1 */
    bool
        dry_run; /* to plan operations only: a GPU backend then opens where there is no GPU, too, */
    const char *
        gpu; /* for this one ("h100", "h200", "a100"; borrowed), or, if NULL, for this machine's or the first of
                      * them. A GPU backend's open makes it the GPU's whole name */
    bool replay; /* captures are recorded and replayed, where the backend can */
} BackendOptions;

typedef struct Recording Recording;

typedef struct BackendTable {
    const char *name; /* "cpu", "cuda", "poison" */
    bool host_memory; /* pointers are the host's, too */
    bool has_bf16;    /* some processors of the kind have; open refuses others */
    bool has_f16, has_tf32;
    bool fuses_gelu;    /* onto dense's output, which then keeps gelu's input in `saved` */
    bool adds_to_dense; /* dense may have a residual */
    Status (*open)(Backend *backend, BackendOptions options);
    void (*close)(Backend *backend);
    void *(*alloc)(Backend *b, size_t bytes); /* one arena; zeroed */
    void (*release)(Backend *b, void *p, size_t bytes);
    /* What this process has taken of the device's memory, libraries apart, and what is free there. NULL: memory is the host's */
    void (*memory)(Backend *b, double *taken_bytes, double *free_bytes);
    const char *(*memory_text)(
        Backend *b);               /* which device that is, for messages; until the next call */
    Stream *(*stream)(Backend *b); /* the compute stream; borrowed */
    /* More streams, for copies and messages beside the compute stream. NULL where a backend has one stream only. */
    Stream *(*stream_new)(Backend *b);
    void (*stream_free)(Stream **s);
    void *(*stream_handle)(Stream *s); /* as the maker's libraries take it: a cudaStream_t */
    void (*copy)(Stream *s, void *to, const void *from,
                 size_t bytes); /* host or device on either side */
    void (*sync)(Stream *s);    /* the host waits */
    Event *(*event_new)(Backend *b);
    void (*event_record)(Event *e, Stream *s);
    void (*event_wait)(Event *e, Stream *s); /* the stream waits, not the host */
    void (*event_free)(Event **e);
    /* Host memory, zeroed, that copies reach while the host goes on, and the host's wait for an event's last record, which may
     * never have been. NULL: copies are done when the call returns. */
    void *(*host_alloc)(Backend *b, size_t bytes);
    void (*host_release)(Backend *b, void *p, size_t bytes);
    void (*event_sync)(Event *e);
    /* Between the two nothing that is queued runs; it becomes a Recording, to be replayed any number of times, on the same
     * pointers. Nothing else may be asked of the stream meanwhile. record_end gives NULL, and *why, where it could not be
     * recorded: then it has not been queued at all. NULL slots: the backend queues nothing. */
    void (*record_begin)(Stream *s);
    Recording *(*record_end)(Stream *s, const char **why);
    void (*replay)(Recording *r, Stream *s);
    void (*recording_free)(Recording **r);
    Event *(*timer_new)(Backend *b);           /* an event that knows when it was reached */
    double (*event_s)(Event *from, Event *to); /* between two timers; the host waits for `to` */
    const FlatTable *flat;
    const OpTable *op[OP_KINDS]; /* NULL: this backend lacks it, found at start-up by op_new */
} BackendTable;

struct Backend {
    const BackendTable *table;
    BackendOptions options;
    void *impl;
};
extern const BackendTable backend_cpu, backend_cuda, backend_poison;
/* backend_poison (tests): the CPU backend, but every output, gradient and workspace is NaN before an op may write it. */

Status backend_open(Backend **backend, const BackendTable *table, BackendOptions options);
void backend_close(Backend **backend);
/* A capture of queued work that is the same every time but for what it reads from the backend's memory. With
 * options.replay it is run plainly the first time, when libraries make what they make on demand; recorded the second;
 * replayed from then on, without a call of work. work queues on the compute stream alone, and has no other effect. Where a
 * recording fails, a warning says so once, and all captures run plainly. */
typedef struct Capture {
    bool warm;
    Recording *recording; /* owned; capture_drop */
} Capture;
void capture_run(Capture *capture, Backend *backend, void (*work)(void *user), void *user);
void capture_drop(Capture *capture, Backend *backend);
/* Host memory for copies to and from the backend: host_alloc's, or ordinary pages. Zeroed. */
void *backend_host_new(Backend *backend, size_t bytes);
void backend_host_free(Backend *backend, void *p, size_t bytes);
/* GPUs this process may use; 0 with a reason in *why ("built without CUDA", "no driver", ...). Borrowed. */
int cuda_device_count(const char **why);
/* Phases are NVTX ranges from now on, for NVIDIA's profilers. ERR_CONFIG where weft was built without CUDA. */
Status nvtx_start(void);
/* Compiled-in and running versions, one line each: of the CUDA libraries, of all. */
void cuda_versions(FILE *out);
void backend_versions(FILE *out);

/* Adds up laps of time on the backend's compute stream, from where its work has come to at start to where it has at stop.
 * Neither waits; reading does. */
typedef struct Stopwatch Stopwatch;
Stopwatch *stopwatch_new(Backend *backend); /* backend is borrowed. Owner: the caller */
void stopwatch_free(Stopwatch **watch);
void stopwatch_start(Stopwatch *watch);
void stopwatch_stop(Stopwatch *watch);
int stopwatch_laps(const Stopwatch *watch); /* since the last stopwatch_clear */
double stopwatch_lap_s(Stopwatch *watch, int lap);
double stopwatch_sum_s(Stopwatch *watch); /* of all laps */
/* From a lap's start to the next one's, of the last to its stop: what lies between laps is counted. */
double stopwatch_period_s(Stopwatch *watch, int lap);
void stopwatch_clear(Stopwatch *watch);

/* Plans one operation. ERR_CONFIG names the operation where the backend lacks it. Owner: the caller. */
Status op_new(Op **op, Backend *backend, const OpSpec *spec, Desc preferred[OP_INPUTS]);
void op_free(Op **op);
void op_refresh(Op *op, const OpRun *run);
void op_forward(Op *op, const OpRun *run);
void op_backward_begin(Op *op, const OpRun *run);
void op_backward_data(Op *op, const OpRun *run);
void op_backward_weight(Op *op, const OpRun *run);
/* Parameter i between the model's own order and the op's stored order; host pointers. */
void op_pack(Op *op, int i, const float *plain, float *stored);
void op_unpack(Op *op, int i, const float *stored, float *plain);

/* This rank's cores: what the affinity mask and the cgroup allow, over the ranks that share them; at least 1. */
int threads_share(int ranks_on_node);
/* Binds this process to its own `threads` cores if the ranks of its node fill all cores it may use, exactly, and no launcher
 * has bound them before; else does nothing and returns false. Before the first parallel region. */
bool threads_bind(int rank_on_node, int ranks_on_node, int threads);

#endif
