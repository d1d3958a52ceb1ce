/* image: pictures in memory: decoders of JPEG, PNG and WebP, a writer of PNG, the EXIF orientation,
 * resampling with the same bits as Pillow, and colour changes. The module uses neither data sets
 * nor configurations, keeps no state between calls except in its handles, and gives the same bits
 * on every machine with the same versions of the decoders. Not collective. */
#ifndef WEFT_IMAGE_H
#define WEFT_IMAGE_H

#include "base.h"

/* The format of a picture file, detected from its first bytes, not from its name. */
typedef enum ImageFormat { IMAGE_OTHER, IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP } ImageFormat;

/* number of bytes of memory after the last pixel of an Image; vector code may load them, but they
 * do not change any result */
enum { IMAGE_SLACK = 32 };
/* A picture in 8-bit RGB. */
typedef struct Image {
    int width, height;
    /* uint8_t[height][width][3], owned; released by image_fini */
    uint8_t *pixel;
    /* bytes of the memory at `pixel` */
    size_t capacity_bytes;
} Image;
/* Sets the size of an image; its pixels are then undefined. Allocates memory only if the image has
 * too little. */
void image_set_size(Image *image, int width, int height);
void image_fini(Image *image);

/* A rectangle of pixels inside a picture. */
typedef struct ImageBox {
    int x, y, width, height;
} ImageBox;

/* The header of a picture file, which is read before memory is allocated for the pixels. */
typedef struct ImageHeader {
    ImageFormat format;
    /* size of the picture as the file stores it, before image_apply_orientation */
    int width, height;
    /* EXIF orientation (tag 0x0112), 1 to 8; 1: the picture is upright, or the file has no
     * orientation */
    int orientation;
} ImageHeader;
/* number of pixels above which Pillow refuses a picture as a decompression bomb */
#define IMAGE_PIXELS_MAX 178956970
/* Reads the header of a picture file of `count` bytes. ERR_DATA: the bytes are no picture, the
 * picture has more than IMAGE_PIXELS_MAX pixels, or this build cannot decode its format. name:
 * begins each message; a path, or a file and a sample. */
Status image_read_header(ImageHeader *head, const void *bytes, size_t count, const char *name);

/* Checks the functions of all picture formats. ERR_BUG, naming the format and the member: a format
 * lacks something. */
Status image_codecs_check(void);
/* Writes the versions of the decoders, on which decoded pixels depend: "libjpeg-turbo 2.1.5,
 * libspng 0.7.3, no libwebp". */
void image_versions(char *text, size_t room);

/* Scratch memory for decoding. Each thread needs its own. */
typedef struct ImageDecoder ImageDecoder;
ImageDecoder *image_decoder_new(void);
void image_decoder_free(ImageDecoder **decoder);
/* Decodes the whole picture as the file stores it, without rotation. Grey becomes three equal
 * channels, alpha is dropped, CMYK and 16 bits are converted. ERR_DATA: the picture is damaged or
 * truncated, or image_read_header refuses it. name: see image_read_header. */
Status image_decode(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                    const char *name);
/* Decodes a region of a picture whose header has been read. need: the region that must be decoded.
 * *part: the region that was decoded; it contains `need` and may be the whole picture. The image
 * gets the size and the pixels of this region. The pixels within `need` equal those of
 * image_decode. Damage in regions that are skipped is not detected. */
Status image_decode_part(ImageDecoder *decoder, Image *image, const void *bytes, size_t count,
                         const ImageHeader *head, ImageBox need, ImageBox *part, const char *name);
/* Rotates and mirrors the image by its EXIF orientation (1 to 8). Orientations 5 to 8 exchange
 * width and height. spare: an image for scratch, which the caller releases; the two images may
 * exchange their memory. */
void image_apply_orientation(Image *image, Image *spare, int orientation);

typedef enum ImageFilter { IMAGE_BILINEAR, IMAGE_BICUBIC } ImageFilter;
/* Memory for weights and intermediate rows, reused between calls. Each thread needs its own. */
typedef struct ImageResampler ImageResampler;
ImageResampler *image_resampler_new(void);
void image_resampler_free(ImageResampler **resampler);
/* Resamples the box of `from` to the image `to`, whose size must be set. The result has the same
 * bits as Pillow's crop to the box followed by resize: antialiased, 22-bit fixed point, two passes,
 * each rounded to bytes. Pixels outside the box do not change the result. */
void image_resample(ImageResampler *resampler, const Image *from, ImageBox box, Image *to,
                    ImageFilter filter);
/* Resamples the box to width x height pixels, but computes only the rectangle `part` of the result,
 * into `to`, which must have the size of `part`. */
void image_resample_part(ImageResampler *resampler, const Image *from, ImageBox box, int width,
                         int height, ImageBox part, Image *to, ImageFilter filter);

/* Returns an image as the bytes of a PNG file. *count: their number. The caller owns the bytes. */
uint8_t *image_encode_png(const Image *image, size_t *count);
/* Writes an image as a PNG file, and replaces an existing file. ERR_IO: the file cannot be
 * written. */
Status image_write_png(const Image *image, const char *path);

/* ---- colours: in place, with the same bytes as Pillow ---- */

/* These three functions blend the picture with black (brightness), with the mean of its grey values
 * (contrast), or with its grey picture (saturation). With factor 0 only the black, mean or grey
 * picture remains; factor 1 does not change the picture; with a factor above 1 the picture moves
 * away from the black, mean or grey one. */
void image_brightness(Image *image, float factor);
void image_contrast(Image *image, float factor);
void image_saturation(Image *image, float factor);
/* Rotates the hue. A hue is a byte, in units of 1/255 of the colour circle; `shift` is added to it
 * modulo 256. */
void image_hue(Image *image, int shift);

#endif
