/* Decodes pictures in memory. The format is detected from the first bytes, and the size in the
 * header is checked before memory is allocated for pixels. Damage that a decoder finds is an error,
 * not a partial result. */
#include "codec.h"

#include <string.h>

typedef struct FormatRow {
    ImageFormat format;
    const char *name;
    /* bytes at the beginning of a file of this format */
    const char *at_0;
    /* bytes at offset 8; NULL: any bytes */
    const char *at_8;
    const ImageCodec *codec;
} FormatRow;
static const FormatRow formats[] = {
    {IMAGE_JPEG, "JPEG", "\xff\xd8\xff", NULL, &image_jpeg},
    {IMAGE_PNG, "PNG", "\x89PNG\r\n\x1a\n", NULL, &image_png},
    {IMAGE_WEBP, "WebP", "RIFF", "WEBP", &image_webp},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Returns true if the file has the bytes of `text` at offset `at`, or if `text` is NULL. */
static bool has_text(const uint8_t *bytes, size_t count, size_t at, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    return length == 0 || (at + length <= count && memcmp(bytes + at, text, length) == 0);
}

/* Returns the file's format; NULL: it is unknown. */
static const FormatRow *find_format(const uint8_t *bytes, size_t count)
{
    for (int i = 0; i < FORMATS; ++i)
        if (has_text(bytes, count, 0, formats[i].at_0) &&
            has_text(bytes, count, 8, formats[i].at_8))
            return &formats[i];
    return NULL;
}

Status image_fail_broken(const char *name, const char *format, const char *why)
{
    return fail(ERR_DATA, "%s: a broken %s picture: %s; replace it or leave it out", name, format,
                why);
}

/* Finds the format, reads the header, and checks the picture's size. */
static Status read_header(const FormatRow **row, ImageHeader *head, const void *bytes, size_t count,
                          const char *name)
{
    *head = (ImageHeader){.orientation = 1};
    *row = find_format(bytes, count);
    if (count == 0) return fail(ERR_DATA, "%s: no picture: it is empty", name);
    if (!*row)
        return fail(ERR_DATA, "%s: no picture: it does not begin like a JPEG, a PNG or a WebP",
                    name);
    const ImageCodec *codec = (*row)->codec;
    head->format = (*row)->format;
    if (codec->package)
        return fail(ERR_DATA,
                    "%s: a %s picture, but weft was built with %s: install %s and build again",
                    name, (*row)->name, codec->version(), codec->package);
    TRY(codec->read_header(head, bytes, count, name));
    if (head->width < 1 || head->height < 1)
        return image_fail_broken(name, (*row)->name, "it has no pixels");
    if ((int64_t)head->width * head->height > IMAGE_PIXELS_MAX)
        return fail(ERR_DATA,
                    "%s: a %s picture of %dx%d pixels, more than the %d that are decoded: make it "
                    "smaller or leave it out",
                    name, (*row)->name, head->width, head->height, IMAGE_PIXELS_MAX);
    return OK;
}

Status image_read_header(ImageHeader *head, const void *bytes, size_t count, const char *name)
{
    const FormatRow *row;
    return read_header(&row, head, bytes, count, name);
}

Status image_decode(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                    const char *name)
{
    const FormatRow *row;
    ImageHeader head;
    TRY(read_header(&row, &head, bytes, count, name));
    image_set_size(image, head.width, head.height);
    return row->codec->decode(decoder, image, bytes, count, name);
}

Status image_decode_part(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                         const ImageHeader *head, ImageBox need, ImageBox *part, const char *name)
{
    const FormatRow *row = find_format(bytes, count);
    *part = (ImageBox){0, 0, head->width, head->height};
    if (!row || row->format != head->format)
        return fail(ERR_BUG, "%s: it has changed since its header was read", name);
    if (row->codec->decode_part)
        return row->codec->decode_part(decoder, image, bytes, count, need, part, name);
    image_set_size(image, head->width, head->height);
    return row->codec->decode(decoder, image, bytes, count, name);
}

Status image_codec_check(const char *name, const ImageCodec *codec)
{
    const bool here = !codec->package;
    const RowSlot slots[] = {
        ROW_SLOT(codec, version),
        ROW_SLOT_IF(codec, read_header, here),
        ROW_SLOT_IF(codec, decode, here),
        ROW_SLOT_IF(codec, decode_part, here && codec->decode_part),
    };
    return ROW_SLOTS_CHECK("picture format", name, slots);
}

Status image_codecs_check(void)
{
    for (int i = 0; i < FORMATS; ++i) {
        const RowSlot slots[] = {ROW_SLOT(&formats[i], name), ROW_SLOT(&formats[i], at_0),
                                 ROW_SLOT(&formats[i], codec)};
        TRY(ROW_SLOTS_CHECK("picture format", formats[i].name, slots));
        TRY(image_codec_check(formats[i].name, formats[i].codec));
    }
    return OK;
}

void image_versions(char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < FORMATS && used < room; ++i)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "",
                                 formats[i].codec->version());
}

ImageDecoder *image_decoder_new(void)
{
    return mem_new(sizeof(ImageDecoder));
}

void image_decoder_free(ImageDecoder **decoder)
{
    if (*decoder) mem_free(&(*decoder)->scratch);
    mem_free(decoder);
}

uint8_t *decoder_scratch(ImageDecoder *decoder, size_t bytes)
{
    if (bytes > decoder->scratch_bytes) {
        mem_free(&decoder->scratch);
        decoder->scratch = mem_new(bytes);
        decoder->scratch_bytes = bytes;
    }
    return decoder->scratch;
}
