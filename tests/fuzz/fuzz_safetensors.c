/* Target: `weft ckpt import` of another program's safetensors. The first byte selects whether the
 * other bytes are a file of tensors or an index that names shards. */
#include "fuzz.h"
#include "checkpoint.h"
#include "checkpoint/foreign/foreign_set.h"

/* Parses an index. Its shards need not exist for that. */
static void read_index(const uint8_t *data, size_t size)
{
    ForeignSet set;
    char *path = mem_format("%s.json", fuzz_out());
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) die("%s", path);
    (void)foreign_open(&set, path, NULL);
    foreign_close(&set);
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
