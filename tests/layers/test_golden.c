/* Every layer kind against PyTorch's values (tests/golden/layers, made by tools/golden_layers.py):
 * outputs, gradients of every input and parameter, statistics; on the CPU backend and on the poison
 * backend, with plain and blocked inputs, out of place and in place. */
#include "harness.h"
#include "op_rig.h"

enum { CASE_TENSORS = 32 };

/* The kinds, each with the error allowed for y and for gradients, as |got - expected| / max(1,
 * |expected|). A new kind needs one line here besides its file. Dropout has no golden values, since
 * its mask is weft's own (see test_gradients.c). */
/* clang-format off: one a line, a new one above the last */
#define GOLDEN(_)                                                                                  \
    _(dense, 5e-6, 5e-6)                                                                           \
    _(conv2d, 1e-5, 1e-5)                                                                          \
    _(conv_transpose2d, 1e-5, 1e-5)                                                                \
    _(detect, 1e-5, 1e-5)                                                                          \
    _(batch_norm, 1e-5, 2e-5)                                                                      \
    _(layer_norm, 1e-5, 2e-5)                                                                      \
    _(rms_norm, 5e-6, 1e-5)                                                                        \
    _(group_norm, 1e-5, 2e-5)                                                                      \
    _(instance_norm, 1e-5, 2e-5)                                                                   \
    _(film, 2e-6, 5e-6)                                                                            \
    _(swiglu, 5e-6, 5e-6)                                                                          \
    _(relu, 1e-6, 1e-6)                                                                            \
    _(relu6, 1e-6, 1e-6)                                                                           \
    _(gelu, 5e-6, 5e-6)                                                                            \
    _(silu, 5e-6, 5e-6)                                                                            \
    _(tanh, 1e-6, 1e-6)                                                                            \
    _(sigmoid, 1e-6, 1e-6)                                                                         \
    _(elu, 1e-6, 1e-6)                                                                             \
    _(leaky_relu, 1e-6, 1e-6)                                                                      \
    _(softplus, 1e-6, 1e-6)                                                                        \
    _(mish, 1e-6, 1e-6)                                                                            \
    _(hardswish, 1e-6, 1e-6)                                                                       \
    _(max_pool, 1e-6, 2e-6)                                                                        \
    _(avg_pool, 2e-6, 2e-6)                                                                        \
    _(global_pool, 2e-6, 2e-6)                                                                     \
    _(upsample, 1e-6, 2e-6)                                                                        \
    _(pad, 1e-6, 2e-6)                                                                             \
    _(pixel_shuffle, 1e-6, 1e-6)                                                                   \
    _(pixels_to_tokens, 1e-6, 1e-6)                                                                \
    _(tokens_to_pixels, 1e-6, 1e-6)                                                                \
    _(crop, 1e-6, 1e-6)                                                                            \
    _(add, 2e-6, 2e-6)                                                                             \
    _(concat, 1e-6, 1e-6)                                                                          \
    _(flatten, 1e-6, 1e-6)                                                                         \
    _(embedding, 1e-6, 2e-6)                                                                       \
    _(positions, 1e-6, 2e-6)                                                                       \
    _(attention, 5e-6, 1e-5)                                                                       \
    _(softmax_loss, 5e-6, 5e-6)                                                                    \
    _(mse_loss, 2e-7, 2e-7)                                                                        \
    _(l1_loss, 2e-7, 2e-7)                                                                         \
    _(huber_loss, 2e-7, 2e-7)                                                                      \
    _(charbonnier_loss, 2e-7, 2e-7)                                                                \
    _(sigmoid_loss, 2e-6, 2e-6)                                                                    \
    _(focal_loss, 2e-6, 2e-6)                                                                      \
    _(dice_loss, 2e-7, 2e-7)                                                                       \
    _(iou_loss, 2e-7, 2e-7)                                                                        \
    _(yolo_loss, 2e-6, 5e-6)                                                                       \
    _(interaction, 5e-6, 5e-6)                                                                     \
    _(fm, 5e-6, 5e-6)                                                                              \
    _(numeric_embedding, 2e-6, 5e-6)
/* clang-format on */

typedef struct Tolerance {
    double y, gradient;
} Tolerance;

