/* Memory of the host, and its limits. Not collective. */
#ifndef WEFT_BASE_MEMORY_H
#define WEFT_BASE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory from the C library; out of memory is die_as(ERR_MEMORY). Owner: the caller, who frees with
 * mem_free, which nulls. */
/* zeroed */
void *mem_new(size_t bytes);
/* contents kept, growth not zeroed */
void *mem_resize(void *old, size_t bytes);
/* copy of a string; NULL stays NULL */
char *mem_text(const char *text);
char *mem_format(const char *fmt, ...) BASE_PRINTF(1, 2);
void mem_free_at(void **pointer);
#define mem_free(p) mem_free_at((void **)(p)) /* mem_free(&p) */
/* Page-aligned arena memory, zeroed, with huge pages asked for. Release with mem_pages_free(p,
 * bytes). */
void *mem_pages_new(size_t bytes);
void mem_pages_free(void *p, size_t bytes);
/* Is none of n numbers infinite or NaN? */
bool mem_finite(const float *x, int64_t n);

/* The least memory that all processes here together may have: the machine's, or a control group's
 * (version 1 or 2) that this process is in, up to the root of what it can see. */
typedef struct MemoryLimit {
    double bytes;
    /* the file that sets it; "": the machine's own memory */
    char group[512];
} MemoryLimit;
/* root: "", or the folder below which /proc and the groups are looked for. */
MemoryLimit memory_limit(const char *root);

#endif
