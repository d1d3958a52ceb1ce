/* Launchers of the CUDA kernels, which the C files call; cuda_loss_kernels.h has those of losses.
 * Each queues its kernels on `stream` and returns the error of the launch; n = 0 queues nothing.
 * All pointers are device memory unless a comment says otherwise. Every kernel gives the same bits
 * each time: none adds floating-point numbers by atomics, and the order of sums depends on shapes,
 * tokens, boxes and the number of real rows alone. In all structs, rows or samples with numbers
 * from `real` on are padding. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#define _Noreturn [[noreturn]] /* C++ lacks _Noreturn, and the public headers are C17. */
extern "C" {
#endif
#include "tensor.h"

/* How blocks cover a matrix (rows, columns): a block has `packs` threads along a row, each with a
 * few neighbouring elements, times `rows` threads along a column; `across` blocks side by side
 * cover all columns. */
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
/* Number of elements that a thread reads or writes with one access, in rows that begin `stride`
 * elements apart: 16 bytes, or one element if not all rows would be aligned to 16 bytes. */
static inline int cuda_pack_size(DType type, int64_t stride)
{
    int size = 16 / (int)dtype_bytes(type);
    return stride % size == 0 ? size : 1;
}
/* Number of parts that a sum over rows is divided into. If there are several, they have at most
 * CUDA_SUM_BLOCKS blocks in all, two for each of a large GPU's 132 processors, and each thread has
 * at least CUDA_SUM_ROWS rows. */
static inline int64_t cuda_sum_parts(DType type, int64_t rows, int64_t columns)
{
    CudaTile tile = cuda_tile(columns, cuda_pack_size(type, columns));
    int64_t parts_max = rows / (tile.rows * CUDA_SUM_ROWS), parts = CUDA_SUM_BLOCKS / tile.across;
    if (parts > parts_max) parts = parts_max;
    return parts > 1 ? parts : 1;
}

/* Number of parts of a sum over rows in a kernel that also writes its rows. Each block, not each
 * thread, has at least CUDA_SUM_ROWS rows, so that fewer rows are enough to use the whole GPU. */
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
    /* elements from the first element of one slice to that of the next, and elements of each
     * slice */
    int64_t stride, n;
} SlicesRun;
cudaError_t launch_add_slices(cudaStream_t stream, SlicesRun run);
cudaError_t launch_squares(cudaStream_t stream, double *out, const float *x, int64_t n);
cudaError_t launch_exact_squares(cudaStream_t stream, SquareSum *out, const float *x, int64_t n);
cudaError_t launch_exact_chunk_squares(cudaStream_t stream, SquareSum *out, const float *x,
                                       const FlatChunk *chunk, int64_t count);
cudaError_t launch_chunk_squares(cudaStream_t stream, double *out, const float *x,
                                 const FlatChunk *chunk, int64_t count);
cudaError_t launch_find_not_finite(cudaStream_t stream, float *found, const float *x, int64_t n);
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
cudaError_t launch_average(cudaStream_t stream, Average average, const UpdateNumbers *now,
                           const float *w, int64_t n);
cudaError_t launch_swap(cudaStream_t stream, float *a, float *b, int64_t n);

/* numbers.cu: see FlatTable. launch_put reads `from`, host memory, before it returns. */
cudaError_t launch_put(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_loss_sums(cudaStream_t stream, float *out, const float *columns, int64_t lines);
cudaError_t launch_range_sums(cudaStream_t stream, double *out, const double *x,
                              const int64_t *first, int count);
cudaError_t launch_join_squares(cudaStream_t stream, SquareSum *out, double *value,
                                const SquareSum *x, const int64_t *first, int count);
cudaError_t launch_clip(cudaStream_t stream, float *grad_scale, const double *squares, int count,
                        double limit);

/* activation.cu. launch_activation: y = act(x). launch_activation_backward: dx = dy * act'(at),
 * where `at` is y with ACT_FROM_Y, else x. factor: OpSpec.act_factor. launch_add_act: y = act(a +
 * b), act none, relu, relu6, gelu or silu. launch_convert: copies `from` to `to` in another type.
 * An output may be the memory of an input of the same type. `type` is fp32, bf16 or fp16. */
cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, float factor, void *y,
                              const void *x, int64_t n);
cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, float factor,
                                       void *dx, const void *dy, const void *at, int64_t n);
