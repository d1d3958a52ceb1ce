/* Tests train.sync_batch_norm. Ten steps of two ranks with unequal micro-batches agree with
 * PyTorch's steps of two processes (tests/golden/sync_bn.txt). N replicas agree with one replica
 * whose micro-batch is N times as large, also if some replicas have no samples. The bits are the
 * same with every schedule, number of stages, transport, recomputation and grid.zero. A single
 * replica gives the bits of a run without the key. */
#include "golden.h"
#include "grids.h"

enum { STEPS = 5, RESNET = 0, MOBILENET = 1, LAYERS = 3 };

/* ---- PyTorch ---- */

static const double GOLDEN_NEAR = 1e-5;
static const char *const golden_path = "tests/golden/sync_bn.txt";
static char golden_data_path[64];

static Config *config_of_golden(Golden *g, char **text)
{
    *text = mem_format(
        "run: {seed: 1}\ndata: {train: %s, normalize: false}\n"
        "model: {classes: 5, layers: [conv2d: {channels: 6, kernel: 3, pad: 1, bias: false}, "
        "batch_norm, relu, conv2d: {channels: 20, kernel: 3, stride: 2, pad: 1, bias: false}, "
        "batch_norm, relu, flatten, dense: {width: 12}, batch_norm, relu, dense: {width: 5}]}\n"
        "train: {batch: 16, micro_batch: 8, steps: 10, threads: 1, sync_batch_norm: true}\n"
        "optim: {name: sgd}\n",
        golden_data_path);
    return golden_config(g, *text);
}

static void golden_images(int samples, int channels, int image)
{
    enum { MOST = 4096 };
    int32_t y[64];
    uint8_t x[MOST];
    const int pixels = samples * channels * image * image;
    CU_ASSERT_TRUE_FATAL(pixels <= MOST && samples <= 64);
    for (int i = 0; i < pixels; ++i)
        x[i] = (uint8_t)(((double)golden_noise(golden_hash("x"), (uint32_t)i) + 1) * 128);
    for (int i = 0; i < samples; ++i) y[i] = golden_draw('y', i, 5);
    if (tiny_rank == 0)
        tiny_images(golden_data_path, H5T_STD_U8LE, H5T_NATIVE_UINT8, x, y, samples, channels,
                    image, image);
    tiny_barrier();
}

static void train_golden(Trainer *t, const Golden *g)
{
    golden_params(t->graph, t->plan, executor_params(t->executor));
    executor_params_changed(t->executor);
    for (int s = 0; s < GOLDEN_STEPS; ++s) {
        StepResult r;
        CHECK_OK(next_step(t, &r));
        double off = fabs(r.loss - g->loss[s]) / g->loss[s];
        CU_ASSERT(off <= GOLDEN_NEAR);
        if (!(off <= GOLDEN_NEAR))
            printf("  step %d: loss %.9g, PyTorch %.9g\n", s, r.loss, g->loss[s]);
    }
    golden_check_tensors(golden_path, t->graph, t->executor, GOLDEN_NEAR);
}

