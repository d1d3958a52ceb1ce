/* Work sharing among OpenMP's threads. Work is cut into items whose results do not depend on which
 * thread computes them. */
#ifndef WEFT_TENSOR_CPU_WORK_H
#define WEFT_TENSOR_CPU_WORK_H

#include <stdint.h>

typedef void (*WorkBody)(const void *task, int64_t begin, int64_t end);
/* Runs body on parts [begin, end) of [0, count): in parallel if the number of `elements` touched is
 * worth it. */
void work_run(WorkBody body, const void *task, int64_t count, int64_t elements);

#endif
