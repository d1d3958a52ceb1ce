/* Reading safetensors. The header is a stranger's: it is read here by a parser for exactly what it
 * may hold, with bounds on everything, and nothing is taken for what the file cannot hold. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 100000000, TENSORS = 1 << 20, SHARDS = 4096, INDEX_BYTES = 64 << 20 };

#define TYPE_ROW(name, bytes, floats) {#name, bytes, floats},
static const struct {
    const char *name;
    int bytes;
    bool floats;
} types[] = {SAFE_TYPES(TYPE_ROW)};

bool safe_is_float(const SafeTensor *t)
{
    return types[t->type].floats;
}

const char *safe_type_name(SafeType type)
{
    return types[type].name;
}

const char *safe_shape_text(const SafeTensor *t, char text[128])
{
    int used = 0;
    *text = 0;
    for (int i = 0; i < t->ndim && used < 100; ++i)
        used += snprintf(text + used, (size_t)(128 - used), "%s%lld", i ? "x" : "",
                         (long long)t->dim[i]);
    return text;
}

/* ---- a header ---- */

static Status scan_type(JsonScan *s, SafeTensor *t)
{
    char *word = NULL;
    TRY(json_scan_text(s, &word));
    int type = 0;
    while (type < SAFE_TYPE_COUNT && strcmp(types[type].name, word) != 0) ++type;
    Status st =
        type < SAFE_TYPE_COUNT ? OK : json_scan_fail(s, "dtype %s is none of the format's", word);
    mem_free(&word);
    if (st == OK) t->type = (SafeType)type;
    return st;
}

static Status scan_shape(JsonScan *s, SafeTensor *t)
{
    bool more;
    TRY(json_scan_open(s, '[', &more));
    while (more) {
        if (t->ndim == SAFE_DIMS) return json_scan_fail(s, "more than %d dimensions", SAFE_DIMS);
        TRY(json_scan_count(s, &t->dim[t->ndim++]));
        TRY(json_scan_more(s, ']', &more));
    }
    return OK;
}

static Status scan_offsets(JsonScan *s, SafeTensor *t)
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

/* bytes = elements times the type's, without overflow. */
static Status check_bytes(JsonScan *s, SafeTensor *t)
{
    int64_t bytes = types[t->type].bytes;
    t->elements = 1;
    for (int i = 0; i < t->ndim; ++i)
        if (__builtin_mul_overflow(t->elements, t->dim[i], &t->elements) ||
            __builtin_mul_overflow(bytes, t->dim[i], &bytes))
            return json_scan_fail(s, "tensor %s has an absurd size", t->name);
    if (t->begin > t->end || t->end - t->begin != bytes)
        return json_scan_fail(s, "tensor %s has %lld bytes where its shape needs %lld", t->name,
                              (long long)(t->end - t->begin), (long long)bytes);
    return OK;
}

static Status scan_entry(JsonScan *s, SafeTensor *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    static Status (*const scan[])(JsonScan *, SafeTensor *) = {scan_type, scan_shape, scan_offsets};
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

/* {text: text} */
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

static SafeTensor *new_tensor(SafeSet *set)
{
    if ((set->count & (set->count - 1)) == 0) {
        size_t room = set->count ? (size_t)set->count * 2 : 16;
        set->tensor = mem_resize(set->tensor, room * sizeof *set->tensor);
    }
    SafeTensor *t = &set->tensor[set->count++];
    *t = (SafeTensor){.file = set->files - 1};
    return t;
}

static Status scan_header(JsonScan *s, SafeSet *set)
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
            SafeTensor *t = set->count < TENSORS ? new_tensor(set) : NULL;
            if (!t) mem_free(&name);
            if (!t) return json_scan_fail(s, "more than %d tensors", TENSORS);
            t->name = name;
            TRY(scan_entry(s, t));
        }
        TRY(json_scan_more(s, '}', &more));
    }
    return json_scan_end(s);
}

