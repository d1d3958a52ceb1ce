/* Launchers of the CUDA kernels, which the C files call; the launchers of losses are in
 * loss/cuda_loss_kernels.h. A launcher queues its kernels on `stream` and returns the error of the
 * launch; n = 0 queues nothing. All pointers are device memory unless a comment says otherwise.
 * Every kernel gives the same bits each time: none adds floating-point numbers by atomics, and the
 * order of a sum depends on shapes, tokens, boxes and the number of real rows alone. In each ...Run
 * struct, `type` is the type of the activations and their gradients. Fields of the same name have
 * the same meaning: x and y are an operation's input and output; dx, dy and dw are gradients;
 * `real` is the number of rows (or samples, tokens) that are not padding, which come first. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#define _Noreturn [[noreturn]] /* C++ lacks _Noreturn, and the public headers are C17. */
extern "C" {
#endif
#include "tensor.h"

/* How thread blocks cover a matrix (rows, columns). A block has packs x rows threads: `packs`
 * threads along a row, of which each has a few neighbouring elements, and `rows` threads along a
 * column. `across` blocks next to each other cover all columns. */
typedef struct CudaTile {
    int64_t packs, rows, across;
} CudaTile;
/* CUDA_THREADS: threads of a block in most kernels. CUDA_SUM_BLOCKS, CUDA_SUM_ROWS: see
 * cuda_sum_parts. */
enum { CUDA_THREADS = 256, CUDA_SUM_BLOCKS = 264, CUDA_SUM_ROWS = 16 };
/* Returns the tile for a matrix with `columns` columns. elements: elements of a thread. */
static inline CudaTile cuda_tile(int64_t columns, int elements)
{
    int64_t packs = (columns + elements - 1) / elements,
            across = (packs + CUDA_THREADS - 1) / CUDA_THREADS;
    packs = (packs + across - 1) / across;
    return (CudaTile){packs, CUDA_THREADS / packs, across};
}
/* Returns the number of elements that a thread reads or writes with one access, in rows that begin
 * `stride` elements apart. An access has 16 bytes if all rows are then aligned to 16 bytes;
 * otherwise it has 1 element. */
static inline int cuda_pack_size(DType type, int64_t stride)
{
    int size = 16 / (int)dtype_bytes(type);
    return stride % size == 0 ? size : 1;
}
/* Returns the number of parts into which a sum over rows is divided. If there are several parts,
 * they have at most CUDA_SUM_BLOCKS blocks in all, which is two for each of the 132 multiprocessors
 * of a large GPU, and each thread has at least CUDA_SUM_ROWS rows. */
static inline int64_t cuda_sum_parts(DType type, int64_t rows, int64_t columns)
{
    CudaTile tile = cuda_tile(columns, cuda_pack_size(type, columns));
    int64_t parts_max = rows / (tile.rows * CUDA_SUM_ROWS), parts = CUDA_SUM_BLOCKS / tile.across;
    if (parts > parts_max) parts = parts_max;
    return parts > 1 ? parts : 1;
}

/* Returns the number of parts of a sum over rows in a kernel that also writes rows. If there are
 * several parts, each block (in cuda_sum_parts: each thread) has at least CUDA_SUM_ROWS rows, so
 * that fewer rows are enough to use the whole GPU. */
static inline int64_t cuda_row_parts(int64_t rows)
{
    int64_t parts = rows / CUDA_SUM_ROWS;
    if (parts > CUDA_SUM_BLOCKS) parts = CUDA_SUM_BLOCKS;
    return parts > 1 ? parts : 1;
}

/* flat.cu; update.cu: launch_sgd, launch_adam and launch_average. FlatTable (tensor/flat.h)
 * describes these functions. */
cudaError_t launch_fill(cudaStream_t stream, float *to, float value, int64_t n);
cudaError_t launch_add(cudaStream_t stream, float *out, const float *a, const float *b, int64_t n);
cudaError_t launch_scale_add(cudaStream_t stream, float *y, float alpha, const float *x, float beta,
                             int64_t n);
typedef struct SlicesRun {
    DType type;
    void *out;
    const void *slices;
    /* number of slices */
    int count;
    /* elements from the beginning of one slice to the beginning of the next */
    int64_t stride;
    /* elements of each slice */
    int64_t n;
} SlicesRun;
cudaError_t launch_add_slices(cudaStream_t stream, SlicesRun run);
cudaError_t launch_squares(cudaStream_t stream, double *out, const float *x, int64_t n);
cudaError_t launch_exact_squares(cudaStream_t stream, SquareSum *out, const float *x, int64_t n);
cudaError_t launch_exact_chunk_squares(cudaStream_t stream, SquareSum *out, const float *x,
                                       const FlatChunk *chunk, int64_t count);
cudaError_t launch_chunk_squares(cudaStream_t stream, double *out, const float *x,
                                 const FlatChunk *chunk, int64_t count);
cudaError_t launch_find_not_finite(cudaStream_t stream, float *found, const float *x, int64_t n);
cudaError_t launch_sgd(cudaStream_t stream, SgdArgs a, const UpdatePiece *piece, int count);
/* u: NULL: updates the weights; else writes LAMB's direction of the only piece to u */
cudaError_t launch_adam(cudaStream_t stream, AdamArgs a, float *u, const UpdatePiece *piece,
                        int count);
cudaError_t launch_average(cudaStream_t stream, Average average, const UpdateNumbers *numbers,
                           const float *w, int64_t n);
cudaError_t launch_swap(cudaStream_t stream, float *a, float *b, int64_t n);

/* numbers.cu. FlatTable describes these functions. `from` of launch_put is host memory, which is
 * read before the call returns. */
cudaError_t launch_put(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_loss_sums(cudaStream_t stream, float *out, const float *results, int64_t lines);
cudaError_t launch_range_sums(cudaStream_t stream, double *out, const double *x,
                              const int64_t *first, int count);
cudaError_t launch_join_squares(cudaStream_t stream, SquareSum *out, double *value,
                                const SquareSum *x, const int64_t *first, int count);
cudaError_t launch_clip(cudaStream_t stream, float *grad_scale, const double *squares, int count,
                        double limit);

/* activation.cu. launch_activation: y = act(x). launch_activation_backward: dx = dy * act'(at),
 * where `at` is y if the activation has ACT_FROM_Y, else x. factor: OpSpec.act_factor.
 * launch_add_act: y = act(a + b), where `act` is none, relu, relu6, gelu or silu. launch_convert:
 * copies `from` to `to` in another type. An output may be the memory of an input of the same type.
 * type: fp32, bf16 or fp16. */
cudaError_t launch_activation(cudaStream_t stream, DType type, Act act, float factor, void *y,
                              const void *x, int64_t n);
cudaError_t launch_activation_backward(cudaStream_t stream, DType type, Act act, float factor,
                                       void *dx, const void *dy, const void *at, int64_t n);
cudaError_t launch_add_act(cudaStream_t stream, DType type, Act act, void *y, const void *a,
                           const void *b, int64_t n);
cudaError_t launch_convert(cudaStream_t stream, DType to_type, void *to, DType from_type,
                           const void *from, int64_t n);

/* dense/dense.cu. Adds a row vector such as a bias to each row r of x (rows, columns): y[r] =
 * act(x[r] + row) for real rows, 0 for padding. act: as in launch_add_act. y may be x. */
typedef struct AddRowRun {
    DType type;
    Act act;
    const void *x;
    void *y;
    /* the row vector, [columns] */
    const float *row;
    int64_t rows, real, columns;
} AddRowRun;
cudaError_t launch_add_row(cudaStream_t stream, AddRowRun run);
/* Sets out[columns] to the sum of dy (rows, columns) over its rows, which begin `stride` elements
 * apart. The sum has cuda_sum_parts(type, rows, stride) parts. partial: scratch of parts x columns
 * floats; not used if there is one part. */
cudaError_t launch_column_sum(cudaStream_t stream, DType type, float *out, float *partial,
                              const void *dy, int64_t rows, int64_t columns, int64_t stride);

/* The gradient of an embedding sorts its tokens by digits of 8 bits (radix sort). Each block sorts
 * a tile of at least CUDA_SORT_TILE tokens. There are at most CUDA_SORT_BLOCKS tiles, because one
 * block adds up the counts of the digits in all tiles. */
enum { CUDA_SORT_DIGITS = 256, CUDA_SORT_TILE = 1024, CUDA_SORT_BLOCKS = 512 };
/* Returns the number of tokens in a tile, if there are `tokens` tokens. */
static inline int64_t cuda_sort_tile(int64_t tokens)
{
    int64_t tile = (tokens + CUDA_SORT_BLOCKS - 1) / CUDA_SORT_BLOCKS;
    if (tile < CUDA_SORT_TILE) tile = CUDA_SORT_TILE;
    return (tile + CUDA_THREADS - 1) / CUDA_THREADS * CUDA_THREADS;
}
/* Returns the number of int32 elements of EmbeddingRun.order for up to `tokens` tokens. */
static inline int64_t cuda_sort_scratch(int64_t tokens)
{
    int64_t blocks = (tokens + CUDA_SORT_TILE - 1) / CUDA_SORT_TILE;
    if (blocks > CUDA_SORT_BLOCKS) blocks = CUDA_SORT_BLOCKS;
    return 2 * tokens + blocks * CUDA_SORT_DIGITS;
}

/* embedding.cu. Forward: y[i] is the row of tokens[i]; all -0 if another rank has this row, NaN if
 * the token is not in the vocabulary, 0 for padding. Backward: each row of dw is the sum of dy over
 * the row's tokens, in an order that depends on the tokens alone; 0 for a row without tokens. */
typedef struct EmbeddingRun {
    DType type;
    const int32_t *tokens;
    const float *w;
    void *y;
    const void *dy;
    float *dw;
    /* scratch of backward, [cuda_sort_scratch(count)]; backward leaves the indices of the sorted
     * tokens at its beginning */
    int32_t *order;
    /* count: number of tokens, with padding; real: number of tokens of real samples; width: columns
     * of w */
    int64_t count, real, width;
    /* w (rows, width) has rows first .. first + rows - 1 of a vocabulary of `vocab` tokens */
    int64_t first, rows, vocab;
} EmbeddingRun;
cudaError_t launch_embedding(cudaStream_t stream, EmbeddingRun run);
cudaError_t launch_embedding_backward(cudaStream_t stream, EmbeddingRun run);

/* norm/layer_norm.cu: x and y (rows, width). saved (rows, 2): mean and inverse standard deviation;
 * forward writes them, backward reads them. partial: scratch of cuda_row_parts(rows) x 2 x width
 * floats. Backward writes dscale, dshift and, unless it is NULL, dx. add: the gradient is added to
 * the values in dx. rms: the operation is rms_norm, whose mean counts as 0 and which has no shift,
 * so that `shift` and `dshift` are NULL. */
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

/* swiglu.cu: y = silu(gate) * up. A row of x (rows, 2 width) has the gate and then the numbers
 * `up`. Backward reads x and dy and writes dx. */
typedef struct SwigluRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    int64_t rows, width;
} SwigluRun;
cudaError_t launch_swiglu(cudaStream_t stream, SwigluRun run);
cudaError_t launch_swiglu_backward(cudaStream_t stream, SwigluRun run);

/* dropout.cu: to = from * (kept ? scale : 0), for channels-last images, or for samples in plain
 * order (one channel, all elements as pixels). A sample may be this rank's slice of a complete
 * sample. Element i of the slice, in plain order, is element i / run_elements * stride + first + i
 * % run_elements of the complete sample. The random number depends on the index in the complete
 * sample. */
typedef struct DropoutRun {
    DType type;
    const void *from;
    void *to;
    /* ids of the samples, [samples] */
    const int64_t *sample;
    /* name: hash of the node's name (OpSpec.seed_name) */
    uint64_t seed, step, name;
    /* source of the step, read when the kernel runs; NULL: `step` is used */
    const StepNumbers *numbers;
    /* purpose of the random numbers: RNG_DROPOUT */
    uint32_t purpose;
    /* an element is kept if its 24 random bits are at least this number */
    uint32_t threshold;
    float scale;
    int64_t samples, sample_elements, channels, pixels;
    int64_t run_elements, stride, first;
    /* true: all elements of a channel share a random number; false: each element has its own */
    bool by_channel;
} DropoutRun;
cudaError_t launch_dropout(cudaStream_t stream, DropoutRun run);

/* attention/attention.cu: attention, as info_attention (op_info.c) describes it. Padded samples are
 * neither read nor written. Heads have at most ATTENTION_WIDTH columns. */
enum { ATTENTION_WIDTH = 128 };
typedef struct AttentionRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    /* rotary positions: the rotated queries and keys, (samples, length, heads + kv_heads, width),
     * which are read in place of the queries and keys in x; NULL: no rotary positions */
    void *rotated;
    /* rotary positions: cosine and sine for position t and pair i, at 2 (t width / 2 + i) */
    const float *cos_sin;
    /* log of the sum of each query's exponentials, (samples, heads, length); forward writes it,
     * backward reads it */
    float *log_sum;
    /* scratch of backward: dot product of each query's dy and y, (samples, heads, length) */
    float *dots;
    /* factor of the scores */
    float scale;
    /* true: a query attends to all keys; false: only to its own key and the keys before it */
    bool full;
    /* if `full` is false: largest number of keys to which a query attends */
    int64_t window;
    /* length: tokens of a sample; heads: heads of queries; kv_heads: heads of keys and of values,
     * a divisor of `heads`; width: columns of a head */
    int64_t real, length, heads, kv_heads, width;
    /* first sample of a launch; set by the launchers */
    int64_t first;
} AttentionRun;
/* speed: angular speed of each pair of columns of a head; gain: factor of all cosines and sines
 * (rotary_speeds). */
