/* Tests of operations that are sliced over the ranks of a tensor-parallel group. The GPU's results
 * are compared with the CPU's, and all slices together with the whole operation. All slices
 * together have the same bits as the whole operation, except for the loss, whose sums are added in
 * another order. */
#ifndef WEFT_TEST_CUDA_SLICE_CASES_H
#define WEFT_TEST_CUDA_SLICE_CASES_H

#include "exchange_cases.h"
#include "pairs.h"

/* How the ranks' tensors form the whole tensor: as slices, as a sum, or each is the whole
 * tensor. */
typedef enum Together { CUT, SUM, SAME } Together;

typedef struct SliceCase {
    const char *name, *kind, *attrs;
    Shape x;
    /* dim: dimension that is sliced (for an embedding, of the table); rows: number of real samples,
     * 0: all */
    int dim, rows;
    Together y, dw;
    Bound bound;
} SliceCase;

enum { WHOLE = -1, SLICE_VOCAB = 101 };

typedef struct SliceTest {
    const SliceCase *c;
    /* the whole operation, on the GPU */
    Rig whole;
    Ranks cpu, gpu;
    /* cut_w: slices of an embedding's table */
    Slices cut_x, cut_w;
    /* owned, [SLICE_ROOM] each */
    float *given, *got;
} SliceTest;

static bool has_tokens(const SliceCase *c)
{
    return strcmp(c->kind, "embedding") == 0;
}

static bool is_loss(const SliceCase *c)
{
    return strcmp(c->kind, "softmax_loss") == 0;
}

static Status slice_open(Rig *rig, Backend *backend, const SliceCase *c, int rank)
{
    char attrs[128];
    Shape x = c->x;
    TensorSlice slice = {0};
    int64_t whole = has_tokens(c) ? SLICE_VOCAB : x.dim[c->dim];
    if (rank != WHOLE) slice = rank_slice(c->dim, whole, rank);
    if (rank != WHOLE && !has_tokens(c)) x.dim[c->dim] = slice.count;
    snprintf(attrs, sizeof attrs, has_tokens(c) ? "%s vocab=%d" : "%s", c->attrs,
             rank == WHOLE ? SLICE_VOCAB : (int)slice.count);
    TRY(rig_spec(rig, backend, c->kind, attrs));
    rig->spec.slice = slice;
    rig->spec.x_count = 1;
    rig->spec.x[0] = desc_plain(x, has_tokens(c) ? DTYPE_I32 : DTYPE_F32);
    rig->spec.need_dx[0] = !has_tokens(c);
    TRY(layer_infer_shapes(layer_kind(c->kind), &rig->spec, &rig->size, rig->param));
    if (is_loss(c)) rig->spec.x[0] = dense_output(backend, x);
    TRY(rig_plan(rig));
    rig_memory(rig);
    if (c->rows) rig->run.sample_count = c->rows;
    rig->run.loss_factor = 0.125f;
    return OK;
}

static Status slices_open(SliceTest *t, Backend *device)
{
    const Shape *x = &t->c->x;
    t->cut_x =
        (Slices){.ranges = 1, .items = x->dim[t->c->dim], .item_elements = 1, .type = DTYPE_F32};
    for (int i = 0; i < x->ndim; ++i) {
        if (i < t->c->dim) t->cut_x.ranges *= x->dim[i];
        if (i > t->c->dim) t->cut_x.item_elements *= x->dim[i];
    }
    TRY(slice_open(&t->whole, device, t->c, WHOLE));
    for (int r = 0; r < SLICES; ++r) {
        t->gpu.rig[r].in_place = true;
        TRY(slice_open(&t->cpu.rig[r], cpu, t->c, r));
        TRY(slice_open(&t->gpu.rig[r], device, t->c, r));
        t->cpu.rig[r].run.exchange = &t->cpu.exchange[r];
        t->gpu.rig[r].run.exchange = &t->gpu.exchange[r];
    }
    if (t->whole.spec.w_count)
        t->cut_w = (Slices){.ranges = 1,
                            .items = t->whole.spec.w[0].dim[0],
                            .item_elements = t->whole.spec.w[0].dim[1],
                            .type = DTYPE_F32};
    return OK;
}

/* Sets sample ids and labels in all rigs. */
static void slices_set_lines(SliceTest *t, const int64_t *sample, const int32_t *labels,
                             int64_t lines)
{
    Rig *rigs[2 * SLICES + 1] = {&t->whole};
    for (int r = 0; r < SLICES; ++r) {
        rigs[1 + r] = &t->cpu.rig[r];
        rigs[1 + SLICES + r] = &t->gpu.rig[r];
    }
    for (int i = 0; i < 2 * SLICES + 1; ++i) {
        rig_set_samples(rigs[i], sample, t->c->x.dim[0]);
        if (is_loss(t->c)) rig_set_labels(rigs[i], labels, lines);
    }
}

