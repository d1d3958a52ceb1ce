/* Target: `weft data import csv`. The first byte selects the options of the import; then a schema
 * up to a zero byte, and a table, plain or .gz. */
#include "fuzz.h"
#include "data/csv/csv_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 1 ? memchr(data + 1, 0, size - 1) : NULL;
    if (!end) return 0;
    CsvSchema schema;
    CsvResult done;
    char *test = mem_format("%s.test", fuzz_out());
    const char *file = fuzz_file(end + 1, size - (size_t)(end + 1 - data));
    CsvImport import = {.schema = &schema,
                        .file = &file,
                        .count = 1,
                        .out = fuzz_out(),
                        .test = data[0] & 1 ? test : NULL,
                        .test_file = &file,
                        .test_count = (data[0] & 3) == 3,
                        .test_share = 0.5,
                        .threads = 1 + (data[0] >> 2 & 1),
                        .force = true};
    if (csv_schema_read(&schema, fuzz_file(data + 1, (size_t)(end - data - 1))) == OK)
        fuzz_took(csv_import(&import, &done));
    csv_schema_fini(&schema);
    unlink(test);
    mem_free(&test);
    return 0;
}