static int by_begin(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* No hole, no overlap, nothing behind. */
static Status check_layout(const SafeSet *set, const SafeFile *file, int first)
{
    int64_t at = 0;
    if (set->count > first)
        qsort(set->tensor + first, (size_t)(set->count - first), sizeof *set->tensor, by_begin);
    for (int i = first; i < set->count; ++i) {
        const SafeTensor *t = &set->tensor[i];
        if (t->begin != at)
            return fail(ERR_DATA,
                        "%s: tensor %s begins at %lld, and what lies before it ends at "
                        "%lld: not a good safetensors file",
                        file->path, t->name, (long long)t->begin, (long long)at);
        at = t->end;
    }
    if (at == file->bytes) return OK;
    return fail(ERR_DATA,
                "%s: its tensors have %lld bytes, the file %lld: truncated, or not a good "
                "safetensors file",
                file->path, (long long)at, (long long)file->bytes);
}

static Status read_at(const SafeFile *file, void *to, int64_t bytes, int64_t at)
{
    for (char *p = to; bytes > 0;) {
        ssize_t got = pread(file->fd, p, (size_t)bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(ERR_IO, "%s: reading failed: %s", file->path, strerror(errno));
        if (got == 0) return fail(ERR_DATA, "%s: is truncated; fetch it again", file->path);
        p += got, at += got, bytes -= got;
    }
    return OK;
}

static Status open_file(SafeFile *file, int64_t *header)
{
    struct stat st;
    uint8_t length[8];
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", file->path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fail(ERR_NOINPUT, "%s: is not a regular file", file->path);
    if (st.st_size < 10)
        return fail(ERR_DATA, "%s: is too short for a safetensors file", file->path);
    TRY(read_at(file, length, 8, 0));
    uint64_t n = 0;
    for (int i = 7; i >= 0; --i) n = n << 8 | length[i];
    if (n > HEADER_BYTES || (int64_t)n > st.st_size - 8)
        return fail(ERR_DATA,
                    "%s: is not a safetensors file, or is truncated: its header would "
                    "have %llu bytes",
                    file->path, (unsigned long long)n);
    *header = (int64_t)n;
    file->data = 8 + (int64_t)n;
    file->bytes = st.st_size - file->data;
    return OK;
}

/* Takes path. */
static Status add_file(SafeSet *set, char *path)
{
    set->file = mem_resize(set->file, (size_t)(set->files + 1) * sizeof *set->file);
    SafeFile *file = &set->file[set->files++];
    *file = (SafeFile){.path = path, .fd = -1};
    int64_t bytes = 0;
    TRY(open_file(file, &bytes));
    char *text = mem_new((size_t)bytes + 1);
    int first = set->count;
    Status st = read_at(file, text, bytes, 8);
    JsonScan scan = json_scan(file->path, text, (size_t)bytes);
    if (st == OK && *text != '{')
        st = fail(ERR_DATA, "%s: is not a safetensors file: its header does not begin with '{'",
                  file->path);
    if (st == OK) st = scan_header(&scan, set);
    mem_free(&text);
    return st == OK ? check_layout(set, file, first) : st;
}

/* ---- shards ---- */

static Status add_shard(SafeSet *set, const char *name)
{
    for (int i = 0; i < set->files; ++i) {
        const char *slash = strrchr(set->file[i].path, '/');
        if (!strcmp(slash ? slash + 1 : set->file[i].path, name)) return OK;
    }
    if (!*name || strchr(name, '/') || *name == '.')
        return fail(ERR_DATA, "%s: '%s' is no plain name of a shard beside it", set->path, name);
    if (set->files == SHARDS) return fail(ERR_DATA, "%s: more than %d shards", set->path, SHARDS);
    char *copy = mem_text(set->path);
    char *path = mem_format("%s/%s", dirname(copy), name);
    mem_free(&copy);
    return add_file(set, path);
}

/* {tensor: shard}. The shards' own headers say what they hold; how many must agree. */
static Status scan_map(JsonScan *s, SafeSet *set, int *named)
{
    bool more;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *name = NULL, *shard = NULL;
        TRY(json_scan_key(s, &name));
        mem_free(&name);
        TRY(json_scan_text(s, &shard));
        Status st = add_shard(set, shard);
        mem_free(&shard);
        TRY(st);
        ++*named;
        TRY(json_scan_more(s, '}', &more));
    }
    return OK;
}

static Status scan_index(JsonScan *s, SafeSet *set)
{
    bool more;
    int named = 0;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *key = NULL;
        TRY(json_scan_key(s, &key));
        bool map = strcmp(key, "weight_map") == 0;
        mem_free(&key);
        TRY(map ? scan_map(s, set, &named) : json_scan_skip(s));
        TRY(json_scan_more(s, '}', &more));
    }
    TRY(json_scan_end(s));
    if (named == set->count && named > 0) return OK;
    return fail(ERR_DATA, "%s: names %d tensors, its shards hold %d", set->path, named, set->count);
}

