/* What stands in for libwebp in a build without it. The Makefile links this file or webp.c. */
#include "codec.h"

static const char *version(void)
{
    return "no libwebp";
}

const ImageCodec image_webp = {.version = version, .package = "libwebp-dev"};
