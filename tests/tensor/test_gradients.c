/* Gradients of operations that are neither matrix products nor norms (gradient_rig.h; norms are in
 * test_gradients_norm.c). */
#include "gradient_rig.h"

static void activation(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i)
        y[i] = act_reference(&c->spec, x[0][i]);
}

static void add(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i) {
        double sum = 0;
        for (int k = 0; k < c->spec.x_count; ++k) sum += x[k][i];
        y[i] = act_reference(&c->spec, sum);
    }
}

static void flatten(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    memcpy(y, x[0], (size_t)shape_count(c->spec.y.shape) * sizeof *y);
}

static void concat(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t n = 0; n < c->spec.y.shape.dim[0]; ++n)
        for (int k = 0; k < c->spec.x_count; ++k) {
            int64_t part = shape_count(c->spec.x[k].shape) / c->spec.y.shape.dim[0];
            memcpy(y, x[k] + n * part, (size_t)part * sizeof *y);
            y += part;
        }
}

static void pool(const Case *c, double *const x[], double *const w[], double *y)
{
    const OpSpec *s = &c->spec;
    int64_t h = s->x[0].shape.dim[2], wide = s->x[0].shape.dim[3];
    bool global = s->pool == POOL_GLOBAL_AVG;
    (void)w;
    for (int64_t o = 0; o < shape_count(s->y.shape); ++o) {
        int64_t q = s->y.shape.dim[3], p = s->y.shape.dim[2], plane = o / (p * q);
        int64_t row = global ? 0 : o / q % p * s->stride[0] - s->pad[0];
        int64_t col = global ? 0 : o % q * s->stride[1] - s->pad[1];
        double sum = 0, best = -INFINITY, count = 0;
        for (int64_t i = row; i < row + (global ? h : s->kernel[0]); ++i)
            for (int64_t j = col; j < col + (global ? wide : s->kernel[1]); ++j) {
                if (i < 0 || j < 0 || i >= h || j >= wide) continue;
                double v = x[0][(plane * h + i) * wide + j];
                best = v > best ? v : best;
                sum += v;
                ++count;
            }
        y[o] = act_reference(s, s->pool == POOL_MAX ? best : sum / count);
    }
}

/* Draws with the scalar generator, one element at a time. */
static void dropout(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = shape_count(s) / s.dim[0];
    (void)w;
    for (int64_t i = 0; i < shape_count(s); ++i) {
        uint64_t name[2] = {c->spec.seed_name, (uint64_t)sample_ids[i / per]};
        RngKey key = rng_key(11, RNG_DROPOUT, hash_bytes(name, sizeof name), 5);
        bool keep = rng_uniform(key, (uint64_t)(i % per)) >= c->spec.drop;
        y[i] = keep ? x[0][i] / (1 - (double)c->spec.drop) : 0;
    }
}

static void softmax_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t k = s.dim[s.ndim - 1], rows = shape_count(s) / k;
    (void)w;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * k, smooth = (double)c->spec.smoothing;
        double sum = 0, loss = 0, label_rank = 0, top = 0;
        for (int64_t i = 0; i < k; ++i) sum += exp(row[i]);
        for (int64_t i = 0; i < k; ++i) {
            double target = (i == labels[r] ? 1 - smooth : 0) + smooth / (double)k;
            loss -= target * (row[i] - log(sum));
            label_rank += row[i] > row[labels[r]];
            if (row[i] > row[(int64_t)top]) top = (double)i;
        }
        bool real = r < rows / s.dim[0] * c->rows;
        for (int i = 0; i < LOSS_COLUMNS; ++i)
            y[r * LOSS_COLUMNS + i] = real ? (double[]){loss, label_rank, top}[i] : 0;
    }
}

static void mse_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    (void)w;
    for (int64_t r = 0; r < s.dim[0]; ++r) {
        y[r * LOSS_COLUMNS] = y[r * LOSS_COLUMNS + 1] = y[r * LOSS_COLUMNS + 2] = 0;
        for (int64_t i = 0; r < c->rows && i < s.dim[1]; ++i)
            y[r * LOSS_COLUMNS] +=
                pow(x[0][r * s.dim[1] + i] - target_at(r * s.dim[1] + i), 2) / (double)s.dim[1];
    }
}

