/* Launchers of the CUDA kernels, as the C files call them. Each queues its kernels on `stream` and
 * returns the error of the launch; n = 0 queues nothing. All pointers are device memory unless a
 * comment says otherwise. Every kernel gives the same bits each time: none adds floating-point
 * numbers by atomics, and the order of sums depends on the shape alone. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#define _Noreturn [[noreturn]] /* C++ lacks _Noreturn, and the public headers are C17. */
extern "C" {
#endif
#include "tensor.h"

/* How one block covers a matrix (rows, columns): `packs` threads side by side with some elements
 * each, `rows` threads deep; `across` such blocks cover all columns. */
typedef struct CudaTile {
    int64_t packs, rows, across;
} CudaTile;
enum { CUDA_THREADS = 256, CUDA_SUM_BLOCKS = 264, CUDA_SUM_ROWS = 16 };
static inline CudaTile cuda_tile(int64_t columns, int elements)
{
    int64_t packs = (columns + elements - 1) / elements,
            across = (packs + CUDA_THREADS - 1) / CUDA_THREADS;
    packs = (packs + across - 1) / across;
    return (CudaTile){packs, CUDA_THREADS / packs, across};
}
/* Number of elements that one access of a thread moves in rows that begin `stride` elements apart:
 * 16 bytes of them, or one where rows would not stay aligned. */
static inline int cuda_pack(DType type, int64_t stride)
{
    int most = 16 / (int)dtype_bytes(type);
    return stride % most == 0 ? most : 1;
}
/* Number of parts that a sum over rows is divided into: two blocks for each of a large GPU's 132
 * processors, but at least CUDA_SUM_ROWS rows a thread. */
static inline int64_t cuda_sum_parts(DType type, int64_t rows, int64_t columns)
{
    CudaTile tile = cuda_tile(columns, cuda_pack(type, columns));
    int64_t most = rows / (tile.rows * CUDA_SUM_ROWS), parts = CUDA_SUM_BLOCKS / tile.across;
    if (parts > most) parts = most;
    return parts > 1 ? parts : 1;
}

/* The same for a pass that also writes its rows: at least CUDA_SUM_ROWS rows a block, so that few
 * rows fill a GPU, too. */
static inline int64_t cuda_row_parts(int64_t rows)
{
    int64_t parts = rows / CUDA_SUM_ROWS;
    if (parts > CUDA_SUM_BLOCKS) parts = CUDA_SUM_BLOCKS;
    return parts > 1 ? parts : 1;
}

/* flat.cu: see FlatTable. */
cudaError_t launch_fill(cudaStream_t stream, float *to, float value, int64_t n);
cudaError_t launch_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n);
cudaError_t launch_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                             int64_t n);
typedef struct SlicesRun {
    DType type;
    void *out;
    const void *slices;
    int count;
    /* distance between slices and length of each, in elements */
    int64_t stride, n;
} SlicesRun;
cudaError_t launch_add_slices(cudaStream_t stream, SlicesRun run);
cudaError_t launch_squares(cudaStream_t stream, double *out, const float *x, int64_t n);
cudaError_t launch_chunk_squares(cudaStream_t stream, double *out, const float *x,
                                 const FlatChunk *chunk, int64_t count);
cudaError_t launch_find_overflow(cudaStream_t stream, float *found, const float *x, int64_t n);
cudaError_t launch_sgd(cudaStream_t stream, SgdArgs a, float *w, const float *g, float *m,
                       int64_t n);

typedef struct AdamRun {
    AdamArgs args;
    /* false: out is w and is updated; true: out receives LAMB's direction */
    bool direction;
    float *out;
    const float *w, *g;
    float *m, *v;
    int64_t n;
} AdamRun;
cudaError_t launch_adam(cudaStream_t stream, AdamRun run);

