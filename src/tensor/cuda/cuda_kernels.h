/* Launchers of the CUDA kernels, as the C files call them. Each queues one kernel on `stream` and
 * returns the launch's error; n = 0 queues nothing. All pointers are device memory. Every kernel
 * gives the same bits each time: no floating point atomics, and sums in an order that depends on
 * the shape alone. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#define _Noreturn [[noreturn]] /* the public headers are C17 */
extern "C" {
#endif
#include "tensor.h"

/* How a block lies on (rows, columns): `packs` threads side by side with so many elements each,
 * `rows` threads deep; `across` blocks take all columns. */
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
/* Elements of `type` that one access of a thread moves in rows `stride` elements long: one, where
 * packs would not fit them. */
static inline int cuda_pack(DType type, int64_t stride)
{
    int most = 16 / (int)dtype_bytes(type);
    return stride % most == 0 ? most : 1;
}
/* Sums over rows are taken in so many parts: two blocks for each of a large GPU's processors, of at
 * least CUDA_SUM_ROWS rows a thread. */
static inline int64_t cuda_sum_parts(DType type, int64_t rows, int64_t columns)
{
    CudaTile tile = cuda_tile(columns, cuda_pack(type, columns));
    int64_t most = rows / (tile.rows * CUDA_SUM_ROWS), parts = CUDA_SUM_BLOCKS / tile.across;
    if (parts > most) parts = most;
    return parts > 1 ? parts : 1;
}

/* Those of a sum whose rows are also written: of at least CUDA_SUM_ROWS rows a block, so that few
 * rows fill a GPU, too. */
static inline int64_t cuda_row_parts(int64_t rows)
{
    int64_t parts = rows / CUDA_SUM_ROWS;
    if (parts > CUDA_SUM_BLOCKS) parts = CUDA_SUM_BLOCKS;
    return parts > 1 ? parts : 1;
}

/* flat.cu: see FlatTable */
cudaError_t launch_fill(cudaStream_t stream, float *to, float value, int64_t n);
cudaError_t launch_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n);
cudaError_t launch_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                             int64_t n);
typedef struct SlicesRun {
    DType type;
    void *out;
    const void *slices;
    int count;
    /* elements */
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
    /* false: out is w, updated; true: out takes LAMB's direction */
    bool direction;
    float *out;
    const float *w, *g;
    float *m, *v;
    int64_t n;
} AdamRun;
cudaError_t launch_adam(cudaStream_t stream, AdamRun run);

/* numbers.cu: see FlatTable. from is host memory, read before the call returns */
cudaError_t launch_put(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_loss_sums(cudaStream_t stream, float *out, const float *columns, int64_t lines);
cudaError_t launch_range_sums(cudaStream_t stream, double *out, const double *x,
                              const int64_t *first, int count);
cudaError_t launch_clip(cudaStream_t stream, float *grad_scale, const double *squares, int count,
                        double limit);

/* activation.cu: y = act(x); dx = dy * act'(.), where `at` is y for relu and relu6, and x for gelu
 * and silu. y = act(a + b). In place allowed. to = from as another type. Activations are of `type`:
 * fp32, bf16 or fp16. */
cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, void *y, const void *x,
                              int64_t n);
cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, void *dx,
                                       const void *dy, const void *at, int64_t n);
cudaError_t launch_add_act(cudaStream_t stream, DType type, Act act, void *y, const void *a,
                           const void *b, int64_t n);
cudaError_t launch_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                           const void *from, int64_t n);

/* dense.cu. Row vectors: y[r] = act(x[r] + row) for the first `real` of `rows` rows, zeros behind
 * them. y may be x. */
typedef struct AddRowRun {
    DType type;
    Act act;
    const void *x;
    void *y;
    const float *row;
    int64_t rows, real, columns;
} AddRowRun;
cudaError_t launch_add_row(cudaStream_t stream, AddRowRun run);
/* out[columns] = sum of dy (rows, columns) over rows, `stride` elements from a row to the next; by
 * cuda_sum_parts(type, rows, stride) parts, for which partial has so many x columns floats (none
 * where it is one part). */
