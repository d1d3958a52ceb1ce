/* Runs one operation on the CPU and on the GPU with the same inputs, and compares outputs and
 * gradients. The GPU must give the same bits twice. All memory that an operation has to write is
 * filled with NaN first. */
#ifndef WEFT_TEST_CUDA_PAIRS_H
#define WEFT_TEST_CUDA_PAIRS_H

#include "cases.h"

typedef struct OpCase {
    const char *kind, *attrs;
    int x_count;
    Shape x;
    /* fused activation */
    Act act;
    /* number of real samples; 0: all */
    int rows;
    Bound bound;
} OpCase;

typedef struct Pair {
    const OpCase *c;
    /* True: the first input has other readers. The GPU's operation adds its gradient to the
     * gradient of the other readers; for the CPU the test adds the two. */
    bool adds;
    /* OpSpec.slices and tokens on the GPU; on the CPU sums are not divided into slices */
    SumSlices slices, tokens;
    bool slices_inputs;
    /* the operation on the CPU, then on the GPU */
    Rig rig[2];
    /* gelu on the CPU, for a dense layer with gelu, which only the GPU fuses */
    Rig act;
    /* scratch; owned, [LARGEST] each */
    float *given, *got[2];
    /* gradient of the other readers; owned, [LARGEST] */
    float *before;
    /* hash of the GPU's results */
    uint64_t bits;
    char what[128];
} Pair;

static Status open_act(Pair *p)
{
    TRY(rig_spec(&p->act, cpu, "gelu", NULL));
    p->act.spec.x_count = 1;
    p->act.spec.x[0] = p->rig[0].spec.y;
    return rig_open(&p->act, "gelu");
}

/* Sets at most SUMS sums over inputs with `channels` channels each. The sums have no, one or two
 * terms, and some channels are terms of several sums. */
static void set_channel_sums(OpSpec *spec, int channels)
{
    enum { SUMS = 300 };
    static ChannelSum sums[SUMS];
    const int inputs = spec->x_count;
    for (int c = 0; c < SUMS; ++c) {
        const ChannelTerm a = {(int16_t)(c % inputs), (int16_t)(c % channels),
                               1 + 0.5f * (float)(c % 3)};
        const ChannelTerm b = {(int16_t)(c / 2 % inputs), (int16_t)(c / 3 % channels), -0.75f};
        sums[c] = (ChannelSum){c % 3, 0.25f * (float)(c % 4), {a, b}};
    }
    spec->channel_sums = sums;
    spec->sums = channels < SUMS ? channels + 2 : SUMS;
}

static void set_inputs(OpSpec *spec, const OpCase *c)
{
    const bool tokens = strcmp(c->kind, "embedding") == 0;
    spec->x_count = c->x_count;
    for (int i = 0; i < c->x_count; ++i)
        spec->x[i] = desc_plain(c->x, tokens ? DTYPE_I32 : DTYPE_F32);
    if (strcmp(c->kind, "film") == 0)
        spec->x[1] = desc_plain(shape_of(2, c->x.dim[0], 2 * c->x.dim[1], 1, 1), DTYPE_F32);
    if (strcmp(c->kind, "channel_sum") == 0) set_channel_sums(spec, (int)c->x.dim[1]);
}

static Status pair_open(Pair *p, const OpCase *c, Backend *device)
{
    char shape[64];
    p->c = c;
    p->act = (Rig){0};
    snprintf(p->what, sizeof p->what, "%s %s on %s%s", c->kind, c->attrs, shape_text(c->x, shape),
             c->act ? ", fused" : "");
    for (int d = 0; d < 2; ++d) {
        Rig *rig = &p->rig[d];
        *rig = (Rig){0};
        TRY(rig_spec(rig, d ? device : cpu, c->kind, c->attrs));
        bool apart = c->act == ACT_GELU && d == 0;
        if (c->act != ACT_NONE && !apart) rig->spec.act = c->act;
        set_inputs(&rig->spec, c);
        rig->spec.x_shared = p->adds;
        if (d == 1) {
            rig->spec.slices = p->slices;
            rig->spec.token_slices = p->tokens;
            rig->spec.slices_inputs = p->slices_inputs;
        }
        TRY(rig_open(rig, c->kind));
        if (c->rows) rig->run.sample_count = c->rows;
    }
    if (p->adds) CU_ASSERT_TRUE(p->rig[1].op->dx_adds);
    return c->act == ACT_GELU ? open_act(p) : OK;
}

static void pair_close(Pair *p)
{
    for (int d = 0; d < 2; ++d) rig_close(&p->rig[d]);
    rig_close(&p->act);
}

