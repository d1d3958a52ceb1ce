/* Target: `weft data import cifar`. The first byte selects the CIFAR variant. */
#include "fuzz.h"
#include "data/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const char *file = fuzz_file(data + 1, size - 1);
    fuzz_took(data_import_cifar(&file, 1, data[0] & 1, fuzz_out(), true));
    return 0;
}
