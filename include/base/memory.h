/* Host memory, and its limits. Not collective. */
#ifndef WEFT_BASE_MEMORY_H
#define WEFT_BASE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory from the C library; running out of it is die_as(ERR_MEMORY). Owner: the caller, who
 * releases it with mem_free, which also sets the pointer to NULL. */
/* zeroed */
void *mem_new(size_t bytes);
/* contents kept, growth not zeroed */
void *mem_resize(void *old, size_t bytes);
/* copy of a string; NULL stays NULL */
char *mem_text(const char *text);
char *mem_format(const char *fmt, ...) BASE_PRINTF(1, 2);
void mem_free_at(void **pointer);
#define mem_free(p) mem_free_at((void **)(p)) /* mem_free(&p) */
/* Allocates a page-aligned, zeroed arena and requests huge pages for it. Release with
 * mem_pages_free(p, bytes). */
void *mem_pages_new(size_t bytes);
void mem_pages_free(void *p, size_t bytes);
/* Returns whether none of n numbers is infinite or NaN. */
bool mem_finite(const float *x, int64_t n);

/* The memory that all processes of the host may use together: that of the machine, or the smallest
 * limit of the control groups (version 1 or 2) that contain this process, as far as they are
 * visible. */
typedef struct MemoryLimit {
    double bytes;
    /* file that sets the limit; "": the machine's own memory */
    char group[512];
} MemoryLimit;
/* root: "", or, for tests, a folder that contains /proc and the control groups. */
MemoryLimit memory_limit(const char *root);

#endif
