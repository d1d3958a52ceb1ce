/* Writing safetensors; the header is filled up with blanks to a multiple of eight bytes. */
#include "safetensors.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t elements_of(const SafeEntry *e)
{
    int64_t n = 1;
    for (int i = 0; i < e->ndim; ++i) n *= e->dim[i];
    return n;
}

static int64_t bytes_of(const SafeEntry *e)
{
    return e->counter ? (int64_t)sizeof(int64_t) : elements_of(e) * (int64_t)sizeof(float);
}

/* by the size of one value, falling, then by name */
static int by_place(const void *a, const void *b)
{
    const SafeEntry *x = a, *y = b;
    if (x->counter != y->counter) return x->counter ? -1 : 1;
    return strcmp(x->name, y->name);
}

static char *header_of(const SafeOut *out, size_t *bytes)
{
    char *text = NULL;
    int64_t at = 0;
    FILE *stream = open_memstream(&text, bytes);
    if (!stream) die_as(ERR_MEMORY, "out of memory");
    Json json = json_to(stream, false);
    json_object(&json, NULL);
    json_object(&json, "__metadata__");
    json_text(&json, "format", "pt");
    json_end(&json);
    for (int i = 0; i < out->count; ++i) {
        const SafeEntry *e = &out->entry[i];
        json_object(&json, e->name);
        json_text(&json, "dtype", e->counter ? "I64" : "F32");
        json_array(&json, "shape");
        for (int d = 0; d < e->ndim; ++d) json_int(&json, NULL, e->dim[d]);
        json_end(&json);
        json_array(&json, "data_offsets");
        json_int(&json, NULL, at);
        json_int(&json, NULL, at += bytes_of(e));
        json_end(&json);
        json_end(&json);
    }
    json_end(&json);
    fputs("        ", stream);
    if (fclose(stream) != 0) die_as(ERR_MEMORY, "out of memory");
    size_t used = strcspn(text, "\n");
    memset(text + used, ' ', *bytes - used);
    *bytes = (used + 7) / 8 * 8;
    return text;
}

static Status put(int fd, const char *path, const void *from, size_t bytes)
{
    for (const char *p = from; bytes > 0;) {
        ssize_t got = write(fd, p, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return fail(ERR_IO, "%s: writing failed: %s", path,
                        got < 0 ? file_error(errno) : "the disk is full");
        p += got, bytes -= (size_t)got;
    }
    return OK;
}

static Status put_all(int fd, const char *path, const SafeOut *out)
{
    size_t bytes = 0;
    int64_t largest = 1;
    for (int i = 0; i < out->count; ++i)
        if (elements_of(&out->entry[i]) > largest) largest = elements_of(&out->entry[i]);
    char *header = header_of(out, &bytes);
    uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = (uint8_t)(bytes >> (8 * i));
    Status st = put(fd, path, length, sizeof length);
    if (st == OK) st = put(fd, path, header, bytes);
    mem_free(&header);
    float *plain = mem_new((size_t)largest * sizeof *plain);
    for (int i = 0; st == OK && i < out->count; ++i) {
        const SafeEntry *e = &out->entry[i];
        if (!e->counter) st = out->get(out->user, i, plain);
        if (st == OK)
            st = put(fd, path, e->counter ? (const void *)&e->value : plain, (size_t)bytes_of(e));
    }
    mem_free(&plain);
    return st;
}

Status safe_write(const char *path, SafeOut *out)
{
    char *part = mem_format("%s.part", path);
    qsort(out->entry, (size_t)out->count, sizeof *out->entry, by_place);
    int fd = file_create_new(part, O_WRONLY | O_TRUNC);
    Status st = fd < 0 ? fail(ERR_IO, "%s: cannot be written: %s", part, file_error(errno))
                       : put_all(fd, part, out);
    if (st == OK && fsync(fd) != 0)
        st = fail(ERR_IO, "%s: syncing failed: %s", part, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && st == OK)
        st = fail(ERR_IO, "%s: closing failed: %s", part, strerror(errno));
    if (st == OK && rename(part, path) != 0)
        st = fail(ERR_IO, "%s: renaming it failed: %s", part, strerror(errno));
    if (st == OK && file_sync_entry(path) != 0)
        st = fail(ERR_IO, "%s: syncing its folder failed: %s", path, strerror(errno));
    if (st != OK && fd >= 0) unlink(part);
    mem_free(&part);
    return st;
}
