/* Tests imports of IDX, text and tokens (plain and .gz) and CIFAR from small files made here: round
 * trip through HDF5 and the reader; damaged files; a full disk; no file is overwritten, no .part is
 * left. */
#include "fixture.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 37, SIDE_H = 5, SIDE_W = 4, PIXELS = SIDE_H * SIDE_W };

static uint8_t pixel(int i)
{
    return (uint8_t)(i * 37 % 251);
}

static void put_be(uint8_t *p, int v)
{
    for (int i = 0; i < 4; ++i) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static const char *idx_images(const char *name, int n, int extra)
{
    uint8_t b[16 + N * PIXELS + 8] = {0, 0, 8, 3};
    put_be(b + 4, n), put_be(b + 8, SIDE_H), put_be(b + 12, SIDE_W);
    for (int i = 0; i < N * PIXELS; ++i) b[16 + i] = pixel(i);
    return file_put(name, b, (size_t)(16 + n * PIXELS + extra));
}

static const char *idx_labels(const char *name, int n, int extra)
{
    uint8_t b[8 + N + 8] = {0, 0, 8, 1};
    put_be(b + 4, n);
    for (int i = 0; i < N; ++i) b[8 + i] = (uint8_t)(i % 4);
    return file_put(name, b, (size_t)(8 + n + extra));
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}
static bool part_exists(const char *path)
{
    char part[200];
    snprintf(part, sizeof part, "%s.part", path);
    return exists(part);
}

static void round_trip(void)
{
    static const char *const names[] = {"zero", "one \"quoted\"", "two", "three"};
    for (int packed = 0; packed < 2; ++packed) {
        const char *x = idx_images(packed ? "x.idx.gz" : "x.idx", N, 0);
        const char *y = idx_labels(packed ? "y.idx.gz" : "y.idx", N, 0);
        const char *out = in_scratch("idx.h5");
        DataSet set;
        Reader *reader;
        CHECK_OK(data_import_idx(x, y, names, 4, out, true));
        CU_ASSERT_FALSE(part_exists(out));
        CHECK_OK(data_set_open(&set, NULL, out));
        CU_ASSERT_EQUAL(set.samples, N);
        CU_ASSERT_EQUAL(set.kind, DATA_IMAGE);
        CU_ASSERT_EQUAL(set.height, SIDE_H);
        CU_ASSERT_EQUAL(set.width, SIDE_W);
        CU_ASSERT_EQUAL(set.classes, 4);
        CU_ASSERT_TRUE(class_is(out, 1, names[1]));
        CU_ASSERT_FALSE(class_is(out, 4, ""));
        CU_ASSERT_EQUAL(set.x.offset > 0 && set.x.offset % 512 == 0, 1);
        double sum = 0, squares = 0, count = N * PIXELS;
        for (int i = 0; i < N * PIXELS; ++i) sum += pixel(i) / 255.0;
        for (int i = 0; i < N * PIXELS; ++i) squares += pow(pixel(i) / 255.0 - sum / count, 2);
        CU_ASSERT_DOUBLE_EQUAL(set.mean[0], sum / count, 1e-7);
        CU_ASSERT_DOUBLE_EQUAL(set.std[0], sqrt(squares / count), 1e-7);
        CHECK_OK(data_set_check(&set, 0));
        CHECK_OK(reader_new(&reader, &set));
        for (int64_t s = 0; s < N; ++s) {
            uint8_t raw[PIXELS];
            int32_t label;
            CHECK_OK(reader_get(reader, s, raw, &label, NULL));
            CU_ASSERT_EQUAL(label, s % 4);
            for (int i = 0; i < PIXELS; ++i)
                if (raw[i] != pixel((int)s * PIXELS + i)) CU_FAIL("pixel");
        }
        reader_free(&reader);
    }
}

static void never_overwrites(void)
{
    const char *x = idx_images("x", N, 0), *y = idx_labels("y", N, 0), *out = in_scratch("own.h5");
    DataSet set;
    file_put("own.h5", "precious", 8);
    CHECK_FAILS(data_import_idx(x, y, NULL, 0, out, false), ERR_USAGE, "already there");
    CHECK_FAILS(data_set_open(&set, NULL, out), ERR_DATA, "not an HDF5");
    CU_ASSERT_FALSE(part_exists(out));
    CHECK_OK(data_import_idx(x, y, NULL, 0, out, true));
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT_EQUAL(set.classes, 4);
    /* A failing import leaves the earlier file unchanged. */
    const char *cut = idx_images("x-cut", N, -1);
    CHECK_FAILS(data_import_idx(cut, y, NULL, 0, out, true), ERR_DATA, "truncated");
    CHECK_OK(data_set_check(&set, 0));
    CU_ASSERT_FALSE(part_exists(out));
}

static void idx_bad(void)
{
    const char *out = in_scratch("bad.h5");
    char keep[160];
    snprintf(keep, sizeof keep, "%s", out);
    out = keep;
    const char *x = idx_images("x", N, 0), *y = idx_labels("y", N, 0);
    CHECK_FAILS(data_import_idx(in_scratch("nix"), y, NULL, 0, out, false), ERR_NOINPUT, "nix");
    CHECK_FAILS(data_import_idx(y, x, NULL, 0, out, false), ERR_DATA, "images first");
    CHECK_FAILS(data_import_idx(x, x, NULL, 0, out, false), ERR_DATA, "00000801");
    CHECK_FAILS(data_import_idx(x, idx_labels("y1", N - 1, 0), NULL, 0, out, false), ERR_DATA,
                "two files of one data set");
    x = idx_images("x", N, 0), y = idx_labels("y", N, 0);
    CHECK_FAILS(data_import_idx(idx_images("x+", N, 1), y, NULL, 0, out, false), ERR_DATA,
                "longer");
    CHECK_FAILS(data_import_idx(x, idx_labels("y-", N, -1), NULL, 0, out, false), ERR_DATA,
                "truncated");
    static const char *const names[] = {"a", "b"};
    CHECK_FAILS(data_import_idx(x, y, names, 2, out, false), ERR_DATA, "2 class names");
    CHECK_FAILS(data_import_idx(file_put("e", "", 0), y, NULL, 0, out, false), ERR_DATA,
                "truncated");
    CHECK_FAILS(data_import_idx(x, y, NULL, 0, in_scratch("no/dir/out.h5"), false), ERR_IO,
                "cannot be written");
    CU_ASSERT_FALSE(exists(out));
    CU_ASSERT_FALSE(part_exists(out));
}

/* A truncated .gz, and one with a flipped bit. */
static void gz_bad(void)
{
    char out[160];
    snprintf(out, sizeof out, "%s", in_scratch("gz.h5"));
    const char *x = idx_images("x.gz", N, 0);
    const char *y = idx_labels("y", N, 0);
    uint8_t b[2000];
    FILE *f = fopen(x, "rb");
    size_t n = fread(b, 1, sizeof b, f);
    fclose(f);
    CHECK_FAILS(data_import_idx(file_put("cut", b, n / 2), y, NULL, 0, out, false), ERR_DATA,
                "truncated");
    /* flips a bit of the checksum */
    b[n - 6] ^= 1;
    CHECK_FAILS(data_import_idx(file_put("flipped", b, n), y, NULL, 0, out, false), ERR_DATA,
                "flipped: is damaged");
    CU_ASSERT_FALSE(exists(out));
    CU_ASSERT_FALSE(part_exists(out));
}

static const char *cifar_file(const char *name, int records, int head, int classes, int extra)
{
    size_t bytes = (size_t)(records * (head + 3072) + extra);
    uint8_t *b = mem_new(bytes + 8);
    for (int i = 0; i < records; ++i) {
        uint8_t *r = b + i * (head + 3072);
        r[0] = 1;
        r[head - 1] = (uint8_t)(i % classes);
        for (int k = 0; k < 3072; ++k) r[head + k] = (uint8_t)(i + k);
    }
    const char *path = file_put(name, b, bytes);
    mem_free(&b);
    return path;
}

static void cifar(void)
{
    for (int fine = 0; fine < 2; ++fine) {
        int classes = fine ? 100 : 10;
        const char *files[2] = {cifar_file("a.bin", 300, 1 + fine, classes, 0),
                                cifar_file("b.bin", 11, 1 + fine, classes, 0)};
        const char *out = in_scratch("cifar.h5");
        DataSet set;
        Reader *reader;
        uint8_t raw[3072];
        int32_t label;
        CHECK_OK(data_import_cifar(files, 2, fine, out, true));
        CHECK_OK(data_set_open(&set, NULL, out));
        CU_ASSERT_EQUAL(set.samples, 311);
        CU_ASSERT_EQUAL(set.classes, classes);
        CU_ASSERT_EQUAL(set.channels, 3);
        CU_ASSERT_EQUAL(set.stats_count, 3);
        CU_ASSERT_EQUAL(set.x.offset % 4096, 0);
        CU_ASSERT_TRUE(class_is(out, 9, fine ? "bottle" : "truck"));
        if (fine) CU_ASSERT_TRUE(class_is(out, 99, "worm"));
        CHECK_OK(data_set_check(&set, 0));
        CHECK_OK(reader_new(&reader, &set));
        CHECK_OK(reader_get(reader, 305, raw, &label, NULL));
        CU_ASSERT_EQUAL(label, 5);
        CU_ASSERT_EQUAL(raw[100], 105);
        CHECK_OK(reader_get(reader, 299, raw, &label, NULL));
        CU_ASSERT_EQUAL(label, 299 % classes);
        CU_ASSERT_EQUAL(raw[3000], (uint8_t)(299 + 3000));
        reader_free(&reader);
    }
}

static void cifar_bad(void)
{
    char out[160];
    snprintf(out, sizeof out, "%s", in_scratch("cb.h5"));
    const char *f = cifar_file("h.bin", 5, 2, 100, 0);
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_DATA,
                "it looks like CIFAR-100: use --fine");
    f = cifar_file("t.bin", 5, 1, 10, -7);
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_DATA, "truncated");
    f = cifar_file("l.bin", 30, 1, 20, 0);
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_DATA, "record 10 has label 10");
    f = in_scratch("missing.bin");
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_NOINPUT, "missing.bin");
    f = scratch;
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_NOINPUT, "not a file");
    CHECK_FAILS(data_import_cifar(&f, 0, false, out, false), ERR_USAGE, "at least one");
    CU_ASSERT_FALSE(exists(out));
    CU_ASSERT_FALSE(part_exists(out));
}

