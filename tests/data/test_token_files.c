/* Tests recognition of token files: NumPy's .npy (files that NumPy wrote) and llm.c's shards are
 * read by their headers; files of other kinds, and numbers without a header whose width or byte
 * order is not the given one, are refused by name. */
#include "fixture.h"

enum { TOKENS = 5000, SHARD_HEAD = 1024 };

/* Token i of a vocabulary of this size. */
static int64_t token_of(int64_t i, int64_t vocab)
{
    return (int64_t)((uint64_t)i * 2654435761u >> 7) % vocab;
}

static void put_number(uint8_t *to, int64_t value, int bytes, bool big_endian)
{
    for (int b = 0; b < bytes; ++b) to[big_endian ? bytes - 1 - b : b] = (uint8_t)(value >> 8 * b);
}

/* Writes head_bytes of head and TOKENS numbers of a vocabulary, without the last `cut` bytes. */
static const char *numbers_file(const char *name, const void *head, size_t head_bytes,
                                int64_t vocab, int bytes, bool big_endian, size_t cut)
{
    size_t all = head_bytes + (size_t)(TOKENS * bytes);
    uint8_t *b = mem_new(all);
    if (head_bytes) memcpy(b, head, head_bytes);
    for (int64_t i = 0; i < TOKENS; ++i)
        put_number(b + head_bytes + i * bytes, token_of(i, vocab), bytes, big_endian);
    const char *path = file_put(name, b, all - cut);
    mem_free(&b);
    return path;
}

/* Checks that out has `count` tokens of this type with the values of `of`. */
static void out_is(const char *out, ElementType type, int64_t count, int64_t (*of)(int64_t i))
{
    DataSet set;
    Config c = config_plain();
    int64_t bad = 0;
    c.model.context = 4;
    CHECK_OK(data_set_open(&set, &c, out));
    CU_ASSERT_EQUAL(set.x.type, type);
    CU_ASSERT_EQUAL(set.x.dim[0], count);
    int64_t *all = mem_new((size_t)(set.x.dim[0] + 1) * sizeof *all);
    hid_t file = H5Fopen(out, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t tokens = H5Dopen2(file, "tokens", H5P_DEFAULT);
    CU_ASSERT(H5Dread(tokens, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    for (int64_t i = 0; i < count; ++i) bad += all[i] != of(i);
    CU_ASSERT_EQUAL(bad, 0);
    H5Dclose(tokens);
    H5Fclose(file);
    mem_free(&all);
}

static int64_t small_token(int64_t i)
{
    return i * 7 % 11;
}
static int64_t gpt2_token(int64_t i)
{
    return token_of(i, 50257);
}
static int64_t llama_token(int64_t i)
{
    return token_of(i, 128256);
}

/* Reads files that NumPy wrote: any width and byte order, versions 1 and 3, rows; the type is the
 * header's. */
static void npy_read(void)
{
    static const struct {
        const char *name;
        ElementType type;
    } file[] = {{"u1", ELEM_U8},
                {"u2", ELEM_U16},
                {"u2-big", ELEM_U16},
                {"v3", ELEM_U32},
                {"i8-big", ELEM_U32}};
    const char *out = in_scratch("npy.h5");
    for (size_t i = 0; i < sizeof file / sizeof *file; ++i) {
        char *path = mem_format("tests/fuzz/corpus/npy/%s", file[i].name);
        CHECK_OK(data_import_tokens(path, 0, 0, out, NULL, 0, true));
        out_is(out, file[i].type, 12, small_token);
        mem_free(&path);
    }
    CHECK_OK(data_import_tokens("tests/fuzz/corpus/npy/u2", 16, 11, out, NULL, 0, true));
    out_is(out, ELEM_U16, 12, small_token);
    CHECK_FAILS(data_import_tokens("tests/fuzz/corpus/npy/u2", 16, 10, out, NULL, 0, true),
                ERR_DATA, "token 3 is 10, but there are 10 in the vocabulary");
    CHECK_FAILS(data_import_tokens("tests/fuzz/corpus/npy/u2", 32, 0, out, NULL, 0, true),
                ERR_USAGE, "tokens have 16 bits, --bits says 32");
    CHECK_FAILS(data_import_tokens("tests/fuzz/corpus/npy/fortran", 0, 0, out, NULL, 0, true),
                ERR_DATA, "column by column");
    CHECK_FAILS(data_import_tokens("tests/fuzz/corpus/npy/record", 0, 0, out, NULL, 0, true),
                ERR_DATA, "records or objects");
}

/* Imports a .npy file of version 1 with this header text, followed by `bytes` zeros. */
static Status import_header(const char *text, size_t bytes)
{
    size_t length = strlen(text);
    uint8_t *b = mem_new(10 + length + bytes);
    memcpy(b, "\x93NUMPY\1\0", 8);
    put_number(b + 8, (int64_t)length, 2, false);
    memcpy(b + 10, text, length);
    const char *path = file_put("header.npy", b, 10 + length + bytes);
    mem_free(&b);
    return data_import_tokens(path, 0, 0, in_scratch("header.h5"), NULL, 0, true);
}

static void npy_refused(void)
{
    static const struct {
        const char *header, *why;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", "numbers of type f4"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2, 2), }", "has 3 dimensions"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (), }", "has 0 dimensions"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (9,), }",
         "has 4 of the 9 tokens of its header"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }",
         "has more than the 3 tokens of its header"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4), }", "invalid shape"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (-4,), }", "invalid shape"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4611686018427387904, 8), }",
         "invalid shape"},
        {"{'fortran_order': False, 'shape': (4611686018427387904,), 'descr': '<u8'}",
         "invalid shape"},
        {"{'descr': '=u2', 'fortran_order': False, 'shape': (4,), }", "without a byte order"},
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (4,), }", "unknown type"},
        {"{'descr': '<u2', 'fortran_order': 0, 'shape': (4,), }", "neither True nor False"},
        {"{'descr': '<u2', 'shape': (4,), }", "lacks one of"},
        {"{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (4,)}", "each once"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4,), 'more': 1}", "other keys"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4,)} + f()",
         "after its closing brace"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4,)", "is no dictionary"},
        {"", "is no dictionary"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        CHECK_FAILS(import_header(bad[i].header, 8), ERR_DATA, bad[i].why);
    CHECK_FAILS(import_header("{'shape': (2, 2), 'fortran_order': True, 'descr': '<u2'} \n", 8),
                ERR_DATA, "column by column");
    CHECK_OK(import_header("{'shape': (4, 1), 'fortran_order': True, 'descr': '<u2'}  \n", 8));
}

