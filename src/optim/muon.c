/* Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"). The update
 * is the momentum of a weight matrix, made nearly orthogonal by five Newton-Schulz steps. The rule
 * is PyTorch's, but in fp32. A convolution's weight counts as a matrix with a row for each output
 * channel. The terms of a matrix product are added in an order that depends on the shape alone. The
 * rule accepts only weights of hidden layers: embeddings, the weight of the last layer and vectors
 * need another rule. */
#include "rules.h"

#include <math.h>
#include <string.h>

enum { NEWTON_SCHULZ_STEPS = 5 };
/* the coefficients a, b and c of the iteration (iterate) */
static const float COEFFICIENT[] = {3.4445f, -4.7750f, 2.0315f};
/* a matrix is divided by its norm, but at least by this number */
static const double LEAST_NORM = 1e-7;

typedef struct Matrix {
    int64_t rows, columns;
} Matrix;

static Matrix matrix_of(const OptimTensor *tensor)
{
    int64_t rows = tensor->shape.dim[0];
    return (Matrix){rows, shape_count(tensor->shape) / rows};
}

/* Returns n rounded up to a multiple of MATRIX_PAD. */
static int64_t padded(int64_t n)
{
    return (n + MATRIX_PAD - 1) / MATRIX_PAD * MATRIX_PAD;
}

/* Returns the shape of X, the matrix that is iterated. Its rows are the shorter side of m, since X
 * X^T is then smaller; its columns are the longer side. Both sides are padded; the padding is 0,
 * and the iteration keeps it 0. */
static Matrix short_first(Matrix m)
{
    bool turned = m.rows > m.columns;
    return (Matrix){padded(turned ? m.columns : m.rows), padded(turned ? m.rows : m.columns)};
}

/* Returns the number of floats for X, the next X, X X^T, and the square of X X^T. */
static int64_t work_floats(const OptimTensor *tensor)
{
    Matrix x = short_first(matrix_of(tensor));
    return 2 * x.rows * (x.columns + x.rows);
}

static Status check_tensor(const OptimConfig *constants, const OptimTensor *tensor)
{
    (void)constants;
    char shape[64];
    static const char *const what[] = {ROLE_WORDS(LIST_NAME)};
    if (tensor->role == PARAM_WEIGHT && tensor->shape.ndim > 1) return OK;
    return fail(ERR_CONFIG,
                "muon is for the weights of hidden layers, and %s is %s %s: put such parameters "
                "into a group of another rule, as {roles: [embedding, head, bias, norm], name: "
                "adamw, lr: 3e-4}",
                tensor->name, what[tensor->role], shape_text(tensor->shape, shape));
}

/* ---- elementwise ---- */

typedef struct MuonArgs {
    /* shrink: factor by which weight decay multiplies the parameters */
    float lr, shrink, momentum, grad_scale;
    bool nesterov;
} MuonArgs;

/* Moves the momentum m of n elements towards the gradient g, and writes the direction u. u is the
 * new m or, with Nesterov momentum, the new m moved towards g once more. array: u, g, m. */
static void momentum_elements(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const MuonArgs a = *(const MuonArgs *)args;
    float *restrict u = array[0], *restrict m = array[2];
    const float *restrict g = array[1];
    const float keep = a.nesterov ? a.momentum : 1.0f;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float gradient = g[i] * a.grad_scale;
        m[i] = a.momentum * m[i] + (1 - a.momentum) * gradient;
        u[i] = keep * m[i] + (1 - keep) * gradient;
    }
}

/* Updates n elements. array: parameters, orthogonal direction (the result of `whole`). */
static void update_elements(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    const MuonArgs a = *(const MuonArgs *)args;
    float *restrict w = array[0];
    const float *restrict o = array[1];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) w[i] = w[i] * a.shrink - a.lr * o[i];
}

static void direction(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    const OptimConfig *constants = piece->rule->constants;
    MuonArgs args = {.momentum = piece->rule->momentum,
                     .grad_scale = a->grad_scale,
                     .nesterov = constants->nesterov};
    float *array[FLAT_ARRAYS] = {optim_scratch_of(optim, piece), optim_read_only(a->g),
                                 optim_slot(optim, 0, piece)};
    optim_each(optim, piece, momentum_elements, &args, array);
}

/* Returns the factor on the learning rate of a matrix, by optim.lr_adjust. original is Jordan's
 * factor. match_rms gives updates about the same root mean square as AdamW's (Liu et al. 2025,
 * "Muon is scalable for LLM training", section 2.2). */
