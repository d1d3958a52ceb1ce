/* Writes safetensors; the header is padded with blanks to a multiple of eight bytes. */
#include "safetensors.h"

#include "../new_file.h"

#include <stdlib.h>
#include <string.h>

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

/* Orders by the size of an element, descending, then by name. */
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

static Status put_all(NewFile *file, const SafeOut *out)
{
    size_t bytes = 0;
    int64_t largest = 1;
    for (int i = 0; i < out->count; ++i)
        if (elements_of(&out->entry[i]) > largest) largest = elements_of(&out->entry[i]);
    char *header = header_of(out, &bytes);
    uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = (uint8_t)(bytes >> (8 * i));
    Status st = new_file_put(file, length, sizeof length);
    if (st == OK) st = new_file_put(file, header, bytes);
    mem_free(&header);
    float *plain = mem_new((size_t)largest * sizeof *plain);
    for (int i = 0; st == OK && i < out->count; ++i) {
        const SafeEntry *e = &out->entry[i];
        if (!e->counter) st = out->get(out->user, i, plain);
        if (st == OK)
            st = new_file_put(file, e->counter ? (const void *)&e->value : plain,
                              (size_t)bytes_of(e));
    }
    mem_free(&plain);
    return st;
}

Status safe_write(const char *path, SafeOut *out)
{
    NewFile file;
    qsort(out->entry, (size_t)out->count, sizeof *out->entry, by_place);
    Status st = new_file_begin(&file, path);
    if (st == OK) st = put_all(&file, out);
    return new_file_end(&file, st);
}
