/* Bits that tensor parallelism needs (docs/determinism.md): operations that talk to the other ranks
 * of a group give the bits of one rank. */
#include "kernel_rig.h"

#include <pthread.h>

enum { RANKS_MAX = 8 };

typedef struct Group {
    pthread_barrier_t barrier;
    const void *mine[RANKS_MAX];
} Group;

/* Every rank copies the slices of all ranks. */
static void group_gather(const Exchange *x, Slices s, const void *mine, void *whole)
{
    Group *g = x->user;
    const size_t run = (size_t)(s.items * s.item_elements) * dtype_bytes(s.type);
    g->mine[x->rank] = mine;
    pthread_barrier_wait(&g->barrier);
    for (int64_t i = 0; i < s.ranges; ++i) {
        char *to = (char *)whole + (size_t)i * run;
        for (int r = 0; r < x->size; ++r) {
            const size_t bytes = slices_range_bytes(&s, x->size, r);
            memcpy(to, (const char *)g->mine[r] + (size_t)i * bytes, bytes);
            to += bytes;
        }
    }
    pthread_barrier_wait(&g->barrier);
}

/* An operation, how ranks divide it, and the run of one rank. */
typedef struct Member Member;
typedef struct GroupCase {
    OpSpec whole;
    /* sets the part of rank r of n in the spec */
    void (*divide)(OpSpec *spec, int r, int n);
    /* fills inputs, runs the operation, and copies the results of this rank into `result` */
    void (*run)(Rig *rig, const Member *m, char *result);
    size_t bytes;
    DType precision;
} GroupCase;
struct Member {
    const GroupCase *c;
    Exchange exchange;
    char *result;
    pthread_t thread;
};

static void *member_run(void *user)
{
    Member *m = user;
    OpSpec spec = m->c->whole;
    Rig rig = {.precision = m->c->precision};
    if (m->exchange.size > 1) m->c->divide(&spec, m->exchange.rank, m->exchange.size);
    rig_open(&rig, &spec, &backend_poison, 1);
    rig.run.exchange = &m->exchange;
    m->c->run(&rig, m, m->result);
    rig_close(&rig);
    return NULL;
}

/* Runs the case on `ranks` ranks; all write to result. */
static void group_run(const GroupCase *c, int ranks, char *result)
{
    Group group;
    Member member[RANKS_MAX];
    pthread_barrier_init(&group.barrier, NULL, (unsigned)ranks);
    for (int r = 0; r < ranks; ++r) {
        member[r] = (Member){
            .c = c,
            .exchange = {.rank = r, .size = ranks, .user = &group, .all_gather = group_gather},
            .result = result};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&member[r].thread, NULL, member_run, &member[r]), 0);
    }
    for (int r = 0; r < ranks; ++r) pthread_join(member[r].thread, NULL);
    pthread_barrier_destroy(&group.barrier);
}

static void check_group(const char *what, const GroupCase *c, int most)
{
    char *want = calloc(1, c->bytes), *got = calloc(1, c->bytes);
    group_run(c, 1, want);
    for (int ranks = 2; ranks <= most; ranks *= 2) {
        memset(got, 0, c->bytes);
        group_run(c, ranks, got);
        const bool same = memcmp(want, got, c->bytes) == 0;
        CU_ASSERT(same);
        if (!same)
            for (size_t i = 0; i < c->bytes; i += 4)
                if (memcmp(want + i, got + i, 4) != 0) {
                    printf("  %s: %d ranks: float %zu is %a, not %a\n", what, ranks, i / 4,
                           (double)*(float *)(void *)(got + i),
                           (double)*(float *)(void *)(want + i));
                    break;
                }
    }
    free(want);
    free(got);
}

static SumSlices cut_of(int total, int64_t units)
{
    return (SumSlices){
        .total = total, .count = total, .units = units, .first_unit_ratio = 1, .parts = 1};
}

static void divide_slices(SumSlices *s, int rank, int ranks)
{
    s->count = s->total / ranks;
    s->first = rank * s->count;
}

static TensorSlice slice_of(int dim, int64_t whole, int rank, int ranks)
{
    const int64_t first = slice_first(whole, ranks, rank);
    return (TensorSlice){.dim = dim,
                         .rank = rank,
                         .ranks = ranks,
                         .first = first,
                         .count = slice_first(whole, ranks, rank + 1) - first,
                         .whole = whole};
}

/* Writes an element of a tensor of the rig's precision. */
static void put_value(const Rig *rig, void *to, int64_t i, float value)
{
    if (rig->precision == DTYPE_BF16)
        ((Bf16 *)to)[i] = bf16_of(value);
    else
        ((float *)to)[i] = value;
}

/* ---- norms: the sequence is divided ---- */

enum { SAMPLES = 3, TOKENS = 21, WIDTH = 37 };

static void divide_tokens(OpSpec *s, int rank, int ranks)
{
    s->x[0].shape.dim[1] = s->y.shape.dim[1] = slice_of(1, TOKENS, rank, ranks).count;
    divide_slices(&s->token_slices, rank, ranks);
}

