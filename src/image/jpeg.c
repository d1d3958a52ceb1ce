/* Decodes JPEG with libjpeg-turbo, with the accurate integer transform and smooth upsampling, which
 * give the same pixels on every processor. A file that ends before its end marker is refused;
 * damage that the library can skip is not detected, as in other readers. Pictures of four channels
 * are treated as Adobe's, whose CMYK is stored inverted. */
#include "codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define TEXT_OF(x)    #x
#define TEXT_VALUE(x) TEXT_OF(x)
enum {
    /* largest number of scans of a picture; progressive pictures have about ten scans. Each scan
     * may take as much time as a picture with one scan. */
    SCANS_MAX = 500,
    /* number of rows that are read by one call */
    ROWS = 16,
    /* number of pixels around a region that are decoded, too */
    MARGIN = 16
};

typedef struct Jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    /* place to which the library's error handlers jump; set before the library is called */
    jmp_buf failed;
    /* reason of the failure, set by the error handlers */
    char reason[JMSG_LENGTH_MAX];
} Jpeg;

static _Noreturn void on_error(j_common_ptr lib)
{
    Jpeg *jpeg = lib->client_data;
    lib->err->format_message(lib, jpeg->reason);
    longjmp(jpeg->failed, 1);
}

/* The library calls this function for each warning. A warning that the data end early counts as an
 * error. */
static void on_warning(j_common_ptr lib, int level)
{
    if (level < 0 && lib->err->msg_code == JWRN_JPEG_EOF) {
        Jpeg *jpeg = lib->client_data;
        snprintf(jpeg->reason, sizeof jpeg->reason, "it is cut off");
        longjmp(jpeg->failed, 1);
    }
}

/* The library calls this function while it decodes. Fails if the picture has too many scans. */
static void check_scans(j_common_ptr lib)
{
    Jpeg *jpeg = lib->client_data;
    if (jpeg->lib.input_scan_number <= SCANS_MAX) return;
    snprintf(jpeg->reason, sizeof jpeg->reason, "it has more than %d scans", SCANS_MAX);
    longjmp(jpeg->failed, 1);
}

/* Starts decoding and reads the header. exif: true: the EXIF data are kept. */
static void begin(Jpeg *jpeg, const uint8_t *bytes, size_t count, bool exif)
{
    jpeg_create_decompress(&jpeg->lib);
    jpeg->progress.progress_monitor = check_scans;
    jpeg->lib.progress = &jpeg->progress;
    if (exif) jpeg_save_markers(&jpeg->lib, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(&jpeg->lib, bytes, count);
    jpeg_read_header(&jpeg->lib, TRUE);
}

/* Installs the error handlers. */
static void prepare(Jpeg *jpeg)
{
    memset(jpeg, 0, sizeof *jpeg);
    jpeg->lib.err = jpeg_std_error(&jpeg->error);
    jpeg->lib.client_data = jpeg;
    jpeg->error.error_exit = on_error;
    jpeg->error.emit_message = on_warning;
}

static Status jpeg_header(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name)
{
    Jpeg jpeg;
    prepare(&jpeg);
    if (setjmp(jpeg.failed)) {
        jpeg_destroy_decompress(&jpeg.lib);
        return image_fail_broken(name, "JPEG", jpeg.reason);
    }
    begin(&jpeg, bytes, count, true);
    head->width = (int)jpeg.lib.image_width;
    head->height = (int)jpeg.lib.image_height;
    for (jpeg_saved_marker_ptr m = jpeg.lib.marker_list; m; m = m->next)
        if (m->data_length > 6 && memcmp(m->data, "Exif\0", 6) == 0) {
            head->orientation = exif_orientation(m->data, m->data_length);
            break;
        }
    jpeg_destroy_decompress(&jpeg.lib);
    return OK;
}

/* Returns a * b / 255, rounded. */
static unsigned times_over_255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Converts inverted CMYK to RGB as Pillow does. */
static void cmyk_row(uint8_t *rgb, const uint8_t *cmyk, int width)
{
    for (int x = 0; x < width; ++x, rgb += 3, cmyk += 4)
        for (int c = 0; c < 3; ++c)
            rgb[c] = (uint8_t)(cmyk[3] - times_over_255(255 - (unsigned)cmyk[c], cmyk[3]));
}

/* Reads the next image->height rows. */
static void read_rows(Jpeg *jpeg, Image *image)
{
    size_t pitch = (size_t)image->width * 3;
    JDIMENSION first = jpeg->lib.output_scanline, done = 0, rows = (JDIMENSION)image->height;
    while (done < rows) {
        JSAMPROW row[ROWS];
        JDIMENSION left = rows - done;
        for (size_t i = 0; i < ROWS && i < left; ++i) row[i] = image->pixel + (done + i) * pitch;
        jpeg_read_scanlines(&jpeg->lib, row, left < ROWS ? left : ROWS);
        done = jpeg->lib.output_scanline - first;
    }
}

/* Reads all rows of a CMYK picture and converts them to RGB. scratch: memory for a row of CMYK. */
static void read_cmyk(Jpeg *jpeg, Image *image, uint8_t *scratch)
{
    size_t pitch = (size_t)image->width * 3;
    while (jpeg->lib.output_scanline < jpeg->lib.output_height) {
        uint8_t *to = image->pixel + jpeg->lib.output_scanline * pitch;
        jpeg_read_scanlines(&jpeg->lib, &scratch, 1);
        cmyk_row(to, scratch, image->width);
    }
}

static Status jpeg_decode(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                          const char *name)
{
    Jpeg jpeg;
    prepare(&jpeg);
    if (setjmp(jpeg.failed)) {
        jpeg_destroy_decompress(&jpeg.lib);
        return image_fail_broken(name, "JPEG", jpeg.reason);
    }
    begin(&jpeg, bytes, count, false);
    bool cmyk = jpeg.lib.num_components == 4;
    jpeg.lib.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg.lib.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg.lib);
    if (cmyk)
        read_cmyk(&jpeg, image, decoder_scratch(decoder, (size_t)image->width * 4));
    else
        read_rows(&jpeg, image);
    jpeg_finish_decompress(&jpeg.lib);
    jpeg_destroy_decompress(&jpeg.lib);
    return OK;
}

