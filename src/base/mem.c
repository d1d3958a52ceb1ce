/* Allocates memory from the C library's heap, and page-aligned arenas from the kernel. If there is
 * no memory left, these functions call die_as(ERR_MEMORY). */
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *mem_new(size_t bytes)
{
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) die_as(ERR_MEMORY, "out of memory: %zu bytes were requested", bytes);
    return p;
}

void *mem_resize(void *old, size_t bytes)
{
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p) die_as(ERR_MEMORY, "out of memory: %zu bytes were requested", bytes);
    return p;
}

char *mem_text(const char *text)
{
    if (!text) return NULL;
    size_t bytes = strlen(text) + 1;
    return memcpy(mem_new(bytes), text, bytes);
}

char *mem_format(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = NULL;
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    if (length < 0) die_as(ERR_MEMORY, "out of memory while a message was composed");
    return text;
}

void mem_free_at(void **pointer)
{
    free(*pointer);
    *pointer = NULL;
}

/* Bytes of a huge page. Arenas of at least this size begin at a multiple of it, because only there
 * can the kernel use huge pages. */
enum { HUGE_PAGE = 2 << 20 };

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return bytes ? (bytes + page - 1) / page * page : page;
}

void *mem_pages_new(size_t bytes)
{
    size_t size = whole_pages(bytes), extra = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    char text[16];
    char *p = mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die_as(ERR_MEMORY, "out of memory: an arena of %s: %s", text_bytes((double)size, text),
               strerror(errno));
    if (!extra) return p;
    size_t head = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE, tail = extra - head;
    if (head) munmap(p, head);
    if (tail) munmap(p + head + size, tail);
    /* only a hint: kernels without huge pages refuse it */
    madvise(p + head, size, MADV_HUGEPAGE);
    return p + head;
}

void mem_pages_free(void *p, size_t bytes)
{
    if (p && munmap(p, whole_pages(bytes)) != 0)
        die("munmap of an arena of %zu bytes: %s", bytes, strerror(errno));
}

/* The exponent of an infinity or a NaN has only ones as bits, so adding one to the exponent carries
 * into the sign bit. The loop has no branches, so that the compiler vectorizes it. */
bool mem_finite(const float *x, int64_t n)
{
    uint32_t carried = 0;
    for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        carried |= (bits & 0x7fffffffu) + 0x00800000u;
    }
    return carried >> 31 == 0;
}
