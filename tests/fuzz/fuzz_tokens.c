/* Target: `weft data import text` or `tokens`, of a plain file or .gz. The first byte selects
 * one. */
#include "fuzz.h"
#include "data/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const char *file = fuzz_file(data + 1, size - 1);
    int64_t vocab = data[0] & 4 ? 1000 : 0;
    if (data[0] & 1)
        fuzz_took(data_import_text(file, fuzz_out(), NULL, 0, true));
    else
        fuzz_took(
            data_import_tokens(file, data[0] & 2 ? 32 : 16, vocab, fuzz_out(), NULL, 0, true));
    return 0;
}