/* Adds a margin to `need`, within the picture. Upsampling reads neighbours of each pixel and
 * replicates pixels at the edge of the decoded region, so pixels near this edge differ from the
 * pixels of the whole picture. */
static ImageBox with_margin(ImageBox need, int width, int height)
{
    int x = need.x < MARGIN ? 0 : need.x - MARGIN, y = need.y < MARGIN ? 0 : need.y - MARGIN;
    int right = need.x + need.width + MARGIN, below = need.y + need.height + MARGIN;
    right = right > width ? width : right;
    below = below > height ? height : below;
    return (ImageBox){x, y, right - x, below - y};
}

/* Decodes a region that contains `need`, and sets *part to it. Rows above the region, and columns
 * at its sides, are parsed but not transformed; rows below it are not read. */
static void read_part(Jpeg *jpeg, Image *image, ImageBox need, ImageBox *part)
{
    *part = with_margin(need, (int)jpeg->lib.output_width, (int)jpeg->lib.output_height);
    if (part->width < (int)jpeg->lib.output_width) {
        JDIMENSION x = (JDIMENSION)part->x, width = (JDIMENSION)part->width;
        jpeg_crop_scanline(&jpeg->lib, &x, &width);
        part->x = (int)x;
        part->width = (int)width;
    }
    if (part->y > 0) jpeg_skip_scanlines(&jpeg->lib, (JDIMENSION)part->y);
    /* no margin is needed below, since the library itself reads the next rows */
    part->height = need.y + need.height - part->y;
    image_set_size(image, part->width, part->height);
    read_rows(jpeg, image);
}

static Status jpeg_decode_part(ImageDecoder *decoder, Image *image, const uint8_t *bytes,
                               size_t count, ImageBox need, ImageBox *part, const char *name)
{
    Jpeg jpeg;
    prepare(&jpeg);
    if (setjmp(jpeg.failed)) {
        jpeg_destroy_decompress(&jpeg.lib);
        return image_fail_broken(name, "JPEG", jpeg.reason);
    }
    begin(&jpeg, bytes, count, false);
    if (jpeg.lib.num_components == 4) {
        image_set_size(image, (int)jpeg.lib.image_width, (int)jpeg.lib.image_height);
        jpeg_destroy_decompress(&jpeg.lib);
        return jpeg_decode(decoder, image, bytes, count, name);
    }
    jpeg.lib.out_color_space = JCS_RGB;
    jpeg.lib.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg.lib);
    read_part(&jpeg, image, need, part);
    jpeg_destroy_decompress(&jpeg.lib);
    return OK;
}

static const char *version(void)
{
    return "libjpeg-turbo " TEXT_VALUE(LIBJPEG_TURBO_VERSION);
}

const ImageCodec image_jpeg = {.version = version,
                               .read_header = jpeg_header,
                               .decode_part = jpeg_decode_part,
                               .decode = jpeg_decode};