static void positions(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = s.dim[1] * s.dim[2];
    for (int64_t i = 0; i < shape_count(s); ++i)
        y[i] = i / per < c->rows ? x[0][i] + w[0][i % per] : 0;
}

/* Value i of the query or key at position t of a head, rotated if the case has rotary. */
static double turned(const Case *c, const double *head, int64_t t, int64_t i)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = c->spec.y.shape.dim[2] / c->spec.heads;
    if (!c->spec.rotary) return head[t * stride + i];
    int64_t half = width / 2, low = i % half;
    double a = head[t * stride + low], b = head[t * stride + low + half];
    double base = c->spec.rotary_base > 0 ? (double)c->spec.rotary_base : 10000;
    double angle = (double)t * pow(base, -2.0 * (double)low / (double)width);
    return i < half ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
}

/* Computes one query: q of the head, its keys from `key` on, its values from `value` on. */
static void attend(const Case *c, const double *q, const double *key, const double *value,
                   int64_t t, double *y)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = c->spec.y.shape.dim[2] / c->spec.heads;
    double weight[16], total = 0;
    const int64_t first = c->spec.window > 0 && t >= c->spec.window ? t - c->spec.window + 1 : 0;
    for (int64_t s = first; s <= t; ++s) {
        double score = 0;
        for (int64_t i = 0; i < width; ++i) score += turned(c, q, t, i) * turned(c, key, s, i);
        weight[s] = exp(score / sqrt((double)width));
        total += weight[s];
    }
    for (int64_t i = 0; i < width; ++i) {
        y[i] = 0;
        for (int64_t s = first; s <= t; ++s) y[i] += weight[s] / total * value[s * stride + i];
    }
}

static void attention(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.y.shape;
    int64_t width = s.dim[2] / c->spec.heads, row = c->spec.x[0].shape.dim[2];
    int64_t keys = c->spec.kv_heads > 0 ? c->spec.kv_heads : c->spec.heads;
    (void)w;
    memset(y, 0, (size_t)shape_count(s) * sizeof *y);
    for (int64_t n = 0; n < c->rows; ++n)
        for (int h = 0; h < c->spec.heads; ++h)
            for (int64_t t = 0; t < s.dim[1]; ++t) {
                const double *sample = x[0] + n * s.dim[1] * row;
                const double *key = sample + s.dim[2] + h * keys / c->spec.heads * width;
                attend(c, sample + h * width, key, key + keys * width, t,
                       y + (n * s.dim[1] + t) * s.dim[2] + h * width);
            }
}

static void test_activation(void)
{
    for (int act = ACT_NONE + 1; act < ACTS; ++act) {
        Desc x = plain(4, 2, 19, 3, 5);
        check((Case){.spec = {.kind = OP_ACTIVATION,
                              .act = (Act)act,
                              .act_factor = 0.3f,
                              .x_count = 1,
                              .x = {x},
                              .y = x},
                     .rows = 2,
                     .reference = activation});
    }
}

static void pool_case(PoolMode mode, Act act, int kernel, int stride, int pad, int64_t h, int64_t w)
{
    bool global = mode == POOL_GLOBAL_AVG;
    /* the time of finite differences is quadratic */
    int64_t channels = h * w > 100 ? 5 : 19;
    Case c = {.spec = {.kind = OP_POOL,
                       .pool = mode,
                       .act = act,
                       .kernel = {kernel, kernel},
                       .stride = {stride, stride},
                       .pad = {pad, pad},
                       .x_count = 1,
                       .x = {plain(4, 2, channels, h, w)}},
              .rows = 2,
              .reference = pool};
    c.spec.y = global ? plain(4, 2, channels, 1, 1)
                      : plain(4, 2, channels, (h + 2 * pad - kernel) / stride + 1,
                              (w + 2 * pad - kernel) / stride + 1);
    check(c);
}

