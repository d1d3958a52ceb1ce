/* Target: an untrusted picture, of which header, pixels and orientation are read; of a large
 * picture only the header. */
#include "fuzz.h"
#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { PIXELS = 1 << 20 };
    static ImageDecoder *decoder;
    static Image image, spare;
    ImageHeader head;
    if (!decoder) decoder = image_decoder_new();
    if (image_read_header(&head, data, size, "fuzz") != OK) return 0;
    if (head.orientation < 1 || head.orientation > 8) die("orientation %d", head.orientation);
    if ((int64_t)head.width * head.height > PIXELS) return 0;
    if (image_decode(decoder, &image, data, size, "fuzz") != OK) return 0;
    if (image.width != head.width || image.height != head.height) die("another size than the head");
    fuzz_took(OK);
    image_apply_orientation(&image, &spare, head.orientation);
    return 0;
}