static void pair_give(Pair *p)
{
    const OpSpec *spec = &p->rig[0].spec;
    int64_t samples = spec->x[0].shape.dim[0], *id = mem_new((size_t)samples * sizeof *id);
    for (int64_t n = 0; n < samples; ++n) id[n] = 1000003 * n + (INT64_C(7) << 40);
    for (int d = 0; d < 2; ++d) rig_set_samples(&p->rig[d], id, samples);
    mem_free(&id);
    for (int i = 0; i < spec->x_count; ++i) {
        int64_t count = shape_count(spec->x[i].shape);
        if (spec->x[i].dtype == DTYPE_I32)
            fill_tokens((int32_t *)p->given, count, spec->w[0].dim[0]);
        else
            fill(p->given, count, spec->w_count > 0 || spec->kind == OP_ATTENTION ? 1 : 4);
        for (int d = 0; d < 2; ++d) rig_set_x(&p->rig[d], i, p->given);
    }
    for (int i = 0; i < spec->w_count; ++i) {
        fill(p->given, shape_count(spec->w[i]), 1);
        for (int d = 0; d < 2; ++d) rig_set_w(&p->rig[d], i, p->given);
    }
}

/* Sets three boxes for each of three samples; the second and the third box of the first sample are
 * equal. */
static void pair_give_boxes(Pair *p)
{
    static const float row[9][BOX_NUMBERS] = {
        {0, 0.3f, 0.5f, 0.4f, 0.3f},   {0, 0.7f, 0.2f, 0.9f, 1},      {0, 0.7f, 0.2f, 0.9f, 1},
        {0, 1, 0, 0.7f, 0.7f},         {0, 0.5f, 0.25f, 0.3f, 0.4f},  {0, 0.1f, 0.9f, 0.5f, 0.8f},
        {0, 0.62f, 0.6f, 0.2f, 0.35f}, {0, 0.4f, 0.125f, 0.6f, 0.9f}, {0, 0.5f, 0.5f, 0, 0.4f}};
    static const int32_t start[] = {0, 3, 6, 9}, match_counts[] = {31, 17, 23, 7};
    for (int d = 0; d < 2; ++d) {
        rig_set_boxes(&p->rig[d], start, row[0], match_counts + 3 - p->rig[d].spec.x_count);
    }
}

/* Sets targets. For fields, also sets weights, and every fourth target is missing. Fields of shape
 * (N,C,L) have other weights for each sample. */
static void pair_give_targets(Pair *p)
{
    const Shape x = p->rig[0].spec.x[0].shape;
    const int64_t count = shape_count(x), each = count / x.dim[0];
    const int64_t step = x.ndim == 3 ? each : 0, weight_count = step > 0 ? count : each;
    float *weights = mem_new((size_t)weight_count * sizeof *weights);
    fill(weights, weight_count, 1);
    for (int64_t i = 0; i < weight_count; ++i) weights[i] = fabsf(weights[i]);
    for (int64_t i = 0; x.ndim > 2 && i < count; i += 4) p->given[i] = NAN;
    for (int d = 0; d < 2; ++d) {
        rig_set_targets(&p->rig[d], p->given, count);
        if (x.ndim > 2) rig_set_target_weights(&p->rig[d], weights, weight_count, step);
    }
    mem_free(&weights);
}

/* Sets labels. If each pixel has a label, one label in five is missing. */
static void pair_give_classes(Pair *p)
{
    const OpSpec *spec = &p->rig[0].spec;
    const Shape x = spec->x[0].shape;
    const int64_t lines = loss_labels(spec);
    uint64_t classes = (uint64_t)x.dim[x.ndim == 4 ? 1 : x.ndim - 1];
    RngKey key = rng_key(seed, RNG_TEST, 0, 1);
    int32_t *labels = mem_new((size_t)lines * sizeof *labels);
    if (spec->kind == OP_SIGMOID_LOSS) classes = 2;
    for (int64_t i = 0; i < lines; ++i)
        labels[i] = x.ndim == 4 && i % 5 == 3 ? -1 : (int32_t)(rng_u32(key, (uint64_t)i) % classes);
    for (int d = 0; d < 2; ++d) rig_set_labels(&p->rig[d], labels, lines);
    mem_free(&labels);
}

static void pair_give_labels(Pair *p)
{
    const OpSpec *spec = &p->rig[0].spec;
    const OpReads reads = op_info(spec->kind)->reads;
    const int64_t count = shape_count(spec->x[0].shape), each = count / spec->x[0].shape.dim[0];
    /* gradients of the mean of many losses are small, and fp16 would lose their digits */
    for (int d = 0; d < 2; ++d) p->rig[d].run.loss_factor = each > 4096 ? 4096 : 0.125f;
    fill(p->given, count, 1);
    if (reads == READS_BOXES)
        pair_give_boxes(p);
    else if (reads == READS_LABELS)
        pair_give_classes(p);
    else
        pair_give_targets(p);
}

static void pair_give_before(Pair *p)
{
    Rig *rig = &p->rig[1];
    if (!p->adds) return;
    fill(p->before, shape_count(p->c->x), 1);
    rig_put(rig, rig->spec.x[0], rig->run.dx[0], p->before);
    rig->run.dx_add = true;
}

static void pair_compare(Pair *p, Part part, Bound bound, const char *tensor, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    compare(p->c->kind, p->rig[1].backend, part, bound, p->what, tensor, p->got[1], p->got[0], n);
    p->bits = hash_bytes(p->got[1], bytes) ^ p->bits * 1099511628211u;
}

/* Compares the columns of a loss: the loss, the number of logits that are larger than the label's,
 * and the index of the largest logit. */
