/* The functions of FlatTable on the GPU: work on flat ranges of memory. Each function queues at
 * most one kernel, except updates of more than UPDATE_PIECES pieces (update.cu). */
#include "cuda.h"

static void flat_fill(Stream *s, float *to, float value, int64_t n)
{
    cuda_check(launch_fill(s->handle, to, value, n), "kernel fill");
}

static void flat_add(Stream *s, float *out, const float *a, const float *b, int64_t n)
{
    cuda_check(launch_add(s->handle, out, a, b, n), "kernel add");
}

static void flat_add_bf16(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n)
{
    cuda_check(launch_add_act(s->handle, DTYPE_BF16, ACT_NONE, out, a, b, n), "kernel add_act");
}

static void flat_add_f16(Stream *s, F16 *out, const F16 *a, const F16 *b, int64_t n)
{
    cuda_check(launch_add_act(s->handle, DTYPE_F16, ACT_NONE, out, a, b, n), "kernel add_act");
}

static void flat_find_not_finite(Stream *s, float *found, const float *x, int64_t n)
{
    cuda_check(launch_find_not_finite(s->handle, found, x, n), "kernel find_not_finite");
}

static void flat_scale_add(Stream *s, float *y, float alpha, const float *x, float beta, int64_t n)
{
    cuda_check(launch_scale_add(s->handle, y, alpha, x, beta, n), "kernel scale_add");
}

static void flat_add_slices(Stream *s, DType type, void *out, const void *slices, int count,
                            int64_t stride, int64_t n)
{
    SlicesRun run = {
        .type = type, .out = out, .slices = slices, .count = count, .stride = stride, .n = n};
    cuda_check(launch_add_slices(s->handle, run), "kernel add_slices");
}

static void flat_squares(Stream *s, double *out, const float *x, int64_t n)
{
    cuda_check(launch_squares(s->handle, out, x, n), "kernel squares");
}

static void flat_chunk_squares(Stream *s, double *out, const float *x, const FlatChunk *chunk,
                               int64_t count)
{
    cuda_check(launch_chunk_squares(s->handle, out, x, chunk, count), "kernel chunk_squares");
}

static void flat_exact_squares(Stream *s, SquareSum *out, const float *x, int64_t n)
{
    cuda_check(launch_exact_squares(s->handle, out, x, n), "kernel exact_squares");
}

static void flat_exact_chunk_squares(Stream *s, SquareSum *out, const float *x,
                                     const FlatChunk *chunk, int64_t count)
{
    cuda_check(launch_exact_chunk_squares(s->handle, out, x, chunk, count),
               "kernel exact_chunk_squares");
}

static void flat_join_squares(Stream *s, SquareSum *out, double *value, const SquareSum *x,
                              const int64_t *first, int count)
{
    cuda_check(launch_join_squares(s->handle, out, value, x, first, count), "kernel join_squares");
}

static void flat_sgd(Stream *s, const SgdArgs *a, const UpdatePiece *piece, int count)
{
    cuda_check(launch_sgd(s->handle, *a, piece, count), "kernel sgd");
}

static void flat_adam(Stream *s, const AdamArgs *a, const UpdatePiece *piece, int count)
{
    cuda_check(launch_adam(s->handle, *a, NULL, piece, count), "kernel adam");
}

static void flat_adam_direction(Stream *s, const AdamArgs *a, float *u, const UpdatePiece *piece)
{
    cuda_check(launch_adam(s->handle, *a, u, piece, 1), "kernel adam_direction");
}

static void flat_average(Stream *s, Average average, const UpdateNumbers *numbers, const float *w,
                         int64_t n)
{
    cuda_check(launch_average(s->handle, average, numbers, w, n), "kernel average");
}

static void flat_swap(Stream *s, float *a, float *b, int64_t n)
{
    cuda_check(launch_swap(s->handle, a, b, n), "kernel swap");
}

static void flat_put(Stream *s, void *to, const void *from, size_t bytes)
{
    cuda_check(launch_put(s->handle, to, from, bytes), "kernel put");
}

static void flat_loss_sums(Stream *s, float *out, const float *results, int64_t lines)
{
    cuda_check(launch_loss_sums(s->handle, out, results, lines), "kernel loss_sums");
}

static void flat_range_sums(Stream *s, double *out, const double *x, const int64_t *first,
                            int count)
{
    cuda_check(launch_range_sums(s->handle, out, x, first, count), "kernel range_sums");
}

static void flat_clip(Stream *s, float *grad_scale, const double *squares, int count, double limit)
{
    cuda_check(launch_clip(s->handle, grad_scale, squares, count, limit), "kernel clip");
}

const FlatTable cuda_flat = {
    .fill = flat_fill,
    .add = flat_add,
    .add_bf16 = flat_add_bf16,
    .add_f16 = flat_add_f16,
    .find_not_finite = flat_find_not_finite,
    .scale_add = flat_scale_add,
    .add_slices = flat_add_slices,
    .squares = flat_squares,
    .chunk_squares = flat_chunk_squares,
    .exact_squares = flat_exact_squares,
    .exact_chunk_squares = flat_exact_chunk_squares,
    .join_squares = flat_join_squares,
    .sgd = flat_sgd,
    .adam = flat_adam,
    .adam_direction = flat_adam_direction,
    .average = flat_average,
    .swap = flat_swap,
    .put = flat_put,
    .loss_sums = flat_loss_sums,
    .range_sums = flat_range_sums,
    .clip = flat_clip,
};
