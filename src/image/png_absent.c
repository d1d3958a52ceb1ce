/* What stands in for libspng in a build without it. The Makefile links this file or png.c. */
#include "codec.h"

static const char *version(void)
{
    return "no libspng";
}

const ImageCodec image_png = {.version = version, .package = "libspng-dev"};
