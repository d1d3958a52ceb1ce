/* Tests of reorder: the output in plain order equals the input, and so do the gradients. The cases
 * are images and flat views of images, plain and channels last, and padded rows. Numbers that a
 * type cannot represent are rounded once. */
#ifndef WEFT_TEST_CUDA_REORDER_CASES_H
#define WEFT_TEST_CUDA_REORDER_CASES_H

#include "cases.h"

typedef struct ReorderCase {
    Backend *device;
    Desc from, to;
    char what[128];
} ReorderCase;

static Desc last_of(Desc plain)
{
    plain.block = (int)plain.shape.dim[1];
    return plain;
}

static Desc flat_of(Desc image)
{
    int64_t samples = image.shape.dim[0];
    return (Desc){.shape = shape_of(2, samples, shape_count(image.shape) / samples, 1, 1),
                  .dtype = image.dtype,
                  .block = image.block,
                  .flat = true,
                  .image = image.shape};
}

static void fill_inexact(float *out, int64_t n)
{
    fill(out, n, 1);
    for (int64_t i = 0; i < n; ++i) out[i] *= 1.1f;
}

static void reorder_compare(const ReorderCase *c, Rig *rig)
{
    int64_t n = shape_count(c->from.shape);
    float *given = mem_new((size_t)n * sizeof *given), *got = mem_new((size_t)n * sizeof *got);
    fill_inexact(given, n);
    rig_set_x(rig, 0, given);
    rig_poison(rig);
    rig_forward(rig);
    rig_get_y(rig, got);
    compare("reorder", c->device, PART_Y, allowed.exact, c->what, "y", got, given, n);
    fill_inexact(given, n);
    rig_backward(rig, given);
    rig_get_dx(rig, 0, got);
    compare("reorder", c->device, PART_DX, allowed.exact, c->what, "dx", got, given, n);
    mem_free(&given);
    mem_free(&got);
}

static void check_reorder(Backend *device, Desc from, Desc to)
{
    char shape[64];
    ReorderCase c = {.device = device, .from = from, .to = to};
    Rig rig = {
        .backend = device,
        .spec = {.kind = OP_REORDER, .x_count = 1, .x[0] = from, .y = to, .need_dx = {true}}};
    snprintf(c.what, sizeof c.what, "reorder %s, block %d to %d%s", shape_text(from.shape, shape),
             from.block, to.block, from.flat ? ", flat" : "");
    Status st = rig_plan(&rig);
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        rig_memory(&rig);
        reorder_compare(&c, &rig);
    }
    rig_close(&rig);
}

static void check_images(Backend *device)
{
    static const Shape shapes[] = {
        {4, {3, 3, 12, 8}}, {4, {2, 3, 40, 80}}, {4, {3, 2, 4, 2}},   {4, {2, 4, 8, 3}},
        {4, {3, 3, 5, 7}},  {4, {2, 1, 6, 5}},   {4, {2, 7, 1, 1}},   {4, {3, 5, 9, 8}},
        {4, {2, 50, 4, 4}}, {4, {2, 64, 8, 16}}, {4, {1, 70, 3, 13}},
    };
    DType type = device->options.precision;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const Desc data = desc_plain(shapes[i], DTYPE_F32), plain = desc_plain(shapes[i], type),
                   last = last_of(plain);
        check_reorder(device, data, last);
        check_reorder(device, data, plain);
        check_reorder(device, plain, last);
        check_reorder(device, last, plain);
        check_reorder(device, flat_of(last), desc_plain(flat_of(last).shape, type));
    }
}

static void check_rows(Backend *device)
{
    const Desc plain = desc_plain(shape_of(3, 3, 7, 77, 1), device->options.precision);
    Desc padded = plain;
    padded.block = 64;
    check_reorder(device, plain, padded);
    check_reorder(device, padded, plain);
}

static void test_reorder(void)
{
    Backend *const devices[] = {gpu, gpu_bf16, gpu_fp16};
    for (int d = 0; d < 3; ++d) {
        check_images(devices[d]);
        check_rows(devices[d]);
    }
}

#endif