typedef struct CaseTensor {
    char name[16];
    Shape shape;
    /* owned */
    float *value;
} CaseTensor;

typedef struct Case {
    char name[64], attrs[256];
    Act act;
    bool residual, eval;
    /* real rows; 0: all */
    int rows;
    /* image shape of a flattened x0; ndim 0: not flattened */
    Shape image;
    float loss_scale;
    int count;
    CaseTensor tensor[CASE_TENSORS];
} Case;

typedef struct Variant {
    const BackendTable *backend;
    int block, threads;
    bool in_place;
} Variant;
static const Variant variants[] = {
    {&backend_cpu, 1, 1, false},    {&backend_cpu, 8, 1, false},    {&backend_cpu, 16, 2, false},
    {&backend_cpu, 8, 1, true},     {&backend_cpu, 1, 2, true},     {&backend_poison, 1, 1, false},
    {&backend_poison, 8, 1, false}, {&backend_poison, 16, 1, true},
};

static const CaseTensor *find(const Case *c, const char *name, int number)
{
    char full[16];
    snprintf(full, sizeof full, number < 0 ? "%s" : "%s%d", name, number);
    for (int i = 0; i < c->count; ++i)
        if (strcmp(c->tensor[i].name, full) == 0) return &c->tensor[i];
    return NULL;
}

static Shape read_shape(char *text)
{
    Shape s = shape_of(0, 1, 1, 1, 1);
    char *rest = text;
    for (char *d; s.ndim < SHAPE_DIMS && (d = strtok_r(rest, ",", &rest));)
        s.dim[s.ndim++] = atoll(d);
    return s;
}

