/* Target: EXIF data of a picture. */
#include "fuzz.h"
#include "image/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int orientation = exif_orientation(data, size);
    if (orientation < 1 || orientation > 8) die("orientation %d", orientation);
    fuzz_took(orientation > 1 ? OK : ERR_DATA);
    return 0;
}
