/* Common parts of the fuzz targets. A target is a file fuzz_X.c with one function. libFuzzer calls
 * it with changing inputs (`make fuzz`), replay.c with the whole corpus (`make check`). A target
 * may refuse its input with a message; it must not crash, hang, or allocate memory out of
 * proportion. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include "base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Number of inputs that were accepted. replay.c requires accepted inputs in each corpus, because a
 * target that refuses all inputs tests nothing. */
__attribute__((weak)) int fuzz_taken;
static inline void fuzz_took(Status status)
{
    fuzz_taken += status == OK;
}

enum { FUZZ_FILES = 4 };
/* A temporary folder: its path, its files, and the output of an import; all owned. */
typedef struct FuzzFolder {
    char *path, *file[FUZZ_FILES], *out;
    int fd[FUZZ_FILES];
} FuzzFolder;

static inline FuzzFolder *fuzz_folder_at(void)
{
    static FuzzFolder folder;
    return &folder;
}

static inline void fuzz_clean(void)
{
    FuzzFolder *f = fuzz_folder_at();
    for (int i = 0; i < FUZZ_FILES; ++i) unlink(f->file[i]);
    unlink(f->out);
    rmdir(f->path);
}

/* Makes the folder, since HDF5 only opens files that have a path. It is in memory if /dev/shm
 * exists. */
static inline FuzzFolder *fuzz_folder(void)
{
    FuzzFolder *f = fuzz_folder_at();
    struct stat st;
    if (f->path) return f;
    f->path = mem_format("%s/weft-fuzz-XXXXXX", stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(f->path)) die("mkdtemp %s", f->path);
    f->out = mem_format("%s/out.h5", f->path);
    for (int i = 0; i < FUZZ_FILES; ++i) {
        f->file[i] = mem_format("%s/%d", f->path, i);
        f->fd[i] = open(f->file[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (f->fd[i] < 0) die("open %s", f->file[i]);
    }
    atexit(fuzz_clean);
    return f;
}

/* Writes a file with these bytes and returns its path. The file keeps the bytes until FUZZ_FILES
 * further files have been written. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static unsigned turn;
    FuzzFolder *f = fuzz_folder();
    unsigned i = turn++ % FUZZ_FILES;
    if (ftruncate(f->fd[i], 0) != 0 || pwrite(f->fd[i], data, size, 0) != (ssize_t)size)
        die("%s", f->file[i]);
    return f->file[i];
}

/* Returns the path at which an import may write its data set. */
static inline const char *fuzz_out(void)
{
    return fuzz_folder()->out;
}

/* libFuzzer's counters of edges. The linker's --wrap option makes the program call this function
 * with their addresses; a replay does not call it. */
static uint8_t *fuzz_counters, *fuzz_counters_end;
void __real___sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end) __attribute__((weak));
void __wrap___sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end) __attribute__((weak));
void __wrap___sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end)
{
    fuzz_counters = begin;
    fuzz_counters_end = end;
    __real___sanitizer_cov_8bit_counters_init(begin, end);
}

/* Shares whole pages of the counters with the child processes that read files for this process, so
 * that edges in the child processes are counted, too. Otherwise all files for which a child process
 * ends in the same way would look equal to libFuzzer, and libFuzzer would shrink inputs to
 * nothing. */
static inline void fuzz_share_counters(void)
{
    static bool shared;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)fuzz_counters + page - 1) / page * page;
    uintptr_t end = (uintptr_t)fuzz_counters_end / page * page;
    if (shared || begin >= end) return;
    shared = true;
    size_t bytes = end - begin;
    uint8_t *counters = (uint8_t *)begin, *copy = mem_new(bytes);
    memcpy(copy, counters, bytes);
    if (mmap(counters, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        die("mmap of libFuzzer's counters");
    memcpy(counters, copy, bytes);
    mem_free(&copy);
}

#endif