/* Writes a .npy file of four whole numbers of 64 bits, the third of which is `value`. */
static Status import_value(const char *type, uint64_t value)
{
    uint8_t b[10 + 80 + 32] = "\x93NUMPY\1\0";
    char text[81];
    int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (4,)}", type);
    put_number(b + 8, length, 2, false);
    memcpy(b + 10, text, (size_t)length);
    put_number(b + 10 + length + 16, (int64_t)value, 8, false);
    return data_import_tokens(file_put("value.npy", b, (size_t)(10 + length + 32)), 0, 0,
                              in_scratch("value.h5"), NULL, 0, true);
}

static void npy_values(void)
{
    CHECK_OK(import_value("<i8", 5));
    CHECK_FAILS(import_value("<i8", (uint64_t)-7), ERR_DATA,
                "value.npy: token 2 is -7, and tokens are 0 to 2147483646");
    CHECK_FAILS(import_value("<i8", UINT64_C(1) << 40), ERR_DATA,
                "value.npy: token 2 is 1099511627776, and tokens are 0 to 2147483646");
    CHECK_FAILS(import_value("<u8", UINT64_MAX), ERR_DATA, "token 2 is at least 92233720368547758");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "--vocab"));
}

/* Writes the header of llm.c's shards: these three numbers and 253 zeros. */
static const char *shard_file(const char *name, uint32_t magic, uint32_t version, uint32_t count,
                              int64_t vocab, int bytes, bool big_endian)
{
    uint8_t head[SHARD_HEAD] = {0};
    put_number(head, magic, 4, big_endian);
    put_number(head + 4, version, 4, big_endian);
    put_number(head + 8, count, 4, big_endian);
    return numbers_file(name, head, sizeof head, vocab, bytes, big_endian, 0);
}

