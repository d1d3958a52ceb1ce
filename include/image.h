/* image: pictures in memory. Decoders of JPEG, PNG and WebP, the EXIF orientation, resampling with
 * the same bits as Pillow, and colour changes. It knows neither data sets nor configurations, keeps
 * no state between calls except in its handles, and gives the same bits on every machine. Not
 * collective. */
#ifndef WEFT_IMAGE_H
#define WEFT_IMAGE_H

#include "base.h"

/* The format of a file, judged by its contents, never by its name. */
typedef enum ImageFormat { IMAGE_OTHER, IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP } ImageFormat;

/* 8-bit RGB, (height, width, 3), rows without gaps. Readers may read IMAGE_SLACK bytes behind the
 * last pixel, but do not use them. */
enum { IMAGE_SLACK = 32 };
typedef struct Image {
    int width, height;
    /* uint8_t[height][width][3], owned; released by image_fini */
    uint8_t *pixel;
    size_t room_bytes;
} Image;
/* Gives the image this size; its pixels are then undefined. Allocates only if the present memory is
 * too small. */
void image_set_size(Image *image, int width, int height);
void image_fini(Image *image);

/* A rectangle of pixels inside a picture. */
typedef struct ImageBox {
    int x, y, width, height;
} ImageBox;

/* Contents of a file's header, read before memory is allocated for the pixels. */
typedef struct ImageHead {
    ImageFormat format;
    int width, height;
    /* EXIF tag 0x0112, 1 to 8; 1: upright, or not given */
    int orientation;
} ImageHead;
/* Reads a header. ERR_DATA with `name` (a path, or a file and a sample) if the bytes are no
 * picture, declare more than IMAGE_PIXELS_MAX pixels, or have a format that this build lacks. */
#define IMAGE_PIXELS_MAX 178956970
Status image_read_head(ImageHead *head, const void *bytes, size_t count, const char *name);

/* Writes the decoders' versions, on which pixels depend: "libjpeg-turbo 2.1.5, libspng 0.7.3, no
 * libwebp". */
void image_versions(char *text, size_t room);

/* Scratch memory of decoding; one per thread. */
typedef struct ImageDecoder ImageDecoder;
ImageDecoder *image_decoder_new(void);
void image_decoder_free(ImageDecoder **decoder);
/* Decodes the whole picture as stored, without rotation. Grey becomes three equal channels, alpha
 * is dropped, CMYK and 16 bits are converted. ERR_DATA with name if the picture is damaged or
 * truncated. */
Status image_decode(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                    const char *name);
/* Decodes the region `need` of a picture whose head has been read, and as little else as is cheap
 * to skip: image becomes the region *part, and its pixels within `need` are those of image_decode.
 * Damage in skipped regions is not detected. */
Status image_decode_part(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                         const ImageHead *head, ImageBox need, ImageBox *part, const char *name);
/* Rotates and mirrors the image according to the orientation (1 to 8); 5 to 8 swap its sides. spare
 * is scratch. */
void image_turn(Image *image, Image *spare, int orientation);

typedef enum ImageFilter { IMAGE_BILINEAR, IMAGE_BICUBIC } ImageFilter;
/* Weights and rows that resampling reuses; one per thread. */
typedef struct ImageResampler ImageResampler;
ImageResampler *image_resampler_new(void);
void image_resampler_free(ImageResampler **resampler);
/* Resamples the box of `from` to `to`, whose size is set (image_set_size). Equal to the bit to
 * Pillow's crop to the box followed by resize: antialiased, 22-bit fixed point, two passes, each
 * rounded to bytes. Pixels outside the box are not used; up to IMAGE_SLACK bytes of them may be
 * read with weight 0. */
void image_resample(ImageResampler *resampler, const Image *from, ImageBox box, Image *to,
                    ImageFilter filter);
/* Resamples to width x height, but computes only the rectangle `part` of the result, which fills
 * `to` and has its size. */
void image_resample_part(ImageResampler *resampler, const Image *from, ImageBox box, int width,
                         int height, ImageBox part, Image *to, ImageFilter filter);

/* ---- colours: in place, with the same bytes as Pillow ---- */

/* Blend with black, with the mean of the grey picture, or with the grey picture itself: factor 0
 * gives that alone, 1 no change, above 1 the opposite direction. */
void image_brightness(Image *image, float factor);
void image_contrast(Image *image, float factor);
void image_saturation(Image *image, float factor);
/* Rotates the hue by shift / 256 of the circle. */
void image_hue(Image *image, int shift);

#endif