typedef struct RotarySpeeds {
    double speed[ATTENTION_WIDTH / 2], gain;
} RotarySpeeds;
/* Writes AttentionRun.cos_sin. half: pairs of a head, width / 2. */
cudaError_t launch_rotary_table(cudaStream_t stream, float *cos_sin, int64_t length, int64_t half,
                                RotarySpeeds speeds);
cudaError_t launch_attention(cudaStream_t stream, AttentionRun run);
/* Writes dx; with rotary positions, the gradients of the rotated queries and keys. */
cudaError_t launch_attention_backward(cudaStream_t stream, AttentionRun run);
/* Writes the rotated queries and keys to `rotated`. */
cudaError_t launch_attention_rotate(cudaStream_t stream, AttentionRun run);
/* Rotates the gradients of the rotated queries and keys in dx back, in place: they become the
 * gradients of the queries and keys in x. */
cudaError_t launch_attention_rotate_back(cudaStream_t stream, AttentionRun run);

/* reorder.cu: copies `from` to `to`, and converts layout and type. from_last, to_last: true if
 * `from`, or `to`, is channels last; false if it is in plain order. */
typedef struct ReorderRun {
    DType from_type, to_type;
    const void *from;
    void *to;
    bool from_last, to_last;
    int64_t samples, channels, pixels;
} ReorderRun;
cudaError_t launch_reorder(cudaStream_t stream, ReorderRun run);

