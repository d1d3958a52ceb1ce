/* The functions of all picture formats are complete, and an incomplete codec is refused by name. */
#include "harness.h"
#include "image/codec.h"

static Status read_header(ImageHeader *head, const uint8_t *bytes, size_t count, const char *name)
{
    (void)head, (void)bytes, (void)count, (void)name;
    return OK;
}

static Status decode(ImageDecoder *decoder, Image *image, const uint8_t *bytes, size_t count,
                     const char *name)
{
    (void)decoder, (void)image, (void)bytes, (void)count, (void)name;
    return OK;
}

static const char *version(void)
{
    return "";
}

static void codecs(void)
{
    CHECK_OK(image_codecs_check());
    const ImageCodec good = {.version = version, .read_header = read_header, .decode = decode};
    CHECK_OK(image_codec_check("GIF", &good));
    ImageCodec codec = good;
    codec.version = NULL;
    CHECK_FAILS(image_codec_check("GIF", &codec), ERR_BUG,
                "picture format GIF: .version is not given");
    codec = good, codec.read_header = NULL;
    CHECK_FAILS(image_codec_check("GIF", &codec), ERR_BUG,
                "picture format GIF: .read_header is not given");
    codec = good, codec.decode = NULL;
    CHECK_FAILS(image_codec_check("GIF", &codec), ERR_BUG,
                "picture format GIF: .decode is not given");
    codec = good, codec.package = "libgif-dev";
    CHECK_FAILS(image_codec_check("GIF", &codec), ERR_BUG,
                "picture format GIF: .read_header is given, but must not be");
}

TEST_MAIN("rows of image", {"codecs", codecs})