cudaError_t launch_add_act(cudaStream_t stream, DType type, Act act, void *y, const void *a,
                           const void *b, int64_t n);
cudaError_t launch_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                           const void *from, int64_t n);

/* dense.cu. Adds a row vector such as a bias: y[r] = act(x[r] + row) for the first `real` of `rows`
 * rows, zeros in the others. act is one of those of launch_add_act. y may be x. */
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

/* The gradient of an embedding sorts its tokens by digits of 8 bits (radix sort). Each block sorts
 * a tile of at least CUDA_SORT_TILE tokens; there are at most CUDA_SORT_BLOCKS tiles, because a
 * single block adds up the digit counts of all tiles. */
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

/* embedding.cu. w has rows first .. first + rows - 1 of the vocabulary. Forward: y[i] is the row of
 * tokens[i]; -0 if another rank has this row, NaN if the token is not in the vocabulary, and 0 from
 * token `real` on. Backward: each row of dw is the sum of dy over the row's tokens, in an order
 * that depends on the tokens alone; zero for a row without tokens. */
typedef struct EmbeddingRun {
    DType type;
    const int32_t *tokens;
    const float *w;
    void *y;
    const void *dy;
    float *dw;
    /* scratch of cuda_sort_scratch(count) numbers; backward leaves the indices of the sorted tokens
     * at its beginning */
    int32_t *order;
    /* number of tokens, of tokens of real samples, of columns */
    int64_t count, real, width;
    /* w has rows first .. first + rows - 1 of a vocabulary of `vocab` tokens */
    int64_t first, rows, vocab;
} EmbeddingRun;
cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run);
cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run);

/* layer_norm.cu. saved (rows, 2): mean and inverse standard deviation. partial: scratch of
 * cuda_row_parts(rows) x 2 x width floats. Backward writes dscale, dshift and, unless it is NULL,
 * dx; with `add`, the gradient is added to the values in dx. rms: rms_norm, whose mean counts as 0
 * and which has no shift; shift and dshift are NULL. */
typedef struct LayerNormRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    const float *scale, *shift;
    float *dscale, *dshift, *saved, *partial;
    float eps;
    bool add, rms;
    int64_t rows, real, width;
} LayerNormRun;
cudaError_t launch_layer_norm(cudaStream_t stream, LayerNormRun run);
cudaError_t launch_layer_norm_backward(cudaStream_t stream, LayerNormRun run);

/* swiglu.cu: y = silu(gate) up, where a row of x (rows, 2 width) has gate and then up. Backward
 * reads x and dy and writes dx. */
typedef struct SwigluRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    int64_t rows, width;
} SwigluRun;
cudaError_t launch_swiglu(cudaStream_t stream, SwigluRun run);
cudaError_t launch_swiglu_backward(cudaStream_t stream, SwigluRun run);

/* dropout.cu: to = from * (kept ? scale : 0), for channels-last images or samples in plain order
 * (one channel, all elements as pixels). A sample may be this rank's slice of a whole sample: its
 * element i, in plain order, is element i / run_elements * stride + first + i % run_elements of the
 * whole one, on which the random number depends. */
typedef struct DropoutRun {
    DType type;
    const void *from;
    void *to;
    /* ids of the samples */
    const int64_t *sample;
    uint64_t seed, step, name;
    /* source of the step, read when the kernel runs; NULL: `step` is used */
    const StepNumbers *numbers;
    /* purpose: RNG_DROPOUT. threshold: an element is kept if its 24 random bits are at least
     * this. */
    uint32_t purpose, threshold;
    float scale;
    int64_t samples, sample_elements, channels, pixels;
    int64_t run_elements, stride, first;
    /* true: the random numbers are those of channels, not of elements */
    bool whole_channels;
} DropoutRun;
cudaError_t launch_dropout(cudaStream_t stream, DropoutRun run);

/* attention.cu: attention, see info_attention; samples from `real` on are neither read nor written.
 * Heads have at most ATTENTION_WIDTH columns. */