/* "x0 2,3 fill SEED SCALE SHIFT" or "y 2,3 values V V ..." */
static void read_tensor(Case *c, const char *name, char *rest)
{
    CaseTensor *t = &c->tensor[c->count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->shape = read_shape(strtok_r(rest, " ", &rest));
    int64_t n = shape_count(t->shape);
    t->value = mem_new((size_t)n * sizeof(float));
    bool fill = strcmp(strtok_r(rest, " ", &rest), "fill") == 0;
    uint32_t seed = fill ? (uint32_t)strtoul(rest, &rest, 10) : 0;
    float scale = fill ? strtof(rest, &rest) : 0, shift = fill ? strtof(rest, &rest) : 0;
    for (int64_t i = 0; i < n; ++i)
        t->value[i] = fill ? rig_number(seed, i, scale, shift) : strtof(rest, &rest);
}

static Act read_act(const char *word)
{
    int act = 1;
    while (act < ACTS && strcmp(word, act_name((Act)act)) != 0) ++act;
    if (act == ACTS) die("act %s: there is no such activation", word);
    return (Act)act;
}

static void read_line(Case *c, char *line)
{
    char *rest = line, *word = strtok_r(line, " \n", &rest);
    rest[strcspn(rest, "\n")] = 0;
    if (strcmp(word, "case") == 0)
        snprintf(c->name, sizeof c->name, "%.63s", rest);
    else if (strcmp(word, "attrs") == 0)
        snprintf(c->attrs, sizeof c->attrs, "%.255s", rest);
    else if (strcmp(word, "act") == 0)
        c->act = read_act(rest);
    else if (strcmp(word, "residual") == 0)
        c->residual = true;
    else if (strcmp(word, "eval") == 0)
        c->eval = true;
    else if (strcmp(word, "rows") == 0)
        c->rows = atoi(rest);
    else if (strcmp(word, "image") == 0)
        c->image = read_shape(rest);
    else if (strcmp(word, "loss_scale") == 0)
        c->loss_scale = strtof(rest, NULL);
    else
        read_tensor(c, word, rest);
}

/* Reads the next case; false at the end of the file. */
static bool case_read(Case *c, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    *c = (Case){.loss_scale = 1};
    while (getline(&line, &room, file) > 0) {
        if (line[0] == '#') continue;
        if (strcmp(line, "end\n") == 0) {
            free(line);
            return true;
        }
        read_line(c, line);
    }
    free(line);
    return false;
}

static void case_free(Case *c)
{
    for (int i = 0; i < c->count; ++i) mem_free(&c->tensor[i].value);
}

static void compare(const char *what, const float *got, const CaseTensor *expected,
                    double tolerance)
{
    double worst = 0;
    for (int64_t i = 0; i < shape_count(expected->shape); ++i) {
        double e = expected->value[i], d = fabs((double)got[i] - e) / fmax(1, fabs(e));
        if (isnan(e)) continue;
        if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
    }
    if (worst > tolerance)
        printf("  %s: %s is off by %.3g (allowed %.3g)\n", what, expected->name, worst, tolerance);
    CU_ASSERT_TRUE(worst <= tolerance);
}

static int32_t *integers(const CaseTensor *t)
{
    int64_t n = shape_count(t->shape);
    int32_t *out = mem_new((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; ++i) out[i] = (int32_t)t->value[i];
    return out;
}

/* ERR_CONFIG: the case names an activation that the operation does not apply to its output. */
static Status check_act(const Case *c, const OpInfo *info)
{
    /* graph_fuse moves a relu into the max_pool that reads it, without .acts */
    const bool moved = info->fuse == FUSE_RELU_BEFORE_MAX && c->act == ACT_RELU;
    if (c->act == ACT_NONE || moved || info->acts >> c->act & 1) return OK;
    return fail(ERR_CONFIG,
                "act %s: .acts of the operation %s lacks it: add it to the row and to the "
                "operation, or remove the line from the case",
                act_name(c->act), info->name);
}

static Status open_case(Rig *rig, const Case *c, const char *kind, Backend *backend,
                        const Variant *v)
{
    *rig = (Rig){.in_place = v->in_place};
    TRY(rig_spec(rig, backend, kind, c->attrs));
    TRY(check_act(c, op_info(rig->spec.kind)));
    if (c->act != ACT_NONE) rig->spec.act = c->act;
    rig->spec.residual = c->residual;
    const CaseTensor *x;
    for (; (x = find(c, "x", rig->spec.x_count)); ++rig->spec.x_count) {
        Desc *d = &rig->spec.x[rig->spec.x_count];
        *d = desc_plain(x->shape, strcmp(kind, "embedding") == 0 ? DTYPE_I32 : DTYPE_F32);
        if (x->shape.ndim == 4) d->block = v->block;
        if (c->image.ndim == 3) {
            const int64_t *chw = c->image.dim;
            d->flat = true;
            d->block = v->block;
            d->image = shape_of(4, x->shape.dim[0], chw[0], chw[1], chw[2]);
        }
    }
    return rig_open(rig, kind);
}

static void give(Rig *rig, const Case *c)
{
    for (int i = 0; i < rig->spec.x_count; ++i) {
        const CaseTensor *x = find(c, "x", i);
        int32_t *tokens = rig->spec.x[i].dtype == DTYPE_I32 ? integers(x) : NULL;
        rig_set_x(rig, i, tokens ? (const void *)tokens : x->value);
        mem_free(&tokens);
    }
    for (int i = 0; i < rig->spec.w_count; ++i) rig_set_w(rig, i, find(c, "w", i)->value);
    const CaseTensor *labels = find(c, "labels", -1), *targets = find(c, "targets", -1);
    if (labels) {
        int32_t *l = integers(labels);
        rig_set_labels(rig, l, shape_count(labels->shape));
        mem_free(&l);
    }
    if (targets) rig_set_targets(rig, targets->value, shape_count(targets->shape));
    const CaseTensor *weights = find(c, "weights", -1);
    if (weights) rig_set_target_weights(rig, weights->value, shape_count(weights->shape), 0);
    const CaseTensor *boxes = find(c, "boxes", -1);
    if (boxes) {
        int32_t *start = integers(find(c, "box_start", -1));
        int32_t *numbers = integers(find(c, "normaliser", -1));
        rig_set_boxes(rig, start, boxes->value, numbers);
        mem_free(&start);
        mem_free(&numbers);
    }
    if (c->rows) rig->run.sample_count = c->rows;
    rig->run.training = !c->eval;
    rig->run.loss_factor = c->loss_scale;
}

/* Updates running statistics as the trainer does, from the micro-batch's own in dw. */
static void check_running(Rig *rig, const Case *c, const char *what, double tolerance)
{
    for (int i = 2; i < 4; ++i) {
        const CaseTensor *expected = find(c, "r", i), *before = find(c, "w", i);
        if (!expected) continue;
        int64_t n = shape_count(expected->shape);
        float *got = mem_new((size_t)n * sizeof *got);
        rig_get_dw(rig, i, got);
        for (int64_t k = 0; k < n; ++k)
            got[k] = (1 - rig->spec.momentum) * before->value[k] + rig->spec.momentum * got[k];
        compare(what, got, expected, tolerance);
        mem_free(&got);
    }
}

static void check_gradients(Rig *rig, const Case *c, const char *what, double tolerance)
{
    int64_t largest = 1;
    for (int i = 0; i < c->count; ++i)
        if (shape_count(c->tensor[i].shape) > largest) largest = shape_count(c->tensor[i].shape);
    float *got = mem_new((size_t)largest * sizeof *got);
    for (int i = 0; i < rig->spec.x_count; ++i) {
        const CaseTensor *dx = find(c, "dx", i);
        if (!dx) continue;
        rig_get_dx(rig, i, got);
        compare(what, got, dx, tolerance);
    }
    for (int i = 0; i < rig->spec.w_count; ++i) {
        const CaseTensor *dw = find(c, "dw", i);
        if (!dw) continue;
        rig_get_dw(rig, i, got);
        compare(what, got, dw, tolerance);
    }
    mem_free(&got);
}

static void run_case(const Case *c, const char *kind, Tolerance t, Backend *backend,
                     const Variant *v)
{
    char what[160];
    snprintf(what, sizeof what, "%s, %s (%s, block %d%s)", kind, c->name, v->backend->name,
             v->block, v->in_place ? ", in place" : "");
    Rig rig;
    Status st = open_case(&rig, c, kind, backend, v);
    if (st != OK) printf("  %s: %s\n", what, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    if (st != OK) {
        rig_close(&rig);
        return;
    }
    const CaseTensor *y = find(c, "y", -1), *dy = find(c, "dy", -1);
    give(&rig, c);
    CU_ASSERT_EQUAL(shape_count(rig.spec.y.shape), shape_count(y->shape));
    float *got = mem_new((size_t)shape_count(rig.spec.y.shape) * sizeof *got);
    rig_forward(&rig);
    rig_get_y(&rig, got);
    compare(what, got, y, t.y);
    mem_free(&got);
    if (!c->eval) {
        rig_backward(&rig, dy ? dy->value : NULL);
        check_running(&rig, c, what, t.y);
        check_gradients(&rig, c, what, t.gradient);
    }
    rig_close(&rig);
}

static void run_kind(const char *kind, Tolerance t)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/layers/%s.txt", kind);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; ++v) {
        Backend *backend;
        FILE *file = fopen(path, "r");
        if (!file) printf("  %s: missing; tools/golden_layers.py writes it\n", path);
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        CHECK_OK(backend_open(&backend, variants[v].backend,
                              (BackendOptions){.threads = variants[v].threads}));
        int cases = 0;
        for (Case c; case_read(&c, file); ++cases) {
            run_case(&c, kind, t, backend, &variants[v]);
            case_free(&c);
        }
        CU_ASSERT_TRUE(cases > 0);
        backend_close(&backend);
        fclose(file);
    }
}

#define TEST(kind, y, gradient)                                                                    \
    static void test_##kind(void)                                                                  \
    {                                                                                              \
        run_kind(#kind, (Tolerance){y, gradient});                                                 \
    }
GOLDEN(TEST)

static void test_every_kind_is_here(void)
{
#define NAME(kind, y, gradient) #kind,
    static const char *const names[] = {GOLDEN(NAME) "dropout", "dropout2d"};
    const LayerKind *kind;
    for (int k = 0; (kind = layer_kind_at(k)); ++k) {
        /* kinds without inputs and parameters are tested in test_bag.c */
        bool here = op_info(kind->op)->reads == READS_IDS;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
            here = here || strcmp(kind->name, names[i]) == 0;
        if (!here)
            printf("  %s: a line in GOLDEN and tests/golden/layers/%s.txt are missing\n",
                   kind->name, kind->name);
        CU_ASSERT_TRUE(here);
    }
}

#define ROW(kind, y, gradient) {#kind, test_##kind},
TEST_MAIN("golden layers", GOLDEN(ROW){"every kind", test_every_kind_is_here})