static void slices_give_w(SliceTest *t)
{
    const SliceCase *c = t->c;
    fill(t->given, t->cut_w.items * t->cut_w.item_elements, 1);
    rig_set_w(&t->whole, 0, t->given);
    for (int r = 0; r < SLICES; ++r) {
        if (c->dw == CUT) slice_move(t->cut_w, r, t->given, t->got, false);
        rig_set_w(&t->cpu.rig[r], 0, c->dw == CUT ? t->got : t->given);
        rig_set_w(&t->gpu.rig[r], 0, c->dw == CUT ? t->got : t->given);
    }
}

static void slices_give(SliceTest *t)
{
    const SliceCase *c = t->c;
    int64_t n = shape_count(c->x), lines = n / c->x.dim[c->x.ndim - 1], id[16];
    for (int64_t i = 0; i < c->x.dim[0] && i < 16; ++i) id[i] = 1000003 * i + (INT64_C(7) << 40);
    int32_t *labels = mem_new((size_t)lines * sizeof *labels);
    fill_tokens(labels, lines, c->x.dim[c->x.ndim - 1]);
    slices_set_lines(t, id, labels, lines);
    mem_free(&labels);
    if (has_tokens(c))
        fill_tokens((int32_t *)t->given, n, SLICE_VOCAB);
    else
        fill(t->given, n, 4);
    rig_set_x(&t->whole, 0, t->given);
    for (int r = 0; r < SLICES; ++r) {
        if (has_tokens(c))
            memcpy(t->gpu.x[r], t->given, (size_t)n * sizeof(float));
        else
            slice_move(t->cut_x, r, t->given, t->gpu.x[r], false);
        memcpy(t->cpu.x[r], t->gpu.x[r], SLICE_ROOM * sizeof(float));
    }
    if (t->whole.spec.w_count) slices_give_w(t);
}

/* Compares gpu.out with cpu.out for each rank, and all ranks' results together with `got`, the
 * result of the whole operation. */
static void slices_compare(SliceTest *t, Part part, Together how, Slices cut, const char *tensor)
{
    const SliceCase *c = t->c;
    int64_t n = cut.ranges * cut.items * cut.item_elements;
    for (int r = 0; r < SLICES; ++r) {
        int64_t count = how == CUT ? (int64_t)(slice_bytes(cut, r) / sizeof(float)) : n;
        compare(c->name, t->whole.backend, part, c->bound, c->name, tensor, t->gpu.out[r],
                t->cpu.out[r], count);
    }
    memcpy(t->given, t->gpu.out[0], (size_t)n * sizeof(float));
    for (int r = 0; r < SLICES; ++r) {
        if (how == CUT) slice_move(cut, r, t->given, t->gpu.out[r], true);
        for (int64_t i = 0; how == SUM && r > 0 && i < n; ++i) t->given[i] += t->gpu.out[r][i];
        if (how == SAME)
            CU_ASSERT_EQUAL(memcmp(t->given, t->gpu.out[r], (size_t)n * sizeof(float)), 0);
    }
    if (is_loss(c))
        compare(c->name, t->whole.backend, part, c->bound, "slices together", tensor, t->given,
                t->got, n);
    /* the same bits, except that -0 equals 0 */
    else
        CU_ASSERT_EQUAL(relative_error(t->given, t->got, n), 0);
}

/* Compares the integer columns of a loss, and clears them. */
static void slices_compare_counts(SliceTest *t, int64_t lines)
{
    for (int64_t i = 0; i < lines * LOSS_COLUMNS; ++i)
        if (i % LOSS_COLUMNS > 0) {
            CU_ASSERT_EQUAL(t->gpu.out[0][i], t->got[i]);
            CU_ASSERT_EQUAL(t->cpu.out[0][i], t->got[i]);
            for (int r = 0; r < SLICES; ++r) t->cpu.out[r][i] = t->gpu.out[r][i] = t->got[i] = 0;
        }
}