static void test_pool(void)
{
    pool_case(POOL_MAX, ACT_NONE, 2, 2, 0, 5, 4);
    pool_case(POOL_MAX, ACT_RELU, 3, 2, 1, 6, 5);
    pool_case(POOL_MAX, ACT_NONE, 3, 1, 1, 4, 5);
    pool_case(POOL_MAX, ACT_RELU, 2, 3, 0, 8, 7);
    pool_case(POOL_MAX, ACT_NONE, 2, 2, 1, 5, 5);
    /* rows of several vectors */
    pool_case(POOL_MAX, ACT_NONE, 2, 2, 0, 4, 36);
    pool_case(POOL_MAX, ACT_RELU, 2, 2, 0, 3, 43);
    pool_case(POOL_MAX, ACT_RELU, 3, 2, 1, 5, 38);
    pool_case(POOL_MAX, ACT_NONE, 3, 1, 1, 3, 37);
    pool_case(POOL_MAX, ACT_NONE, 4, 2, 2, 5, 45);
    pool_case(POOL_AVG, ACT_NONE, 2, 2, 0, 4, 36);
    pool_case(POOL_AVG, ACT_NONE, 3, 2, 1, 4, 37);
    pool_case(POOL_AVG, ACT_NONE, 3, 1, 1, 3, 37);
    pool_case(POOL_AVG, ACT_NONE, 3, 2, 1, 5, 6);
    pool_case(POOL_AVG, ACT_RELU, 2, 2, 0, 6, 5);
    pool_case(POOL_GLOBAL_AVG, ACT_NONE, 0, 0, 0, 5, 3);
    pool_case(POOL_GLOBAL_AVG, ACT_RELU, 0, 0, 0, 3, 3);
}

static void test_add(void)
{
    const Act acts[] = {ACT_NONE, ACT_RELU, ACT_RELU6};
    for (int i = 0; i < 3; ++i) {
        Desc x = plain(4, 3, 19, 2, 5);
        check((Case){
            .spec = {.kind = OP_ADD, .act = acts[i], .x_count = 2 + i, .x = {x, x, x, x}, .y = x},
            .rows = 3,
            .reference = add});
    }
}

static void test_concat(void)
{
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 3,
                          .x = {plain(4, 2, 16, 3, 2), plain(4, 2, 32, 3, 2), plain(4, 2, 5, 3, 2)},
                          .y = plain(4, 2, 53, 3, 2)},
                 .rows = 2,
                 .reference = concat});
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 2,
                          .x = {plain(4, 2, 7, 3, 2), plain(4, 2, 9, 3, 2)},
                          .y = plain(4, 2, 16, 3, 2)},
                 .rows = 2,
                 .reference = concat});
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 2,
                          .x = {plain(2, 3, 7, 1, 1), plain(2, 3, 4, 1, 1)},
                          .y = plain(2, 3, 11, 1, 1)},
                 .rows = 3,
                 .reference = concat});
}

static void test_flatten(void)
{
    check((Case){.spec = {.kind = OP_FLATTEN,
                          .x_count = 1,
                          .x = {plain(4, 2, 19, 3, 2)},
                          .y = plain(2, 2, 114, 1, 1)},
                 .rows = 2,
                 .reference = flatten});
    check((Case){.spec = {.kind = OP_FLATTEN,
                          .x_count = 1,
                          .x = {plain(4, 2, 32, 1, 1)},
                          .y = plain(2, 2, 32, 1, 1)},
                 .rows = 2,
                 .reference = flatten});
}

static void test_dropout(void)
{
    Desc image = plain(4, 3, 19, 5, 15), flat = plain(2, 4, 333, 1, 1);
    check((Case){.spec = {.kind = OP_DROPOUT,
                          .drop = 0.3f,
                          .seed_name = 42,
                          .x_count = 1,
                          .x = {image},
                          .y = image},
                 .rows = 3,
                 .reference = dropout});
    check((Case){.spec = {.kind = OP_DROPOUT,
                          .drop = 0.5f,
                          .seed_name = 43,
                          .x_count = 1,
                          .x = {flat},
                          .y = flat},
                 .rows = 4,
                 .reference = dropout});
}

static void test_positions(void)
{
    Case c = {.spec = {.kind = OP_POSITIONS, .x_count = 1, .w_count = 1},
              .rows = 2,
              .reference = positions};
    c.spec.x[0] = c.spec.y = plain(3, 3, 5, 19, 1);
    c.spec.w[0] = shape_of(2, 7, 19, 1, 1);
    check(c);
    c.rows = 4;
    c.spec.x[0] = c.spec.y = plain(3, 4, 3, 32, 1);
    c.spec.w[0] = shape_of(2, 3, 32, 1, 1);
    check(c);
}