static double adjust(const OptimConfig *constants, Matrix m)
{
    double rows = (double)m.rows, columns = (double)m.columns;
    if (constants->lr_adjust == LR_ADJUST_MATCH_RMS) return 0.2 * sqrt(fmax(rows, columns));
    return sqrt(fmax(1, rows / columns));
}

static void update(Optim *optim, const OptimPiece *piece, const OptimArgs *a)
{
    double factor = adjust(piece->rule->constants, matrix_of(piece->tensor));
    MuonArgs args = {.lr = (float)((double)a->lr * factor),
                     .shrink = 1 - a->lr * optim_decay(piece)};
    float *array[FLAT_ARRAYS] = {a->w, optim_scratch_of(optim, piece)};
    optim_each(optim, piece, update_elements, &args, array);
}

/* ---- whole tensors ---- */

/* Copies a row-major matrix, times `scale`, to X, and sets X's padding to 0. The matrix is
 * transposed if it has more rows than columns. */
static void load(Matrix m, const float *plain, float *x, float scale)
{
    Matrix s = short_first(m);
    memset(x, 0, (size_t)(s.rows * s.columns) * sizeof *x);
    for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t c = 0; c < m.columns; ++c) {
            int64_t at = m.rows > m.columns ? c * s.columns + r : r * s.columns + c;
            x[at] = plain[r * m.columns + c] * scale;
        }
}

/* Copies X to a row-major matrix, without padding, and transposed if load has transposed it. */
static void store(Matrix m, const float *x, float *plain)
{
    Matrix s = short_first(m);
    for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t c = 0; c < m.columns; ++c)
            plain[r * m.columns + c] =
                x[m.rows > m.columns ? c * s.columns + r : r * s.columns + c];
}

/* Computes X = a X + (b A + c A A) X, with A = X X^T, NEWTON_SCHULZ_STEPS times. x: X at the start,
 * of the shape `size`; next, gram, square: scratch memory. Returns x or next, whichever has the
 * result. */
static float *iterate(const FlatTable *flat, Stream *s, Matrix size, float *x, float *next,
                      float *gram, float *square)
{
    int64_t n = size.rows, wide = size.columns;
    MatrixProduct xx = {.out = gram,
                        .m = n,
                        .n = n,
                        .k = wide,
                        .out_row = n,
                        .a_row = wide,
                        .b_row = wide,
                        .b_transposed = true,
                        .symmetric = true};
    MatrixProduct aa = {.out = square,
                        .a = gram,
                        .b = gram,
                        .m = n,
                        .n = n,
                        .k = n,
                        .out_row = n,
                        .a_row = n,
                        .b_row = n,
                        .symmetric = true};
    MatrixProduct bx = {
        .a = gram, .m = n, .n = wide, .k = n, .out_row = wide, .a_row = n, .b_row = wide};
    for (int i = 0; i < NEWTON_SCHULZ_STEPS; ++i) {
        xx.a = xx.b = bx.b = x;
        bx.out = next;
        flat->matrix_product(s, &xx);
        flat->matrix_product(s, &aa);
        /* gram = b gram + c square; next = gram x + a x */
        flat->scale_add(s, gram, COEFFICIENT[2], square, COEFFICIENT[1], n * n);
        flat->matrix_product(s, &bx);
        flat->scale_add(s, next, COEFFICIENT[0], x, 1.0f, n * wide);
        float *last = x;
        x = next;
        next = last;
    }
    return x;
}

static void whole(Optim *optim, const OptimPiece *piece, float *plain, float *work)
{
    Matrix m = matrix_of(piece->tensor), s = short_first(m);
    int64_t size = s.rows * s.columns;
    float *gram = work + 2 * size, *square = gram + s.rows * s.rows;
    double squared_norm = 0;
    for (int64_t i = 0; i < m.rows * m.columns; ++i)
        squared_norm += (double)plain[i] * (double)plain[i];
    load(m, plain, work, (float)(1 / fmax(sqrt(squared_norm), LEAST_NORM)));
    const float *x =
        iterate(optim->backend->table->flat, optim->backend->table->stream(optim->backend), s, work,
                work + size, gram, square);
    store(m, x, plain);
}

const OptimTable optim_muon = {
    .word = {.word = "muon",
             .help = "orthogonalised momentum of weight matrices; other parameters need a group",
             .uses = "momentum nesterov lr_adjust",
             .defaults = "momentum=0.95 nesterov=true"},
    .slots = 1,
    .slot_name = {"muon_momentum"},
    .momentum_offset = offsetof(OptimConfig, momentum),
    .scratch = SCRATCH_DIRECTION,
    .devices = DEVICES_CPU,
    .check_tensor = check_tensor,
    .direction = direction,
    .whole = whole,
    .work_floats = work_floats,
    .update = update,
};