/* pixels/pool.cu, channels last: x (samples, h, w, channels) -> y (samples, p, q, channels).
 * Backward of averages expects that dy has been multiplied by relu's derivative; backward of maxima
 * skips outputs whose index is POOL_NO_POSITION. */
typedef struct PoolRun {
    DType type;
    const void *x, *dy;
    void *y, *dx;
    /* position of each maximum in its window; POOL_NO_POSITION if relu has set the output to 0;
     * NULL: an output is the average over the pixels of its window that are inside the image */
    uint8_t *max_index;
    bool relu;
    int kernel[2], stride[2], pad[2], h, w, p, q;
    int64_t samples, channels;
} PoolRun;
cudaError_t launch_pool(cudaStream_t stream, PoolRun run);
cudaError_t launch_pool_backward(cudaStream_t stream, PoolRun run);

/* pixels/pad.cu, channels last: x (samples, size[0], size[1], channels) -> y (samples, out[0],
 * out[1], channels). y has low[0] more rows above x and low[1] more columns on the left of x; a
 * negative number cuts rows or columns off. Forward copies from x to y; backward from dy to dx. */
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

/* pixels/pixel_shuffle.cu, channels last: x (samples, h, w, channels scale^2) -> y (samples, h
 * scale, w scale, channels). back = false: copies from x to y; back = true: from dy to dx. */