static void slices_run_forward(SliceTest *t)
{
    Slices y = {.ranges = 1, .items = shape_count(t->whole.spec.y.shape), .item_elements = 1};
    rig_poison(&t->whole);
    rig_forward(&t->whole);
    rig_get_y(&t->whole, t->got);
    ranks_forward(&t->cpu);
    ranks_forward(&t->gpu);
    for (int r = 0; r < SLICES; ++r) {
        rig_get_y(&t->cpu.rig[r], t->cpu.out[r]);
        rig_get_y(&t->gpu.rig[r], t->gpu.out[r]);
    }
    for (int r = 1; r < SLICES && is_loss(t->c); ++r)
        CU_ASSERT_EQUAL(memcmp(t->gpu.out[0], t->gpu.out[r], (size_t)y.items * sizeof(float)), 0);
    if (is_loss(t->c)) slices_compare_counts(t, y.items / LOSS_COLUMNS);
    slices_compare(t, PART_Y, t->c->y, t->c->y == CUT ? t->cut_x : y, "y");
}

static void slices_run_backward(SliceTest *t)
{
    const SliceCase *c = t->c;
    int64_t n = shape_count(t->whole.spec.y.shape);
    fill(t->given, n, 1);
    for (int r = 0; r < SLICES; ++r) {
        if (c->y == CUT)
            slice_move(t->cut_x, r, t->given, t->gpu.dy[r], false);
        else
            memcpy(t->gpu.dy[r], t->given, (size_t)n * sizeof(float));
        memcpy(t->cpu.dy[r], t->gpu.dy[r], SLICE_ROOM * sizeof(float));
    }
    rig_backward(&t->whole, is_loss(c) ? NULL : t->given);
    ranks_backward(&t->cpu);
    ranks_backward(&t->gpu);
    for (int r = 0; r < SLICES && t->whole.spec.need_dx[0]; ++r) {
        rig_get_dx(&t->cpu.rig[r], 0, t->cpu.out[r]);
        rig_get_dx(&t->gpu.rig[r], 0, t->gpu.out[r]);
    }
    if (t->whole.spec.need_dx[0]) {
        rig_get_dx(&t->whole, 0, t->got);
        slices_compare(t, PART_DX, CUT, t->cut_x, "dx");
    }
    if (t->whole.spec.w_count == 0) return;
    rig_get_dw(&t->whole, 0, t->got);
    for (int r = 0; r < SLICES; ++r) {
        rig_get_dw(&t->cpu.rig[r], 0, t->cpu.out[r]);
        rig_get_dw(&t->gpu.rig[r], 0, t->gpu.out[r]);
    }
    slices_compare(t, PART_DW, c->dw, t->cut_w, "dw");
}

static SliceTest *slices_new(const SliceCase *c)
{
    SliceTest *t = mem_new(sizeof *t);
    t->c = c;
    ranks_init(&t->cpu);
    ranks_init(&t->gpu);
    t->given = mem_new(SLICE_ROOM * sizeof(float));
    t->got = mem_new(SLICE_ROOM * sizeof(float));
    return t;
}

static void slices_free(SliceTest **t)
{
    rig_close(&(*t)->whole);
    ranks_fini(&(*t)->cpu);
    ranks_fini(&(*t)->gpu);
    mem_free(&(*t)->given);
    mem_free(&(*t)->got);
    mem_free(t);
}

static void check_slices(const SliceCase *c, Backend *device)
{
    SliceTest *t = slices_new(c);
    Status st = slices_open(t, device);
    if (st != OK) printf("  %s, sliced: %s\n", c->name, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        slices_give(t);
        slices_run_forward(t);
        slices_run_backward(t);
    }
    slices_free(&t);
}

/* A label that is not a class makes the loss of its row NaN, on all ranks; other rows do not
 * change. */
static void check_bad_labels(Backend *device)
{
    const SliceCase c = {"sliced loss", "softmax_loss",     "", {2, {4, 50, 1, 1}}, 1, 0, SAME,
                         CUT,           allowed.elementwise};
    const int32_t labels[] = {49, 50, -1, 17};
    SliceTest *t = slices_new(&c);
    CHECK_OK(slices_open(t, device));
    slices_give(t);
    for (int r = 0; r < SLICES; ++r) rig_set_labels(&t->gpu.rig[r], labels, 4);
    ranks_forward(&t->gpu);
    for (int r = 0; r < SLICES; ++r) {
        rig_get_y(&t->gpu.rig[r], t->got);
        for (int i = 0; i < 4; ++i)
            CU_ASSERT_EQUAL(!isnan(t->got[LOSS_COLUMNS * i]), labels[i] >= 0 && labels[i] < 50);
    }
    slices_free(&t);
}

