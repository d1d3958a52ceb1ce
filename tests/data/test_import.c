/* Imports: IDX (plain and .gz) and CIFAR of small files made here; round trip through HDF5 and the reader; corrupt files;
 * a full disk; nothing overwritten, no .part left. */
#include "fixture.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

enum { N = 37, SIDE_H = 5, SIDE_W = 4, PIXELS = SIDE_H * SIDE_W };

static uint8_t pixel(int i)
{
    return (uint8_t)(i * 37 % 251);
}

static void put_be(uint8_t *p, int v)
{
    for (int i = 0; i < 4; ++i) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Writes n bytes, packed where the name ends in .gz. */
static const char *file_put(const char *name, const void *bytes, size_t n)
{
    const char *path = in_scratch(name);
    if (strstr(name, ".gz")) {
        gzFile f = gzopen(path, "wb");
        if (!f || gzwrite(f, bytes, (unsigned)n) != (int)n || gzclose(f) != Z_OK) die("%s", path);
        return path;
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) die("%s", path);
    return path;
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
        CU_ASSERT_EQUAL(set.class_names, 4);
        CU_ASSERT_STRING_EQUAL(set.class_name[1], names[1]);
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
    const char *cut = idx_images("x-cut", N, -1); /* a failing import leaves the earlier file */
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
                "belong together");
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

/* A .gz that is cut, and one with a flipped bit. */
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
    b[n - 6] ^= 1; /* the checksum */
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
        CU_ASSERT_STRING_EQUAL(set.class_name[9], fine ? "bottle" : "truck");
        if (fine) CU_ASSERT_STRING_EQUAL(set.class_name[99], "worm");
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
    CHECK_FAILS(data_import_cifar(&f, 1, false, out, false), ERR_DATA, "the other CIFAR");
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

/* A file-size limit stands for the full disk; in a child, which must end by itself and cleanly. */
static int import_limited(rlim_t bytes, const char *file, const char *out)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {bytes, bytes};
        signal(SIGXFSZ, SIG_IGN);
        alarm(20);
        setrlimit(RLIMIT_FSIZE, &limit);
        Status st = data_import_cifar(&file, 1, false, out, true);
        hdf5_lock();
        H5close(); /* whatever HDF5 still holds must not hang the end of the process */
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
    CHECK_OK(data_set_open(&set, NULL, out)); /* the earlier file is whole */
    CHECK_OK(data_set_check(&set, 0));
}

TEST_MAIN("import", {"IDX round trip", round_trip}, {"never overwrites", never_overwrites},
          {"bad IDX", idx_bad}, {"bad gzip", gz_bad}, {"CIFAR", cifar}, {"bad CIFAR", cifar_bad},
          {"disk full", disk_full})
