/* Decodes pictures from bytes. The format is detected from the first bytes, and the header is read
 * and its size checked before memory is allocated. A picture decodes completely or not at all. */
#include "codec.h"

#include <string.h>

typedef struct FormatRow {
    ImageFormat format;
    const char *name;
    /* bytes at the file's start; bytes at offset 8, or NULL */
    const char *begin, *at_8;
    const ImageCodec *codec;
} FormatRow;
static const FormatRow formats[] = {
    {IMAGE_JPEG, "JPEG", "\xff\xd8\xff", NULL, &image_jpeg},
    {IMAGE_PNG, "PNG", "\x89PNG\r\n\x1a\n", NULL, &image_png},
    {IMAGE_WEBP, "WebP", "RIFF", "WEBP", &image_webp},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool holds(const uint8_t *bytes, size_t count, size_t at, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    return length == 0 || (at + length <= count && memcmp(bytes + at, text, length) == 0);
}

static const FormatRow *find(const uint8_t *bytes, size_t count)
{
    for (int i = 0; i < FORMATS; ++i)
        if (holds(bytes, count, 0, formats[i].begin) && holds(bytes, count, 8, formats[i].at_8))
            return &formats[i];
    return NULL;
}

Status image_fail_broken(const char *name, const char *format, const char *why)
{
    return fail(ERR_DATA, "%s: a broken %s picture: %s; replace it or leave it out", name, format,
                why);
}

/* Finds the format and reads the header, for head and decode; fails if the size is not
 * acceptable. */
static Status read_head(const FormatRow **row, ImageHead *head, const void *bytes, size_t count,
                        const char *name)
{
    *head = (ImageHead){.orientation = 1};
    *row = find(bytes, count);
    if (count == 0) return fail(ERR_DATA, "%s: no picture: it is empty", name);
    if (!*row)
        return fail(ERR_DATA, "%s: no picture: its bytes begin neither a JPEG nor a PNG nor a WebP",
                    name);
    const ImageCodec *codec = (*row)->codec;
    head->format = (*row)->format;
    if (codec->package)
        return fail(ERR_DATA,
                    "%s: a %s picture, but weft was built with %s: install %s and build again",
                    name, (*row)->name, codec->version(), codec->package);
    TRY(codec->head(head, bytes, count, name));
    if (head->width < 1 || head->height < 1)
        return image_fail_broken(name, (*row)->name, "it has no pixels");
    if ((int64_t)head->width * head->height > IMAGE_PIXELS_MAX)
        return fail(ERR_DATA,
                    "%s: a %s picture of %dx%d pixels, more than the %d that are decoded: make it "
                    "smaller or leave it out",
                    name, (*row)->name, head->width, head->height, IMAGE_PIXELS_MAX);
    return OK;
}

Status image_read_head(ImageHead *head, const void *bytes, size_t count, const char *name)
{
    const FormatRow *row;
    return read_head(&row, head, bytes, count, name);
}

Status image_decode(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                    const char *name)
{
    const FormatRow *row;
    ImageHead head;
    TRY(read_head(&row, &head, bytes, count, name));
    image_set_size(image, head.width, head.height);
    return row->codec->decode(decoder, image, bytes, count, name);
}

Status image_decode_part(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                         const ImageHead *head, ImageBox need, ImageBox *part, const char *name)
{
    const FormatRow *row = find(bytes, count);
    *part = (ImageBox){0, 0, head->width, head->height};
    if (!row || row->format != head->format)
        return fail(ERR_BUG, "%s: it has changed since its head was read", name);
    if (row->codec->decode_part)
        return row->codec->decode_part(decoder, image, bytes, count, need, part, name);
    image_set_size(image, head->width, head->height);
    return row->codec->decode(decoder, image, bytes, count, name);
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
