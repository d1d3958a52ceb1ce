/* Host memory, its limits, and the alignment of tensors in it. Not collective. */
#ifndef WEFT_BASE_MEMORY_H
#define WEFT_BASE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions mem_new to mem_format allocate memory of the C library. If there is none left, they
 * call die_as(ERR_MEMORY). The caller owns the memory and releases it with mem_free, which also
 * sets the pointer to NULL. */
/* Returns zeroed memory. */
void *mem_new(size_t bytes);
/* Changes the size of memory, and returns its new address. The content is kept, and added memory is
 * not zeroed. old: may be NULL. */
void *mem_resize(void *old, size_t bytes);
/* Returns a copy of a text; NULL for NULL. */
char *mem_text(const char *text);
/* Returns a text that is made from fmt as printf makes it. */
char *mem_format(const char *fmt, ...) BASE_PRINTF(1, 2);
/* Releases memory and sets the pointer to NULL: mem_free(&pointer). */
void mem_free_at(void **pointer);
#define mem_free(p) mem_free_at((void **)(p))
/* Allocates a page-aligned, zeroed arena. If it has at least 2 MiB, requests huge pages for it.
 * Calls die_as(ERR_MEMORY) if there is no memory. Release it with mem_pages_free and the same
 * number of bytes. */
void *mem_pages_new(size_t bytes);
void mem_pages_free(void *p, size_t bytes);
/* Returns n rounded up to a multiple of 16. Tensors and slices in arenas of floats begin at such
 * multiples: 64 bytes, a cache line. */
static inline int64_t arena_align(int64_t n)
{
    enum { ARENA_ALIGN = 16 };
    return (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}
/* Returns true if all n numbers are finite: neither infinite nor NaN. */
bool mem_finite(const float *x, int64_t n);

/* The memory that all processes of the host may use together: the machine's memory, or the smallest
 * limit of the control groups (version 1 or 2) that contain this process, as far as these are
 * visible. */
typedef struct MemoryLimit {
    double bytes;
    /* path of the file that sets the limit; "": the machine's memory is the limit */
    char group[512];
} MemoryLimit;
/* Finds the limit. root: "", or in tests the path of a folder with copies of /proc and of the
 * control groups. */
MemoryLimit memory_limit(const char *root);

#endif