static void norm_run(Rig *rig, const Member *m, char *result)
{
    const int64_t tokens = rig->op->spec.y.shape.dim[1];
    const int64_t first = slice_first(TOKENS, m->exchange.size, m->exchange.rank);
    for (int64_t n = 0; n < SAMPLES; ++n)
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t c = 0; c < WIDTH; ++c) {
                const int64_t at = (n * TOKENS + first + t) * WIDTH + c;
                const int64_t i = (n * tokens + t) * WIDTH + c;
                put_value(rig, (void *)rig->run.x[0], i, (float)rig_random(1, at));
                put_value(rig, rig->run.dy, i, (float)(4 * rig_random(2, at)));
            }
    for (int k = 0; k < rig->op->spec.w_count; ++k)
        for (int c = 0; c < shape_count(rig->op->spec.w[k]); ++c)
            ((float *)rig->run.w[k])[c] = (float)rig_random(3, k * WIDTH + c);
    rig->run.sample_count = m->c->precision == DTYPE_BF16 ? SAMPLES : SAMPLES - 1;
    op_forward(rig->op, &rig->run);
    rig_backward(rig);
    for (int k = 0; k < rig->op->spec.w_count; ++k)
        memcpy(result + k * WIDTH * 4, rig->run.dw[k],
               (size_t)shape_count(rig->op->spec.w[k]) * sizeof(float));
}

static void check_norms(DType precision)
{
    for (int k = 0; k < 2; ++k)
        for (int slices = 8; slices >= 2; slices /= 2) {
            GroupCase c = {
                .whole = {.kind = k % 2 ? OP_RMS_NORM : OP_LAYER_NORM,
                          .x_count = 1,
                          .w_count = k % 2 ? 1 : 2,
                          .eps = 1e-5f,
                          .need_dx = {true},
                          .w = {shape_of(1, WIDTH, 1, 1, 1), shape_of(1, WIDTH, 1, 1, 1)},
                          .x = {plain(3, SAMPLES, TOKENS, WIDTH, 1)},
                          .y = plain(3, SAMPLES, TOKENS, WIDTH, 1),
                          .token_slices = cut_of(slices, TOKENS)},
                .divide = divide_tokens,
                .run = norm_run,
                .precision = precision,
                .bytes = 2 * WIDTH * sizeof(float)};
            c.whole.x[0].dtype = c.whole.y.dtype = c.precision;
            check_group(k % 2 ? "rms_norm" : "layer_norm", &c, slices);
        }
}

/* ---- softmax_loss: the classes are divided ---- */

enum { ROWS = 7, CLASSES = 53 };

static void divide_classes(OpSpec *s, int rank, int ranks)
{
    s->slice = slice_of(0, CLASSES, rank, ranks);
    s->x[0].shape.dim[1] = s->slice.count;
    divide_slices(&s->slices, rank, ranks);
}

/* Rows: ordinary ones, ties, one where only one class is not -inf, NaN. */
static float logit_of(int64_t row, int64_t class)
{
    if (row == 2) return (float)(class % 5);
    if (row == 3 && class != 40) return -INFINITY;
    if (row == 4 && class == 11) return NAN;
    return (float)(9 * rig_random(6, row * CLASSES + class));
}

static void loss_run(Rig *rig, const Member *m, char *result)
{
    static const int32_t labels[ROWS] = {0, 52, 17, 40, 33, 26, 7};
    static const int32_t others[ROWS] = {51, 3, 18, 40, 33, 0, 45};
    const int64_t width = rig->op->spec.x[0].shape.dim[1];
    const int64_t first = slice_first(CLASSES, m->exchange.size, m->exchange.rank);
    float *out = (float *)(void *)result, *dx = out + ROWS * (LOSS_COLUMNS + 1);
    const bool mixed = rig->op->spec.smoothing > 0;
    for (int64_t r = 0; r < ROWS; ++r)
        for (int64_t k = 0; k < width; ++k)
            put_value(rig, (void *)rig->run.x[0], r * width + k, logit_of(r, first + k));
    rig->run.labels = labels;
    rig->run.labels_other = mixed ? others : NULL;
    rig->run.label_share = 0.3f;
    rig->run.sample_count = ROWS - 1;
    op_forward(rig->op, &rig->run);
    rig_backward(rig);
    if (m->exchange.rank == m->exchange.size - 1) {
        memcpy(out, rig->run.y, ROWS * LOSS_COLUMNS * sizeof *out);
        memcpy(out + ROWS * LOSS_COLUMNS, rig->run.saved, ROWS * sizeof *out);
    }
    for (int64_t r = 0; r < ROWS; ++r)
        for (int64_t k = 0; k < width; ++k)
            dx[r * CLASSES + first + k] = rig->precision == DTYPE_BF16
                                              ? bf16_value(((Bf16 *)rig->run.dx[0])[r * width + k])
                                              : ((float *)rig->run.dx[0])[r * width + k];
}