static Status add_index(SafeSet *set)
{
    char *text = NULL;
    size_t bytes;
    TRY(file_text(set->path, INDEX_BYTES, &text, &bytes));
    JsonScan scan = json_scan(set->path, text, bytes);
    Status st = scan_index(&scan, set);
    mem_free(&text);
    return st;
}

/* ---- the set ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const SafeTensor *)a)->name, ((const SafeTensor *)b)->name);
}

static int name_of(const void *name, const void *tensor)
{
    return strcmp(name, ((const SafeTensor *)tensor)->name);
}

const SafeTensor *safe_find(const SafeSet *set, const char *name)
{
    if (set->count == 0) return NULL;
    return bsearch(name, set->tensor, (size_t)set->count, sizeof *set->tensor, name_of);
}

Status safe_open(SafeSet *set, const char *path)
{
    size_t length = strlen(path);
    bool index = length > 5 && !strcmp(path + length - 5, ".json");
    *set = (SafeSet){.path = path};
    TRY(index ? add_index(set) : add_file(set, mem_text(path)));
    if (set->count == 0) return fail(ERR_DATA, "%s: holds no tensor", path);
    qsort(set->tensor, (size_t)set->count, sizeof *set->tensor, by_name);
    for (int i = 1; i < set->count; ++i)
        if (!strcmp(set->tensor[i].name, set->tensor[i - 1].name))
            return fail(ERR_DATA, "%s: holds tensor %s twice", path, set->tensor[i].name);
    return OK;
}

void safe_close(SafeSet *set)
{
    for (int i = 0; i < set->count; ++i) mem_free(&set->tensor[i].name);
    for (int i = 0; i < set->files; ++i) {
        if (set->file[i].fd >= 0) close(set->file[i].fd);
        mem_free(&set->file[i].path);
    }
    mem_free(&set->tensor);
    mem_free(&set->file);
    set->count = set->files = 0;
}

/* ---- values ---- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16: 1, 5 and 10 bits. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, rest = half & 1023;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000 | rest << 13);
    if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | rest << 13);
    float small = (float)rest * 0x1p-24f;
    return sign ? -small : small;
}

static void widen(SafeType type, const void *from, float *to, int64_t n)
{
    const uint16_t *half = from;
    const double *wide = from;
    for (int64_t i = 0; i < n; ++i)
        to[i] = type == SAFE_F16    ? float_of_half(half[i])
                : type == SAFE_BF16 ? float_of_bits((uint32_t)half[i] << 16)
                                    : (float)wide[i];
}

Status safe_read(const SafeSet *set, const SafeTensor *t, float *plain)
{
    enum { BLOCK = 1 << 16 };
    const SafeFile *file = &set->file[t->file];
    int64_t each = types[t->type].bytes, at = file->data + t->begin;
    if (t->type == SAFE_F32) return read_at(file, plain, t->end - t->begin, at);
    void *block = mem_new((size_t)(BLOCK * each));
    Status st = OK;
    for (int64_t done = 0; st == OK && done < t->elements; done += BLOCK) {
        int64_t n = t->elements - done < BLOCK ? t->elements - done : BLOCK;
        st = read_at(file, block, n * each, at + done * each);
        if (st == OK) widen(t->type, block, plain + done, n);
    }
    mem_free(&block);
    return st;
}
