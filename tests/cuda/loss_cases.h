/* Tests of softmax_loss that overwrites the logits with their gradient in forward: the results have
 * the same bits as those of separate forward and backward. Some rows fit a block's shared memory,
 * and some are longer. */
#ifndef WEFT_TEST_CUDA_LOSS_CASES_H
#define WEFT_TEST_CUDA_LOSS_CASES_H

#include "cases.h"
#include "ranks.h"

typedef struct LossCase {
    Shape x;
    const char *attrs;
    /* number of real samples */
    int rows;
} LossCase;

static Status loss_open(Rig *rig, Backend *device, const LossCase *c, bool over)
{
    *rig = (Rig){.in_place = over};
    TRY(rig_spec(rig, device, "softmax_loss", c->attrs));
    rig->spec.x_count = 1;
    rig->spec.x[0] = desc_plain(c->x, DTYPE_F32);
    rig->spec.need_dx[0] = true;
    TRY(layer_infer_shapes(layer_kind("softmax_loss"), &rig->spec, &rig->size, rig->param));
    rig->spec.x[0] = dense_output(device, c->x);
    TRY(rig_plan(rig));
    rig_memory(rig);
    CU_ASSERT_EQUAL(rig->run.dx[0] == rig->run.x[0], over);
    rig->run.sample_count = c->rows;
    rig->run.loss_factor = 0.125f;
    return OK;
}

/* Sets logits and labels. Two labels in eight are invalid: -1, and the width of a row. */
static void loss_give(Rig *rig, const float *logits, const LossCase *c)
{
    int64_t width = c->x.dim[c->x.ndim - 1], lines = shape_count(c->x) / width;
    int32_t *labels = mem_new((size_t)lines * sizeof *labels);
    for (int64_t i = 0; i < lines; ++i)
        labels[i] = (int32_t)(i % 8 == 5   ? -1
                              : i % 8 == 6 ? width
                              : i % 8 == 0 ? width - 1
                                           : (i * 7919 + 3) % width);
    rig_set_labels(rig, labels, lines);
    rig_set_x(rig, 0, logits);
    rig_poison(rig);
    mem_free(&labels);
}

static bool loss_same(Rig *rig, const void *a, const void *b, size_t bytes)
{
    char *copy[2] = {mem_new(bytes), mem_new(bytes)};
    rig_copy(rig, copy[0], a, bytes);
    rig_copy(rig, copy[1], b, bytes);
    bool same = memcmp(copy[0], copy[1], bytes) == 0;
    for (int i = 0; i < 2; ++i) mem_free(&copy[i]);
    return same;
}

static void loss_compare(Rig *apart, Rig *over, const LossCase *c)
{
    const OpRun *a = &apart->run, *b = &over->run;
    size_t x_bytes = desc_bytes(apart->spec.x[0]), y_bytes = desc_bytes(apart->spec.y);
    float *logits = mem_new((size_t)shape_count(c->x) * sizeof *logits);
    fill(logits, shape_count(c->x), 4);
    loss_give(apart, logits, c);
    loss_give(over, logits, c);
    /* An evaluation does not change the logits and does not smooth labels. */
    apart->run.training = over->run.training = false;
    rig_forward(apart);
    rig_forward(over);
    CU_ASSERT_TRUE(loss_same(apart, a->y, b->y, y_bytes));
    CU_ASSERT_TRUE(loss_same(apart, a->x[0], b->x[0], x_bytes));
    apart->run.training = over->run.training = true;
    rig_forward(apart);
    CU_ASSERT_EQUAL(loss_same(apart, a->y, b->y, y_bytes), !*c->attrs);
    rig_backward(apart, NULL);
    rig_poison(over);
    /* On a GPU, forward computes the whole gradient. */
    rig_forward(over);
    CU_ASSERT_TRUE(loss_same(apart, a->dx[0], b->dx[0], x_bytes));
    rig_backward(over, NULL);
    CU_ASSERT_TRUE(loss_same(apart, a->dx[0], b->dx[0], x_bytes));
    CU_ASSERT_TRUE(loss_same(apart, a->y, b->y, y_bytes));
    CU_ASSERT_TRUE(loss_same(apart, a->saved, b->saved, apart->op->saved_bytes));
    /* rig_get_dx checks that padding is zero. */
    rig_get_dx(over, 0, logits);
    mem_free(&logits);
}

static void check_loss(Backend *device, const LossCase *c)
{
    Rig apart, over = {0};
    Status st = loss_open(&apart, device, c, false);
    if (st == OK) st = loss_open(&over, device, c, true);
    if (st != OK) printf("  loss: %s\n", fail_message());
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) loss_compare(&apart, &over, c);
    rig_close(&apart);
    rig_close(&over);
}

static void test_losses(void)
{
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    const LossCase cases[] = {
        {{2, {37, 10, 1, 1}}, "smoothing=0.1", 30},
        {{2, {9, 1000, 1, 1}}, "", 8},
        {{3, {3, 4, 51, 1}}, "smoothing=0.1", 2},
        {{2, {9, 2088, 1, 1}}, "smoothing=0.1", 8},
        {{2, {9, 3089, 1, 1}}, "", 9},
        /* These rows do not fit the shared memory in any type. */
        {{3, {3, 2, 60000, 1}}, "", 2},
        {{2, {2, 58003, 1, 1}}, "smoothing=0.1", 2},
    };
    for (int d = 0; d < 3; ++d)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) check_loss(devices[d], &cases[i]);
}

#endif
