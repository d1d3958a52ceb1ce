/* Target: a checkpoint from an untrusted source, in everything that `weft ckpt` does with it. HDF5
 * parses the file in another process, which may crash. */
#include "fuzz.h"
#include "checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    CheckpointMeta meta = {0};
    fuzz_share_counters();
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) die("/dev/null");
    const char *path = fuzz_file(data, size);
    if (checkpoint_verify(path, &meta) == OK) fuzz_took(checkpoint_print(path, nowhere, true));
    checkpoint_meta_fini(&meta);
    return 0;
}
