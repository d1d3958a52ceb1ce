/* lbfgs: limited-memory BFGS (Nocedal & Wright 2006, algorithms 7.4 and 7.5) without a line search,
 * as PyTorch's LBFGS(max_iter=1). Each update moves the parameters by lr times the direction -H g;
 * the first update moves them by min(1, 1 / |g|_1) times that. H approximates the inverse Hessian.
 * It is s.y / y.y times the identity, corrected by the stored pairs. A pair is the step s of an
 * earlier update and the change y of the gradient over that step. A pair whose curvature s.y is not
 * above CURVATURE is not stored.
 *
 * All state is elementwise: the gradient of the previous update, the step of the previous update,
 * and the pairs, the newest first. A pair of zeros is an unused entry. Dot products go over ranges
 * and their chunks in order, in double precision. The caller ensures that this rank has all
 * parameters undivided, and that the gradient is over all samples. */
#include "rules.h"

#include <math.h>

/* numbers of the state slots; from slot PAIRS on there are s and y of each pair */
enum { GRADIENT, STEP, PAIRS };
static const double CURVATURE = 1e-10;

/* Returns the slot of s of a pair. */
static int step_of(int pair)
{
    return PAIRS + 2 * pair;
}

/* Returns the slot of y of a pair. */
static int change_of(int pair)
{
    return PAIRS + 2 * pair + 1;
}

/* ---- vectors: a vector is one state slot of all ranges ---- */

/* Returns the part of a vector that belongs to one range. */
static float *vector(const Optim *optim, int slot, int range)
{
    return optim_slot(optim, slot, &optim->piece[range]);
}

static double chunk_dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Returns the dot product of the vectors in slots a and b. */
static double dot(const Optim *optim, int a, int b)
{
    double sum = 0;
    for (int r = 0; r < optim->range_count; ++r) {
        const float *x = vector(optim, a, r), *y = vector(optim, b, r);
        const int64_t n = optim->piece[r].elements;
        for (int64_t at = 0; at < n; at += FLAT_CHUNK)
            sum += chunk_dot(x + at, y + at, n - at < FLAT_CHUNK ? n - at : FLAT_CHUNK);
    }
    return sum;
}

/* Adds the vector in slot `from`, times `factor`, to the vector in slot `to`. */
static void add(const Optim *optim, int to, double factor, int from)
{
    for (int r = 0; r < optim->range_count; ++r) {
        float *y = vector(optim, to, r);
        const float *x = vector(optim, from, r);
        for (int64_t i = 0; i < optim->piece[r].elements; ++i)
            y[i] = (float)((double)y[i] + factor * (double)x[i]);
    }
}

/* Sets the vector in slot `to` to `factor` times the vector in slot `from`. */
static void set(const Optim *optim, int to, double factor, int from)
{
    for (int r = 0; r < optim->range_count; ++r) {
        float *y = vector(optim, to, r);
        const float *x = vector(optim, from, r);
        for (int64_t i = 0; i < optim->piece[r].elements; ++i)
            y[i] = (float)(factor * (double)x[i]);
    }
}

/* ---- an update ---- */

/* Arguments of an update. */
typedef struct Update {
    Optim *optim;
    float *params;
    const float *grads;
    /* number of pairs that are kept */
    int pairs;
} Update;

/* Returns element i of a range's gradient, scaled and with weight decay. */
static float gradient_at(const Update *u, const OptimPiece *piece, int64_t i)
{
    return u->optim->scale * u->grads[piece->grad_arena_offset + i] +
           optim_decay(piece) * u->params[piece->value_offset + i];
}

/* Returns s.y, where s is the step of the previous update and y is the change of the gradient since
 * that update. */
static double curvature(const Update *u)
{
    double sum = 0;
    for (int r = 0; r < u->optim->range_count; ++r) {
        const OptimPiece *piece = &u->optim->piece[r];
        const float *before = vector(u->optim, GRADIENT, r), *step = vector(u->optim, STEP, r);
        double part = 0;
        for (int64_t i = 0; i < piece->elements; ++i) {
            part += (double)(gradient_at(u, piece, i) - before[i]) * (double)step[i];
            if (i % FLAT_CHUNK < FLAT_CHUNK - 1 && i < piece->elements - 1) continue;
            sum += part;
            part = 0;
        }
    }
    return sum;
}

/* Makes the step of the previous update and the change of the gradient the newest pair, and drops
 * the oldest pair. */
static void add_pair(const Update *u)
{
    Optim *optim = u->optim;
    for (int k = u->pairs - 1; k > 0; --k) {
        set(optim, step_of(k), 1, step_of(k - 1));
        set(optim, change_of(k), 1, change_of(k - 1));
    }
    set(optim, step_of(0), 1, STEP);
    for (int r = 0; r < optim->range_count; ++r) {
        const OptimPiece *piece = &optim->piece[r];
        const float *before = vector(optim, GRADIENT, r);
        float *change = vector(optim, change_of(0), r);
        for (int64_t i = 0; i < piece->elements; ++i)
            change[i] = gradient_at(u, piece, i) - before[i];
    }
}

