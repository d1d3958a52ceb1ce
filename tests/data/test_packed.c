/* Tests imports of gzip files of several members: good ones are read to the end, zeros may follow;
 * anything else and every truncation is refused with its offset. */
#include "fixture.h"

#include <unistd.h>

enum { ROOM = 1 << 16 };

/* a file that is being made */
typedef struct Bytes {
    uint8_t at[ROOM];
    size_t count;
} Bytes;

static void add(Bytes *b, const void *from, size_t count)
{
    if (b->count + count > ROOM) die("a file of more than %d bytes", ROOM);
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

/* Appends these bytes as a gzip member. */
static void add_member(Bytes *b, const void *from, size_t count)
{
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) die("zlib");
    z.next_in = (uint8_t *)(uintptr_t)from;
    z.avail_in = (uInt)count;
    z.next_out = b->at + b->count;
    z.avail_out = (uInt)(ROOM - b->count);
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) die("zlib");
    b->count = ROOM - z.avail_out;
    deflateEnd(&z);
}

/* an importer, and two halves of a file for it */
typedef struct Case {
    const char *name;
    const void *half[2];
    size_t bytes[2];
} Case;

static Status case_import(const Case *c, const char *path, const char *out)
{
    if (!strcmp(c->name, "idx"))
        return import_run("idx", path, in_scratch("labels"), "-o", out, "--force", NULL);
    if (!strcmp(c->name, "csv"))
        return import_run("csv", path, "--schema", in_scratch("s.yaml"), "-o", out, "--force",
                          NULL);
    if (!strcmp(c->name, "tokenizer"))
        return import_run("text", path, "--tokenizer", "tests/golden/tokenizer", "-o", out,
                          "--force", NULL);
    if (!strcmp(c->name, "tokens"))
        return import_run("tokens", path, "--bits", "16", "-o", out, "--force", NULL);
    return import_run(c->name, path, "-o", out, "--force", NULL);
}

/* Does the data set have the same bytes as that of the plain file? */
static bool same_set(const char *a, const char *b)
{
    char *command = mem_format("cmp -s %s %s", a, b);
    bool same = system(command) == 0;
    mem_free(&command);
    return same;
}

static void put_bytes(const char *path, const Bytes *b, size_t count)
{
    write_bytes(path, b->at, count);
}

static void refused(const Case *c, const char *path, const char *why, int64_t byte)
{
    char text[80];
    const char *out = in_scratch("out.h5");
    snprintf(text, sizeof text, "at byte %lld", (long long)byte);
    CHECK_FAILS(case_import(c, path, out), ERR_DATA, why);
    if (!strstr(fail_message(), text)) printf("  %s lacks '%s'\n", fail_message(), text);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), text));
    CU_ASSERT_NOT_EQUAL(access(out, F_OK), 0);
}

static void members_of(const Case *c)
{
    Bytes plain = {.count = 0}, packed = {.count = 0}, other;
    /* Copies, since in_scratch keeps only 32 paths. */
    char *path = mem_text(in_scratch("members.gz")), *out = mem_text(in_scratch("out.h5"));
    char *plain_out = mem_text(in_scratch("plain.h5"));
    remove(out);
    for (int i = 0; i < 2; ++i) add(&plain, c->half[i], c->bytes[i]);
    write_bytes(in_scratch("plain"), plain.at, plain.count);
    CHECK_OK(case_import(c, in_scratch("plain"), plain_out));
    add_member(&packed, c->half[0], c->bytes[0]);
    int64_t second = (int64_t)packed.count;
    add_member(&packed, c->half[1], c->bytes[1]);
    /* Accepted: all members, and zeros behind them. */
    put_bytes(path, &packed, packed.count);
    CHECK_OK(case_import(c, path, out));
    CU_ASSERT(same_set(plain_out, out));
    other = packed;
    memset(other.at + other.count, 0, 1000);
    put_bytes(path, &other, other.count + 1000);
    CHECK_OK(case_import(c, path, out));
    CU_ASSERT(same_set(plain_out, out));
    remove(out);
    other.at[other.count + 900] = 'x';
    put_bytes(path, &other, other.count + 1000);
    refused(c, path, "after its gzip data", (int64_t)other.count + 900);
    /* Damage to the second member's beginning, its deflate data and its checksum. */
    other = packed;
    other.at[second] ^= 1;
    put_bytes(path, &other, other.count);
    refused(c, path, "after its gzip data", second);
    other = packed;
    other.at[second + 2] ^= 1;
    put_bytes(path, &other, other.count);
    CHECK_FAILS(case_import(c, path, out), ERR_DATA, "is damaged");
    refused(c, path, "in the gzip member that begins", second);
    other = packed;
    other.at[other.count - 6] ^= 1;
    put_bytes(path, &other, other.count);
    refused(c, path, "is damaged", second);
    /* Truncation within the second member, within its last eight bytes, and behind its first
     * byte. */
    static const size_t cuts[] = {12, 3};
    for (int i = 0; i < 2; ++i) {
        put_bytes(path, &packed, packed.count - cuts[i]);
        refused(c, path, "is truncated", (int64_t)(packed.count - cuts[i]));
    }
    put_bytes(path, &packed, (size_t)second + 1);
    refused(c, path, "after its gzip data", second);
    /* Plain bytes behind the first member. */
    other = packed;
    other.count = (size_t)second;
    add(&other, c->half[1], c->bytes[1]);
    put_bytes(path, &other, other.count);
    refused(c, path, "after its gzip data", second);
    /* A file that is not gzip but is named so. */
    put_bytes(path, &plain, plain.count);
    refused(c, path, "its name ends in .gz", 0);
    mem_free(&path);
    mem_free(&out);
    mem_free(&plain_out);
}

