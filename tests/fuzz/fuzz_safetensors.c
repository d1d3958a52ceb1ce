/* `weft ckpt import` of another program's tensors. The first byte selects whether the rest is such
 * a file or an index, which names shards. */
#include "fuzz.h"
#include "checkpoint.h"
#include "checkpoint/foreign/safe_set.h"

/* Parses an index without its shards, which is parsed the same whether they exist or not. */
static void read_index(const uint8_t *data, size_t size)
{
    SafeSet set;
    char *path = mem_format("%s.json", fuzz_out());
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) die("%s", path);
    (void)safe_open(&set, path, NULL);
    safe_close(&set);
    unlink(path);
    mem_free(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    if (data[0] & 1) {
        read_index(data + 1, size - 1);
        return 0;
    }
    CheckpointImport import = {.from = fuzz_file(data + 1, size - 1), .out = fuzz_out()};
    fuzz_took(checkpoint_import(&import));
    mem_free(&import.model);
    return 0;
}
