/* Tests training on encoded pictures with all augmentations. The bits are the same on one rank and
 * on four, on two stages and on two stages with replicas, with one loading thread and with several.
 * Mixed labels reach the last stage. */
#include "grids.h"

#include "data/encoded.h"

static const GridModel model = {
    "pictures",
    "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, conv2d: {channels: 8, "
    "kernel: 3, stride: 2}, relu, global_pool, flatten, dense: {width: 3}]}\n"
    "optim: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "data: {random_resized_crop: 12, resize: 16, augment: [flip, crop, cutout], crop_pad: 1, "
    "cutout_size: 3, color_jitter: [0.4, 0.4, 0.4, 0.1], erasing: 0.5, mixup: 0.4, cutmix: 1, "
    "filter: bicubic}\n",
    false};

static void prepare(void)
{
    if (tiny_rank == 0)
        snprintf(images_path, sizeof images_path, "%s", encoded_set("set.h5", 52, 0, true, -1));
    tiny_bcast(images_path, sizeof images_path);
}

/* a model whose layers tensor parallelism divides */
static const GridModel divided = {
    "divided pictures",
    "model: {layers: [conv2d: {channels: 8, kernel: 3}, relu, global_pool, flatten, "
    "dense: {width: 16}, relu, dense: {width: 3}]}\n"
    "optim: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "data: {random_resized_crop: 12, resize: 16, mixup: 0.4, cutmix: 1}\n",
    false};

static Outcome run(int ranks, const char *more)
{
    return grid_train(&(GridPart){.model = &model, .ranks = ranks, .more = more, .to = 6});
}

static void same(const Outcome *want, int ranks, const char *more)
{
    Outcome got = run(ranks, more);
    if (!outcome_same(want, &got)) outcome_explain(more, want, &got);
    CU_ASSERT(outcome_same(want, &got));
}

static void test_grids(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    Outcome one = run(1, "data.workers=1");
    CU_ASSERT_EQUAL(one.steps, 6);
    CU_ASSERT(isfinite(one.eval_loss));
    same(&one, 1, "data.workers=3");
    same(&one, 4, "data.workers=2");
    same(&one, 2, "grid.pp=2 data.workers=2");
    same(&one, 4, "grid.pp=2 grid.zero=1");
    /* each augmentation has an effect */
    Outcome other = run(1, "data.mixup=0 data.cutmix=0");
    CU_ASSERT(other.hash != 0 && other.hash != one.hash);
    other = run(1, "data.erasing=0");
    CU_ASSERT(other.hash != 0 && other.hash != one.hash);
    other = run(1, "data.color_jitter=[]");
    CU_ASSERT(other.hash != 0 && other.hash != one.hash);
}

/* Tests that all ranks of a tensor-parallel group have the same mixed labels: losses agree up to
 * rounding. */
static void test_tensor_groups(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    GridPart part = {.model = &divided, .ranks = 1, .more = "", .to = 6};
    Outcome one = grid_train(&part);
    CU_ASSERT_EQUAL(one.steps, 6);
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        part = (GridPart){.model = &divided, .ranks = ranks, .more = "grid.tp=2", .to = 6};
        Outcome got = grid_train(&part);
        CU_ASSERT_EQUAL(got.steps, 6);
        for (int s = 0; s < 6; ++s) CU_ASSERT(fabs(got.loss[s] - one.loss[s]) < 1e-5 * one.loss[s]);
    }
    part = (GridPart){.model = &divided, .ranks = 1, .more = "data.mixup=0 data.cutmix=0", .to = 6};
    CU_ASSERT(fabs(grid_train(&part).loss[5] - one.loss[5]) > 1e-3);
}

TINY_MAIN("pictures", prepare, {"the same bits on every grid", test_grids},
          {"tensor groups", test_tensor_groups})
