/* Reads a zip file's directory (APPNOTE 6.3.9, sections 4.3 to 4.5). The file is not trusted: every
 * offset and length is compared with the file's size before it is used. */
#include "zip.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MOST = 65535,
    DIRECTORY_MOST = 256 << 20,
    MEMBERS = 1 << 21,
};
#define END_MARK     0x06054b50u
#define END64_MARK   0x06064b50u
#define LOCATOR_MARK 0x07064b50u
#define ENTRY_MARK   0x02014b50u
#define LOCAL_MARK   0x04034b50u

/* The directory of the zip file. */
typedef struct Directory {
    /* offset of the directory in the file */
    int64_t begin;
    /* size of the directory */
    int64_t bytes;
    /* number of its entries */
    int64_t entries;
} Directory;

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes - 1; i >= 0; --i) n = n << 8 | at[i];
    return n;
}

static Status broken(const Zip *zip, const char *why)
{
    return fail(ERR_DATA, "%s: is not a whole zip file: %s; fetch or write it again",
                zip->file->path, why);
}

/* ---- the end of the file ---- */

/* Reads the zip64 end record, which precedes the plain end record at end_at. */
static Status read_end64(const Zip *zip, int64_t end_at, Directory *d)
{
    uint8_t locator[LOCATOR_BYTES], end[END64_BYTES];
    if (end_at < LOCATOR_BYTES) return broken(zip, "its zip64 record is missing");
    TRY(foreign_read_at(zip->file, locator, LOCATOR_BYTES, end_at - LOCATOR_BYTES));
    uint64_t at = number(locator + 8, 8);
    if (number(locator, 4) != LOCATOR_MARK || at > (uint64_t)end_at ||
        (uint64_t)end_at - at < END64_BYTES)
        return broken(zip, "its zip64 record is missing");
    TRY(foreign_read_at(zip->file, end, END64_BYTES, (int64_t)at));
    uint64_t entries = number(end + 32, 8), bytes = number(end + 40, 8),
             begin = number(end + 48, 8);
    if (number(end, 4) != END64_MARK) return broken(zip, "its zip64 record is missing");
    if (bytes > at || begin > at - bytes) return broken(zip, "its directory lies outside it");
    if (number(end + 16, 4) || number(end + 20, 4) || entries != number(end + 24, 8))
        return broken(zip, "it is one of several volumes");
    *d = (Directory){(int64_t)begin, (int64_t)bytes,
                     entries > MEMBERS ? MEMBERS + 1 : (int64_t)entries};
    return OK;
}

static Status read_end(const Zip *zip, const uint8_t *end, int64_t at, Directory *d)
{
    uint64_t entries = number(end + 10, 2), bytes = number(end + 12, 4),
             begin = number(end + 16, 4);
    if (entries == UINT16_MAX || bytes == UINT32_MAX || begin == UINT32_MAX)
        return read_end64(zip, at, d);
    if (number(end + 4, 2) || number(end + 6, 2) || entries != number(end + 8, 2))
        return broken(zip, "it is one of several volumes");
    if (bytes > (uint64_t)at || begin > (uint64_t)at - bytes)
        return broken(zip, "its directory lies outside it");
    *d = (Directory){(int64_t)begin, (int64_t)bytes, (int64_t)entries};
    return OK;
}

/* Finds the last end record whose comment reaches to the file's last byte. */
static Status find_end(const Zip *zip, Directory *d)
{
    int64_t most = END_BYTES + COMMENT_MOST;
    int64_t bytes = zip->file->bytes < most ? zip->file->bytes : most, at = bytes - END_BYTES;
    uint8_t *tail = mem_new((size_t)bytes + 1);
    Status st = foreign_read_at(zip->file, tail, bytes, zip->file->bytes - bytes);
    while (st == OK && at >= 0 &&
           (number(tail + at, 4) != END_MARK ||
            (int64_t)number(tail + at + 20, 2) != bytes - at - END_BYTES))
        --at;
    if (st == OK)
        st = at < 0 ? broken(zip, "its directory is missing, so it was cut short")
                    : read_end(zip, tail + at, zip->file->bytes - bytes + at, d);
    mem_free(&tail);
    return st;
}

