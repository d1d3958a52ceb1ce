/* What the fuzz targets share. A target is fuzz_X.c with one function, which libFuzzer calls
 * (`make fuzz`), and replay.c with all of its corpus (`make check`). It may refuse its input, with
 * a message; it may not crash, hang, or take memory out of proportion. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with these bytes, by its path. The last of four is still there. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    enum { FILES = 4 };
    static int file[FILES];
    static char path[FILES][64];
    static unsigned turn;
    unsigned i = turn++ % FILES;
    if (!file[i]) {
        file[i] = memfd_create("fuzz", 0);
        if (file[i] < 0) die("memfd_create");
        snprintf(path[i], sizeof path[i], "/proc/self/fd/%d", file[i]);
    }
    if (ftruncate(file[i], 0) != 0 || pwrite(file[i], data, size, 0) != (ssize_t)size)
        die("a file in memory");
    return path[i];
}

static inline char **fuzz_folder_at(void)
{
    static char *folder;
    return &folder;
}

static inline void fuzz_clean(void)
{
    char *path = mem_format("%s/out.h5", *fuzz_folder_at());
    unlink(path);
    rmdir(*fuzz_folder_at());
    mem_free(&path);
}

/* Where an import may write its data set. */
static inline const char *fuzz_out(void)
{
    static char *out;
    if (out) return out;
    struct stat st;
    const char *where = stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp";
    char *folder = mem_format("%s/weft-fuzz-XXXXXX", where);
    if (!mkdtemp(folder)) die("mkdtemp %s", folder);
    *fuzz_folder_at() = folder;
    atexit(fuzz_clean);
    return out = mem_format("%s/out.h5", folder);
}

#endif