enum { ATTENTION_WIDTH = 128 };
typedef struct AttentionRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    /* With rotary positions, else NULL. rotated: the rotated queries and keys, which are read in
     * place of those in x, [samples, length, heads + kv_heads, width]. angles: cosine and sine for
     * position t and pair i, at 2 (t width / 2 + i). */
    void *rotated;
    const float *angles;
    /* [samples, heads, length]. log_sum: log of the sum of a query's exponentials, written by
     * forward and read by backward. dots: scratch of backward for the product of a query's rows of
     * dy and y. */
    float *log_sum, *dots;
    /* factor of the scores */
    float scale;
    /* true: a query attends to all keys; false: to its own and those before it, at most `window` of
     * them */
    bool full;
    int64_t window;
    /* heads: of queries; kv_heads: of keys and of values, a divisor of heads; width: columns of a
     * head */
    int64_t real, length, heads, kv_heads, width;
    /* first sample of a launch; set by the launchers */
    int64_t first;
} AttentionRun;
/* Angular speeds of the pairs of a head, and the factor on cosines and sines (rotary_speeds). */
typedef struct RotarySpeeds {
    double speed[ATTENTION_WIDTH / 2], gain;
} RotarySpeeds;
cudaError_t launch_attention_angles(cudaStream_t stream, float *angles, int64_t length,
                                    int64_t half, RotarySpeeds speeds);
cudaError_t launch_attention(cudaStream_t stream, AttentionRun run);
/* With `rotated`, writes the gradients of the rotated queries and keys to dx. */
cudaError_t launch_attention_backward(cudaStream_t stream, AttentionRun run);
/* Writes the rotated queries and keys to `rotated`. */
cudaError_t launch_attention_rotate(cudaStream_t stream, AttentionRun run);
/* Computes the gradients of x's queries and keys from those of the rotated ones, in place in dx. */
cudaError_t launch_attention_rotate_back(cudaStream_t stream, AttentionRun run);

/* reorder.cu: copies `from` to `to` and converts the type. from_last, to_last: channels last; else
 * plain. */
typedef struct ReorderRun {
    DType from_type, to_type;
    const void *from;
    void *to;
    bool from_last, to_last;
    int64_t samples, channels, pixels;
} ReorderRun;
cudaError_t launch_reorder(cudaStream_t stream, ReorderRun run);

/* pool.cu, channels last: x (samples, h, w, channels) -> y (samples, p, q, channels). For averages,
 * backward expects dy multiplied by relu's derivative; for maxima it skips outputs with
 * POOL_CUT. */
typedef struct PoolRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    /* index of each maximum in its window, or POOL_CUT if relu has set the output to 0; NULL: the
     * outputs are averages over the pixels inside the image */
    uint8_t *max_index;
    bool relu;
    int kernel[2], stride[2], pad[2], h, w, p, q;
    int64_t samples, channels;
} PoolRun;
cudaError_t launch_pool(cudaStream_t stream, PoolRun run);
cudaError_t launch_pool_backward(cudaStream_t stream, PoolRun run);

/* pad.cu, channels last: x (samples, size[0], size[1], channels) -> y (samples, out[0], out[1],
 * channels), with low[0] rows above x and low[1] columns on its left. Forward reads x and writes y;
 * backward reads dy and writes dx. */
typedef struct PadRun {
    DType type;
    const void *from;
    void *to;
    PadMode mode[2];
    int low[2], size[2], out[2];
    int64_t samples, channels;
} PadRun;
cudaError_t launch_pad(cudaStream_t stream, PadRun run);
cudaError_t launch_pad_backward(cudaStream_t stream, PadRun run);

/* pixel_shuffle.cu, channels last: x (samples, h, w, channels scale^2) -> y (samples, h scale, w
 * scale, channels). Reads x and writes y, or with `back` reads dy and writes dx. */
typedef struct ShuffleRun {
    DType type;
    const void *from;
    void *to;
    bool back;
    int scale, h, w;
    int64_t samples, channels;
} ShuffleRun;
cudaError_t launch_pixel_shuffle(cudaStream_t stream, ShuffleRun run);

/* upsample.cu, channels last: x (samples, h, w, channels) -> y (samples, h scale, w scale,
 * channels). Forward reads x and writes y; backward reads dy and writes dx. */
typedef struct UpsampleRun {
    DType type;
    UpsampleMode mode;
    bool align_corners;
    const void *from;
    void *to;
    int scale, h, w;
    int64_t samples, channels;
} UpsampleRun;
cudaError_t launch_upsample(cudaStream_t stream, UpsampleRun run);
cudaError_t launch_upsample_backward(cudaStream_t stream, UpsampleRun run);