cudaError_t launch_column_sum(cudaStream_t stream, DType type, float *out, float *partial,
                              const void *dy, int64_t rows, int64_t columns, int64_t stride);

/* The gradient of an embedding sorts its tokens by digits of 8 bits: tiles of so many tokens, a
 * block each; at most 512 of them, whose digits one block adds up. */
enum { CUDA_SORT_DIGITS = 256, CUDA_SORT_TILE = 1024, CUDA_SORT_BLOCKS = 512 };
static inline int64_t cuda_sort_tile(int64_t tokens)
{
    int64_t tile = (tokens + CUDA_SORT_BLOCKS - 1) / CUDA_SORT_BLOCKS;
    if (tile < CUDA_SORT_TILE) tile = CUDA_SORT_TILE;
    return (tile + CUDA_THREADS - 1) / CUDA_THREADS * CUDA_THREADS;
}
/* Number of int32 elements of EmbeddingRun's scratch; a run may sort fewer tokens than it has room
 * for. */
static inline int64_t cuda_sort_scratch(int64_t tokens)
{
    int64_t blocks = (tokens + CUDA_SORT_TILE - 1) / CUDA_SORT_TILE;
    if (blocks > CUDA_SORT_BLOCKS) blocks = CUDA_SORT_BLOCKS;
    return 2 * tokens + blocks * CUDA_SORT_DIGITS;
}

/* embedding.cu: y[i] = w[tokens[i]], zeros from `real` tokens on and for rows that other ranks have
 * (rows first .. first + rows of the vocabulary are here); dw: a row's sum over its tokens, in an
 * order that the tokens decide, zero where it has none. order: scratch, cuda_sort_scratch(count)
 * numbers; backward leaves the sorted tokens' indices at its beginning */
typedef struct EmbeddingRun {
    DType type;
    const int32_t *tokens;
    const float *w;
    void *y;
    const void *dy;
    float *dw;
    int32_t *order;
    /* tokens, those of real samples, columns */
    int64_t count, real, width;
    int64_t first, rows, vocab;
} EmbeddingRun;
cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run);
cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run);

/* layer_norm.cu: saved[row] = mean, inverse deviation; partial has cuda_row_parts(rows) x 2 x width
 * floats. backward: dx (unless it is NULL), to which with `add` the gradient is added, and dscale,
 * dshift. */
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

/* dropout.cu: to = from * (drawn ? scale : 0), an image's channels last or a sample as it lies
 * (channels 1, pixels all). What is drawn is of element i / run * stride + first + i % run of the
 * whole sample. */
typedef struct DropoutRun {
    DType type;
    const void *from;
    void *to;
    /* ids */
    const int64_t *sample;
    uint64_t seed, step, name;
    /* or NULL: step holds */
    const StepNumbers *numbers;
    /* RNG_DROPOUT; drawn where 24 random bits are at least cut */
    uint32_t purpose, cut;
    float scale;
    int64_t samples, sample_elements, channels, pixels;
    int64_t run, stride, first;
} DropoutRun;
cudaError_t launch_dropout(cudaStream_t stream, DropoutRun run);

/* attention.cu: see info_attention; samples from `real` on are not touched. angles: cosine, sine of
 * position t and pair i at 2 (t half + i). turned: [samples, length, 2, heads, width], queries and
 * keys turned by them, in the place of x's. Both NULL without rotary positions. Heads of at most
 * ATTENTION_WIDTH columns. dots: scratch of backward, as long as log_sum. */
enum { ATTENTION_WIDTH = 128 };
typedef struct AttentionRun {
    DType type;
    const void *x, *dy;
    void *y, *dx, *turned;
    const float *angles;
    /* [samples, heads, length] */
    float *log_sum, *dots;
    float scale;
    /* width: of a head */
    int64_t real, length, heads, width;
    /* sample of a launch; not the caller's to set */
    int64_t first;
} AttentionRun;
cudaError_t launch_attention_angles(cudaStream_t stream, float *angles, int64_t length,
                                    int64_t half);
