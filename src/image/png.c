/* Decodes PNG with libspng. Alpha is dropped. Colours of 16 bits are reduced to their higher eight
 * bits. Grey of 16 bits is divided by 257 and rounded; Pillow converts it in another way, which
 * makes nearly all pixels white. All chunks are read, so a file without its end is refused. */
#include "codec.h"

#include <stdio.h>

#include <spng.h>

/* Returns a decoder of a file of `count` bytes. Release with `finish`. */
static spng_ctx *open_png(const uint8_t *bytes, size_t count)
{
    spng_ctx *png = spng_ctx_new(0);
    if (!png) die_as(ERR_MEMORY, "out of memory for a PNG picture");
    spng_set_chunk_limits(png, IMAGE_CHUNK_BYTES_MAX, IMAGE_CHUNK_BYTES_MAX);
    spng_set_png_buffer(png, bytes, count);
    return png;
}

static Status finish(spng_ctx *png, int error, const char *name)
{
    spng_ctx_free(png);
    return error ? image_fail_broken(name, "PNG", spng_strerror(error)) : OK;
}

static Status png_header(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name)
{
    struct spng_ihdr ihdr = {0};
    struct spng_exif exif = {0};
    spng_ctx *png = open_png(bytes, count);
    int error = spng_get_ihdr(png, &ihdr);
    if (!error) {
        head->width = (int)ihdr.width;
        head->height = (int)ihdr.height;
        if (spng_get_exif(png, &exif) == 0)
            head->orientation = exif_orientation((const uint8_t *)exif.data, exif.length);
    }
    return finish(png, error, name);
}

static int decode_grey16(spng_ctx *png, ImageDecoder *decoder, Image *image)
{
    size_t pixels = (size_t)image->width * (size_t)image->height, bytes = pixels * 2;
    uint8_t *grey = decoder_scratch(decoder, bytes);
    int error = spng_decode_image(png, grey, bytes, SPNG_FMT_RAW, 0);
    for (size_t i = 0; !error && i < pixels; ++i) {
        unsigned value = (unsigned)grey[2 * i] << 8 | grey[2 * i + 1];
        uint8_t *to = image->pixel + 3 * i;
        to[0] = to[1] = to[2] = (uint8_t)((value + 128) / 257);
    }
    return error;
}

static Status png_decode(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                         const char *name)
{
    struct spng_ihdr ihdr = {0};
    size_t size = (size_t)image->width * (size_t)image->height * 3;
    spng_ctx *png = open_png(bytes, count);
    int error = spng_get_ihdr(png, &ihdr);
    if (!error && ihdr.color_type == SPNG_COLOR_TYPE_GRAYSCALE && ihdr.bit_depth == 16)
        error = decode_grey16(png, decoder, image);
    else if (!error)
        error = spng_decode_image(png, image->pixel, size, SPNG_FMT_RGB8, 0);
    if (!error) error = spng_decode_chunks(png);
    return finish(png, error, name);
}

static const char *version(void)
{
    static _Thread_local char text[40];
    snprintf(text, sizeof text, "libspng %s", spng_version_string());
    return text;
}

const ImageCodec image_png = {.version = version, .read_header = png_header, .decode = png_decode};