static void shards(void)
{
    enum { GPT2 = 20240520, LLAMA3 = 20240801, CHOICES = 20240522 };
    const char *out = in_scratch("shard.h5");
    const char *path = shard_file("gpt2.bin", GPT2, 1, TOKENS, 50257, 2, false);
    for (int bits = 0; bits <= 16; bits += 16) {
        CHECK_OK(data_import_tokens(path, bits, 50257, out, NULL, 0, true));
        out_is(out, ELEM_U16, TOKENS, gpt2_token);
    }
    CHECK_FAILS(data_import_tokens(path, 32, 0, out, NULL, 0, true), ERR_USAGE, "omit --bits");
    path = shard_file("llama.bin.gz", LLAMA3, 7, TOKENS, 128256, 4, false);
    CHECK_OK(data_import_tokens(path, 0, 128256, out, NULL, 0, true));
    out_is(out, ELEM_U32, TOKENS, llama_token);
    path = shard_file("big.bin", GPT2, 1, TOKENS, 50257, 2, true);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, "big-endian");
    path = shard_file("new.bin", GPT2, 2, TOKENS, 50257, 2, false);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, "of version 2");
    path = shard_file("more.bin", GPT2, 1, TOKENS + 1, 50257, 2, false);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA,
                "has 5000 of the 5001 tokens of its header");
    path = shard_file("less.bin", GPT2, 1, TOKENS - 1, 50257, 2, false);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, "has more than the");
    path = shard_file("choices.bin", CHOICES, 1, TOKENS, 50257, 2, false);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, "with choices");
}

/* Numbers of each width and byte order are read as each width, and accepted only as their own. */
static void widths(void)
{
    static const int64_t vocabs[] = {4, 65, 300, 32000, 50257};
    /* Copied, since in_scratch keeps only 32 paths. */
    char *out = mem_text(in_scratch("wide.h5"));
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; ++v)
        for (int bytes = 2; bytes <= 8; bytes *= 2)
            for (int big_endian = 0; big_endian < 2; ++big_endian)
                for (int bits = 16; bits <= 64; bits *= 2) {
                    const char *path =
                        numbers_file("raw", NULL, 0, vocabs[v], bytes, big_endian, 0);
                    bool right = bits == 8 * bytes && !big_endian;
                    Status st = data_import_tokens(path, bits, 0, out, NULL, 0, true);
                    if (st != (right ? OK : ERR_DATA))
                        printf("  %d bytes, big-endian %d, of %lld, as %d bits\n", bytes,
                               big_endian, (long long)vocabs[v], bits);
                    CU_ASSERT_EQUAL(st, right ? OK : ERR_DATA);
                }
    /* A given vocabulary does not prevent the check. */
    const char *path = numbers_file("raw", NULL, 0, 50257, 4, false, 0);
    CHECK_FAILS(data_import_tokens(path, 16, 50257, out, NULL, 0, true), ERR_DATA, "--bits 32");
    path = numbers_file("raw", NULL, 0, 50257, 8, false, 0);
    CHECK_FAILS(data_import_tokens(path, 16, 50257, out, NULL, 0, true), ERR_DATA, "--bits 64");
    CHECK_FAILS(data_import_tokens(path, 32, 50257, out, NULL, 0, true), ERR_DATA, "--bits 64");
    path = numbers_file("raw", NULL, 0, 128256, 4, false, 0);
    CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, "--bits 32");
    path = numbers_file("raw", NULL, 0, 50257, 2, true, 0);
    CHECK_FAILS(data_import_tokens(path, 16, 65536, out, NULL, 0, true), ERR_DATA, "big-endian");
    CHECK_FAILS(data_import_tokens(path, 0, 0, out, NULL, 0, true), ERR_USAGE,
                "--bits 16, 32 or 64");
    mem_free(&out);
}

