/* The operations of models of fields on the GPU against the CPU: group norm, film, sums of
 * channels, losses with a label for each pixel, and losses of whole fields. Their sums are over one
 * and over several parts of a sample. */
#ifndef WEFT_TEST_CUDA_FIELD_CASES_H
#define WEFT_TEST_CUDA_FIELD_CASES_H

#include "pairs.h"

static void run_everywhere(const OpCase *cases, size_t count)
{
    run_ops(cases, count, gpu);
    run_ops(cases, count, gpu_bf16);
    run_ops(cases, count, gpu_fp16);
}

/* Groups of one channel, of more channels than a warp, and a group of all; samples whose pixels are
 * divided into parts. */
static void test_group_norm(void)
{
    const Bound b = allowed.product;
    const OpCase cases[] = {
        {"group_norm", "groups=3", 1, {4, {3, 21, 5, 6}}, ACT_NONE, 2, b},
        {"group_norm", "groups=2", 1, {4, {2, 16, 9, 8}}, ACT_RELU, 0, b},
        {"group_norm", "groups=1 eps=1e-3", 1, {4, {2, 40, 17, 13}}, ACT_RELU6, 1, b},
        {"group_norm", "groups=1", 1, {4, {1, 5, 48, 40}}, ACT_NONE, 0, b},
        {"group_norm", "groups=2", 1, {4, {2, 8, 96, 64}}, ACT_RELU, 0, b},
        {"group_norm", "groups=4", 1, {4, {2, 288, 3, 2}}, ACT_NONE, 0, b},
        {"instance_norm", "", 1, {4, {3, 7, 6, 5}}, ACT_RELU, 2, b},
        {"instance_norm", "affine=true", 1, {4, {2, 24, 9, 7}}, ACT_NONE, 0, b},
    };
    run_everywhere(cases, sizeof cases / sizeof *cases);
}

static void test_film(void)
{
    const Bound b = allowed.product;
    const OpCase cases[] = {
        {"film", "", 2, {4, {3, 5, 3, 4}}, ACT_NONE, 0, b},
        {"film", "", 2, {4, {3, 40, 7, 6}}, ACT_NONE, 2, b},
        {"film", "", 2, {4, {2, 5, 48, 40}}, ACT_NONE, 0, b},
        {"film", "", 2, {4, {1, 8, 96, 64}}, ACT_NONE, 0, b},
    };
    run_everywhere(cases, sizeof cases / sizeof *cases);
}

static void test_channel_sum(void)
{
    const OpCase cases[] = {
        {"channel_sum", "", 2, {4, {2, 3, 5, 7}}, ACT_NONE, 0, allowed.elementwise},
        {"channel_sum", "", 3, {4, {3, 8, 6, 9}}, ACT_NONE, 2, allowed.elementwise},
        {"channel_sum", "", 1, {4, {1, 400, 2, 3}}, ACT_NONE, 0, allowed.elementwise},
    };
    run_everywhere(cases, sizeof cases / sizeof *cases);
}

/* One label in five is missing (pair_give_classes). */
static void test_pixel_losses(void)
{
    const Bound b = allowed.pixel;
    const OpCase cases[] = {
        {"softmax_loss", "", 1, {4, {3, 4, 7, 9}}, ACT_NONE, 0, b},
        {"softmax_loss",
         "class_weights=1,0.5,2 smoothing=0.1",
         1,
         {4, {3, 3, 5, 8}},
         ACT_NONE,
         2,
         b},
        {"softmax_loss", "", 1, {4, {2, 8, 60, 50}}, ACT_NONE, 0, b},
        {"focal_loss", "", 1, {4, {3, 4, 7, 9}}, ACT_NONE, 2, b},
        {"focal_loss", "gamma=0.5 class_weights=1,0.5,2,0", 1, {4, {2, 4, 60, 50}}, ACT_NONE, 0, b},
        {"focal_loss", "gamma=2", 1, {2, {37, 10, 1, 1}}, ACT_NONE, 30, b},
        {"dice_loss", "", 1, {4, {3, 4, 7, 9}}, ACT_NONE, 2, b},
        {"dice_loss", "", 1, {4, {2, 3, 60, 50}}, ACT_NONE, 0, b},
        {"iou_loss", "", 1, {4, {2, 40, 12, 10}}, ACT_NONE, 0, b},
        {"iou_loss", "", 1, {4, {2, 8, 96, 64}}, ACT_NONE, 1, b},
        {"sigmoid_loss", "", 1, {2, {300, 1, 1, 1}}, ACT_NONE, 290, b},
    };
    run_everywhere(cases, sizeof cases / sizeof *cases);
}

/* A label that is not a class makes the loss of its row, or of its sample, NaN. */
static void check_bad_label(const char *kind, Shape shape, int32_t bad)
{
    Rig rig = {0};
    CHECK_OK(rig_spec(&rig, gpu, kind, ""));
    rig.spec.x_count = 1;
    rig.spec.x[0] = desc_plain(shape, DTYPE_F32);
    CHECK_OK(rig_open(&rig, kind));
    const int64_t labels = loss_labels(&rig.spec),
                  lines = shape_count(rig.spec.y.shape) / LOSS_COLUMNS;
    const int64_t at = labels / 2 + 1;
    int32_t *label = mem_new((size_t)labels * sizeof *label);
    float *x = mem_new((size_t)shape_count(shape) * sizeof *x);
    float *y = mem_new((size_t)(lines * LOSS_COLUMNS) * sizeof *y);
    label[at] = bad;
    rig_set_labels(&rig, label, labels);
    fill(x, shape_count(shape), 1);
    rig_set_x(&rig, 0, x);
    rig_forward(&rig);
    rig_get_y(&rig, y);
    for (int64_t i = 0; i < lines; ++i)
        CU_ASSERT_EQUAL(isnan(y[i * LOSS_COLUMNS]), i == at * lines / labels);
    mem_free(&y);
    mem_free(&x);
    mem_free(&label);
    rig_close(&rig);
}

static void test_bad_labels(void)
{
    const char *const kinds[] = {"softmax_loss", "focal_loss", "dice_loss", "iou_loss"};
    for (int i = 0; i < 4; ++i)
        for (int32_t bad = -2; bad <= 4; bad += 6)
            check_bad_label(kinds[i], shape_of(4, 2, 4, 5, 6), bad);
    check_bad_label("sigmoid_loss", shape_of(2, 7, 1, 1, 1), 2);
}

/* Fields whose numbers are divided into parts; those of shape (N,C,L) have weights of each
 * sample. */
static void test_wide_losses(void)
{
    const OpCase cases[] = {
        {"mse_loss", "", 1, {4, {2, 3, 80, 90}}, ACT_NONE, 0, allowed.product},
        {"l1_loss", "", 1, {3, {3, 2, 15000, 1}}, ACT_NONE, 2, allowed.product},
        {"huber_loss", "delta=0.3", 1, {2, {3, 20000, 1, 1}}, ACT_NONE, 2, allowed.product},
    };
    run_everywhere(cases, sizeof cases / sizeof *cases);
}

#endif
