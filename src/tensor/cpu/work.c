/* The parallel loop of the CPU backend (work.h), and the number of its threads. */
#include "work.h"
#include "tensor.h"

#include <omp.h>

/* with fewer elements a parallel region costs more than it saves */
enum { SERIAL_ELEMENTS = 20000 };

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

int threads_use(int threads)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
}
