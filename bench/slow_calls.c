/* A library for LD_PRELOAD that imitates a slow shared file system: each open, stat and read of a
 * file below SLOW_FOLDER takes SLOW_MS milliseconds longer. SLOW_LOG names a file of counters. Each
 * process has a row in it: process id, opens, stats, reads, bytes, 8 bytes each.
 *
 *     cc -shared -fPIC -O2 -o slow_calls.so bench/slow_calls.c -ldl
 *     LD_PRELOAD=./slow_calls.so SLOW_FOLDER=/data SLOW_MS=5 SLOW_LOG=calls weft train ...
 *     od -A n -w40 -t d8 calls | grep -v ' 0$'
 *
 * The rows are shared memory, since processes that read metadata may write no files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 65536, ROWS = 8192 };
static _Atomic unsigned char is_slow[FILES];

typedef struct Row {
    atomic_long process, opens, stats, reads, bytes;
} Row;
/* row of this process; without SLOW_LOG, a row that is never read */
static Row unread, *row = &unread;
/* all rows; `opens` of the first row is the number of rows; NULL: no SLOW_LOG */
static Row *rows;

static const char *folder(void)
{
    static const char *name;
    if (!name) name = getenv("SLOW_FOLDER");
    return name ? name : "/nothing";
}

static int below(const char *path)
{
    const char *name = folder();
    return path && strncmp(path, name, strlen(name)) == 0;
}

static void wait_ms(void)
{
    const char *text = getenv("SLOW_MS");
    const long us = (long)((text ? atof(text) : 5) * 1000);
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static int opened(const char *path, int fd)
{
    const int slow = below(path);
    if (fd >= 0 && fd < FILES) is_slow[fd] = (unsigned char)slow;
    if (slow) {
        ++row->opens;
        wait_ms();
    }
    return fd;
}

static void on_read(int fd, ssize_t n)
{
    if (fd < 0 || fd >= FILES || !is_slow[fd]) return;
    ++row->reads;
    if (n > 0) row->bytes += n;
    wait_ms();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = (mode_t)(flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0);       \
        va_end(rest);                                                                              \
        return opened(path, REAL(name)(path, flags, mode));                                        \
    }
OPEN(open)
OPEN(open64)

int openat(int dir, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (mode_t)(flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0);
    va_end(rest);
    return opened(path, REAL(openat)(dir, path, flags, mode));
}

int stat(const char *path, struct stat *s)
{
    if (below(path)) {
        ++row->stats;
        wait_ms();
    }
    return REAL(stat)(path, s);
}

int fstat(int fd, struct stat *s)
{
    if (fd >= 0 && fd < FILES && is_slow[fd]) {
        ++row->stats;
        wait_ms();
    }
    return REAL(fstat)(fd, s);
}

ssize_t read(int fd, void *to, size_t n)
{
    const ssize_t got = REAL(read)(fd, to, n);
    on_read(fd, got);
    return got;
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    const ssize_t got = REAL(pread)(fd, to, n, at);
    on_read(fd, got);
    return got;
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    const ssize_t got = REAL(pread64)(fd, to, n, at);
    on_read(fd, got);
    return got;
}

static void take_row(void)
{
    if (!rows) return;
    row = &rows[++rows[0].opens % ROWS];
    row->process = getpid();
}

extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
__attribute__((constructor)) static void at_start(void)
{
    const char *log = getenv("SLOW_LOG");
    const int fd = log ? REAL(open)(log, O_RDWR | O_CREAT, 0644) : -1;
    if (fd >= 0 && ftruncate(fd, ROWS * sizeof(Row)) == 0)
        rows = mmap(NULL, ROWS * sizeof(Row), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (rows == MAP_FAILED) rows = NULL;
    take_row();
    pthread_atfork(NULL, NULL, take_row);
}
