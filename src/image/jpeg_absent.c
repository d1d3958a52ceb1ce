/* What stands in for libjpeg-turbo in a build without it. The Makefile links this file or jpeg.c. */
#include "codec.h"

static const char *version(void)
{
    return "no libjpeg-turbo";
}

const ImageCodec image_jpeg = {.version = version, .package = "libjpeg62-turbo-dev"};
