/* Writes random images with random labels, for timing: the time of a step does not depend on the
 * content of a data set. */
#include "../data_private.h"

/* number of images that are made and written together */
enum { BLOCK = 16 };

static Status write_all(ImageWriter *writer, ImageLayout l, uint64_t seed)
{
    size_t pixels = (size_t)(l.channels * l.height * l.width);
    uint8_t *images = mem_new(BLOCK * pixels);
    int32_t labels[BLOCK];
    Status st = OK;
    for (int64_t at = 0; st == OK && at < l.samples; at += BLOCK) {
        int64_t count = l.samples - at < BLOCK ? l.samples - at : BLOCK;
        RngKey pixel_key = rng_key(seed, RNG_TEST, (uint64_t)at, 0),
               label_key = rng_key(seed, RNG_TEST, (uint64_t)at, 1);
        for (size_t i = 0; i < (size_t)count * pixels; ++i)
            images[i] = (uint8_t)rng_u32(pixel_key, i);
        for (int64_t i = 0; i < count; ++i)
            labels[i] = (int32_t)(rng_u32(label_key, (uint64_t)i) % (uint32_t)l.classes);
        st = image_writer_add(writer, images, labels, count);
    }
    mem_free(&images);
    return st;
}

Status data_import_random(const char *out, Shape sample, int64_t classes, int64_t samples,
                          uint64_t seed)
{
    ImageLayout layout = {.samples = samples,
                          .channels = sample.dim[1],
                          .height = sample.dim[2],
                          .width = sample.dim[3],
                          .classes = classes};
    ImageWriter *writer = NULL;
    TRY(image_writer_new(&writer, out, true, layout));
    Status st = write_all(writer, layout, seed);
    if (st == OK) return image_writer_finish(&writer);
    image_writer_drop(&writer);
    return st;
}
