/* Host memory, and its limits. Not collective. */
#ifndef WEFT_BASE_MEMORY_H
#define WEFT_BASE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions mem_new to mem_format allocate memory of the C library; if there is none left, they
 * call die_as(ERR_MEMORY). Owner: the caller, who releases the memory with mem_free, which also
 * sets the pointer to NULL. */
/* Returns zeroed memory. */
void *mem_new(size_t bytes);
/* Changes the size of memory; its content is kept, and added memory is not zeroed. */
void *mem_resize(void *old, size_t bytes);
/* Returns a copy of a text; NULL for NULL. */
char *mem_text(const char *text);
/* Returns a text made as by printf. */
char *mem_format(const char *fmt, ...) BASE_PRINTF(1, 2);
void mem_free_at(void **pointer);
/* call: mem_free(&pointer) */
#define mem_free(p) mem_free_at((void **)(p))
/* Allocates a page-aligned, zeroed arena, and requests huge pages for it if it has at least 2 MiB;
 * calls die_as(ERR_MEMORY) if there is no memory. Release with mem_pages_free(p, bytes). */
void *mem_pages_new(size_t bytes);
void mem_pages_free(void *p, size_t bytes);
/* Returns whether all n numbers are finite: neither infinite nor NaN. */
bool mem_finite(const float *x, int64_t n);

/* The memory that all processes of the host may use together: that of the machine, or the smallest
 * limit of the control groups (version 1 or 2) that contain this process, as far as they are
 * visible. */
typedef struct MemoryLimit {
    double bytes;
    /* file that sets the limit; "": the machine's own memory */
    char group[512];
} MemoryLimit;
/* root: "", or, in tests, a folder with copies of /proc and of the control groups. */
MemoryLimit memory_limit(const char *root);

#endif
