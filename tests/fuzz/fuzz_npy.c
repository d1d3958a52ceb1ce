/* Target: the header of a .npy file, and the import of the file as tokens. */
#include "fuzz.h"
#include "data/import.h"
#include "data/tokens/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    NpyHeader header;
    Status status =
        npy_header_read(&header, "a.npy", data, size < NPY_HEAD_MAX ? size : (size_t)NPY_HEAD_MAX);
    fuzz_took(status);
    if (status == OK && (header.offset > (int64_t)size || header.ndim > NPY_DIMS ||
                         header.elements < 0 || header.bytes < 1))
        die("a header that cannot be");
    fuzz_took(data_import_tokens(fuzz_file(data, size), 0, 0, fuzz_out(), NULL, 0, true));
    return 0;
}
