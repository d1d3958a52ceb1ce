/* Target: `weft data import idx`. The first two bytes determine the length of the file of images;
 * the file of labels follows it. */
#include "fuzz.h"
#include "data/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    size_t cut = ((size_t)data[0] << 8 | data[1]) % (size - 1);
    const char *images = fuzz_file(data + 2, cut);
    const char *labels = fuzz_file(data + 2 + cut, size - 2 - cut);
    fuzz_took(data_import_idx(images, labels, NULL, 0, fuzz_out(), true));
    return 0;
}