/* numbers.cu: see FlatTable. launch_put reads `from`, host memory, before it returns. */
cudaError_t launch_put(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_loss_sums(cudaStream_t stream, float *out, const float *columns, int64_t lines);
cudaError_t launch_range_sums(cudaStream_t stream, double *out, const double *x,
                              const int64_t *first, int count);
cudaError_t launch_clip(cudaStream_t stream, float *grad_scale, const double *squares, int count,
                        double limit);

/* activation.cu. launch_activation: y = act(x). launch_activation_backward: dx = dy * act'(at),
 * where `at` is y for relu and relu6, and x for gelu and silu. launch_add_act: y = act(a + b).
 * launch_convert: `to` is `from` in another type. Outputs may be inputs' memory. `type` is fp32,
 * bf16 or fp16. */
cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, void *y, const void *x,
                              int64_t n);
cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, void *dx,
                                       const void *dy, const void *at, int64_t n);
cudaError_t launch_add_act(cudaStream_t stream, DType type, Act act, void *y, const void *a,
                           const void *b, int64_t n);
cudaError_t launch_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                           const void *from, int64_t n);

/* dense.cu. Adds a row vector such as a bias: y[r] = act(x[r] + row) for the first `real` of `rows`
 * rows, zeros in the others. y may be x. */
typedef struct AddRowRun {
    DType type;
    Act act;
    const void *x;
    void *y;
    const float *row;
    int64_t rows, real, columns;
} AddRowRun;
cudaError_t launch_add_row(cudaStream_t stream, AddRowRun run);
/* out[columns] = the sum of dy (rows, columns) over its rows, which begin `stride` elements apart.
 * The sum has cuda_sum_parts(type, rows, stride) parts; if there are several, `partial` is scratch
 * of parts x columns floats. */
cudaError_t launch_column_sum(cudaStream_t stream, DType type, float *out, float *partial,
                              const void *dy, int64_t rows, int64_t columns, int64_t stride);

/* An embedding's gradient sorts its tokens by digits of 8 bits. Each block sorts a tile of at least
 * CUDA_SORT_TILE tokens; there are at most CUDA_SORT_BLOCKS tiles, because one block adds up the
 * counts of all. */
enum { CUDA_SORT_DIGITS = 256, CUDA_SORT_TILE = 1024, CUDA_SORT_BLOCKS = 512 };
static inline int64_t cuda_sort_tile(int64_t tokens)
{
    int64_t tile = (tokens + CUDA_SORT_BLOCKS - 1) / CUDA_SORT_BLOCKS;
    if (tile < CUDA_SORT_TILE) tile = CUDA_SORT_TILE;
    return (tile + CUDA_THREADS - 1) / CUDA_THREADS * CUDA_THREADS;
}
/* Number of int32 elements of EmbeddingRun.order for up to `tokens` tokens. */
static inline int64_t cuda_sort_scratch(int64_t tokens)
{
    int64_t blocks = (tokens + CUDA_SORT_TILE - 1) / CUDA_SORT_TILE;
    if (blocks > CUDA_SORT_BLOCKS) blocks = CUDA_SORT_BLOCKS;
    return 2 * tokens + blocks * CUDA_SORT_DIGITS;
}

/* embedding.cu. Forward: y[i] = w[tokens[i]], zeros from token `real` on and for tokens whose rows
 * other ranks have: w holds rows first .. first + rows of the vocabulary. Backward: each row of dw
 * is the sum of dy over its tokens, in an order that the tokens decide; zero for a row without
 * tokens. order: scratch of cuda_sort_scratch(count) numbers; backward leaves the indices of the
 * sorted tokens at its beginning. */
typedef struct EmbeddingRun {
    DType type;
    const int32_t *tokens;
    const float *w;
    void *y;
    const void *dy;
    float *dw;
    int32_t *order;
    /* number of tokens, of tokens of real samples, of columns */
    int64_t count, real, width;
    int64_t first, rows, vocab;
} EmbeddingRun;
cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run);
cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run);

