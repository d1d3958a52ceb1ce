/* The parallel loop of the CPU backend (work.h), and the number of its threads. */
#include "work.h"
#include "simd/simd.h"
#include "tensor.h"

#include <omp.h>

/* with fewer elements, a parallel region would cost more time than it saves */
enum { SERIAL_ELEMENTS = 20000 };
/* elements of an item of join_body; the ranges of the threads begin at multiples of this number */
enum { JOIN_ELEMENTS = 4096 };

void work_run(WorkBody body, const void *task, int64_t count, int64_t elements)
{
    if (elements < SERIAL_ELEMENTS || count < 2 || omp_get_max_threads() == 1) {
        body(task, 0, count);
        return;
    }
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
        if (begin < end) body(task, begin, end);
    }
}

typedef struct JoinTask {
    float *sum, *others;
    int64_t count, n;
} JoinTask;

/* An item of work_run is JOIN_ELEMENTS elements of every array. A thread adds all its items in one
 * go. */
static void join_body(const void *task, int64_t begin, int64_t end)
{
    const JoinTask *t = task;
    const int64_t from = begin * JOIN_ELEMENTS;
    const int64_t to = end * JOIN_ELEMENTS < t->n ? end * JOIN_ELEMENTS : t->n;
    for (int64_t step = 1; step <= t->count; step *= 2)
        for (int64_t i = 0; i + step <= t->count; i += 2 * step) {
            float *sum = i ? t->others + (i - 1) * t->n : t->sum;
            simd_table(DTYPE_F32)->add_into(sum + from, t->others + (i + step - 1) * t->n + from,
                                            to - from);
        }
}

void work_sum_tree(float *sum, float *others, int64_t count, int64_t n)
{
    const JoinTask task = {.sum = sum, .others = others, .count = count, .n = n};
    if (count > 0)
        work_run(join_body, &task, (n + JOIN_ELEMENTS - 1) / JOIN_ELEMENTS, (count + 1) * n);
}

int threads_set(int threads)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
}
