/* Decodes WebP, lossy and lossless, with libwebp. Alpha is dropped. Animations are refused. */
#include "codec.h"

#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

/* Returns the reason of a failure, for image_fail_broken. */
static const char *reason(VP8StatusCode code)
{
    return code == VP8_STATUS_NOT_ENOUGH_DATA       ? "it is cut off"
           : code == VP8_STATUS_OUT_OF_MEMORY       ? "it does not fit in memory"
           : code == VP8_STATUS_UNSUPPORTED_FEATURE ? "it uses a feature that libwebp lacks"
                                                    : "its data are invalid";
}

/* Returns the orientation in the EXIF chunk of the file, which is a RIFF file; 1 if there is none.
 * The file's header has 12 bytes. A chunk has a name of 4 bytes, a length of 4 bytes, and data that
 * are padded to an even length. */
static int orientation(const uint8_t *bytes, size_t count)
{
    enum { FILE_HEADER = 12, CHUNK_HEADER = 8 };
    for (size_t at = FILE_HEADER; at + CHUNK_HEADER <= count;) {
        const uint8_t *c = bytes + at;
        size_t length = c[4] | (size_t)c[5] << 8 | (size_t)c[6] << 16 | (size_t)c[7] << 24;
        if (length > count - at - CHUNK_HEADER) break;
        if (memcmp(c, "EXIF", 4) == 0) return exif_orientation(c + CHUNK_HEADER, length);
        at += CHUNK_HEADER + length + (length & 1);
    }
    return 1;
}

static Status webp_header(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name)
{
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(bytes, count, &features);
    if (code != VP8_STATUS_OK) return image_fail_broken(name, "WebP", reason(code));
    if (features.has_animation)
        return fail(ERR_DATA,
                    "%s: an animated WebP picture: replace it by one of its frames or leave it out",
                    name);
    head->width = features.width;
    head->height = features.height;
    head->orientation = orientation(bytes, count);
    return OK;
}

static Status webp_decode(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          const char *name)
{
    WebPDecoderConfig config;
    (void)decoder;
    if (!WebPInitDecoderConfig(&config))
        return fail(ERR_DATA,
                    "%s: cannot be decoded: libwebp is not the version that weft was built with",
                    name);
    int pitch = image->width * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixel;
    config.output.u.RGBA.stride = pitch;
    config.output.u.RGBA.size = (size_t)pitch * (size_t)image->height;
    VP8StatusCode code = WebPDecode(bytes, count, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? OK : image_fail_broken(name, "WebP", reason(code));
}

static const char *version(void)
{
    static _Thread_local char text[40];
    int v = WebPGetDecoderVersion();
    snprintf(text, sizeof text, "libwebp %d.%d.%d", v >> 16, v >> 8 & 255, v & 255);
    return text;
}

const ImageCodec image_webp = {
    .version = version, .read_header = webp_header, .decode = webp_decode};