/* Simulates a full disk by a limit on file sizes, in a child process, which must exit cleanly by
 * itself. */
static int import_limited(rlim_t bytes, const char *file, const char *out)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {bytes, bytes};
        signal(SIGXFSZ, SIG_IGN);
        alarm(200);
        setrlimit(RLIMIT_FSIZE, &limit);
        Status st = data_import_cifar(&file, 1, false, out, true);
        hdf5_lock();
        /* HDF5's buffers must not keep the process from ending. */
        H5close();
        _exit(st == ERR_IO && strstr(fail_message(), ".part: cannot be written") ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void disk_full(void)
{
    const char *file = cifar_file("full.bin", 300, 1, 10, 0), *out = in_scratch("full.h5");
    DataSet set;
    CHECK_OK(data_import_cifar(&file, 1, false, out, false));
    static const rlim_t limit[] = {0, 100, 5000, 100000, 900000};
    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; ++i) {
        int status = import_limited(limit[i], file, out);
        if (status) printf("  limit %lld: status %x\n", (long long)limit[i], (unsigned)status);
        CU_ASSERT_EQUAL(status, 0);
        CU_ASSERT_FALSE(part_exists(out));
    }
    /* The earlier file is unchanged. */
    CHECK_OK(data_set_open(&set, NULL, out));
    CHECK_OK(data_set_check(&set, 0));
}