/* ---- the directory ---- */

/* Unchecked fields of an entry of the directory. */
typedef struct Entry {
    uint64_t flags, method;
    /* size of the member in the file */
    uint64_t packed;
    /* size of the member after unpacking */
    uint64_t bytes;
    /* offset of the member's own header */
    uint64_t local;
    uint32_t crc;
} Entry;

/* Replaces fields that are UINT32_MAX by 64-bit numbers from the extra field with tag 1, which has
 * the replaced fields in the order of the array `wide`. Returns false if the extra field is missing
 * or too short. */
static bool read_extra64(Entry *e, const uint8_t *extra, uint64_t length)
{
    uint64_t *const wide[] = {&e->bytes, &e->packed, &e->local};
    int needed = 0;
    for (int i = 0; i < 3; ++i) needed += *wide[i] == UINT32_MAX;
    while (needed && length >= 4) {
        uint64_t tag = number(extra, 2), size = number(extra + 2, 2);
        if (size > length - 4) return false;
        if (tag == 1) {
            const uint8_t *at = extra + 4;
            if (size < 8 * (uint64_t)needed) return false;
            for (int i = 0; i < 3; ++i)
                if (*wide[i] == UINT32_MAX) *wide[i] = number(at, 8), at += 8;
            return true;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return needed == 0;
}

static Status member_fail(const Zip *zip, const ZipMember *m, const char *why)
{
    return fail(ERR_DATA, "%s: its member %s %s", zip->file->path, m->name, why);
}

/* Finds the member's bytes, which follow the member's own header. This header must agree with the
 * directory. */
static Status place_member(const Zip *zip, ZipMember *m, const Entry *e, int64_t directory)
{
    uint8_t local[LOCAL_BYTES], name[FOREIGN_NAME_BYTES];
    size_t length = strlen(m->name);
    if (e->local > (uint64_t)directory || (uint64_t)directory - e->local < LOCAL_BYTES + length)
        return member_fail(zip, m, "lies outside the file");
    TRY(foreign_read_at(zip->file, local, LOCAL_BYTES, (int64_t)e->local));
    TRY(foreign_read_at(zip->file, name, (int64_t)length, (int64_t)e->local + LOCAL_BYTES));
    if (number(local, 4) != LOCAL_MARK || number(local + 8, 2) != e->method ||
        number(local + 26, 2) != length || memcmp(name, m->name, length) != 0)
        return member_fail(zip, m, "has another header than the directory says");
    uint64_t begin = e->local + LOCAL_BYTES + length + number(local + 28, 2);
    if (begin > (uint64_t)directory || e->packed > (uint64_t)directory - begin)
        return member_fail(zip, m, "lies outside the file");
    m->begin = (int64_t)begin;
    m->bytes = (int64_t)e->packed;
    m->packed = e->flags & 0x2041 || e->method != 0 || e->packed != e->bytes;
    m->crc = e->crc;
    return OK;
}

/* Adds the entry at *at and moves *at to the next entry. */
static Status read_entry(Zip *zip, const Directory *d, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    if (end - p < ENTRY_BYTES || number(p, 4) != ENTRY_MARK)
        return broken(zip, "its directory is damaged");
    uint64_t name = number(p + 28, 2), extra = number(p + 30, 2), comment = number(p + 32, 2);
    if (name + extra + comment > (uint64_t)(end - p - ENTRY_BYTES))
        return broken(zip, "its directory is damaged");
    bool printable = name <= FOREIGN_NAME_BYTES;
    for (uint64_t i = 0; i < name && printable; ++i) printable = !iscntrl(p[ENTRY_BYTES + i]);
    if (!printable) return broken(zip, "the name of a member is too long, or cannot be printed");
    Entry e = {.flags = number(p + 8, 2),
               .method = number(p + 10, 2),
               .crc = (uint32_t)number(p + 16, 4),
               .packed = number(p + 20, 4),
               .bytes = number(p + 24, 4),
               .local = number(p + 42, 4)};
    ZipMember *m = &zip->member[zip->count++];
    *m = (ZipMember){.name = mem_format("%.*s", (int)name, (const char *)p + ENTRY_BYTES)};
    if (!read_extra64(&e, p + ENTRY_BYTES + name, extra))
        return broken(zip, "its directory is damaged");
    *at = p + ENTRY_BYTES + name + extra + comment;
    return place_member(zip, m, &e, d->begin);
}

static int by_begin(const void *a, const void *b)
{
    const ZipMember *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ZipMember *)a)->name, ((const ZipMember *)b)->name);
}

