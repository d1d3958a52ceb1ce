/* Writes a weft data set of uint8 images as OUT.part. While images are written, the sums for the
 * mean and the deviation of each channel are computed, exactly, in integers. Mean, deviation and
 * labels are written at the end. */
#include "../data_private.h"

#include <math.h>
#include <string.h>

struct ImageWriter {
    ImageLayout layout;
    PartFile part;
    /* offsets of the arrays /x and /y in the file */
    int64_t x_offset, y_offset;
    /* number of images written so far */
    int64_t written;
    /* number of bytes of an image */
    int64_t image_bytes;
    /* labels of all images, [samples], written at the end; owned */
    int32_t *labels;
    /* sums of the pixels and of their squares, for each channel, [channels]; owned */
    uint64_t *sum, *squares;
};

static herr_t put_contents(void *user, hid_t file)
{
    ImageWriter *w = user;
    const ImageLayout *l = &w->layout;
    int version = 1;
    hsize_t dim[4] = {(hsize_t)l->samples, (hsize_t)l->channels, (hsize_t)l->height,
                      (hsize_t)l->width};
    float *zero = mem_new((size_t)l->channels * sizeof *zero);
    hsize_t c = dim[1];
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_text(file, "kind", "image") >= 0 &&
                h5_put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                h5_put_numbers(file, "mean", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, zero, c) >= 0 &&
                h5_put_numbers(file, "std", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, zero, c) >= 0 &&
                h5_put_classes(file, l->class_names, l->classes) >= 0 &&
                h5_put_array(file, "/x", H5T_STD_U8LE, 4, dim, &w->x_offset) >= 0 &&
                h5_put_array(file, "/y", H5T_STD_I32LE, 1, dim, &w->y_offset) >= 0;
    mem_free(&zero);
    return good ? 0 : -1;
}

static void writer_free(ImageWriter **writer)
{
    ImageWriter *w = *writer;
    mem_free(&w->labels);
    mem_free(&w->sum);
    mem_free(&w->squares);
    mem_free(writer);
}

Status image_writer_new(ImageWriter **writer, const char *out, bool force, ImageLayout layout)
{
    ImageWriter *w = mem_new(sizeof *w);
    w->layout = layout;
    w->image_bytes = layout.channels * layout.height * layout.width;
    w->labels = mem_new((size_t)layout.samples * sizeof *w->labels);
    w->sum = mem_new((size_t)layout.channels * sizeof *w->sum);
    w->squares = mem_new((size_t)layout.channels * sizeof *w->squares);
    *writer = w;
    int64_t bytes = layout.samples * (w->image_bytes + (int64_t)sizeof *w->labels);
    Status st = part_new(&w->part, out, force, bytes, put_contents, w);
    if (st != OK) writer_free(writer);
    return st;
}

void pixel_sums(const uint8_t *from, int64_t pixels, int step, uint64_t *sum, uint64_t *squares)
{
    /* The sum of the squares of this number of pixels fits into 32 bits. */
    enum { BLOCK_PIXELS = 65536 };
    for (int64_t at = 0; at < pixels;) {
        int64_t end = pixels - at < BLOCK_PIXELS ? pixels : at + BLOCK_PIXELS;
        uint32_t block_sum = 0, block_squares = 0;
        for (; at < end; ++at) {
            uint32_t v = from[at * step];
            block_sum += v;
            block_squares += v * v;
        }
        *sum += block_sum;
        *squares += block_squares;
    }
}

__extension__ typedef unsigned __int128 Wide;

void pixel_stats(uint64_t sum, uint64_t squares, int64_t pixels, float *mean, float *std)
{
    *mean = *std = 0;
    if (pixels == 0) return;
    double n = (double)pixels;
    /* n^2 times the variance, exact in 128 bits; it is 0 only if the channel is constant. */
    Wide n2_variance = (Wide)pixels * squares - (Wide)sum * sum;
    *mean = (float)((double)sum / n / 255.0);
    *std = n2_variance > 0 ? (float)(sqrt((double)n2_variance) / n / 255.0) : 1.0f;
}

Status image_writer_add(ImageWriter *writer, const uint8_t *images, const int32_t *labels,
                        int64_t count)
{
    ImageWriter *w = writer;
    int64_t plane = w->layout.height * w->layout.width, channels = w->layout.channels;
    if (count > w->layout.samples - w->written)
        return fail(ERR_BUG, "%s: more samples than laid out", w->part.part);
    for (int64_t i = 0; i < count * channels; ++i)
        pixel_sums(images + i * plane, plane, 1, &w->sum[i % channels], &w->squares[i % channels]);
    memcpy(w->labels + w->written, labels, (size_t)count * sizeof *labels);
    TRY(part_write(&w->part, images, count * w->image_bytes,
                   w->x_offset + w->written * w->image_bytes));
    w->written += count;
    return OK;
}

/* Overwrites the values of an attribute of floats. */
static herr_t change_numbers(hid_t file, const char *name, const float *value)
{
    hid_t attr = H5Aopen(file, name, H5P_DEFAULT);
    herr_t rc = attr < 0 ? -1 : H5Awrite(attr, H5T_NATIVE_FLOAT, value);
    if (attr >= 0) H5Aclose(attr);
    return rc;
}

static herr_t put_stats(void *user, hid_t file)
{
    ImageWriter *w = user;
    int64_t channels = w->layout.channels;
    int64_t pixels = w->layout.samples * w->layout.height * w->layout.width;
    float *mean = mem_new((size_t)channels * sizeof *mean);
    float *std = mem_new((size_t)channels * sizeof *std);
    for (int64_t c = 0; c < channels; ++c)
        pixel_stats(w->sum[c], w->squares[c], pixels, &mean[c], &std[c]);
    bool good = change_numbers(file, "mean", mean) >= 0 && change_numbers(file, "std", std) >= 0;
    mem_free(&mean);
    mem_free(&std);
    return good ? 0 : -1;
}

/* Writes the labels, mean and deviation. */
static Status put_rest(ImageWriter *w)
{
    if (w->written != w->layout.samples)
        return fail(ERR_BUG, "%s: %lld of %lld samples written", w->part.part,
                    (long long)w->written, (long long)w->layout.samples);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int64_t i = 0; i < w->written; ++i)
        w->labels[i] = (int32_t)__builtin_bswap32((uint32_t)w->labels[i]);
#endif
    TRY(part_write(&w->part, w->labels, w->written * (int64_t)sizeof *w->labels, w->y_offset));
    return part_update(&w->part, put_stats, w);
}

Status image_writer_finish(ImageWriter **writer)
{
    Status st = put_rest(*writer);
    if (st != OK) {
        image_writer_drop(writer);
        return st;
    }
    st = part_finish(&(*writer)->part);
    writer_free(writer);
    return st;
}

void image_writer_drop(ImageWriter **writer)
{
    if (!*writer) return;
    part_drop(&(*writer)->part);
    writer_free(writer);
}