/* Copies a path, which then outlives the ring of in_scratch. */
static void keep_path(char *to, const char *name)
{
    snprintf(to, 160, "%s", in_scratch(name));
}

/* Token i of the files below. */
static uint32_t token(int64_t i, int bits)
{
    uint32_t v = (uint32_t)i * 2654435761u >> 8;
    return bits == 8 ? v & 255 : bits == 16 ? v % 50257 : v % 200019;
}

static const char *token_file(const char *name, int bits, int64_t n, int64_t extra)
{
    int each = bits / 8;
    uint8_t *b = mem_new((size_t)(n * each + 8));
    for (int64_t i = 0; i < n; ++i)
        for (int k = 0; k < each; ++k) b[i * each + k] = (uint8_t)(token(i, bits) >> 8 * k);
    const char *path = file_put(name, b, (size_t)(n * each + extra));
    mem_free(&b);
    return path;
}

/* Checks that out holds tokens first..first+n-1 of the file, by weft's reader and by HDF5. */
static void tokens_are(const char *out, int bits, int64_t first, int64_t n, int64_t vocab)
{
    DataSet set;
    Config c = config_plain();
    Reader *reader;
    int64_t bad = 0;
    c.model.context = 7;
    CHECK_OK(data_set_open(&set, &c, out));
    CU_ASSERT_EQUAL(set.kind, DATA_TOKENS);
    CU_ASSERT_EQUAL(set.x.type, bits == 8 ? ELEM_U8 : bits == 16 ? ELEM_U16 : ELEM_U32);
    CU_ASSERT_EQUAL(set.x.dim[0], n);
    CU_ASSERT_EQUAL(set.vocab, vocab);
    if (n >= 4096) CU_ASSERT_EQUAL(set.x.offset % 4096, 0);
    CHECK_OK(data_set_check(&set, 0));
    uint32_t *all = mem_new((size_t)n * sizeof *all), sample[7] = {0};
    hid_t file = H5Fopen(out, H5F_ACC_RDONLY, H5P_DEFAULT),
          d = H5Dopen2(file, "tokens", H5P_DEFAULT);
    CU_ASSERT(H5Dread(d, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    for (int64_t i = 0; i < n; ++i) bad += all[i] != token(first + i, bits);
    CU_ASSERT_EQUAL(bad, 0);
    H5Dclose(d);
    H5Fclose(file);
    CHECK_OK(reader_new(&reader, &set));
    CHECK_OK(reader_get(reader, set.samples - 1, sample, NULL, NULL));
    CU_ASSERT_EQUAL(sample[0] & (bits == 32 ? ~0u : (1u << bits) - 1),
                    token(first + (set.samples - 1) * 7, bits));
    reader_free(&reader);
    mem_free(&all);
}

/* Imports more than one piece of each kind, plain and packed, with and without a test share. */
static void tokens_round_trip(void)
{
    enum { LONG = 3 * (1 << 20) / 2 + 11 };
    char out[160], test[160];
    keep_path(out, "t.h5");
    keep_path(test, "t-test.h5");
    CHECK_OK(data_import_text(token_file("t.txt", 8, LONG, 0), out, NULL, 0, false));
    tokens_are(out, 8, 0, LONG, 256);
    CU_ASSERT_FALSE(exists(test));
    CHECK_OK(data_import_text(token_file("t.txt.gz", 8, LONG, 0), out, test, 0.1, true));
    int64_t head = (int64_t)(LONG * 0.9);
    tokens_are(out, 8, 0, head, 256);
    tokens_are(test, 8, head, LONG - head, 256);
    CHECK_OK(data_import_tokens(token_file("t.u16", 16, LONG, 0), 16, 0, out, NULL, 0, true));
    tokens_are(out, 16, 0, LONG, 50257);
    const char *wide = token_file("t.u32.gz", 32, LONG, 0);
    CHECK_OK(data_import_tokens(wide, 32, 200019, out, test, 0.25, true));
    head = (int64_t)(LONG * 0.75);
    tokens_are(out, 32, 0, head, 200019);
    tokens_are(test, 32, head, LONG - head, 200019);
    CU_ASSERT_FALSE(part_exists(out));
    CU_ASSERT_FALSE(part_exists(test));
}

static void tokens_never_overwrite(void)
{
    char out[160], test[160], text[160];
    keep_path(out, "keep.h5");
    keep_path(test, "keep-test.h5");
    keep_path(text, "keep.txt");
    token_file("keep.txt", 8, 500, 0);
    CHECK_OK(data_import_text(text, test, NULL, 0, false));
    CHECK_FAILS(data_import_text(text, out, test, 0.1, false), ERR_USAGE,
                "keep-test.h5: is already");
    CU_ASSERT_FALSE(exists(out));
    tokens_are(test, 8, 0, 500, 256);
    CHECK_FAILS(data_import_text(text, test, NULL, 0, false), ERR_USAGE, "is already there");
    /* A failure leaves the earlier file unchanged. */
    const char *odd = token_file("odd.u16", 16, 100, 1);
    CHECK_FAILS(data_import_tokens(odd, 16, 0, test, NULL, 0, true), ERR_DATA, "odd.u16");
    tokens_are(test, 8, 0, 500, 256);
    CHECK_FAILS(data_import_text(text, out, in_scratch("no/dir.h5"), 0.1, false), ERR_IO,
                "cannot be written");
    CU_ASSERT_FALSE(exists(out));
    CU_ASSERT_FALSE(part_exists(out));
    CHECK_OK(data_import_text(text, out, test, 0.1, true));
    tokens_are(out, 8, 0, 450, 256);
    tokens_are(test, 8, 450, 50, 256);
}

static void tokens_bad(void)
{
    char out[160], test[160], good[160];
    keep_path(out, "bt.h5");
    keep_path(test, "bt-test.h5");
    keep_path(good, "good.u16");
    token_file("good.u16", 16, 1000, 0);
    const char *path = file_put("none.txt", "", 0);
    CHECK_FAILS(data_import_text(path, out, NULL, 0, false), ERR_DATA, "none.txt: has 0 tokens");
    path = file_put("one.txt", "a", 1);
    CHECK_FAILS(data_import_text(path, out, NULL, 0, false), ERR_DATA, "has 1 token; ");
    path = file_put("few.txt", "abcdef", 6);
    CHECK_FAILS(data_import_text(path, out, test, 0.1, false), ERR_DATA,
                "test.h5 would get 1, and");
    CHECK_FAILS(data_import_text(path, out, test, 0.9, false), ERR_DATA, "would get 0, and");
    CHECK_FAILS(data_import_text(path, out, test, 0, false), ERR_USAGE, "between 0 and 1");
    CHECK_FAILS(data_import_text(path, out, test, 1, false), ERR_USAGE, "between 0 and 1");
    CHECK_FAILS(data_import_text(path, out, out, 0.5, false), ERR_USAGE, "give two paths");
    CHECK_FAILS(data_import_text(in_scratch("nix"), out, NULL, 0, false), ERR_NOINPUT, "nix");
    CHECK_FAILS(data_import_text(scratch, out, NULL, 0, false), ERR_NOINPUT, "not a file");
    path = token_file("odd.u16", 16, 1000, 1);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, false), ERR_DATA,
                "tokens of 16 bits");
    path = token_file("odd.u32", 32, 1000, 2);
    CHECK_FAILS(data_import_tokens(path, 32, 0, out, NULL, 0, false), ERR_DATA,
                "tokens of 32 bits");
    CHECK_FAILS(data_import_tokens(good, 8, 0, out, NULL, 0, false), ERR_USAGE, "16, 32 and 64");
    CHECK_FAILS(data_import_tokens(good, 16, -1, out, NULL, 0, false), ERR_USAGE, "vocabulary");
    int64_t first = 0;
    while (token(first, 16) < 40000) ++first;
    char text[80];
    snprintf(text, sizeof text, "good.u16: token %lld is %u, but there are 40000", (long long)first,
             token(first, 16));
    CHECK_FAILS(data_import_tokens(good, 16, 40000, out, NULL, 0, false), ERR_DATA, text);
    uint8_t wide[8] = {1, 0, 0, 0, 0, 0, 0, 0x80};
    path = file_put("wide.u32", wide, 8);
    CHECK_FAILS(data_import_tokens(path, 32, 0, out, NULL, 0, false), ERR_DATA, "2147483648");
    uint8_t packed[4000];
    path = token_file("cut.u16.gz", 16, 1000, 0);
    FILE *f = fopen(path, "rb");
    size_t n = fread(packed, 1, sizeof packed, f);
    fclose(f);
    path = file_put("cut.u16", packed, n / 2);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, false), ERR_DATA,
                "cut.u16: is truncated");
    CU_ASSERT_FALSE(exists(out) || part_exists(out) || exists(test) || part_exists(test));
}