/* Checks that members do not overlap and that names are unique. */
static Status check_members(Zip *zip)
{
    size_t count = (size_t)zip->count;
    qsort(zip->member, count, sizeof *zip->member, by_begin);
    for (int i = 1; i < zip->count; ++i)
        if (zip->member[i].begin < zip->member[i - 1].begin + zip->member[i - 1].bytes)
            return member_fail(zip, &zip->member[i], "overlaps another member");
    qsort(zip->member, count, sizeof *zip->member, by_name);
    for (int i = 1; i < zip->count; ++i)
        if (!strcmp(zip->member[i].name, zip->member[i - 1].name))
            return member_fail(zip, &zip->member[i], "appears twice");
    return OK;
}

Status zip_open(Zip *zip, const ForeignFile *file)
{
    Directory d = {0};
    *zip = (Zip){.file = file};
    TRY(find_end(zip, &d));
    if (d.entries > MEMBERS || d.bytes > DIRECTORY_MOST)
        return fail(ERR_DATA, "%s: its zip directory is impossibly large", file->path);
    if (d.entries * ENTRY_BYTES > d.bytes) return broken(zip, "its directory is damaged");
    uint8_t *bytes = mem_new((size_t)d.bytes + 1);
    zip->member = mem_new(((size_t)d.entries + 1) * sizeof *zip->member);
    Status st = foreign_read_at(file, bytes, d.bytes, d.begin);
    const uint8_t *at = bytes;
    for (int64_t i = 0; st == OK && i < d.entries; ++i)
        st = read_entry(zip, &d, &at, bytes + d.bytes);
    mem_free(&bytes);
    return st == OK ? check_members(zip) : st;
}

void zip_close(Zip *zip)
{
    for (int i = 0; i < zip->count; ++i) mem_free(&zip->member[i].name);
    mem_free(&zip->member);
    zip->count = 0;
}

static int name_of(const void *name, const void *member)
{
    return strcmp(name, ((const ZipMember *)member)->name);
}

ZipMember *zip_find(const Zip *zip, const char *name)
{
    if (zip->count == 0) return NULL;
    return bsearch(name, zip->member, (size_t)zip->count, sizeof *zip->member, name_of);
}

Status zip_check(const Zip *zip, ZipMember *member)
{
    enum { BLOCK = 1 << 20 };
    if (member->checked) return OK;
    if (member->packed)
        return member_fail(zip, member,
                           "is compressed or encrypted, which torch.save never does: unpack the "
                           "file, and pack its folder with zip -0 -r");
    uint8_t *block = mem_new(BLOCK);
    uLong crc = crc32(0, NULL, 0);
    Status st = OK;
    for (int64_t done = 0; st == OK && done < member->bytes; done += BLOCK) {
        int64_t some = member->bytes - done < BLOCK ? member->bytes - done : BLOCK;
        st = foreign_read_at(zip->file, block, some, member->begin + done);
        if (st == OK) crc = crc32(crc, block, (uInt)some);
    }
    mem_free(&block);
    if (st == OK && crc != member->crc)
        st = member_fail(zip, member,
                         "does not have its checksum: the file is damaged; fetch it again (or "
                         "torch.save wrote it without checksums: save it again with them)");
    member->checked = st == OK;
    return st;
}

Status zip_read(const Zip *zip, ZipMember *member, int64_t most, uint8_t **bytes)
{
    *bytes = NULL;
    if (member->bytes > most) return member_fail(zip, member, "is impossibly large");
    TRY(zip_check(zip, member));
    *bytes = mem_new((size_t)member->bytes + 1);
    return foreign_read_at(zip->file, *bytes, member->bytes, member->begin);
}
