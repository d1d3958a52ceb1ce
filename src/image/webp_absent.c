/* Replaces webp.c in a build without libwebp. The Makefile links one of the two. */
#include "codec.h"

static const char *version(void)
{
    return "no libwebp";
}

const ImageCodec image_webp = {.version = version, .package = "libwebp-dev"};