static void store_gradient(const Update *u)
{
    for (int r = 0; r < u->optim->range_count; ++r) {
        const OptimPiece *piece = &u->optim->piece[r];
        float *g = vector(u->optim, GRADIENT, r);
        for (int64_t i = 0; i < piece->elements; ++i) g[i] = gradient_at(u, piece, i);
    }
}

/* Sets the vector in slot STEP to -H g (algorithm 7.4, the two-loop recursion). */
static void find_direction(const Update *u)
{
    const Optim *optim = u->optim;
    double inverse[OPTIM_HISTORY], along[OPTIM_HISTORY], scale = 1;
    int count = 0;
    set(optim, STEP, -1, GRADIENT);
    for (; count < u->pairs; ++count) {
        const int s = step_of(count), y = change_of(count);
        const double product = dot(optim, s, y);
        if (!(product > 0)) break;
        inverse[count] = 1 / product;
        along[count] = inverse[count] * dot(optim, s, STEP);
        add(optim, STEP, -along[count], y);
        if (count == 0) scale = product / dot(optim, y, y);
    }
    set(optim, STEP, scale, STEP);
    for (int k = count - 1; k >= 0; --k)
        add(optim, STEP, along[k] - inverse[k] * dot(optim, change_of(k), STEP), step_of(k));
}

/* Returns the sum of the absolute values of the gradient. */
static double gradient_sum(const Optim *optim)
{
    double sum = 0;
    for (int r = 0; r < optim->range_count; ++r) {
        const float *g = vector(optim, GRADIENT, r);
        for (int64_t i = 0; i < optim->piece[r].elements; ++i) sum += fabs((double)g[i]);
    }
    return sum;
}

/* Moves the parameters by `factor` times the learning rate times the vector in slot STEP, and
 * replaces this vector by the step that was made. */
static void move(const Update *u, double factor)
{
    for (int r = 0; r < u->optim->range_count; ++r) {
        const OptimPiece *piece = &u->optim->piece[r];
        const double rate = factor * (double)optim_lr_of(u->optim, piece->rule);
        float *w = u->params + piece->value_offset, *step = vector(u->optim, STEP, r);
        for (int64_t i = 0; i < piece->elements; ++i) {
            step[i] = (float)(rate * (double)step[i]);
            w[i] += step[i];
        }
    }
}

static void together(Optim *optim, float *params, const float *grads)
{
    double factor = 1;
    if (optim->range_count == 0) return;
    const int slots = optim->piece[0].rule->slots;
    const Update u = {optim, params, grads, (slots - PAIRS) / 2};
    /* Access every slot: row_check.c counts the slots that an update uses, and the first updates
     * have no pairs yet. */
    for (int k = 0; k < slots; ++k) vector(optim, k, 0);
    if (!optim->is_first_update && curvature(&u) > CURVATURE) add_pair(&u);
    store_gradient(&u);
    find_direction(&u);
    if (optim->is_first_update) factor = fmin(1, 1 / gradient_sum(optim));
    /* If the gradient is smaller than rounding errors, -H g may point uphill: do not move then. */
    if (dot(optim, GRADIENT, STEP) >= 0) factor = 0;
    move(&u, factor);
}

static int slots_used(const OptimConfig *constants)
{
    return PAIRS + 2 * (int)constants->history;
}

const OptimTable optim_lbfgs = {
    .word = {.word = "lbfgs",
             .help = "limited-memory BFGS without a line search; the whole set is one batch",
             .uses = "history"},
    .slots = OPTIM_SLOTS,
    .slot_name = {"lbfgs_gradient", "lbfgs_step", "lbfgs_s1",  "lbfgs_y1", "lbfgs_s2", "lbfgs_y2",
                  "lbfgs_s3",       "lbfgs_y3",   "lbfgs_s4",  "lbfgs_y4", "lbfgs_s5", "lbfgs_y5",
                  "lbfgs_s6",       "lbfgs_y6",   "lbfgs_s7",  "lbfgs_y7", "lbfgs_s8", "lbfgs_y8",
                  "lbfgs_s9",       "lbfgs_y9",   "lbfgs_s10", "lbfgs_y10"},
    .slots_used = slots_used,
    .scratch = SCRATCH_UNUSED,
    .devices = DEVICES_CPU,
    .update_all = together,
};
_Static_assert(OPTIM_SLOTS == PAIRS + 2 * OPTIM_HISTORY, "slots for all pairs");
