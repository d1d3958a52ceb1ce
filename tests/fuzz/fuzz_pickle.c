/* Target: `weft ckpt import` of a file of torch.save. The first byte selects whether the other
 * bytes are a whole file or a pickle, which is put into a file with two storages. Members of a file
 * have checksums, so a pickle altered inside a whole file would never be parsed. */
#include "fuzz.h"
#include "checkpoint.h"

#include <zlib.h>

enum { STORAGE_BYTES = 64, ROOM = 1 << 20 };

/* A zip file that is being written: its content, and its directory, which is appended at the
 * end. */
typedef struct Written {
    uint8_t *bytes;
    size_t count;
    uint8_t directory[1024];
    size_t directory_bytes;
    unsigned members;
} Written;

static void put(uint8_t *to, size_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i) to[(*at)++] = (uint8_t)(value >> (8 * i));
}

static void put_member(Written *w, const char *name, const uint8_t *data, size_t size)
{
    size_t length = strlen(name), begin = w->count;
    uint64_t crc = crc32(0, data, (uInt)size);
    const uint64_t local[] = {0x04034b50, 4, 20, 2, 0, 8, crc, 4, size, 4, size, 4, length, 4};
    for (size_t i = 0; i < sizeof local / sizeof *local; i += 2)
        put(w->bytes, &w->count, local[i], (int)local[i + 1]);
    memcpy(w->bytes + w->count, name, length);
    memcpy(w->bytes + w->count + length, data, size);
    w->count += length + size;
    const uint64_t entry[] = {0x02014b50, 4,    20, 2,      20, 2, 0, 8, crc, 4,     size,
                              4,          size, 4,  length, 2,  0, 8, 0, 6,   begin, 4};
    for (size_t i = 0; i < sizeof entry / sizeof *entry; i += 2)
        put(w->directory, &w->directory_bytes, entry[i], (int)entry[i + 1]);
    memcpy(w->directory + w->directory_bytes, name, length);
    w->directory_bytes += length;
    ++w->members;
}

static const char *file_of_pickle(const uint8_t *data, size_t size)
{
    static uint8_t storage[STORAGE_BYTES];
    Written w = {.bytes = mem_new(size + ROOM)};
    for (int i = 0; i < STORAGE_BYTES; ++i) storage[i] = (uint8_t)(i % 4 == 3 ? 0x3f : i);
    put_member(&w, "f/data.pkl", data, size);
    put_member(&w, "f/data/0", storage, STORAGE_BYTES);
    put_member(&w, "f/data/1", storage, STORAGE_BYTES / 2);
    size_t begin = w.count;
    memcpy(w.bytes + begin, w.directory, w.directory_bytes);
    w.count += w.directory_bytes;
    const uint64_t end[] = {0x06054b50,        4, 0,     4, w.members, 2, w.members, 2,
                            w.directory_bytes, 4, begin, 4, 0,         2};
    for (size_t i = 0; i < sizeof end / sizeof *end; i += 2)
        put(w.bytes, &w.count, end[i], (int)end[i + 1]);
    const char *path = fuzz_file(w.bytes, w.count);
    mem_free(&w.bytes);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > ROOM) return 0;
    const char *path =
        data[0] & 1 ? file_of_pickle(data + 1, size - 1) : fuzz_file(data + 1, size - 1);
    CheckpointImport import = {.from = path, .out = fuzz_out()};
    fuzz_took(checkpoint_import(&import));
    return 0;
}