static void members(void)
{
    enum { IMAGES = 300, SIDE = 4, WORDS = 2000 };
    static uint8_t x[16 + IMAGES * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, IMAGES >> 8, IMAGES & 255,
                                                   0, 0, 0, SIDE, 0, 0, 0,           SIDE};
    static uint8_t y[8 + IMAGES] = {0, 0, 8, 1, 0, 0, IMAGES >> 8, IMAGES & 255};
    static char text[WORDS * 8], table[WORDS * 16], clicks[WORDS * 48], rated[WORDS * 24];
    static uint16_t token[WORDS];
    int letters = 0, rows = 0, logs = 0, films = 0;
    for (int i = 0; i < IMAGES * SIDE * SIDE; ++i) x[16 + i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < IMAGES; ++i) y[8 + i] = (uint8_t)(i % 4);
    for (int i = 0; i < WORDS; ++i) token[i] = (uint16_t)(i * 40503u % 50257);
    for (int i = 0; i < WORDS; ++i) {
        letters += sprintf(text + letters, "w%d ", i * i % 977);
        rows += sprintf(table + rows, "%d,%d,c%d\n", i % 2, i, i % 7);
        films += sprintf(rated + films, "%d\t%d\t%d\t%d\n", 1 + i % 9, 1 + i % 13, 1 + i % 5, i);
    }
    for (int i = 0; i < 300; ++i) {
        logs += sprintf(clicks + logs, "%d", i % 2);
        for (int k = 0; k < 13; ++k) logs += sprintf(clicks + logs, "\t%d", i % 9);
        for (int k = 0; k < 26; ++k) logs += sprintf(clicks + logs, "\t%x", (unsigned)i % 16);
        logs += sprintf(clicks + logs, "\n");
    }
    write_bytes(in_scratch("labels"), y, sizeof y);
    static const char schema[] =
        "header: false\ncolumns:\n  y: label\n  t: number\n  c: category\n";
    write_bytes(in_scratch("s.yaml"), schema, sizeof schema - 1);
#define HALVES(of, n)                                                                              \
    {(of), (const char *)(of) + (n) / 2},                                                          \
    {                                                                                              \
        (size_t)(n) / 2, (size_t)(n) - (size_t)(n) / 2                                             \
    }
    const Case all[] = {
        {"idx", HALVES(x, sizeof x)},
        {"csv", HALVES(table, rows)},
        {"criteo", HALVES(clicks, logs)},
        {"movielens", HALVES(rated, films)},
        {"text", HALVES(text, letters)},
        {"tokenizer", HALVES(text, letters)},
        {"tokens", HALVES(token, sizeof token)},
    };
#undef HALVES
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        printf("  %s\n", all[i].name);
        members_of(&all[i]);
    }
}

TEST_MAIN("packed", {"members and what follows them", members})
