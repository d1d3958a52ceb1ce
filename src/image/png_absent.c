/* Replaces png.c in a build without libspng. The Makefile links one of the two. */
#include "codec.h"

static const char *version(void)
{
    return "no libspng";
}

const ImageCodec image_png = {.version = version, .package = "libspng-dev"};