static void by_name(void)
{
    const char *x = idx_images("x", N, 0), *y = idx_labels("y", N, 0), *out = in_scratch("verb.h5");
    CHECK_FAILS(import_run("idx", x, y, NULL), ERR_USAGE, "-o OUT is missing");
    CHECK_FAILS(import_run("idx", x, "-o", out, NULL), ERR_USAGE, "expected an images file");
    CHECK_FAILS(import_run("idx", y, x, "-o", out, NULL), ERR_DATA, "images first");
    CU_ASSERT_FALSE(exists(out));
    CHECK_OK(import_run("idx", x, y, "-o", out, "--classes", "a,b,c,d", NULL));
    CHECK_FAILS(import_run("idx", x, y, "-o", out, NULL), ERR_USAGE, "already there");
    CHECK_OK(import_run("idx", x, y, "-o", out, "--force", NULL));
    CU_ASSERT_TRUE(exists(out));
    remove(out);
}

TEST_MAIN("import", {"IDX round trip", round_trip}, {"never overwrites", never_overwrites},
          {"bad IDX", idx_bad}, {"bad gzip", gz_bad}, {"CIFAR", cifar}, {"bad CIFAR", cifar_bad},
          {"disk full", disk_full}, {"tokens round trip", tokens_round_trip},
          {"tokens never overwrite", tokens_never_overwrite}, {"bad tokens", tokens_bad},
          {"by name", by_name})
