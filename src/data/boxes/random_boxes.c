/* Writes random pictures with random boxes, for timing. The time of a step depends on the number of
 * boxes, and hardly on their places; a picture has 7 boxes on average, COCO's pictures have 7.2. */
#include "box_set.h"

#include <math.h>

/* largest number of boxes of a picture */
enum { MOST_BOXES = 14 };

/* A file that is being written. */
typedef struct RandomBoxes {
    BoxSet set;
    /* shape of the pictures, (N,channels,side,side) */
    Shape sample;
    uint64_t seed;
    PartFile part;
    /* offset of the pixels in the file */
    int64_t x_offset;
} RandomBoxes;

/* Adds picture i with 0 to MOST_BOXES boxes. The logarithm of a box's side is uniform between those
 * of a twentieth of the picture's side and of the picture's side. */
static void add_picture(RandomBoxes *r, int64_t i)
{
    const int side = (int)r->sample.dim[2];
    const RngKey key = rng_key(r->seed, RNG_TEST, (uint64_t)i, 1);
    const int boxes = (int)(rng_u32(key, 0) % (MOST_BOXES + 1));
    box_set_add_picture(&r->set, (BoxPicture){.id = i + 1, .height = side, .width = side}, "");
    for (int k = 0; k < boxes; ++k) {
        BoxLabel label = {.id = MOST_BOXES * i + k + 1, .picture_id = i + 1};
        for (int axis = 0; axis < 2; ++axis) {
            const uint64_t word = (uint64_t)(1 + 5 * k + 2 * axis);
            label.box[2 + axis] = side * pow(20, (double)rng_uniform(key, word) - 1);
            label.box[axis] = (double)rng_uniform(key, word + 1) * (side - label.box[2 + axis]);
        }
        label.area = label.box[2] * label.box[3];
        label.category_id = 1 + rng_u32(key, (uint64_t)(5 + 5 * k)) % (uint32_t)r->set.categories;
        box_set_add_label(&r->set, label);
    }
}

static herr_t put_contents(void *user, hid_t file)
{
    RandomBoxes *r = user;
    return box_set_put_squares(&r->set, file, r->sample.dim[1], &r->x_offset) ? 0 : -1;
}

static Status write_pictures(const RandomBoxes *r, int64_t samples)
{
    const int64_t pixels = r->sample.dim[1] * r->sample.dim[2] * r->sample.dim[3];
    uint8_t *picture = mem_new((size_t)pixels);
    Status st = OK;
    for (int64_t i = 0; i < samples && st == OK; ++i) {
        const RngKey key = rng_key(r->seed, RNG_TEST, (uint64_t)i, 0);
        for (int64_t k = 0; k < pixels; ++k) picture[k] = (uint8_t)rng_u32(key, (uint64_t)k);
        st = part_write(&r->part, picture, pixels, r->x_offset + i * pixels);
    }
    mem_free(&picture);
    return st;
}

Status data_import_random_boxes(const char *out, Shape sample, int64_t classes, int64_t samples,
                                uint64_t seed)
{
    const int64_t pixels = sample.dim[1] * sample.dim[2] * sample.dim[3];
    BoxImport import = {.out = out, .side = (int)sample.dim[2]};
    RandomBoxes r = {.set = {.import = &import, .source = out}, .sample = sample, .seed = seed};
    char name[24];
    for (int64_t c = 1; c <= classes; ++c) {
        snprintf(name, sizeof name, "%lld", (long long)c);
        box_set_add_category(&r.set, c, name);
    }
    for (int64_t i = 0; i < samples; ++i) add_picture(&r, i);
    Status st = box_set_order(&r.set);
    const int64_t bytes = samples * (pixels + 64) + r.set.labels * 64;
    if (st == OK) st = part_new(&r.part, out, true, bytes, put_contents, &r);
    if (st == OK) {
        st = write_pictures(&r, samples);
        if (st == OK)
            st = part_finish(&r.part);
        else
            part_drop(&r.part);
    }
    box_set_fini(&r.set);
    return st;
}