/* layer_norm.cu. saved[row]: mean and inverse deviation. partial: scratch of cuda_row_parts(rows) x
 * 2 x width floats. Backward writes dscale, dshift and, unless it is NULL, dx; with `add` the
 * gradient is added to what dx holds. */
typedef struct LayerNormRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    const float *scale, *shift;
    float *dscale, *dshift, *saved, *partial;
    float eps;
    bool add;
    int64_t rows, real, width;
} LayerNormRun;
cudaError_t launch_layer_norm(cudaStream_t stream, LayerNormRun run);
cudaError_t launch_layer_norm_backward(cudaStream_t stream, LayerNormRun run);

/* dropout.cu: to = from * (kept ? scale : 0), for a channels-last image or a sample in plain order
 * (channels 1, pixels all). Element i of the slice is element i / run * stride + first + i % run of
 * the whole sample, which its random number depends on. */
typedef struct DropoutRun {
    DType type;
    const void *from;
    void *to;
    /* ids of the samples */
    const int64_t *sample;
    uint64_t seed, step, name;
    /* source of the step, read when the kernel runs; NULL: `step` is used */
    const StepNumbers *numbers;
    /* purpose: RNG_DROPOUT. cut: an element is kept where its 24 random bits are at least this. */
    uint32_t purpose, cut;
    float scale;
    int64_t samples, sample_elements, channels, pixels;
    int64_t run, stride, first;
} DropoutRun;
cudaError_t launch_dropout(cudaStream_t stream, DropoutRun run);

/* attention.cu: causal attention, see info_attention; samples from `real` on are not touched. Heads
 * have at most ATTENTION_WIDTH columns. With rotary positions, `angles` holds cosine and sine for
 * position t and pair i at 2 (t half + i), and `turned`, [samples, length, 2, heads, width], the
 * rotated queries and keys that are read in place of x's; both are NULL without. dots: scratch of
 * backward, like log_sum. */
enum { ATTENTION_WIDTH = 128 };
typedef struct AttentionRun {
    DType type;
    const void *x, *dy;
    void *y, *dx, *turned;
    const float *angles;
    /* log_sum: log of the sum of a query's exponentials; dots: product of its rows of dy and y.
     * [samples, heads, length] */
    float *log_sum, *dots;
    float scale;
    /* width: columns of a head */
    int64_t real, length, heads, width;
    /* first sample of a launch; set by the launchers */
    int64_t first;
} AttentionRun;
cudaError_t launch_attention_angles(cudaStream_t stream, float *angles, int64_t length,
                                    int64_t half);
cudaError_t launch_attention(cudaStream_t stream, AttentionRun run);
/* With `turned`, dx of queries and keys is the gradient of the rotated ones. */
cudaError_t launch_attention_backward(cudaStream_t stream, AttentionRun run);
/* Writes the rotated queries and keys to `turned`. */
cudaError_t launch_attention_turn(cudaStream_t stream, AttentionRun run);
/* Turns dx of the rotated queries and keys into that of x's, in place. */
cudaError_t launch_attention_turn_back(cudaStream_t stream, AttentionRun run);

/* reorder.cu: copies `from` to `to`, each channels last or plain, and converts the type. */
typedef struct ReorderRun {
    DType from_type, to_type;
    const void *from;
    void *to;
    bool from_last, to_last;
    int64_t samples, channels, pixels;
} ReorderRun;
cudaError_t launch_reorder(cudaStream_t stream, ReorderRun run);

/* pool.cu, channels last: x (samples, h, w, channels) -> y (samples, p, q, channels). place: index
 * of each maximum in its window, or POOL_CUT where relu has cut it off; NULL: the outputs are
 * averages over real pixels. Backward expects dy multiplied by relu's derivative. */
typedef struct PoolRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    uint8_t *place;
    bool relu;
    int kernel[2], stride[2], pad[2], h, w, p, q;
    int64_t samples, channels;
} PoolRun;
cudaError_t launch_pool(cudaStream_t stream, PoolRun run);
cudaError_t launch_pool_backward(cudaStream_t stream, PoolRun run);

