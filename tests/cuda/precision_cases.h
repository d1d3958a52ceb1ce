/* Tests of TF32, which rounds factors by no more than expected, and of fp16, which skips a step
 * that overflows, and resumes with the saved loss scale. */
#ifndef WEFT_TEST_CUDA_PRECISION_CASES_H
#define WEFT_TEST_CUDA_PRECISION_CASES_H

#include "model_cases.h"

/* ---- tf32 ---- */

/* Computes y of an operation whose input and weight have random bits in the whole mantissa of fp32.
 * Returns the number of elements of y. */
static int64_t run_exact(Backend *backend, const char *kind, const char *attrs, Shape x, float *y)
{
    Rig rig = {0};
    CHECK_OK(rig_spec(&rig, backend, kind, attrs));
    rig.spec.x_count = 1;
    rig.spec.x[0] = desc_plain(x, DTYPE_F32);
    CHECK_OK(rig_open(&rig, kind));
    int64_t n = shape_count(x), w = shape_count(rig.spec.w[0]), out = shape_count(rig.spec.y.shape);
    float *given = mem_new((size_t)(n > w ? n : w) * sizeof *given);
    for (int64_t i = 0; i < n; ++i) given[i] = rig_number(1, i, 1, 1e-4f);
    rig_set_x(&rig, 0, given);
    for (int64_t i = 0; i < w; ++i) given[i] = rig_number(2, i, 0.1f, 1e-5f);
    rig_set_w(&rig, 0, given);
    rig_forward(&rig);
    rig_get_y(&rig, y);
    mem_free(&given);
    rig_close(&rig);
    return out;
}

static void check_tf32(const char *kind, const char *attrs, Shape x)
{
    enum { ROOM = 1 << 17 };
    float *whole = mem_new(ROOM * sizeof *whole), *rounded = mem_new(ROOM * sizeof *rounded);
    int64_t n = run_exact(gpu, kind, attrs, x, whole);
    run_exact(gpu_tf32, kind, attrs, x, rounded);
    double off = rig_difference(rounded, whole, n);
    if (!(off > 0 && off <= allowed.tf32)) printf("  %s: tf32 is %.3g off\n", kind, off);
    CU_ASSERT(off > 0 && off <= allowed.tf32);
    mem_free(&whole);
    mem_free(&rounded);
}

static void test_tf32(void)
{
    check_tf32("dense", "width=256 bias=false", shape_of(2, 128, 512, 1, 1));
    check_tf32("conv2d", "channels=64 kernel=3 pad=1 bias=false", shape_of(4, 2, 64, 16, 16));
}

/* ---- fp16 ---- */

static Status scaled_trainer(Trainer **trainer, Config **config, const char *dir)
{
    char *text = mem_format("run: {name: fp16, dir: %s, seed: 3}\ndata: {train: %s/train.h5}\n"
                            "model: {name: mlp, hidden: [64]}\n"
                            "optim: {name: adamw, lr: 0.001}\n"
                            "train: {steps: 40, batch: 64, micro_batch: 32, device: cuda, "
                            "precision: fp16, loss_scale: 16777216, loss_scale_steps: 2}\n",
                            dir, dir);
    Status st = config_parse(config, "test", text, 0, NULL);
    mem_free(&text);
    return st == OK ? trainer_new(trainer, *config, &alone) : st;
}

static void first_weights(Trainer *t, float out[8])
{
    Stream *s = t->backend->table->stream(t->backend);
    t->backend->table->copy(s, out, executor_param(t->executor, 0), 8 * sizeof *out);
    t->backend->table->sync(s);
}

/* A loss scale of 2^24 is too large. Each skipped step halves it, changes nothing else, and is not
 * counted by Adam; two good steps double it. */
static void check_scaling(Trainer *t)
{
    enum { MOST = 12 };
    float before[8], after[8];
    StepResult result = {.skipped = true};
    double scale = t->loss_scale.next;
    first_weights(t, before);
    for (int i = 0; i < MOST && result.skipped; ++i) {
        CHECK_OK(next_step(t, &result));
        first_weights(t, after);
        if (i == 0) CU_ASSERT_TRUE(result.skipped);
        if (result.skipped) scale /= 2;
        CU_ASSERT_EQUAL(memcmp(before, after, sizeof before) == 0, result.skipped);
        CU_ASSERT_EQUAL(t->loss_scale.next, scale);
        CU_ASSERT_TRUE(isfinite(result.loss));
    }
    CU_ASSERT_FALSE(result.skipped);
    CU_ASSERT_EQUAL(t->optim->step, 1);
    CU_ASSERT_EQUAL(t->skipped, t->step - 1);
    CHECK_OK(next_step(t, &result));
    CU_ASSERT_FALSE(result.skipped);
    CU_ASSERT_EQUAL(t->loss_scale.next, 2 * scale);
}

static void check_scale_resumed(Trainer *t, const char *dir)
{
    Config *config = NULL;
    Trainer *again = NULL;
    StepResult a, b;
    char *path = mem_format("%s/step.h5", dir);
    /* the scale has doubled, so this step may be skipped */
    CHECK_OK(next_step(t, &a));
    CHECK_OK(train_save(t, path));
    CHECK_OK(scaled_trainer(&again, &config, dir));
    if (again) {
        CHECK_OK(train_load(again, path, LOAD_RUN));
        CU_ASSERT_EQUAL(again->loss_scale.next, t->loss_scale.next);
        CU_ASSERT_EQUAL(again->loss_scale.good_steps, t->loss_scale.good_steps);
        CU_ASSERT_EQUAL(again->skipped, t->skipped);
        CU_ASSERT_EQUAL(again->optim->step, t->optim->step);
        for (int i = 0; i < 6; ++i) {
            CHECK_OK(next_step(t, &a));
            CHECK_OK(next_step(again, &b));
            /* equal to the bit */
            CU_ASSERT_EQUAL(a.loss, b.loss);
            CU_ASSERT_EQUAL(a.skipped, b.skipped);
        }
        CU_ASSERT_EQUAL(again->loss_scale.next, t->loss_scale.next);
    }
    trainer_free(&again);
    config_free(&config);
    unlink(path);
    mem_free(&path);
}

static void test_overflow(void)
{
    char *dir = folder_new(&(Model){.name = "mlp", .side = 8});
    Config *config = NULL;
    Trainer *t = NULL;
    CHECK_OK(scaled_trainer(&t, &config, dir));
    if (t) {
        check_scaling(t);
        check_scale_resumed(t, dir);
    }
    trainer_free(&t);
    config_free(&config);
    folder_remove(&dir);
}

#endif