static void test_slices(void)
{
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    const Bound close = allowed.elementwise;
    const char *loss = "sliced loss", *drop = "sliced dropout";
    const SliceCase cases[] = {
        {loss, "softmax_loss", "", {2, {9, 50, 1, 1}}, 1, 0, SAME, CUT, close},
        {loss, "softmax_loss", "smoothing=0.1", {3, {4, 5, 100, 1}}, 2, 3, SAME, CUT, close},
        {loss, "softmax_loss", "smoothing=0.1", {2, {5, 3089, 1, 1}}, 1, 4, SAME, CUT, close},
        {loss, "softmax_loss", "", {2, {3, 4000, 1, 1}}, 1, 0, SAME, CUT, close},
        {drop, "dropout", "p=0.3", {3, {3, 17, 24, 1}}, 1, 0, CUT, CUT, close},
        {drop, "dropout", "p=0.3", {3, {3, 17, 7, 1}}, 1, 0, CUT, CUT, close},
        {drop, "dropout", "p=0.3", {3, {2, 5, 72, 1}}, 2, 0, CUT, CUT, close},
        {drop, "dropout", "p=0.3", {3, {2, 5, 47, 1}}, 2, 0, CUT, CUT, close},
        {drop, "dropout", "p=0.3", {2, {5, 144, 1, 1}}, 1, 0, CUT, CUT, close},
        {"sliced places", "positions", "context=20", {3, {3, 17, 33, 1}}, 1, 2, CUT, SUM, close},
        {"sliced places", "positions", "context=17", {3, {3, 17, 16, 1}}, 1, 0, CUT, SUM, close},
        {"sliced embed.", "embedding", "width=33", {2, {4, 70, 1, 1}}, 0, 0, SUM, CUT, close},
        {"sliced embed.", "embedding", "width=48", {2, {3, 90, 1, 1}}, 0, 2, SUM, CUT, close},
    };
    for (int d = 0; d < 3; ++d) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
            check_slices(&cases[i], devices[d]);
        check_bad_labels(devices[d]);
        check_exchanges(devices[d]);
    }
}

typedef struct SumCase {
    OpCase op;
    /* fields of SumSlices, with all slices on one rank; lead: first_unit_ratio; total 0: the sum is
     * not cut */
    int total, units, parts, lead;
    /* true: the sum is over a dense layer's inputs */
    bool inputs;
    /* true: the sum over the 40 tokens is in slices, too */
    bool tokens;
} SumCase;

/* Compares sums in slices on the GPU with undivided sums on the CPU: over inputs and over outputs,
 * with several parts and odd sizes, with fused activations, over rows of a loss, and over
 * tokens. */
static void check_cut_sums(Backend *device)
{
    const Bound product = allowed.product, each = allowed.elementwise;
    const SumCase cases[] = {
        {{"dense", "width=40", 1, {3, {3, 40, 64, 1}}, ACT_GELU, 0, product},
         8,
         64,
         1,
         1,
         true,
         true},
        {{"dense", "width=33", 1, {2, {37, 21, 1, 1}}, ACT_RELU, 0, product},
         8,
         21,
         1,
         1,
         true,
         false},
        {{"dense", "width=128", 1, {3, {3, 5, 24, 1}}, ACT_NONE, 0, product},
         4,
         4,
         3,
         2,
         false,
         false},
        {{"dense", "width=42", 1, {2, {37, 24, 1, 1}}, ACT_GELU, 0, product},
         4,
         21,
         2,
         1,
         false,
         false},
        {{"dense", "width=1027 bias=false", 1, {2, {21, 40, 1, 1}}, ACT_NONE, 0, product},
         8,
         1027,
         1,
         1,
         false,
         false},
        {{"layer_norm", "", 1, {3, {3, 40, 64, 1}}, ACT_NONE, 2, product}, 0, 0, 0, 0, false, true},
        {{"rms_norm", "", 1, {3, {3, 40, 64, 1}}, ACT_NONE, 2, product}, 0, 0, 0, 0, false, true},
        {{"positions", "context=50", 1, {3, {3, 40, 33, 1}}, ACT_NONE, 2, each},
         0,
         0,
         0,
         0,
         false,
         true},
        {{"softmax_loss", "smoothing=0.1", 1, {2, {37, 1000, 1, 1}}, ACT_NONE, 30, each},
         8,
         1000,
         1,
         1,
         false,
         false},
        {{"softmax_loss", "", 1, {3, {4, 5, 50, 1}}, ACT_NONE, 3, each}, 8, 50, 1, 1, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const SumCase *c = &cases[i];
        Pair p = pair_new();
        p.slices = (SumSlices){c->total, 0, c->total, c->units, c->units, c->lead, c->parts};
        if (c->tokens) p.tokens = (SumSlices){8, 0, 8, 40, 40, 1, 1};
        p.slices_inputs = c->inputs;
        run_op(&p, &c->op, device, NULL);
        pair_free(&p);
    }
}

static void test_slices_of_sums(void)
{
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    for (int d = 0; d < 3; ++d) check_cut_sums(devices[d]);
}

#endif
