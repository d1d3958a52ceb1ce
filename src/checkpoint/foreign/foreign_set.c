/* Opens other programs' files and shards, finds tensors in them, and reads their values as floats.
 * A file's first bytes determine its format. */
#include "foreign_set.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 4096, INDEX_BYTES = 64 << 20 };

const ForeignFormat *const foreign_formats[] = {&foreign_format_torch, &foreign_format_pickle,
                                                &foreign_format_safetensors};
const int foreign_format_count = (int)(sizeof foreign_formats / sizeof *foreign_formats);

#define TYPE_ROW(name, bytes, floats) {#name, bytes, floats},
static const struct {
    const char *name;
    int bytes;
    bool floats;
} types[] = {FOREIGN_TYPES(TYPE_ROW)};

bool foreign_is_float(const ForeignTensor *t)
{
    return types[t->type].floats;
}

const char *foreign_type_name(ForeignType type)
{
    return types[type].name;
}

int foreign_type_bytes(ForeignType type)
{
    return types[type].bytes;
}

ForeignType foreign_type_find(const char *name)
{
    int type = 0;
    while (type < FOREIGN_TYPE_COUNT && strcmp(types[type].name, name) != 0) ++type;
    return (ForeignType)type;
}

const char *foreign_shape_text(const ForeignTensor *t, char text[128])
{
    int used = 0;
    *text = 0;
    for (int i = 0; i < t->ndim && used < 100; ++i)
        used += snprintf(text + used, (size_t)(128 - used), "%s%lld", i ? "x" : "",
                         (long long)t->dim[i]);
    return text;
}

ForeignTensor *foreign_new_tensor(ForeignSet *set)
{
    if (set->count == FOREIGN_TENSORS) return NULL;
    if ((set->count & (set->count - 1)) == 0) {
        size_t room = set->count ? (size_t)set->count * 2 : 16;
        set->tensor = mem_resize(set->tensor, room * sizeof *set->tensor);
    }
    ForeignTensor *t = &set->tensor[set->count++];
    *t = (ForeignTensor){.file = set->files - 1};
    return t;
}

Status foreign_read_at(const ForeignFile *file, void *to, int64_t bytes, int64_t at)
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

static Status open_file(ForeignFile *file)
{
    struct stat st;
    file->fd = file_open(file->path, O_RDONLY);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", file->path, file_error(errno));
    file->bytes = st.st_size;
    return OK;
}

bool foreign_begins(const char *path)
{
    int error = errno;
    uint8_t head[FOREIGN_HEAD];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool plain = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t bytes = plain ? pread(fd, head, sizeof head, 0) : 0;
    bool found = bytes > 8 && head[8] == '{';
    for (int i = 0; i < foreign_format_count - 1 && bytes > 0; ++i)
        found = found || foreign_formats[i]->begins(head, (size_t)bytes);
    if (fd >= 0) close(fd);
    errno = error;
    return found;
}

/* Refuses a compressed file with ERR_DATA and the command that unpacks it. A file whose ninth byte
 * is '{' is not compressed but safetensors. */
static Status check_packed(const ForeignFile *file, const uint8_t *head, size_t bytes)
{
    static const struct {
        const char *name, *magic;
        size_t bytes;
        const char *command;
    } packers[] = {{"gzip", "\x1f\x8b", 2, "gunzip -k"},
                   {"bzip2", "BZh", 3, "bunzip2 -k"},
                   {"xz", "\xfd\x37zXZ", 5, "unxz -k"},
                   {"zstd", "\x28\xb5\x2f\xfd", 4, "unzstd"}};
    for (size_t i = 0; bytes > 8 && head[8] != '{' && i < sizeof packers / sizeof *packers; ++i)
        if (!memcmp(head, packers[i].magic, packers[i].bytes))
            return fail(
                ERR_DATA,
                "%s: is packed by %s, and is not unpacked by weft: run `%s` on it, then import the "
                "file that comes out (the name may have to end in .gz or a similar suffix)",
                file->path, packers[i].name, packers[i].command);
    return OK;
}

/* Opens a file and adds its tensors. Takes ownership of `path`. */
static Status add_file(ForeignSet *set, char *path)
{
    uint8_t head[FOREIGN_HEAD];
    set->file = mem_resize(set->file, (size_t)(set->files + 1) * sizeof *set->file);
    ForeignFile *file = &set->file[set->files++];
    *file = (ForeignFile){.path = path, .fd = -1};
    TRY(open_file(file));
    size_t bytes = file->bytes < FOREIGN_HEAD ? (size_t)file->bytes : FOREIGN_HEAD;
    TRY(foreign_read_at(file, head, (int64_t)bytes, 0));
    TRY(check_packed(file, head, bytes));
    int i = 0;
    while (!foreign_formats[i]->begins(head, bytes)) ++i;
    return foreign_formats[i]->add(set, file);
}
/* ---- shards ---- */