/* batch_norm.cu: y = act((x - mean) inverse scale + shift + residual) over x (rows, channels),
 * where act is none, relu or relu6. Rows from `real` on do not count in the statistics, and their y
 * is 0. launch_batch_norm writes saved.mean, .inverse, .factor, .shift and, in training, .variance
 * (unbiased). launch_batch_norm_sums writes .dy and .dy_x, the gradients of shift and scale; with a
 * residual and an activation it reads y and multiplies dy by the activation's derivative, in
 * place. */
typedef struct BatchNormSaved {
    float *mean, *inverse, *variance, *dy, *dy_x;
    /* factor: scale * inverse; shift: a copy, because backward_begin gets no parameters */
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
    /* scratch of cuda_sum_parts(type, rows, channels) x 2 x channels */
    double *partial;
    float eps;
    int64_t rows, real, channels;
} BatchNormRun;
cudaError_t launch_batch_norm(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_sums(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_data(cudaStream_t stream, BatchNormRun run);
/* Copies the gradients of scale and shift and the batch's mean and variance from `saved` to
 * dw[0..3], `channels` numbers each. With fewer than two real rows, mean and variance are zeros. */
cudaError_t launch_batch_norm_weights(cudaStream_t stream, BatchNormRun run, float *const dw[4]);

/* group_norm.cu, channels last: y = act((x - mean) inverse scale + shift) over x (samples, pixels,
 * channels), where act is none, relu or relu6, and mean and variance are those of a group of
 * neighbouring channels of a sample. scale and shift NULL: 1 and 0. y and dx of padded samples are
 * 0. launch_group_norm_sums writes saved.dy, .dy_x, .by_x and .constant, launch_group_norm the
 * others. */
typedef struct GroupNormSaved {
    /* arrays (samples, channels). factor: scale * inverse; dy, dy_x: sums of dy and of dy times the
     * normalised x; dx = factor dy + by_x (x - mean) + constant, with dy times act's slope */
    float *mean, *inverse, *factor, *shift, *dy, *dy_x, *by_x, *constant;
} GroupNormSaved;
typedef struct GroupNormRun {
    DType type;
    Act act;
    const void *x, *dy;
    void *y, *dx;
    const float *scale, *shift;
    GroupNormSaved saved;
    /* scratch of samples x cuda_sum_parts(type, pixels, channels) x 2 x channels */
    double *partial;
    float eps;
    int64_t samples, real, pixels, channels, groups;
} GroupNormRun;
cudaError_t launch_group_norm(cudaStream_t stream, GroupNormRun run);
cudaError_t launch_group_norm_sums(cudaStream_t stream, GroupNormRun run);
cudaError_t launch_group_norm_data(cudaStream_t stream, GroupNormRun run);
/* Writes the gradients of scale and shift, `channels` numbers each. */
cudaError_t launch_group_norm_weights(cudaStream_t stream, GroupNormRun run, float *dscale,
                                      float *dshift);

/* film.cu, channels last: y = x (1 + s) + t over x (samples, pixels, channels), where `by`
 * (samples, 2 channels) has s and then t of each sample. y, dx and dby of padded samples are 0.
 * launch_film_sums writes dby, launch_film_data dx, which may be dy. */
typedef struct FilmRun {
    DType type;
    const void *x, *by, *dy;
    void *y, *dx, *dby;
    /* scratch of samples x cuda_sum_parts(type, pixels, channels) x 2 x channels */
    double *partial;
    int64_t samples, real, pixels, channels;
} FilmRun;
cudaError_t launch_film(cudaStream_t stream, FilmRun run);
cudaError_t launch_film_sums(cudaStream_t stream, FilmRun run);
cudaError_t launch_film_data(cudaStream_t stream, FilmRun run);

/* channel_sum.cu, channels last: to (pixels, channels). Channel c is shift[c] plus the sum of terms
 * first[c] .. first[c + 1] - 1; a term is a factor times a channel of one of the arrays `from`. */
typedef struct ChannelTable {
    const int32_t *first;
    const float *shift;
    const ChannelTerm *term;
} ChannelTable;
typedef struct ChannelSumRun {
    DType type;
    const void *from[SPEC_INPUTS];
    int64_t from_channels[SPEC_INPUTS];
    void *to;
    ChannelTable table;
    int64_t pixels, channels;
} ChannelSumRun;
/* Copies tables of `bytes` bytes from host memory, which is read before the call returns. */
cudaError_t launch_channel_tables(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_channel_sum(cudaStream_t stream, ChannelSumRun run);

#ifdef __cplusplus
}
#endif
#endif
