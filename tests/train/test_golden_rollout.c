/* Compares ten training steps of a small unet with PyTorch's losses (tools/golden_rollout.py). The
 * unet is applied three times in each step, each time to its own outputs. Tested: which channels of
 * a set of fields are read at each application, how they are joined, and the sum of the gradients
 * over all uses of a parameter. Targets have no weights, weights that all samples share, or weights
 * of each sample. */
#include "golden_run.h"
#include "train/field_steps.h"

/* relative tolerance of a loss: the unet is smooth, and PyTorch's runs in single precision are up
 * to 5e-7 away from double precision */
static const double NEAR = 5e-7;
enum { STEPS = 3, VARIABLES = 4, INPUTS = 9, TARGETS = 2 };

/* Describes a set of four variables: h, of which the change is predicted; u, of which the value is
 * predicted; f, a forcing; and s, which is static. A sample has h, u and f at two times, s, and f
 * at the two times that follow. Owned by the caller. */
static DataSet *set_new(void)
{
    static const char *const name[VARIABLES] = {"h", "u", "f", "s"};
    static const float mean[VARIABLES] = {2, -1, 0.3F, 0}, std[VARIABLES] = {1.5F, 0.5F, 0.8F, 1};
    static const FieldChannel input[INPUTS] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0},
                                               {0, 0, 1}, {1, 0, 1}, {2, 0, 1},
                                               {3, 0, 0}, {2, 0, 2}, {2, 0, 3}};
    DataSet *set = mem_new(sizeof *set);
    FieldSet *f = &set->field_set;
    *f = (FieldSet){.variables = VARIABLES,
                    .offsets = {[FIELD_INPUT] = 2, [FIELD_STATIC] = 1, [FIELD_TARGET] = STEPS},
                    .offset = {[FIELD_INPUT] = {-1, 0, 1, 2}, [FIELD_TARGET] = {1, 2, 3}},
                    .inputs = INPUTS,
                    .targets = STEPS * TARGETS,
                    .steps = STEPS,
                    .step_inputs = 7,
                    .step_targets = TARGETS,
                    .later_offsets = 2,
                    .target_mean = {0.1F, -0.9F},
                    .target_std = {0.7F, 0.6F}};
    for (int i = 0; i < VARIABLES; ++i) {
        snprintf(f->variable[i].name, FIELD_NAME, "%s", name[i]);
        f->variable[i].is_static = i == 3;
    }
    for (int i = 0; i < INPUTS; ++i) {
        f->input[i] = input[i];
        set->mean[i] = mean[input[i].variable];
        set->std[i] = std[input[i].variable];
    }
    for (int i = 0; i < f->targets; ++i) {
        f->target[i] = (FieldChannel){(int16_t)(i % TARGETS), 0, (int16_t)(i / TARGETS)};
        f->change_from[i] = i % TARGETS == 0 ? 3 : -1;
    }
    set->has_stats = true;
    return set;
}

static float *noise_new(const char *name, int64_t n, float scale)
{
    float *x = mem_new((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; ++i) x[i] = golden_noise(golden_hash(name), (uint32_t)i) * scale;
    return x;
}

static Status open_run(Run *r, Golden *golden, const int number[3], const BackendTable *table,
                       bool fuse)
{
    const Shape shape = shape_of(4, number[0], number[1], number[2], number[2]);
    DataSet *set = set_new();
    one_rank_init(&r->one, golden_config(golden, "run: {seed: 1}"));
    Status st =
        field_steps_build(&r->one.graph, r->one.config, set, desc_plain(shape, DTYPE_F32), TARGETS);
    if (st == OK) st = one_rank_start(&r->one, table, fuse ? &backend_cpu : NULL, 1, SCHEDULE_1F1B);
    mem_free(&set);
    return st == OK ? run_start(r) : st;
}

/* Returns the script's weights of the targets, float[samples * width]; about a quarter are 0. Owned
 * by the caller. */
static float *weights_new(int64_t samples, int64_t width)
{
    float *weight = noise_new("w", samples * width, 1);
    for (int64_t i = 0; i < samples * width; ++i) {
        weight[i] = (weight[i] + 1) / 2;
        if (weight[i] < 0.25F) weight[i] = 0;
    }
    return weight;
}

/* Checks a case: "rollout" has no weights, "shared" has weights that all samples share, "weighted"
 * has weights of each sample. */
static void check(const char *name, const BackendTable *table, bool fuse)
{
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read("tests/golden/rollout.txt", "model", name, 3, number, &golden)) return;
    const int64_t pixels = (int64_t)number[0] * number[2] * number[2];
    MicroBatch batch = {.rows = number[0],
                        .x = noise_new("x", number[1] * pixels, 1.5F),
                        .targets = noise_new("t", STEPS * TARGETS * pixels, 2),
                        .sample = mem_new((size_t)number[0] * sizeof(int64_t))};
    const int64_t width = STEPS * TARGETS * (pixels / number[0]);
    const bool shared = !strcmp(name, "shared"), own = !strcmp(name, "weighted");
    if (shared || own) batch.target_weights = weights_new(shared ? 1 : number[0], width);
    if (own) batch.weights_stride = width;
    const Status status = open_run(&run, &golden, number, table, fuse);
    CHECK_OK(status);
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), NEAR);
    run_close(&run);
    mem_free(&batch.x);
    mem_free(&batch.targets);
    mem_free(&batch.target_weights);
    mem_free(&batch.sample);
}

static void fused(void)
{
    check("rollout", &backend_cpu, true);
}
static void shared(void)
{
    check("shared", &backend_cpu, true);
}
static void weighted(void)
{
    check("weighted", &backend_cpu, true);
}
static void unfused(void)
{
    check("rollout", &backend_cpu, false);
}
static void poisoned(void)
{
    check("weighted", &backend_poison, true);
}

TEST_MAIN("golden rollout", {"three steps", fused}, {"shared weights", shared},
          {"weights", weighted}, {"nothing fused", unfused}, {"poisoned", poisoned})