/* batch_norm.cu: y = act((x - mean) inverse scale + shift + residual) over x (rows, channels),
 * where act is none, relu or relu6. The first `real` rows count, the others give 0.
 * launch_batch_norm writes saved.mean, .inverse and, in training, .variance (unbiased).
 * launch_batch_norm_sums writes .dy and .dy_x, the gradients of shift and scale; with a residual
 * and an activation it reads y and multiplies dy by the activation's derivative, in place. partial:
 * scratch of cuda_sum_parts(type, rows, channels) x 2 x channels doubles. */
typedef struct BatchNormSaved {
    float *mean, *inverse, *variance, *dy, *dy_x;
    /* factor: scale * inverse; shift: a copy, since backward has no parameters */
    float *factor, *shift;
} BatchNormSaved;
typedef struct BatchNormRun {
    DType type;
    Act act;
    bool training;
    /* residual: NULL if there is none */
    const void *x, *residual;
    void *y, *dy, *dx;
    const float *scale, *shift, *running_mean, *running_variance;
    BatchNormSaved saved;
    double *partial;
    float eps;
    int64_t rows, real, channels;
} BatchNormRun;
cudaError_t launch_batch_norm(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_sums(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_data(cudaStream_t stream, BatchNormRun run);
/* Copies the gradients of scale and shift and the batch's mean and variance from `saved` to
 * dw[0..3], `channels` numbers each. */
cudaError_t launch_batch_norm_weights(cudaStream_t stream, BatchNormRun run, float *const dw[4]);

/* loss.cu: x (rows, width), whose rows begin `stride` elements apart. Rows from `real` on get zero
 * columns and zero gradients, and so does each row's padding. For softmax_loss the columns of x are
 * logits first .. first + width of `classes`. */
typedef struct LossRun {
    DType type;
    const void *x;
    const int32_t *labels;
    const float *targets;
    /* output of forward: (rows, LOSS_COLUMNS) */
    float *columns;
    /* softmax_loss: log of the sum of a row's exponentials (rows); forward writes it, backward
     * reads it */
    float *log_sum;
    /* layout of x, and may be x; launch_softmax_loss writes the gradient, too, unless it is NULL */
    void *dx;
    float smoothing, scale;
    /* source of the loss scale, read when the kernel runs; NULL: `scale` is used */
    const StepNumbers *numbers;
    int64_t rows, real, width, stride, first, classes;
    /* bytes of shared memory for a row, from cuda_softmax_room */
    int64_t room;
} LossRun;
/* Writes how many bytes of a row softmax_loss may keep in shared memory on GPU `device`. */
cudaError_t cuda_softmax_room(int device, int64_t *bytes);
cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run);
cudaError_t launch_mse_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_mse_loss_backward(cudaStream_t stream, LossRun run);

/* softmax_sliced.cu: softmax_loss where each of `ranks` ranks has a slice of every row. Each rank's
 * results are gathered, rank by rank, into an array that all ranks have: first `truth`, the label's
 * logit, or 0 where another rank has it; then `part`, the LOSS_PART numbers that describe the
 * slice. launch_softmax_merge writes columns and log_sum, the same bits on all ranks. Nothing is
 * computed for rows from `real` on. */
enum { LOSS_PART = 5 };
typedef struct LossSlices {
    LossRun loss;
    int ranks;
    /* this rank's (rows), all ranks' (ranks, rows) */
    float *truth, *truths;
    /* this rank's (rows, LOSS_PART), all ranks' (ranks, rows, LOSS_PART) */
    float *part, *parts;
} LossSlices;
cudaError_t launch_softmax_truth(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_part(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_merge(cudaStream_t stream, LossSlices run);

#ifdef __cplusplus
}
#endif
#endif