static void test_attention(void)
{
    static const struct {
        int n, t, heads, kv_heads, width, rows;
        bool rotary;
        float base;
        int window, slices;
    } table[] = {{3, 7, 1, 0, 32, 2, false, 0, 0, 0}, {1, 5, 2, 0, 64, 1, true, 0, 0, 0},
                 {2, 3, 1, 0, 80, 1, true, 0, 0, 0},  {2, 5, 3, 0, 5, 2, false, 0, 0, 0},
                 {2, 9, 2, 0, 16, 2, true, 0, 0, 0},  {1, 1, 1, 0, 8, 1, false, 0, 0, 0},
                 {2, 5, 4, 2, 8, 2, false, 0, 0, 0},  {2, 6, 3, 1, 16, 1, true, 500, 0, 0},
                 {1, 4, 6, 3, 6, 1, true, 0, 0, 0},   {2, 9, 2, 1, 8, 2, true, 0, 4, 0},
                 {2, 7, 4, 1, 8, 2, true, 0, 0, 4},   {2, 6, 6, 2, 6, 2, false, 0, 3, 4}};
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        int64_t c = (int64_t)table[i].heads * table[i].width;
        int64_t keys = table[i].kv_heads ? table[i].kv_heads : table[i].heads;
        int64_t row = c + 2 * keys * table[i].width;
        check((Case){.spec = {.kind = OP_ATTENTION,
                              .heads = table[i].heads,
                              .kv_heads = table[i].kv_heads,
                              .rotary = table[i].rotary,
                              .rotary_base = table[i].base,
                              .window = table[i].window,
                              .slices = {.total = table[i].slices,
                                         .count = table[i].slices,
                                         .units = table[i].heads,
                                         .first_unit_ratio = 1,
                                         .parts = 1},
                              .x_count = 1,
                              .x = {plain(3, table[i].n, table[i].t, row, 1)},
                              .y = plain(3, table[i].n, table[i].t, c, 1)},
                     .rows = table[i].rows,
                     .reference = attention});
    }
}

static void swiglu(const Case *c, double *const x[], double *const w[], double *y)
{
    const Shape s = c->spec.y.shape;
    const int64_t n = s.dim[s.ndim - 1];
    const OpSpec silu = {.act = ACT_SILU};
    (void)w;
    for (int64_t i = 0; i < shape_count(s); ++i) {
        const double *row = x[0] + i / n * 2 * n;
        y[i] = act_reference(&silu, row[i % n]) * row[n + i % n];
    }
}

static void test_swiglu(void)
{
    Case c = {.spec = {.kind = OP_SWIGLU, .x_count = 1}, .rows = 2, .reference = swiglu};
    c.spec.x[0] = plain(3, 3, 5, 74, 1);
    c.spec.y = plain(3, 3, 5, 37, 1);
    check(c);
    c.rows = 7;
    c.spec.x[0] = plain(2, 7, 256, 1, 1);
    c.spec.y = plain(2, 7, 128, 1, 1);
    check(c);
}

static void test_losses(void)
{
    for (int smooth = 0; smooth < 2; ++smooth) {
        Case c = {.spec = {.kind = OP_SOFTMAX_LOSS,
                           .smoothing = smooth ? 0.1f : 0.0f,
                           .x_count = 1,
                           .x = {plain(2, 5, 7, 1, 1)},
                           .y = plain(2, 5, LOSS_COLUMNS, 1, 1)},
                  .rows = 4,
                  .reference = softmax_loss};
        check(c);
        c.spec.x[0] = plain(3, 3, 4, 33, 1);
        c.spec.y = plain(2, 12, LOSS_COLUMNS, 1, 1);
        c.rows = 2;
        check(c);
    }
    check((Case){.spec = {.kind = OP_POINT_LOSS,
                          .x_count = 1,
                          .x = {plain(2, 4, 9, 1, 1)},
                          .y = plain(2, 4, LOSS_COLUMNS, 1, 1)},
                 .rows = 3,
                 .reference = mse_loss});
}

TEST_MAIN("gradients", {"activation", test_activation}, {"swiglu", test_swiglu},
          {"pool", test_pool}, {"add", test_add}, {"concat", test_concat},
          {"flatten", test_flatten}, {"dropout", test_dropout}, {"positions", test_positions},
          {"attention", test_attention}, {"losses", test_losses})
