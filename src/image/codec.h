/* The interface between a picture format and the rest of the module. A format is a file with its
 * table, a file that replaces it where its library is missing, and one row in decode.c. */
#ifndef WEFT_IMAGE_CODEC_H
#define WEFT_IMAGE_CODEC_H

#include "image.h"

/* the most bytes of chunks other than pixels, for any format */
enum { IMAGE_CHUNK_BYTES = 8 << 20 };

struct ImageDecoder {
    /* output of a codec that is not RGB yet; owned */
    uint8_t *scratch;
    size_t scratch_bytes;
};
/* Returns scratch of at least that many bytes, undefined. Borrowed until the next call. */
uint8_t *decoder_scratch(ImageDecoder *decoder, size_t bytes);

typedef struct ImageCodec {
    /* "libjpeg-turbo 2.1.5", or "no libjpeg-turbo" */
    const char *(*version)(void);
    /* Debian package of the missing library: then the functions below are not set. Else NULL. */
    const char *package;
    /* Reads width, height and orientation into head. The caller checks the size. */
    Status (*head)(ImageHead *head, const uint8_t *bytes, size_t count, const char *name);
    /* Decodes a region that contains `need`: sets *part and gives image its size. NULL: the format
     * decodes whole pictures only. */
    Status (*decode_part)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          ImageBox need, ImageBox *part, const char *name);
    /* Decodes into an image that has the size that head gave. */
    Status (*decode)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                     const char *name);
} ImageCodec;
extern const ImageCodec image_jpeg, image_png, image_webp;

/* Orientation in EXIF data (a TIFF header, with or without "Exif\0\0" before it), 1 to 8; 1 if
 * there is none or it is invalid. */
int exif_orientation(const uint8_t *bytes, size_t count);

/* Fails with ERR_DATA: "name: a broken JPEG picture: why; replace it or leave it out". */
Status image_fail_broken(const char *name, const char *format, const char *why);

#endif
