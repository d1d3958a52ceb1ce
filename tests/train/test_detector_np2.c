/* Tests detectors on pictures of scenes. For each size of micro-batch, losses, parameters,
 * statistics and COCO's numbers have the same bits on every grid, and with recomputation. If the
 * statistics of batch norms are fixed, the size of micro-batches changes results only by rounding.
 * A detector learns sixteen scenes by heart. */
#include "grids.h"
#include "verb_run.h"

enum { STEPS = 3 };

/* scenes_path: file of 20 scenes; the second step of an epoch has 4 of them, so that some
 * micro-batches are empty. first_path: file of the first 16 scenes. */
static char scenes_path[64], first_path[64];

static void make_scenes(const char *images, const char *scenes, const char *samples)
{
    if (verb_run("data make scenes", images, "-o", scenes, "--samples", samples, "--side", "64",
                 "--threads", "1", NULL) != OK)
        die("%s", fail_message());
}

static void prepare(void)
{
    char images[64];
    snprintf(images, sizeof images, "%s/grey.h5", tiny_folder);
    snprintf(scenes_path, sizeof scenes_path, "%s/scenes.h5", tiny_folder);
    snprintf(first_path, sizeof first_path, "%s/first.h5", tiny_folder);
    if (tiny_rank > 0) return;
    tiny_data(images, 30, 1, 28, 28, 5);
    make_scenes(images, scenes_path, "20");
    make_scenes(images, first_path, "16");
}

static const GridModel detector = {
    .name = "yolov5n",
    .text = "model: {name: yolov5n, width_multiple: 0.02}\n"
            "data: {normalize: false, letterbox: 64, mosaic: 0.5, affine_scale: [0.5, 1.5], "
            "affine_shift: 0.1, augment: [flip]}\n"
            "optim: {name: sgd, lr: 0.1, momentum: 0.937, nesterov: true, weight_decay: 5e-4}\n"};

static Outcome train(int ranks, const char *micro, const char *more)
{
    char *all = mem_format("train.loss=yolo train.micro_batch=%s %s", micro, more);
    snprintf(images_path, sizeof images_path, "%s", scenes_path);
    Outcome out =
        grid_train(&(GridPart){.model = &detector, .ranks = ranks, .more = all, .to = STEPS});
    mem_free(&all);
    return out;
}

static void check_grids(const char *micro)
{
    static const Place places[] = {{"grid.dp=2", 2},
                                   {"grid.pp=2", 2},
                                   {"grid.recompute=block", 1},
                                   {"grid.pp=2 grid.recompute=block", 2}};
    const Outcome want = train(1, micro, "");
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        const Outcome got = train(places[i].ranks, micro, places[i].grid);
        const bool same = outcome_same(&got, &want);
        CU_ASSERT(same && got.coco[COCO_AP] >= 0);
        if (!same) outcome_explain(places[i].grid, &got, &want);
    }
}

static void grids(void)
{
    check_grids("4");
    check_grids("8");
}

/* Raises *most to the relative difference of two losses. *most becomes NaN if a loss is NaN. */
static void widen(double *most, double a, double b)
{
    const double apart = fabs(a - b) / fabs(b);
    if (!(apart <= *most)) *most = apart;
}

/* Checks that losses with micro-batches of 4 and of 8 are, up to rounding, those with one
 * micro-batch of 16 if statistics are fixed, and that they are not if statistics are not fixed. */
static void check_sizes(const char *freeze, bool fixed)
{
    static const char *const sizes[] = {"4", "8"};
    const Outcome want = train(1, "16", freeze);
    for (int i = 0; i < 2; ++i) {
        const Outcome got = train(1, sizes[i], freeze);
        double most = 0;
        CU_ASSERT(got.hash != 0 && want.hash != 0);
        for (int s = 0; s < STEPS; ++s) widen(&most, got.loss[s], want.loss[s]);
        widen(&most, got.eval_loss, want.eval_loss);
        CU_ASSERT(fixed ? most < 1e-6 : most > 1e-4);
        if (getenv("WEFT_TEST_VERBOSE") && tiny_rank == 0)
            printf("  micro-batches of %s%s: losses up to %.1e from those of 16\n", sizes[i],
                   fixed ? ", fixed statistics" : "", most);
    }
}

static void sizes(void)
{
    check_sizes("model.freeze=['*.bn']", true);
    check_sizes("", false);
}

/* ---- sixteen scenes ---- */

static Status learn(const World *world, EvalLine *line)
{
    static const char text[] =
        "run: {seed: 2}\nmodel: {name: yolov5n, width_multiple: 0.05}\n"
        "data: {normalize: false}\n"
        "train: {batch: 16, micro_batch: 16, steps: 300, threads: 1, loss: yolo}\n"
        "optim: {name: adamw, lr: 0.03, beta2: 0.99, lr_schedule: linear, warmup_steps: 10}\n";
    char *set[] = {mem_format("data.train=%s", first_path), mem_format("data.test=%s", first_path)};
    Config *config = NULL;
    Trainer *t = NULL;
    StepResult r;
    Status st = config_parse(&config, "learn.yaml", text, 2, set);
    if (st == OK) st = trainer_new(&t, config, world);
    while (st == OK && t->step < 300) st = next_step(t, &r);
    if (st == OK) st = train_evaluate(t, &t->test_set, line, NULL);
    trainer_free(&t);
    config_free(&config);
    mem_free(&set[0]);
    mem_free(&set[1]);
    return st;
}

static void by_heart(void)
{
    World sub;
    if (tiny_world(&sub, 1)) {
        EvalLine line = {0};
        CHECK_OK(learn(&sub, &line));
        CU_ASSERT(line.has_boxes && line.samples == 16);
        CU_ASSERT(line.coco[COCO_AP50] > 0.9);
        if (getenv("WEFT_TEST_VERBOSE") || !(line.coco[COCO_AP50] > 0.9))
            printf("  after 300 steps AP50 is %.4f\n", line.coco[COCO_AP50]);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
}

TINY_MAIN("detector", prepare, {"grids", grids}, {"sizes of micro-batches", sizes},
          {"sixteen scenes", by_heart})
