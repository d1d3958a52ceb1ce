/* Replaces jpeg.c in a build without libjpeg-turbo. The Makefile links one of the two. */
#include "codec.h"

static const char *version(void)
{
    return "no libjpeg-turbo";
}

const ImageCodec image_jpeg = {.version = version, .package = "libjpeg62-turbo-dev"};
