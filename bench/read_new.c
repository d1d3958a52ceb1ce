/* Measures the seconds in which a file is read piece by piece into new memory in huge pages, as by
 * a run that resumes. The time includes the first touch of the pages, which dd's does not. usage:
 * read_new FILE; prints seconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HUGE = 2 << 20, PIECE = 512 << 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    struct stat st;
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st) != 0) return 64;
    size_t bytes = (size_t)st.st_size;
    char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 71;
    p += (HUGE - (uintptr_t)p % HUGE) % HUGE;
    madvise(p, bytes, MADV_HUGEPAGE);
    double begun = now();
    for (size_t at = 0; at < bytes;) {
        ssize_t got = pread(fd, p + at, bytes - at < PIECE ? bytes - at : PIECE, (off_t)at);
        if (got <= 0) return 74;
        at += (size_t)got;
    }
    printf("%.4f\n", now() - begun);
    return 0;
}