static Status add_shard(ForeignSet *set, const char *name)
{
    for (int i = 0; i < set->files; ++i) {
        const char *slash = strrchr(set->file[i].path, '/');
        if (!strcmp(slash ? slash + 1 : set->file[i].path, name)) return OK;
    }
    if (!*name || strchr(name, '/') || *name == '.')
        return fail(ERR_DATA, "%s: '%s' is no plain name of a shard in its folder", set->path,
                    name);
    if (set->files == SHARDS) return fail(ERR_DATA, "%s: more than %d shards", set->path, SHARDS);
    char *copy = mem_text(set->path);
    char *path = mem_format("%s/%s", dirname(copy), name);
    mem_free(&copy);
    return add_file(set, path);
}

/* Reads the map {tensor: shard} and adds the shards; the headers of the shards list the tensors.
 * Adds the number of the map's entries to *named. */
static Status scan_map(JsonScan *s, ForeignSet *set, int *named)
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

static Status scan_index(JsonScan *s, ForeignSet *set)
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

static Status add_index(ForeignSet *set)
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
    return strcmp(((const ForeignTensor *)a)->name, ((const ForeignTensor *)b)->name);
}

static int name_of(const void *name, const void *tensor)
{
    return strcmp(name, ((const ForeignTensor *)tensor)->name);
}

const ForeignTensor *foreign_find_tensor(const ForeignSet *set, const char *name)
{
    if (set->count == 0) return NULL;
    return bsearch(name, set->tensor, (size_t)set->count, sizeof *set->tensor, name_of);
}

Status foreign_open(ForeignSet *set, const char *path, const char *key)
{
    size_t length = strlen(path);
    bool index = length > 5 && !strcmp(path + length - 5, ".json");
    *set = (ForeignSet){.path = path, .key = key};
    TRY(index ? add_index(set) : add_file(set, mem_text(path)));
    if (set->count == 0) return fail(ERR_DATA, "%s: holds no tensor", path);
    return foreign_sort(set);
}

Status foreign_sort(ForeignSet *set)
{
    qsort(set->tensor, (size_t)set->count, sizeof *set->tensor, by_name);
    for (int i = 1; i < set->count; ++i)
        if (!strcmp(set->tensor[i].name, set->tensor[i - 1].name))
            return fail(ERR_DATA, "%s: holds tensor %s twice", set->path, set->tensor[i].name);
    return OK;
}

void foreign_close(ForeignSet *set)
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

/* Converts IEEE 754 binary16 (1 bit of sign, 5 of exponent, 10 of fraction). */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, rest = half & 1023;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000 | rest << 13);
    if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | rest << 13);
    float small = (float)rest * 0x1p-24f;
    return sign ? -small : small;
}

static void widen(ForeignType type, const void *from, float *to, int64_t n)
{
    const uint16_t *half = from;
    const double *wide = from;
    for (int64_t i = 0; i < n; ++i)
        to[i] = type == FOREIGN_F16    ? float_of_half(half[i])
                : type == FOREIGN_BF16 ? float_of_bits((uint32_t)half[i] << 16)
                                       : (float)wide[i];
}

/* Reads n consecutive values from byte `at` on, as floats. */
static Status read_floats(const ForeignFile *file, ForeignType type, int64_t at, int64_t n,
                          float *to)
{
    enum { BLOCK = 1 << 16 };
    int64_t each = types[type].bytes;
    if (type == FOREIGN_F32) return foreign_read_at(file, to, n * each, at);
    void *block = mem_new((size_t)(BLOCK * each));
    Status st = OK;
    for (int64_t done = 0; st == OK && done < n; done += BLOCK) {
        int64_t some = n - done < BLOCK ? n - done : BLOCK;
        st = foreign_read_at(file, block, some * each, at + done * each);
        if (st == OK) widen(type, block, to + done, some);
    }
    mem_free(&block);
    return st;
}

/* Copies strided values to row-major order. span: the elements of the storage from the tensor's
 * first one on. */
static void gather(const ForeignTensor *t, const float *span, float *plain)
{
    int64_t index[FOREIGN_DIMS] = {0}, at = 0;
    for (int64_t i = 0; i < t->elements; ++i) {
        plain[i] = span[at];
        for (int d = t->ndim - 1; d >= 0; --d) {
            at += t->stride[d];
            if (++index[d] < t->dim[d]) break;
            at -= t->stride[d] * t->dim[d];
            index[d] = 0;
        }
    }
}

Status foreign_read(const ForeignSet *set, const ForeignTensor *t, float *plain)
{
    const ForeignFile *file = &set->file[t->file];
    int64_t at = file->values_at + t->begin;
    if (!t->strided) return read_floats(file, t->type, at, t->elements, plain);
    int64_t n = (t->end - t->begin) / types[t->type].bytes;
    float *span = mem_new((size_t)n * sizeof *span + 1);
    Status st = read_floats(file, t->type, at, n, span);
    if (st == OK) gather(t, span, plain);
    mem_free(&span);
    return st;
}
