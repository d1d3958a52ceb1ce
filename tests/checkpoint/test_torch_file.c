/* Tests the import of files of torch.save. Tensors have the values that PyTorch saved, for any
 * strides. A file that could run code, or that claims more data than it has, is refused.
 * tools/golden_pth.py has made the files in tests/golden/pth. */
#include "checkpoint/fixture.h"

#include "checkpoint/foreign/foreign_set.h"

#include <malloc.h>
#include <math.h>

static ForeignSet set;

/* Returns element i of tensor number p, as tools/golden_pth.py computes it. */
static float value(int p, int64_t i)
{
    return (float)((7 * i + 3 * p) % 11 - 5) / 8;
}

static void open_golden(const char *leaf, const char *key)
{
    char *path = mem_format("tests/golden/pth/%s", leaf);
    CHECK_OK(foreign_open(&set, path, key));
    set.path = leaf;
    mem_free(&path);
}

/* Checks a tensor: its shape, such as "3x4", and that its value i in row-major order is element
 * index(i) of tensor number p. */
static void has(const char *name, const char *shape, int p, int64_t (*index)(int64_t))
{
    char text[128];
    const ForeignTensor *t = foreign_find_tensor(&set, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_STRING_EQUAL(foreign_shape_text(t, text), shape);
    float *plain = mem_new((size_t)t->elements * sizeof *plain);
    CHECK_OK(foreign_read(&set, t, plain));
    for (int64_t i = 0; i < t->elements; ++i) CU_ASSERT_EQUAL(plain[i], value(p, index(i)));
    mem_free(&plain);
}

static int64_t same(int64_t i)
{
    return i;
}

static void two_tensors(const char *leaf)
{
    open_golden(leaf, NULL);
    CU_ASSERT_EQUAL(set.count, 2);
    has("a", "2x3", 0, same);
    has("b", "4", 1, same);
    foreign_close(&set);
}

static void plain(void)
{
    int64_t handles = fixture_handles();
    two_tensors("plain.pth");
    /* protocol 4: frames, STACK_GLOBAL, MEMOIZE */
    two_tensors("dict.pth");
    two_tensors("zip64.pth");
    CU_ASSERT_EQUAL(fixture_handles(), handles);
    /* no memory is lost: once the allocator's caches (7 blocks of each size) are full, the heap
     * does not grow */
    enum { FILL = 8 };
    size_t heap = 0;
    for (int i = 0; i < FILL; ++i) {
        two_tensors("plain.pth");
        heap = mallinfo2().uordblks;
    }
    two_tensors("plain.pth");
    CU_ASSERT_EQUAL(mallinfo2().uordblks, heap);
}

/* ---- views ---- */

/* These functions map an element of a view to an element of its base, which is 4 x 6. turned: the
 * transpose. */
static int64_t turned(int64_t i)
{
    return i % 4 * 6 + i / 4;
}
static int64_t row(int64_t i)
{
    return 12 + i;
}
static int64_t column(int64_t i)
{
    return 6 * i + 1;
}
/* the view of rows 1 and 3 and columns 0 and 3 */
static int64_t step(int64_t i)
{
    return (1 + 2 * (i / 2)) * 6 + 3 * (i % 2);
}
static int64_t offset(int64_t i)
{
    return 6 + i;
}
/* a view of 4 x 2 x 3 of a base of 2 x 3 x 4 */
static int64_t permuted(int64_t i)
{
    return i / 3 % 2 * 12 + i % 3 * 4 + i / 6;
}
static int64_t repeated(int64_t i)
{
    return i / 4;
}
static int64_t one(int64_t i)
{
    return 20 + i;
}

static void views(void)
{
    open_golden("views.pth", NULL);
    CU_ASSERT_EQUAL(set.count, 10);
    has("base", "4x6", 0, same);
    has("turned", "6x4", 0, turned);
    has("row", "6", 0, row);
    has("column", "4", 0, column);
    has("step", "2x2", 0, step);
    has("offset", "3x6", 0, offset);
    has("permuted", "4x2x3", 1, permuted);
    has("repeated", "3x4", 2, repeated);
    has("one", "1", 0, one);
    /* the values of a 2x3x2x2 tensor do not depend on its strides */
    has("channels_last", "2x3x2x2", 3, same);
    foreign_close(&set);
}

/* a view of 3 x 2: the transpose of a base of 2 x 3 */
static int64_t turned_types(int64_t i)
{
    return i % 2 * 3 + i / 2;
}

static void types(void)
{
    open_golden("types.pth", NULL);
    has("half", "5", 0, same);
    has("bf16", "5", 1, same);
    has("double", "5", 2, same);
    has("turned", "3x2", 3, turned_types);
    foreign_close(&set);
    open_golden("parameters.pth", NULL);
    CU_ASSERT_EQUAL(set.count, 3);
    has("embed", "3x2", 4, same);
    has("head", "3x2", 4, same);
    has("frozen", "2", 5, same);
    foreign_close(&set);
}

/* ---- choice of the group of tensors ---- */

static void refused_with(const char *leaf, const char *key, Status status, const char *why)
{
    char *path = mem_format("tests/golden/pth/%s", leaf);
    CHECK_FAILS(foreign_open(&set, path, key), status, why);
    foreign_close(&set);
    mem_free(&path);
}

static void groups(void)
{
    float zero[36];
    open_golden("nested.pth", NULL);
    CU_ASSERT_EQUAL(set.count, 9);
    has("module.conv2d1.weight", "4x1x3x3", 0, same);
    has("module.dense1.bias", "3", 7, same);
    foreign_close(&set);
    open_golden("nested.pth", "ema");
    CU_ASSERT_PTR_NOT_NULL_FATAL(foreign_find_tensor(&set, "conv2d1.weight"));
    CHECK_OK(foreign_read(&set, foreign_find_tensor(&set, "conv2d1.weight"), zero));
    for (int i = 0; i < 36; ++i) CU_ASSERT_EQUAL(zero[i], 0);
    foreign_close(&set);
    refused_with("nested.pth", "modle", ERR_USAGE, "there are model (9 tensors), ema (9 tensors)");
    refused_with("two.pth", NULL, ERR_DATA,
                 "choose one with --key: generator (9 tensors), discriminator (9 tensors)");
    open_golden("two.pth", "generator");
    has("dense1.weight", "3x16", 6, same);
    foreign_close(&set);
    refused_with("optimizer.pth", NULL, ERR_DATA, "optimizer_state (1 tensor)");
    open_golden("optimizer.pth", "optimizer_state");
    has("a", "2x3", 0, same);
    foreign_close(&set);
}

/* ---- refused files ---- */

static void hostile(void)
{
    static const char *const file[][2] = {
        {"evil.pth", "it names posix.system"},
        {"eval.pth", "it names __builtin__.eval"},
        {"stack_global.pth", "it names posix.system"},
        {"inst.pth", "the operation INST"},
        {"object.pth", "it names __main__.Net"},
        {"old.pth", "before 1.6"},
        {"script.pth", "TorchScript"},
        {"big_endian.pth", "byte order (big)"},
        {"deflated.pth", "is compressed"},
        {"lost_storage.pth", "tensor b has a storage that is not in the file"},
        {"short_storage.pth", "its storage has 6 F32, and the file holds 20 bytes"},
        {"beyond.pth", "tensor a reaches beyond the end of its storage"},
        {"huge.pth", "tensor a reaches beyond the end of its storage"},
        {"negative.pth", "tensor a has no good offset, size or strides"},
        {"repeated.pth", "tensor a repeats the values of its storage"},
        {"endless.pth", "it ends too early"},
        {"no_value.pth", "other than one value"},
        {"memo.pth", "a memo that was never filled"},
        {"text.pth", "it ends too early"},
        {"itself.pth", "holds no dictionary of tensors"},
    };
    for (size_t i = 0; i < sizeof file / sizeof *file; ++i)
        refused_with(file[i][0], NULL, ERR_DATA, file[i][1]);
    CU_ASSERT(access("weft-was-here", F_OK) != 0);
}

/* ---- damaged files ---- */

/* Returns true if the file at `path` is refused or has the values of plain.pth. */
static bool refused_or_right(const char *path)
{
    float a[6];
    bool good = true;
    Status st = foreign_open(&set, path, NULL);
    const ForeignTensor *t = st == OK ? foreign_find_tensor(&set, "a") : NULL;
    if (st == OK && t && t->elements == 6 && foreign_read(&set, t, a) == OK)
        for (int i = 0; i < 6; ++i) good = good && a[i] == value(0, i);
    else
        good = st == ERR_DATA || (st == OK && !t);
    foreign_close(&set);
    return good;
}

static void damaged(void)
{
    char *text = NULL;
    size_t bytes = 0;
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "x.pth");
    CHECK_OK(file_text("tests/golden/pth/plain.pth", 1 << 20, &text, &bytes));
    for (size_t n = 0; n < bytes; ++n) {
        fixture_write(path, text, n);
        CU_ASSERT_EQUAL(foreign_open(&set, path, NULL), ERR_DATA);
        foreign_close(&set);
    }
    for (size_t i = 0; i < bytes; ++i)
        for (int bit = 0; bit < 8; bit += 7) {
            text[i] = (char)(text[i] ^ 1 << bit);
            fixture_write(path, text, bytes);
            CU_ASSERT(refused_or_right(path));
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    /* alters the signature, then the method, in the second member's own header */
    char *local = memmem(text + 4, bytes - 4, "PK\3\4", 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(local);
    for (int at = 3; at <= 8; at += 5) {
        ++local[at];
        fixture_write(path, text, bytes);
        CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA,
                    "another header than the directory says");
        foreign_close(&set);
        --local[at];
    }
    fixture_write(path, text, bytes);
    CHECK_OK(foreign_open(&set, path, NULL));
    foreign_close(&set);
    mem_free(&text);
    mem_free(&path);
    fixture_clean(folder);
}

/* A member that must be one word is refused by its length, before it is read. */
static void too_long(void)
{
    /* ENTRY: offset of an entry of the directory from the name in it; PACKED, PLAIN: offsets in the
     * entry of the two lengths */
    enum { ENTRY = -46, PACKED = 20, PLAIN = 24, MOST = 64 };
    static const char member[] = "plain/byteorder";
    char *text = NULL;
    size_t bytes = 0;
    const char *folder = fixture_folder();
    char *path = fixture_path(folder, "x.pth");
    CHECK_OK(file_text("tests/golden/pth/plain.pth", 1 << 20, &text, &bytes));
    char *name = memmem(text, bytes, member, strlen(member));
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    /* the first occurrence of the name is in the member's own header, the second in the
     * directory */
    name = memmem(name + 1, bytes - (size_t)(name + 1 - text), member, strlen(member));
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    for (int length = MOST; length <= MOST + 1; ++length) {
        name[ENTRY + PACKED] = name[ENTRY + PLAIN] = (char)length;
        fixture_write(path, text, bytes);
        CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA,
                    length > MOST ? "is impossibly large" : "does not have its checksum");
        foreign_close(&set);
    }
    mem_free(&text);
    mem_free(&path);
    fixture_clean(folder);
}

TEST_MAIN("torch_file", {"plain", plain}, {"views", views}, {"types", types}, {"groups", groups},
          {"hostile", hostile}, {"damaged", damaged}, {"too long", too_long})
