/* image: pictures in memory. Decoders of JPEG, PNG and WebP, the EXIF orientation, resampling to
 * the bits of Pillow's, changes of colour. It knows neither data sets nor configurations, keeps
 * nothing between calls but what its handles hold, and gives the same bits on every machine. Not
 * collective. */
#ifndef WEFT_IMAGE_H
#define WEFT_IMAGE_H

#include "base.h"

/* What a file is, by its contents, never by its name. */
typedef enum ImageFormat { IMAGE_OTHER, IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP } ImageFormat;

/* 8-bit RGB, (height, width, 3), rows without gaps. IMAGE_SLACK bytes behind the last may be read,
 * whatever they hold. */
enum { IMAGE_SLACK = 32 };
typedef struct Image {
    int width, height;
    /* owned; image_fini */
    uint8_t *pixel;
    size_t room_bytes;
} Image;
/* Gives it this size; its pixels are undefined then. Memory is only taken where it has too
 * little. */
void image_resize_room(Image *image, int width, int height);
void image_fini(Image *image);

/* A part of a picture, in pixels, inside it. */
typedef struct ImageBox {
    int x, y, width, height;
} ImageBox;

/* What a file's header says, before memory is taken for its pixels. */
typedef struct ImageHead {
    ImageFormat format;
    int width, height;
    /* EXIF 0x0112, 1 to 8; 1: upright, or not said */
    int orientation;
} ImageHead;
/* ERR_DATA, with `name` (a path, or a file and a sample), where the bytes are no picture, claim
 * more than IMAGE_PIXELS_MOST, or are of a format that this weft was built without. */
#define IMAGE_PIXELS_MOST 178956970
Status image_head(ImageHead *head, const void *bytes, size_t count, const char *name);

/* "libjpeg-turbo 2.1.5, libspng 0.7.3, no libwebp": pixels depend on them. */
void image_versions(char *text, size_t room);

/* Memory that decoding uses again; one a thread. */
typedef struct ImageDecoder ImageDecoder;
ImageDecoder *image_decoder_new(void);
void image_decoder_free(ImageDecoder **decoder);
/* The whole picture as it is stored, not turned. Grey becomes three equal channels, alpha is
 * dropped, CMYK and 16 bits are converted. ERR_DATA, with name, where it is broken or cut off. */
Status image_decode(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                    const char *name);
/* Of a picture whose head has been read, what lies in `need`, and no more than is costly to leave
 * out: image becomes the part *part of the picture, and within need it has the pixels that
 * image_decode gives. Damage in what is left out is not seen. */
Status image_decode_part(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                         const ImageHead *head, ImageBox need, ImageBox *part, const char *name);
/* Turns and mirrors it as the orientation (1 to 8) says; 5 to 8 swap its sides. spare is scratch.
 */
void image_turn(Image *image, Image *spare, int orientation);

typedef enum ImageFilter { IMAGE_BILINEAR, IMAGE_BICUBIC } ImageFilter;
/* Weights and rows that resampling uses again; one a thread. */
typedef struct ImageResampler ImageResampler;
ImageResampler *image_resampler_new(void);
void image_resampler_free(ImageResampler **resampler);
/* from's box -> to, whose size is given (image_resize_room). As Pillow's crop to the box and resize
 * after it, to the bit: antialiased, fixed point of 22 bits, two passes, each rounded
 * to bytes. What lies outside the box is not read, but for IMAGE_SLACK bytes that have no
 * weight. */
void image_resample(ImageResampler *resampler, const Image *from, ImageBox box, Image *to,
                    ImageFilter filter);
/* The same to width x height, of which only `part`, inside it, is made: it fills `to`, which has
 * its size. */
void image_resample_part(ImageResampler *resampler, const Image *from, ImageBox box, int width,
                         int height, ImageBox part, Image *to, ImageFilter filter);

/* ---- colours: in place, with Pillow's bytes ---- */

/* Blended with black, with the mean of the grey picture, with the grey picture: factor 0 is that
 * alone, 1 no change, above 1 away from it. */
void image_brightness(Image *image, float factor);
void image_contrast(Image *image, float factor);
void image_saturation(Image *image, float factor);
/* Turns the hue by shift / 256 of the circle. */
void image_hue(Image *image, int shift);

#endif
