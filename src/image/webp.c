/* WebP by libwebp, lossy and lossless. Alpha is dropped. Animations are refused. */
#include "codec.h"

#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

static const char *why(VP8StatusCode code)
{
    return code == VP8_STATUS_NOT_ENOUGH_DATA       ? "it is cut off"
           : code == VP8_STATUS_OUT_OF_MEMORY       ? "it does not fit in memory"
           : code == VP8_STATUS_UNSUPPORTED_FEATURE ? "it uses what libwebp does not know"
                                                    : "its data make no sense";
}

/* The orientation in the EXIF chunk of the RIFF file. */
static int orientation(const uint8_t *bytes, size_t count)
{
    for (size_t at = 12; at + 8 <= count;) {
        const uint8_t *c = bytes + at;
        size_t length = c[4] | (size_t)c[5] << 8 | (size_t)c[6] << 16 | (size_t)c[7] << 24;
        if (length > count - at - 8) break;
        if (memcmp(c, "EXIF", 4) == 0) return exif_orientation(c + 8, length);
        at += 8 + length + (length & 1);
    }
    return 1;
}

static Status webp_head(ImageHead *head, const uint8_t *bytes, size_t count, const char *name)
{
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(bytes, count, &features);
    if (code != VP8_STATUS_OK) return image_fail_broken(name, "WebP", why(code));
    if (features.has_animation)
        return fail(ERR_DATA, "%s: a WebP picture that moves: keep one picture of it, or none",
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
        return image_fail_broken(name, "WebP", "of another libwebp");
    int pitch = image->width * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixel;
    config.output.u.RGBA.stride = pitch;
    config.output.u.RGBA.size = (size_t)pitch * (size_t)image->height;
    VP8StatusCode code = WebPDecode(bytes, count, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? OK : image_fail_broken(name, "WebP", why(code));
}

static const char *version(void)
{
    static _Thread_local char text[40];
    int v = WebPGetDecoderVersion();
    snprintf(text, sizeof text, "libwebp %d.%d.%d", v >> 16, v >> 8 & 255, v & 255);
    return text;
}

const ImageCodec image_webp = {.version = version, .head = webp_head, .decode = webp_decode};