static void pair_compare_losses(Pair *p, int64_t lines)
{
    static const char *const column[LOSS_COLUMNS] = {"loss", "how many are larger", "the largest"};
    float *all[2] = {p->got[0], p->got[1]}, *one[2];
    for (int d = 0; d < 2; ++d) one[d] = mem_new((size_t)lines * sizeof *one[d]);
    for (int c = 0; c < LOSS_COLUMNS; ++c) {
        for (int d = 0; d < 2; ++d)
            for (int64_t i = 0; i < lines; ++i) one[d][i] = all[d][i * LOSS_COLUMNS + c];
        memcpy(p->got, one, sizeof p->got);
        pair_compare(p, PART_Y, c == 0 ? p->c->bound : allowed.equal, column[c], lines);
        memcpy(p->got, all, sizeof p->got);
    }
    for (int d = 0; d < 2; ++d) mem_free(&one[d]);
}

static void pair_compare_gradients(Pair *p)
{
    const OpSpec *spec = &p->rig[0].spec;
    char name[32];
    for (int i = 0; i < spec->x_count; ++i) {
        if (!spec->need_dx[i]) continue;
        int64_t n = shape_count(spec->x[i].shape);
        for (int d = 0; d < 2; ++d) rig_get_dx(&p->rig[d], i, p->got[d]);
        for (int64_t e = 0; i == 0 && p->adds && e < n; ++e) p->got[0][e] += p->before[e];
        snprintf(name, sizeof name, "dx[%d]", i);
        pair_compare(p, PART_DX, p->c->bound, name, n);
    }
    for (int i = 0; i < spec->w_count; ++i) {
        for (int d = 0; d < 2; ++d) rig_get_dw(&p->rig[d], i, p->got[d]);
        snprintf(name, sizeof name, "dw[%d]", i);
        pair_compare(p, PART_DW, p->c->bound, name, shape_count(spec->w[i]));
    }
}

/* Runs forward and backward on both devices, and compares. Returns a hash of the GPU's results. */
static uint64_t pair_run(Pair *p)
{
    const bool loss = op_is_loss(op_info(p->rig[0].spec.kind));
    const bool boxes = op_info(p->rig[0].spec.kind)->reads == READS_BOXES;
    int64_t y_count = shape_count(p->rig[0].spec.y.shape);
    p->bits = 0;
    pair_give(p);
    if (loss) pair_give_labels(p);
    for (int d = 0; d < 2; ++d) {
        rig_poison(&p->rig[d]);
        rig_forward(&p->rig[d]);
        rig_get_y(&p->rig[d], p->got[d]);
    }
    if (p->act.op) {
        rig_set_x(&p->act, 0, p->got[0]);
        rig_forward(&p->act);
        rig_get_y(&p->act, p->got[0]);
    }
    if (loss && !boxes)
        pair_compare_losses(p, y_count / LOSS_COLUMNS);
    else
        pair_compare(p, PART_Y, p->c->bound, "y", y_count);
    pair_give_before(p);
    fill(p->given, y_count, 1);
    rig_backward(&p->rig[1], loss ? NULL : p->given);
    if (p->act.op) {
        rig_backward(&p->act, p->given);
        rig_get_dx(&p->act, 0, p->given);
    }
    rig_backward(&p->rig[0], loss ? NULL : p->given);
    pair_compare_gradients(p);
    return p->bits;
}

/* Runs twice on the same numbers and compares the bits. */
static void pair_run_twice(Pair *p)
{
    uint64_t before = draws, bits = pair_run(p);
    draws = before;
    bool same = pair_run(p) == bits;
    if (!same)
        printf("  %s %s: not the same bits a second time\n", p->what,
               table_type[type_of(p->rig[1].backend)].name);
    CU_ASSERT_TRUE(same);
}

static Pair pair_new(void)
{
    Pair p = {.given = mem_new(LARGEST * sizeof(float)),
              .before = mem_new(LARGEST * sizeof(float))};
    for (int d = 0; d < 2; ++d) p.got[d] = mem_new(LARGEST * sizeof(float));
    return p;
}

static void pair_free(Pair *p)
{
    for (int d = 0; d < 2; ++d) mem_free(&p->got[d]);
    mem_free(&p->before);
    mem_free(&p->given);
}

/* Tests an operation. kernels: words that op->kernels must contain; "": op->kernels must be NULL;
 * NULL: not checked. */
static void run_op(Pair *p, const OpCase *c, Backend *device, const char *kernels)
{
    Status st = pair_open(p, c, device);
    if (st != OK) printf("  %s: %s\n", p->what, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    const char *said = st == OK && p->rig[1].op->kernels ? p->rig[1].op->kernels : "";
    if (st == OK && kernels) CU_ASSERT_TRUE(*kernels ? strstr(said, kernels) != NULL : !*said);
    if (st == OK) pair_run_twice(p);
    pair_close(p);
}

static void run_ops(const OpCase *cases, size_t count, Backend *device)
{
    Pair p = pair_new();
    for (size_t i = 0; i < count; ++i) run_op(&p, &cases[i], device, NULL);
    pair_free(&p);
}

#endif