typedef struct ShuffleRun {
    DType type;
    const void *from;
    void *to;
    bool back;
    int scale, h, w;
    int64_t samples, channels;
} ShuffleRun;
cudaError_t launch_pixel_shuffle(cudaStream_t stream, ShuffleRun run);

/* pixels/upsample.cu, channels last: x (samples, h, w, channels) -> y (samples, h scale, w scale,
 * channels). Forward computes y from x, backward dx from dy. */
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

/* norm/batch_norm.cu: y = act((x - mean) inverse scale + shift + residual) over x (rows, channels),
 * where `act` is none, relu or relu6. Padded rows do not count in the statistics, and their y is 0.
 * launch_batch_norm writes saved.mean, saved.inverse, saved.factor, saved.shift and, in training,
 * saved.variance. launch_batch_norm_sums writes saved.sum_dy and saved.sum_dy_xhat; with a residual
 * and an activation it reads y and multiplies dy by the activation's derivative, in place.
 * launch_batch_norm_data then writes dx. */
typedef struct BatchNormSaved {
    /* arrays [channels]. inverse: 1 / sqrt(variance + eps); variance: unbiased; sum_dy,
     * sum_dy_xhat: the gradients of shift and of scale */
    float *mean, *inverse, *variance, *sum_dy, *sum_dy_xhat;
    /* arrays [channels]. factor: scale * inverse; shift: a copy of the parameter, because
     * backward_begin gets no parameters */
    float *factor, *shift;
} BatchNormSaved;
typedef struct BatchNormRun {
    DType type;
    Act act;
    bool training;
    /* residual: the second input, or NULL */
    const void *x, *residual;
    void *y, *dy, *dx;
    const float *scale, *shift, *running_mean, *running_variance;
    BatchNormSaved saved;
    /* scratch of cuda_sum_parts(type, rows, channels) x 2 x channels doubles */
    double *partial;
    float eps;
    int64_t rows, real, channels;
} BatchNormRun;
cudaError_t launch_batch_norm(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_sums(cudaStream_t stream, BatchNormRun run);
cudaError_t launch_batch_norm_data(cudaStream_t stream, BatchNormRun run);
/* Copies four arrays of `channels` numbers from `saved`: the gradient of scale to dw[0], of shift
 * to dw[1], the mean of the micro-batch to dw[2], the variance to dw[3]. With fewer than two real
 * rows, mean and variance are 0. */
cudaError_t launch_batch_norm_weights(cudaStream_t stream, BatchNormRun run, float *const dw[4]);

/* norm/group_norm.cu, channels last: y = act((x - mean) inverse scale + shift) over x (samples,
 * pixels, channels), where `act` is none, relu or relu6. Mean and variance are over a group of
 * neighbouring channels of one sample. If scale and shift are NULL, they count as 1 and 0. y and dx
 * of padded samples are 0. launch_group_norm_sums writes saved.sum_dy, saved.sum_dy_xhat,
 * saved.by_x and saved.constant; launch_group_norm writes the other arrays of `saved`.
 * launch_group_norm_data writes dx. */
typedef struct GroupNormSaved {
    /* Arrays (samples, channels). factor: scale * inverse. sum_dy, sum_dy_xhat: sums over pixels of
     * g and of g times the normalised x, where g is dy times the slope of act. by_x, constant: dx =
     * factor g + by_x (x - mean) + constant. */
    float *mean, *inverse, *factor, *shift, *sum_dy, *sum_dy_xhat, *by_x, *constant;
} GroupNormSaved;
typedef struct GroupNormRun {
    DType type;
    Act act;
    const void *x, *dy;
    void *y, *dx;
    const float *scale, *shift;
    GroupNormSaved saved;
    /* scratch of samples x cuda_sum_parts(type, pixels, channels) x 2 x channels doubles */
    double *partial;
    float eps;
    int64_t samples, real, pixels, channels, groups;
} GroupNormRun;
cudaError_t launch_group_norm(cudaStream_t stream, GroupNormRun run);
cudaError_t launch_group_norm_sums(cudaStream_t stream, GroupNormRun run);
cudaError_t launch_group_norm_data(cudaStream_t stream, GroupNormRun run);
/* Writes the gradients of scale and shift, [channels] each. */
cudaError_t launch_group_norm_weights(cudaStream_t stream, GroupNormRun run, float *dscale,
                                      float *dshift);

/* norm/film.cu, channels last: y = x (1 + s) + t over x (samples, pixels, channels). `by` (samples,
 * 2 channels) has s and then t of each sample; dby is its gradient. y, dx and dby of padded samples
 * are 0. launch_film_sums writes dby. launch_film_data writes dx, which may be in dy's memory. */
typedef struct FilmRun {
    DType type;
    const void *x, *by, *dy;
    void *y, *dx, *dby;
    /* scratch of samples x cuda_sum_parts(type, pixels, channels) x 2 x channels doubles */
    double *partial;
    int64_t samples, real, pixels, channels;
} FilmRun;
cudaError_t launch_film(cudaStream_t stream, FilmRun run);
cudaError_t launch_film_sums(cudaStream_t stream, FilmRun run);
cudaError_t launch_film_data(cudaStream_t stream, FilmRun run);

/* channel_sum.cu, channels last: `to` is (pixels, channels). Its channel c is shift[c] plus the sum
 * of terms first[c] .. first[c + 1] - 1. A term is a factor times a channel of an array of `from`;
 * from[i] is (pixels, from_channels[i]). */
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
/* Copies `bytes` bytes of tables from host memory, which is read before the call returns. */
cudaError_t launch_channel_tables(cudaStream_t stream, void *to, const void *from, size_t bytes);
cudaError_t launch_channel_sum(cudaStream_t stream, ChannelSumRun run);

#ifdef __cplusplus
}
#endif
#endif
