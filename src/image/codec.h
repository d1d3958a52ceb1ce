/* Declares the interface between a picture format and the rest of the module. A format has a file
 * NAME.c with an ImageCodec, a file NAME_absent.c that replaces NAME.c in builds without the
 * format's library, and one entry in the table of decode.c. */
#ifndef WEFT_IMAGE_CODEC_H
#define WEFT_IMAGE_CODEC_H

#include "image.h"

/* limit in bytes for the chunks of a PNG that have metadata, not pixels; it applies to each chunk
 * and to all of them together */
enum { IMAGE_CHUNK_BYTES_MAX = 8 << 20 };

struct ImageDecoder {
    /* owned: pixels as the format's library returns them, before their conversion to RGB */
    uint8_t *scratch;
    /* size of `scratch` */
    size_t scratch_bytes;
};
/* Returns at least `bytes` bytes of scratch memory with undefined values, borrowed until the next
 * call. */
uint8_t *decoder_scratch(ImageDecoder *decoder, size_t bytes);

typedef struct ImageCodec {
    /* Returns the name and version of the format's library, "libjpeg-turbo 2.1.5", or "no
     * libjpeg-turbo" in a build without it. */
    const char *(*version)(void);
    /* NULL: this build has the format's library; else the Debian package of the library, and all
     * functions below are NULL */
    const char *package;
    /* Reads width, height and orientation. The caller checks the size. */
    Status (*read_header)(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name);
    /* Decodes a region of the picture that contains `need`, and sets the image's size to that of
     * the region. *part is the whole picture before the call, and the region after it. NULL: the
     * format can only decode a picture as a whole. */
    Status (*decode_part)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          ImageBox need, ImageBox *part, const char *name);
    /* Decodes the picture to an image whose size the caller has set to the header's. */
    Status (*decode)(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                     const char *name);
} ImageCodec;
/* Returns ERR_BUG, naming the member, if a codec lacks something. name: name of the format. */
Status image_codec_check(const char *name, const ImageCodec *codec);
extern const ImageCodec image_jpeg, image_png, image_webp;

/* Returns the orientation in EXIF data, 1 to 8; 1 if it is missing or invalid. bytes: a TIFF file,
 * with or without "Exif\0\0" before it. */
int exif_orientation(const uint8_t *bytes, size_t count);

/* Fails with ERR_DATA and the message "NAME: a broken FORMAT picture: WHY; replace it or leave it
 * out". */
Status image_fail_broken(const char *name, const char *format, const char *why);

#endif