static void check_loss(DType precision)
{
    for (int k = 0; k < 2; ++k)
        for (int slices = 8; slices >= 2; slices /= 2) {
            GroupCase c = {.whole = {.kind = OP_SOFTMAX_LOSS,
                                     .x_count = 1,
                                     .smoothing = k % 2 ? 0.1f : 0.0f,
                                     .need_dx = {true},
                                     .x = {plain(2, ROWS, CLASSES, 1, 1)},
                                     .y = plain(2, ROWS, LOSS_COLUMNS, 1, 1),
                                     .slices = cut_of(slices, CLASSES)},
                           .divide = divide_classes,
                           .run = loss_run,
                           .precision = precision,
                           .bytes = ROWS * (LOSS_COLUMNS + 1 + CLASSES) * sizeof(float)};
            c.whole.x[0].dtype = c.precision;
            check_group("softmax_loss", &c, slices);
        }
}

/* With slices the loss is right, too: against whole rows, up to rounding. */
static void test_loss_values(void)
{
    static float whole[ROWS * (LOSS_COLUMNS + 1 + CLASSES)],
        cut[ROWS * (LOSS_COLUMNS + 1 + CLASSES)];
    for (int smoothed = 0; smoothed < 2; ++smoothed) {
        GroupCase c = {.whole = {.kind = OP_SOFTMAX_LOSS,
                                 .x_count = 1,
                                 .smoothing = smoothed ? 0.1f : 0.0f,
                                 .need_dx = {true},
                                 .x = {plain(2, ROWS, CLASSES, 1, 1)},
                                 .y = plain(2, ROWS, LOSS_COLUMNS, 1, 1)},
                       .run = loss_run};
        group_run(&c, 1, (char *)whole);
        c.whole.slices = cut_of(8, CLASSES);
        group_run(&c, 1, (char *)cut);
        for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
            const bool equal = cut[i] == whole[i] || (isnan(cut[i]) && isnan(whole[i]));
            CU_ASSERT(equal || fabsf(cut[i] - whole[i]) <= 2e-6f * fabsf(whole[i]) + 1e-8f);
        }
    }
}

/* ---- embedding and positions: other ranks' zeros change nothing ---- */

enum { VOCABULARY = 11 };

static void divide_vocabulary(OpSpec *s, int rank, int ranks)
{
    s->slice = slice_of(0, VOCABULARY, rank, ranks);
    s->w[0].dim[0] = s->slice.count;
}

static float table_value(int64_t row, int64_t c)
{
    return c % 3 == 0 ? -0.0f : (float)rig_random(7, row * WIDTH + c);
}

/* Adds the ranks' outputs in the order of ranks. */
static void embedding_run(Rig *rig, const Member *m, char *result)
{
    enum { COUNT = SAMPLES * TOKENS * WIDTH };
    const int64_t rows = rig->op->spec.w[0].dim[0];
    const int64_t first = slice_first(VOCABULARY, m->exchange.size, m->exchange.rank);
    int32_t *token = (int32_t *)rig->run.x[0];
    float *all = malloc((size_t)m->exchange.size * COUNT * sizeof *all);
    for (int64_t i = 0; i < SAMPLES * TOKENS; ++i) token[i] = (int32_t)(i * 5 % VOCABULARY);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < WIDTH; ++c)
            ((float *)rig->run.w[0])[r * WIDTH + c] = table_value(first + r, c);
    rig->run.sample_count = SAMPLES - 1;
    op_forward(rig->op, &rig->run);
    memcpy(all, rig->run.y, COUNT * sizeof *all);
    if (m->exchange.size > 1)
        group_gather(&m->exchange,
                     (Slices){.ranges = 1, .items = m->exchange.size, .item_elements = COUNT},
                     rig->run.y, all);
    for (int r = 1; r < m->exchange.size; ++r)
        for (int64_t i = 0; i < COUNT; ++i) all[i] += all[r * COUNT + i];
    if (m->exchange.rank == 0) memcpy(result, all, COUNT * sizeof *all);
    free(all);
}

static void test_embedding(void)
{
    Desc tokens = desc_plain(shape_of(2, SAMPLES, TOKENS, 1, 1), DTYPE_I32);
    GroupCase c = {.whole = {.kind = OP_EMBEDDING,
                             .x_count = 1,
                             .w_count = 1,
                             .w = {shape_of(2, VOCABULARY, WIDTH, 1, 1)},
                             .x = {tokens},
                             .y = plain(3, SAMPLES, TOKENS, WIDTH, 1)},
                   .divide = divide_vocabulary,
                   .run = embedding_run,
                   .bytes = SAMPLES * TOKENS * WIDTH * sizeof(float)};
    check_group("embedding", &c, RANKS_MAX);
}

static void test_f32(void)
{
    check_norms(DTYPE_F32);
    check_loss(DTYPE_F32);
}

static void test_bf16(void)
{
    Backend *backend = NULL;
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    if (backend_open(&backend, &backend_poison, options) != OK) TEST_SKIP(fail_message());
    backend_close(&backend);
    check_norms(DTYPE_BF16);
    check_loss(DTYPE_BF16);
}

TEST_MAIN("sliced operations", {"norms and loss, fp32", test_f32},
          {"norms and loss, bf16", test_bf16}, {"values of the loss", test_loss_values},
          {"embedding", test_embedding})