cudaError_t launch_attention(cudaStream_t stream, AttentionRun run);
/* dx of queries and keys is that of turned ones, where there are. */
cudaError_t launch_attention_backward(cudaStream_t stream, AttentionRun run);
/* Fills `turned`. */
cudaError_t launch_attention_turn(cudaStream_t stream, AttentionRun run);
/* dx of turned queries and keys becomes x's, in place. */
cudaError_t launch_attention_turn_back(cudaStream_t stream, AttentionRun run);

/* reorder.cu: to = from, of which channels lie last or not, as another type */
typedef struct ReorderRun {
    DType from_type, to_type;
    const void *from;
    void *to;
    bool from_last, to_last;
    int64_t samples, channels, pixels;
} ReorderRun;
cudaError_t launch_reorder(cudaStream_t stream, ReorderRun run);

/* pool.cu: channels last; x (samples, h, w, channels) -> y (samples, p, q, channels). place: of
 * each maximum in its window, or POOL_CUT where relu has cut it off; NULL: averages over real
 * pixels. dy as relu has left it. */
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

/* batch_norm.cu: over x (rows, channels), of which `real` rows count and the others give 0; act:
 * none, relu, relu6. launch_batch_norm writes mean, inverse and variance (unbiased; not without
 * training), launch_batch_norm_sums dy and dy_x: the gradients of shift and scale. With a residual
 * and an activation it reads y and multiplies dy by the derivative, in place. partial:
 * cuda_sum_parts(type, rows, channels) x 2 x channels. y = act((x - mean) inverse scale + shift +
 * residual). */
typedef struct BatchNormSaved {
    float *mean, *inverse, *variance, *dy, *dy_x;
    /* scale inverse, and shift: backward has no parameters */
    float *factor, *shift;
} BatchNormSaved;
typedef struct BatchNormRun {
    DType type;
    Act act;
    bool training;
    /* residual: or NULL */
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
/* dw: of scale, shift, running mean and variance, `channels` of each, from what is saved. */
cudaError_t launch_batch_norm_weights(cudaStream_t stream, BatchNormRun run, float *const dw[4]);

/* loss.cu: x (rows, width), its rows `stride` elements apart; rows beyond `real` get zero columns
 * and zero gradients, and so do a row's elements beyond its width. softmax: they are logits first
 * .. first + width of `classes` */
typedef struct LossRun {
    DType type;
    const void *x;
    const int32_t *labels;
    const float *targets;
    /* forward: (rows, LOSS_COLUMNS) */
    float *columns;
    /* softmax: (rows), log of the sum of exponentials; forward writes, backward reads */
    float *log_sum;
    /* like x; may be x. launch_softmax_loss writes it, too, where it is not NULL */
    void *dx;
    float smoothing, scale;
    /* or NULL: scale holds */
    const StepNumbers *numbers;
    int64_t rows, real, width, stride, first, classes;
    /* cuda_softmax_room's */
    int64_t room;
} LossRun;
/* Bytes in which softmax_loss may keep a row in shared memory on GPU `device`. */
cudaError_t cuda_softmax_room(int device, int64_t *bytes);
cudaError_t launch_softmax_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_softmax_loss_backward(cudaStream_t stream, LossRun run);
cudaError_t launch_mse_loss(cudaStream_t stream, LossRun run);
cudaError_t launch_mse_loss_backward(cudaStream_t stream, LossRun run);

/* softmax_sliced.cu: softmax_loss where each of `ranks` ranks has a slice of every row. What one
 * brings is gathered, rank by rank, into what all have: first `truth`, the label's logit, or 0
 * where it is another's; then `part`, LOSS_PART numbers that are known of its slice. merge gives
 * columns and log_sum, the same bits on all ranks. Of rows beyond `real` nothing is brought. */
enum { LOSS_PART = 5 };
typedef struct LossSlices {
    LossRun loss;
    int ranks;
    /* (rows), (ranks, rows) */
    float *truth, *truths;
    /* (rows, LOSS_PART), (ranks, rows, LOSS_PART) */
    float *part, *parts;
} LossSlices;
cudaError_t launch_softmax_truth(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_part(cudaStream_t stream, LossSlices run);
cudaError_t launch_softmax_merge(cudaStream_t stream, LossSlices run);

#ifdef __cplusplus
}
#endif
#endif