/* Numbers that look odd but are right: bytes and one token beyond them; one id repeated. */
static void odd_and_right(void)
{
    enum { COUNT = 600 };
    uint16_t odd[COUNT];
    uint32_t wide[COUNT];
    const char *out = in_scratch("odd.h5");
    for (int i = 0; i < COUNT; ++i) odd[i] = i % 50 ? (uint16_t)(' ' + i % 95) : 256;
    CHECK_OK(data_import_tokens(file_put("odd", odd, sizeof odd), 16, 0, out, NULL, 0, true));
    for (int i = 0; i < COUNT; ++i) wide[i] = i % 50 ? ' ' + (uint32_t)i % 95 : 100257;
    CHECK_OK(data_import_tokens(file_put("odd", wide, sizeof wide), 32, 0, out, NULL, 0, true));
    memset(odd, 0, sizeof odd);
    CHECK_OK(data_import_tokens(file_put("odd", odd, sizeof odd), 16, 0, out, NULL, 0, true));
    /* Text is accepted as numbers of 16 bits if the vocabulary is given. */
    const char *text = file_put("odd", "to be or not to be, that is the question: whether", 48);
    CHECK_OK(data_import_tokens(text, 16, 32000, out, NULL, 0, true));
}

static void foreign(void)
{
    static const struct {
        const char *begins, *why;
        size_t bytes;
    } file[] = {
        {"\x89HDF\r\n\x1a\n", "an HDF5 file", 8},
        {"PK\3\4", "packed by zip", 4},
        {"PAR1", "a Parquet file", 4},
        {"ARROW1\0\0", "an Arrow file", 8},
        {"\xff\xff\xff\xff\x30\2\0\0", "an Arrow stream", 8},
        {"MMIDIDX\0\0", "the index of a Megatron", 9},
        {"\x80\4\x95\x1f\0\0\0\0\0\0\0]", "a pickle", 12},
        {"\x80\2]q\0(K\1K\2e.", "a pickle", 12},
        {"\x3c\0\0\0\0\0\0\0{\"a\":", "a safetensors file", 13},
        {"\xfd\x37zXZ\0", "packed by xz", 6},
        {"\x28\xb5\x2f\xfd", "packed by zstd", 4},
        {"BZh91AY&SY", "packed by bzip2", 10},
        {"GGUF", "a GGUF model", 4},
        {"%PDF-1.7", "a PDF document", 8},
    };
    char *out = mem_text(in_scratch("foreign.h5"));
    for (size_t i = 0; i < sizeof file / sizeof *file; ++i) {
        uint8_t b[400] = {0};
        memcpy(b, file[i].begins, file[i].bytes);
        const char *path = file_put("foreign", b, sizeof b);
        CHECK_FAILS(data_import_tokens(path, 16, 0, out, NULL, 0, true), ERR_DATA, file[i].why);
        CHECK_FAILS(data_import_text(path, out, NULL, 0, true), ERR_DATA, file[i].why);
    }
    /* The same through a tokenizer. */
    uint8_t hdf5[64] = "\x89HDF\r\n\x1a\n";
    const TextTokens how = {.tokenizer = "tests/golden/tokenizer"};
    CHECK_FAILS(data_import_encoded(file_put("h", hdf5, sizeof hdf5), &how, out, NULL, 0, true),
                ERR_DATA, "an HDF5 file");
    uint8_t tar[512] = "tokens.bin";
    memcpy(tar + 257, "ustar", 5);
    CHECK_FAILS(data_import_tokens(file_put("t", tar, sizeof tar), 16, 0, out, NULL, 0, true),
                ERR_DATA, "a tar archive");
    uint8_t letters[400];
    for (int i = 0; i < 400; ++i) letters[i] = (uint8_t)("0123456789 "[i * i % 11]);
    const char *text = file_put("text", letters, sizeof letters);
    CHECK_FAILS(data_import_tokens(text, 32, 0, out, NULL, 0, true), ERR_DATA, "as large");
    for (int i = 0; i < 400; ++i) letters[i] = (uint8_t)("0123456789 "[i * 7 / 3 % 11]);
    text = file_put("text", letters, sizeof letters);
    CHECK_FAILS(data_import_tokens(text, 16, 0, out, NULL, 0, true), ERR_DATA,
                "all bytes are those of text");
    mem_free(&out);
}

TEST_MAIN("token files", {"NumPy's files", npy_read}, {"bad .npy headers", npy_refused},
          {"bad .npy values", npy_values}, {"llm.c's shards", shards},
          {"widths and byte orders", widths}, {"odd and right", odd_and_right},
          {"files of other kinds", foreign})
