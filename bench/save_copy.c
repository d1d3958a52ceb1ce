/* Measures a copy, for comparison with a save: THREADS threads copy BYTES between two arenas in
 * huge pages that have been touched, like the arenas of a rank. usage: save_copy BYTES THREADS;
 * prints the median of nine times in milliseconds. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TIMES = 9, HUGE = 2 << 20 };

static char *arena_new(size_t bytes)
{
    char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("save_copy: mmap");
        exit(1);
    }
    p += (HUGE - (uintptr_t)p % HUGE) % HUGE;
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 1, bytes);
    return p;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 64;
    size_t bytes = strtoull(argv[1], NULL, 10);
    int threads = atoi(argv[2]);
    char *from = arena_new(bytes), *to = arena_new(bytes);
    double seconds[TIMES];
    omp_set_num_threads(threads);
    for (int i = 0; i < TIMES; ++i) {
        double begun = omp_get_wtime();
#pragma omp parallel
        {
            size_t k = (size_t)omp_get_thread_num(), n = (size_t)omp_get_num_threads();
            size_t begin = bytes / n * k, end = k + 1 == n ? bytes : bytes / n * (k + 1);
            memcpy(to + begin, from + begin, end - begin);
        }
        seconds[i] = omp_get_wtime() - begun;
    }
    qsort(seconds, TIMES, sizeof *seconds, ascending);
    printf("%.1f\n", seconds[TIMES / 2] * 1e3);
    return 0;
}