static void test_golden(void)
{
    Golden golden;
    World sub;
    int number[3];
    if (!golden_read(golden_path, "model", "sync", 3, number, &golden)) return;
    snprintf(golden_data_path, sizeof golden_data_path, "%s/golden.h5", tiny_folder);
    golden_images(number[0], number[1], number[2]);
    if (tiny_world(&sub, 2)) {
        char *text;
        Trainer *t = NULL;
        Config *config = config_of_golden(&golden, &text);
        Status st = config ? trainer_new(&t, config, &sub) : ERR_CONFIG;
        CHECK_OK(st);
        if (st == OK) train_golden(t, &golden);
        trainer_free(&t);
        config_free(&config);
        mem_free(&text);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
}

/* ---- replicas ---- */

static Outcome train(int model, int ranks, const char *more)
{
    return grid_train(
        &(GridPart){.model = &grid_models[model], .ranks = ranks, .more = more, .to = STEPS});
}

/* Checks that two outcomes agree up to rounding. A relu that falls on the other side of 0 moves a
 * loss by about 1e-5; wrong statistics would move it by more than 1e-2. */
static void check_near(const char *what, const Outcome *got, const Outcome *want)
{
    bool near = got->hash != 0 && want->hash != 0 && got->eval_samples == want->eval_samples &&
                fabs(got->eval_loss - want->eval_loss) < 1e-3;
    for (int s = 0; s < STEPS; ++s)
        near = near && fabs(got->loss[s] - want->loss[s]) < 2e-4 * want->loss[s];
    CU_ASSERT(near);
    if (!near) outcome_explain(what, got, want);
}

/* Compares N replicas with one replica whose micro-batch is N times as large. The last step of an
 * epoch of 52 samples has 4 of 16, 16 of 18 or 4 of 12 samples; in it some replicas have fewer
 * samples in their micro-batch than others, or none. */
static void test_larger_micro_batch(void)
{
    static const struct {
        int ranks;
        const char *many, *one;
    } all[] = {
        {2, "train.micro_batch=2", "train.micro_batch=4"},
        {2, "train.micro_batch=2 grid.zero=2", "train.micro_batch=4"},
        {2, "train.batch=12 train.micro_batch=3", "train.batch=12 train.micro_batch=6"},
        {3, "train.batch=18 train.micro_batch=2", "train.batch=18 train.micro_batch=6"},
        {3,
         "train.batch=18 train.micro_batch=2 grid.zero=3 grid.recompute=block "
         "grid.transport=mpi",
         "train.batch=18 train.micro_batch=6"},
        {4, "train.micro_batch=2 grid.dp=2 grid.pp=2 grid.pipeline_schedule=zero-bubble",
         "train.micro_batch=4"},
        {4, "train.micro_batch=2 grid.dp=2 grid.tp=2", "train.micro_batch=4"},
        {4, "train.micro_batch=2", "train.micro_batch=8"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        char *more = mem_format("train.sync_batch_norm=true %s", all[i].many);
        Outcome got = train(LAYERS, all[i].ranks, more), want = train(LAYERS, 1, all[i].one);
        check_near(more, &got, &want);
        mem_free(&more);
    }
}

static void check_same(int model, const char *batch, const char *const *ways)
{
    char *first = mem_format("train.sync_batch_norm=true %s", batch);
    Outcome want = train(model, 2, first);
    for (int i = 0; ways[i]; ++i) {
        char *more = mem_format("%s grid.dp=2 %s", first, ways[i]);
        Outcome got = train(model, strstr(more, "grid.pp=2") ? 4 : 2, more);
        bool same = outcome_same(&got, &want);
        CU_ASSERT(same);
        if (!same) outcome_explain(more, &got, &want);
        mem_free(&more);
    }
    mem_free(&first);
}

static void test_bits(void)
{
    static const char *const ways[] = {
        "grid.zero=1 grid.recompute=block",
        "grid.pp=2 grid.pipeline_schedule=1f1b grid.recompute=block",
        "grid.pp=2 grid.pipeline_schedule=gpipe grid.zero=1 grid.transport=mpi",
        "grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2",
        "grid.pp=2 grid.pipeline_schedule=zero-bubble grid.recompute=block",
        "grid.pp=2 grid.pipeline_schedule=dualpipe-v grid.transport=mpi",
        NULL};
    check_same(RESNET, "", ways);
}

/* Tests grid.zero. Each replica has only one micro-batch, so that gradients can be added in only
 * one order. */
static void test_zero(void)
{
    static const char *const ways[] = {"grid.zero=1", "grid.zero=2",
                                       "grid.zero=3 grid.transport=mpi grid.recompute=block", NULL};
    check_same(MOBILENET, "train.batch=4", ways);
}

/* Tests that the key changes nothing for a single replica. */
static void test_one_replica(void)
{
    Outcome off = train(LAYERS, 1, ""), on = train(LAYERS, 1, "train.sync_batch_norm=true");
    Outcome two = train(LAYERS, 2, "train.sync_batch_norm=true");
    CU_ASSERT(outcome_same(&on, &off));
    CU_ASSERT(fabs(two.loss[STEPS - 1] - off.loss[STEPS - 1]) > 1e-3);
}

TINY_MAIN("synchronised batch norm", grid_data, {"PyTorch, two processes", test_golden},
          {"one larger micro-batch", test_larger_micro_batch}, {"the same bits", test_bits},
          {"grid.zero", test_zero}, {"one replica", test_one_replica})
