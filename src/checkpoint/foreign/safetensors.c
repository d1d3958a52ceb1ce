/* Reads safetensors. The header is not trusted: its parser accepts only the permitted content,
 * bounds every number, and allocates no more memory than the file's size justifies. */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 100000000 };

/* ---- a header ---- */

static Status scan_type(JsonScan *s, ForeignTensor *t)
{
    char *word = NULL;
    TRY(json_scan_text(s, &word));
    t->type = foreign_type_find(word);
    Status st = t->type < FOREIGN_TYPE_COUNT
                    ? OK
                    : json_scan_fail(s, "dtype %s is none of the format's", word);
    mem_free(&word);
    return st;
}

static Status scan_shape(JsonScan *s, ForeignTensor *t)
{
    bool more;
    TRY(json_scan_open(s, '[', &more));
    while (more) {
        if (t->ndim == FOREIGN_DIMS)
            return json_scan_fail(s, "more than %d dimensions", FOREIGN_DIMS);
        TRY(json_scan_count(s, &t->dim[t->ndim++]));
        TRY(json_scan_more(s, ']', &more));
    }
    return OK;
}

static Status scan_offsets(JsonScan *s, ForeignTensor *t)
{
    bool more;
    TRY(json_scan_open(s, '[', &more));
    if (!more) return json_scan_fail(s, "data_offsets are [begin, end]");
    TRY(json_scan_count(s, &t->begin));
    TRY(json_scan_more(s, ']', &more));
    if (!more) return json_scan_fail(s, "data_offsets are [begin, end]");
    TRY(json_scan_count(s, &t->end));
    TRY(json_scan_more(s, ']', &more));
    return more ? json_scan_fail(s, "data_offsets are [begin, end]") : OK;
}

/* Computes the number of elements and checks the range of bytes, without overflow. */
static Status check_bytes(JsonScan *s, ForeignTensor *t)
{
    int64_t bytes = foreign_type_bytes(t->type);
    t->elements = 1;
    for (int i = 0; i < t->ndim; ++i)
        if (__builtin_mul_overflow(t->elements, t->dim[i], &t->elements) ||
            __builtin_mul_overflow(bytes, t->dim[i], &bytes))
            return json_scan_fail(s, "tensor %s has an impossible size", t->name);
    if (t->begin > t->end || t->end - t->begin != bytes)
        return json_scan_fail(s, "tensor %s has %lld bytes where its shape needs %lld", t->name,
                              (long long)(t->end - t->begin), (long long)bytes);
    return OK;
}

static Status scan_entry(JsonScan *s, ForeignTensor *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    static Status (*const scan[])(JsonScan *, ForeignTensor *) = {scan_type, scan_shape,
                                                                  scan_offsets};
    unsigned seen = 0;
    bool more;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *key = NULL;
        TRY(json_scan_key(s, &key));
        unsigned k = 0;
        while (k < 3 && strcmp(keys[k], key) != 0) ++k;
        Status st = OK;
        if (k == 3) st = json_scan_fail(s, "tensor %s has a field '%s'", t->name, key);
        if (st == OK && seen & 1u << k)
            st = json_scan_fail(s, "tensor %s has two fields '%s'", t->name, key);
        mem_free(&key);
        TRY(st);
        seen |= 1u << k;
        TRY(scan[k](s, t));
        TRY(json_scan_more(s, '}', &more));
    }
    if (seen != 7)
        return json_scan_fail(s, "tensor %s lacks dtype, shape or data_offsets", t->name);
    return check_bytes(s, t);
}

/* Skips an object of texts, {text: text}. */
static Status scan_metadata(JsonScan *s)
{
    bool more;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *key = NULL, *value = NULL;
        TRY(json_scan_key(s, &key));
        mem_free(&key);
        TRY(json_scan_text(s, &value));
        mem_free(&value);
        TRY(json_scan_more(s, '}', &more));
    }
    return OK;
}

static Status scan_header(JsonScan *s, ForeignSet *set)
{
    bool more, metadata = false;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *name = NULL;
        TRY(json_scan_key(s, &name));
        if (strcmp(name, "__metadata__") == 0) {
            mem_free(&name);
            if (metadata) return json_scan_fail(s, "two __metadata__");
            metadata = true;
            TRY(scan_metadata(s));
        } else {
            ForeignTensor *t = foreign_new_tensor(set);
            if (!t) mem_free(&name);
            if (!t) return json_scan_fail(s, "more than %d tensors", FOREIGN_TENSORS);
            t->name = name;
            TRY(scan_entry(s, t));
        }
        TRY(json_scan_more(s, '}', &more));
    }
    return json_scan_end(s);
}

static int by_begin(const void *a, const void *b)
{
    const ForeignTensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Checks that the values of the tensors follow each other without gaps or overlaps, up to the end
 * of the file. first: index of the file's first tensor. */
static Status check_layout(const ForeignSet *set, const ForeignFile *file, int first)
{
    int64_t at = 0;
    if (set->count > first)
        qsort(set->tensor + first, (size_t)(set->count - first), sizeof *set->tensor, by_begin);
    for (int i = first; i < set->count; ++i) {
        const ForeignTensor *t = &set->tensor[i];
        if (t->begin != at)
            return fail(ERR_DATA,
                        "%s: tensor %s begins at %lld, and the tensor before it ends at "
                        "%lld: not a valid safetensors file",
                        file->path, t->name, (long long)t->begin, (long long)at);
        at = t->end;
    }
    if (at == file->bytes) return OK;
    return fail(ERR_DATA,
                "%s: its tensors have %lld bytes, the file %lld: truncated, or not a valid "
                "safetensors file",
                file->path, (long long)at, (long long)file->bytes);
}

/* Reads the length of the header from the file's first eight bytes. */
static Status read_length(ForeignFile *file, int64_t *header)
{
    uint8_t length[8];
    if (file->bytes < 10)
        return fail(ERR_DATA, "%s: is too short for a safetensors file", file->path);
    TRY(foreign_read_at(file, length, 8, 0));
    uint64_t n = 0;
    for (int i = 7; i >= 0; --i) n = n << 8 | length[i];
    if (n > HEADER_BYTES || (int64_t)n > file->bytes - 8)
        return fail(ERR_DATA,
                    "%s: is not a safetensors file, or is truncated: its header would "
                    "have %llu bytes",
                    file->path, (unsigned long long)n);
    *header = (int64_t)n;
    return OK;
}

static Status add(ForeignSet *set, ForeignFile *file)
{
    int64_t bytes = 0;
    int first = set->count;
    if (set->key)
        return fail(ERR_USAGE, "%s: --key %s: a safetensors file has no groups; leave --key out",
                    file->path, set->key);
    TRY(read_length(file, &bytes));
    file->values_at = 8 + bytes;
    file->bytes -= file->values_at;
    char *text = mem_new((size_t)bytes + 1);
    Status st = foreign_read_at(file, text, bytes, 8);
    JsonScan scan = json_scan(file->path, text, (size_t)bytes);
    if (st == OK && *text != '{')
        st = fail(ERR_DATA, "%s: is not a safetensors file: its header does not begin with '{'",
                  file->path);
    if (st == OK) st = scan_header(&scan, set);
    mem_free(&text);
    return st == OK ? check_layout(set, file, first) : st;
}

static bool begins(const uint8_t *head, size_t bytes)
{
    (void)head;
    (void)bytes;
    return true;
}

const ForeignFormat foreign_format_safetensors = {
    .name = "safetensors",
    .help = "FILE.safetensors: Hugging Face's tools, torchvision, timm",
    .begins = begins,
    .add = add,
};
