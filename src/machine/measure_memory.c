/* Measures the rate of memory. */
#include "machine/measure.h"

#include <math.h>
#include <unistd.h>

/* A thread that measures. */
typedef struct TriadThread {
    /* number of elements of each of its three arrays */
    int64_t count;
    /* result: bytes that the thread reads and writes per second */
    double bytes_per_s;
} TriadThread;

/* Sets bytes_per_s of a TriadThread to the rate of its fastest pass. */
static void *triad(void *arg)
{
    enum { PASSES = 8 };
    TriadThread *t = arg;
    size_t bytes = (size_t)t->count * sizeof(double);
    double *a = mem_pages_new(3 * bytes), *b = a + t->count, *c = b + t->count;
    for (int64_t i = 0; i < t->count; ++i) {
        b[i] = 1;
        c[i] = 2;
    }
    for (int pass = 0; pass < PASSES; ++pass) {
        double start_s = clock_s();
        for (int64_t i = 0; i < t->count; ++i) a[i] = b[i] + 3 * c[i];
        __asm__ volatile("" : : "r"(a) : "memory");
        t->bytes_per_s = fmax(t->bytes_per_s, 3 * (double)bytes / (clock_s() - start_s));
    }
    mem_pages_free(a, 3 * bytes);
    return NULL;
}

/* Returns the number of elements of each of a thread's three arrays. The first arrays of all
 * threads of a node together have four times the size of the last-level cache, but at least 24 and
 * at most 128 MB; the same is true of the second and the third arrays. (If the cache has 384 MB or
 * more, it holds all these arrays, and the result is the rate of the cache.) The arrays of a rank
 * take at most an eighth of the memory that the rank may use. */
static int64_t triad_count(int node_ranks, int threads, double limit_bytes)
{
    static const double NODE_BYTES_MIN = 24e6, NODE_BYTES_MAX = 128e6;
    enum { ARRAYS = 3, MEMORY_FRACTION = 8 };
    double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
    double bytes = fmin(fmax(4 * fmax(cache, 0), NODE_BYTES_MIN), NODE_BYTES_MAX) / node_ranks;
    bytes = fmin(bytes, limit_bytes / node_ranks / MEMORY_FRACTION / ARRAYS);
    return (int64_t)(bytes / threads / sizeof(double)) + 1;
}

double memory_rate(const World *world, int threads, double limit_bytes)
{
    TriadThread *thread = mem_new((size_t)threads * sizeof *thread);
    double bytes_per_s = 0;
    for (int i = 0; i < threads; ++i)
        thread[i].count = triad_count(world->node_size, threads, limit_bytes);
    world_barrier(world);
    threads_run(triad, thread, sizeof *thread, threads);
    for (int i = 0; i < threads; ++i) bytes_per_s += thread[i].bytes_per_s;
    mem_free(&thread);
    return bytes_per_s;
}
