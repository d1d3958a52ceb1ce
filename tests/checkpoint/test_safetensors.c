/* Tests safetensors: a written file has the bytes that the format specifies; files that violate the
 * format are refused; 16-bit values are widened exactly. */
#include "checkpoint/fixture.h"

#include "checkpoint/foreign/safetensors.h"

#include <math.h>

static const char *folder;
static char *path;

static void begin(void)
{
    folder = fixture_folder();
    path = fixture_path(folder, "x.safetensors");
}

static void end(void)
{
    mem_free(&path);
    fixture_clean(folder);
}

static void put(const char *header, size_t claimed, const void *data, size_t bytes)
{
    uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = (uint8_t)(claimed >> (8 * i));
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fwrite(length, 1, 8, file);
    fwrite(header, 1, strlen(header), file);
    fwrite(data, 1, bytes, file);
    fclose(file);
}

static void refused(const char *header, size_t bytes, const char *why)
{
    static const char zeros[64];
    ForeignSet set;
    put(header, strlen(header), zeros, bytes);
    CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, why);
    foreign_close(&set);
}

#define A(more)     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}" more "}"
#define B(from, to) ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #from "," #to "]}"
#define ONE(dtype, shape, at)                                                                      \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" at "}}"

static void malformed(void)
{
    begin();
    refused(A(""), 12, "its tensors have 8 bytes, the file 12");
    refused(A(""), 4, "its tensors have 8 bytes, the file 4");
    refused(A(B(12, 16)), 16, "tensor b begins at 12");
    refused(A(B(4, 8)), 8, "tensor b begins at 4");
    refused(A(",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}"), 12, "twice");
    refused(A(B(8, 10)), 10, "has 2 bytes where its shape needs 4");
    refused(ONE("F31", "[2]", "[0,8]"), 8, "dtype F31");
    refused(ONE("F32", "[-2]", "[0,8]"), 8, "expected a whole number");
    refused(ONE("F32", "[2.0]", "[0,8]"), 8, "expected a whole number");
    refused(ONE("F32", "[1e1]", "[0,8]"), 8, "expected a whole number");
    refused(ONE("F32", "[02]", "[0,8]"), 8, "expected a whole number");
    refused(ONE("F32", "[99999999999999999999]", "[0,8]"), 8, "too large");
    refused(ONE("F32", "[4611686018427387904,4]", "[0,8]"), 8, "impossible size");
    refused(ONE("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "more than 8 dimensions");
    refused(ONE("F32", "[2]", "[0]"), 8, "[begin, end]");
    refused(ONE("F32", "[2]", "[0,8,9]"), 8, "[begin, end]");
    refused(ONE("F32", "[2]", "[8,0]"), 8, "where its shape needs 8");
    refused(ONE("F32", "[2]", "[4,12]"), 12, "tensor a begins at 4");
    refused(ONE("F32", "[2]", "[0,8.0]"), 8, "expected a whole number");
    refused(ONE("F32", "[2]", "[-8,0]"), 8, "expected a whole number");
    refused(ONE("F32", "[2]", "[0,18446744073709551624]"), 8, "too large");
    refused(ONE("F32", "[9223372036854775807]", "[0,8]"), 8, "impossible size");
    refused(ONE("F32", "[[2]]", "[0,8]"), 8, "expected a whole number");
    refused(ONE("f32", "[2]", "[0,8]"), 8, "dtype f32");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "lacks");
    refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8, "two fields 'dtype'");
    refused("{\"a\":{\"colour\":1}}", 8, "a field 'colour'");
    refused("{\"__metadata__\":{\"x\":1}}", 0, "expected '\"'");
    refused("{\"__metadata__\":{\"x\":{\"y\":\"z\"}}}", 0, "expected '\"'");
    refused("{\"__metadata__\":[]}", 0, "expected '{'");
    refused("{\"a\xff\":1}", 0, "not UTF-8");
    refused("{\"a\xc3\":1}", 0, "not UTF-8");
    refused("[]", 8, "does not begin with '{'");
    refused(A(",\"__metadata__\":{},\"__metadata__\":{}"), 8, "two __metadata__");
    refused(" " A(""), 8, "does not begin with '{'");
    refused(A("") "x", 8, "text follows the end of the value");
    refused("{}", 0, "holds no tensor");
    refused("{\"a", 0, "does not end");
    refused("{\"\\q\":1}", 0, "a text has a control character that is not escaped, or a bad");
    refused("{\"\\ud800\":1}", 0, "a text has a control character that is not escaped, or a bad");
    end();
}

/* Names of 1,024 bytes are accepted. Longer names, and an index that is nested too deep, are
 * refused. */
static void bounds(void)
{
    static const char index[] =
        "{\"metadata\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]],\"weight_map\":{}}";
    ForeignSet set;
    begin();
    for (int bytes = 1024; bytes <= 1025; ++bytes) {
        char *header = mem_format("{\"%0*d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,"
                                  "0]}}",
                                  bytes, 1);
        put(header, strlen(header), "", 0);
        if (bytes > 1024)
            CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, "longer than 1024 bytes");
        else
            CHECK_OK(foreign_open(&set, path, NULL));
        foreign_close(&set);
        mem_free(&header);
    }
    char *name = fixture_path(folder, "x.index.json");
    fixture_write(name, index, sizeof index - 1);
    CHECK_FAILS(foreign_open(&set, name, NULL), ERR_DATA, "nested more than 16 deep");
    foreign_close(&set);
    mem_free(&name);
    end();
}

static void lengths(void)
{
    ForeignSet set;
    begin();
    put(A(""), 100000001, "12345678", 8);
    CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, "its header would have 100000001 bytes");
    foreign_close(&set);
    put(A(""), SIZE_MAX, "12345678", 8);
    CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, "its header would have");
    foreign_close(&set);
    put(A(""), 4000, "12345678", 8);
    CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, "its header would have");
    foreign_close(&set);
    FILE *file = fopen(path, "wb");
    if (file) fclose(file);
    CHECK_FAILS(foreign_open(&set, path, NULL), ERR_DATA, "too short");
    foreign_close(&set);
    CHECK_FAILS(foreign_open(&set, "none.safetensors", NULL), ERR_NOINPUT, "none.safetensors");
    foreign_close(&set);
    CHECK_FAILS(foreign_open(&set, folder, NULL), ERR_NOINPUT, "folder, not a file");
    foreign_close(&set);
    end();
}

/* The format permits any order of fields, blanks, escapes and a scalar. */
static void allowed(void)
{
    static const uint8_t bytes[] = {0,    0x3c, 0,    0xbc, 1, 0, 0, 0x7c, 0, 0xfe, 0x80,
                                    0x3f, 0xc0, 0xff, 0,    0, 0, 0, 0,    0, 0xf8, 0x3f};
    static const char header[] =
        "{ \"w\\u00e9\" : {\"data_offsets\": [10, 14], \"shape\": [2], \"dtype\": \"BF16\"},\n"
        "\"a\\/b\":{\"dtype\":\"F16\",\"shape\":[5,1],\"data_offsets\":[0,10]},"
        "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[14,22]}}   ";
    float half[5], wide[2], one[1];
    ForeignSet set;
    begin();
    put(header, strlen(header), bytes, sizeof bytes);
    CHECK_OK(foreign_open(&set, path, NULL));
    CU_ASSERT_EQUAL_FATAL(set.count, 3);
    CU_ASSERT_PTR_NULL(foreign_find_tensor(&set, "w"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(foreign_find_tensor(&set, "a/b"));
    CHECK_OK(foreign_read(&set, foreign_find_tensor(&set, "a/b"), half));
    CU_ASSERT(half[0] == 1 && half[1] == -1 && half[2] == 0x1p-24f && isinf(half[3]) &&
              isnan(half[4]));
    CU_ASSERT_PTR_NOT_NULL_FATAL(foreign_find_tensor(&set, "w\xc3\xa9"));
    CHECK_OK(foreign_read(&set, foreign_find_tensor(&set, "w\xc3\xa9"), wide));
    CU_ASSERT(wide[0] == 1 && isnan(wide[1]));
    CHECK_OK(foreign_read(&set, foreign_find_tensor(&set, "s"), one));
    CU_ASSERT(one[0] == 1.5f);
    foreign_close(&set);
    end();
}

static Status fill(void *user, int i, float *plain)
{
    SafeOut *out = user;
    for (int64_t k = 0; k < out->entry[i].dim[0]; ++k) plain[k] = (float)(k + 1);
    return OK;
}

static void golden(void)
{
    SafeEntry entry[] = {{.name = "b", .ndim = 1, .dim = {1}},
                         {.name = "a", .ndim = 1, .dim = {2}},
                         {.name = "n", .counter = true, .value = 7}};
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_"
        "offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},\"b\":{"
        "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]}}";
    static const uint8_t data[] = {7,    0,    0, 0, 0, 0,    0, 0, 0,    0,
                                   0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0x3f};
    SafeOut out = {.count = 3, .entry = entry, .get = fill};
    out.user = &out;
    begin();
    CHECK_OK(safe_write(path, &out));
    char *text = NULL;
    size_t bytes, length = (sizeof header - 1 + 7) / 8 * 8;
    CHECK_OK(file_text(path, 4096, &text, &bytes));
    CU_ASSERT_EQUAL_FATAL(bytes, 8 + length + sizeof data);
    CU_ASSERT_EQUAL((uint8_t)text[0], length);
    CU_ASSERT(!memcmp(text + 8, header, sizeof header - 1));
    CU_ASSERT(!memcmp(text + 8 + length, data, sizeof data));
    mem_free(&text);
    end();
}

static void types(void)
{
    for (int t = 0; t < FOREIGN_TYPE_COUNT; ++t)
        CU_ASSERT_EQUAL(foreign_type_find(foreign_type_name((ForeignType)t)), t);
    CU_ASSERT_EQUAL(foreign_type_find("F"), FOREIGN_TYPE_COUNT);
}

TEST_MAIN("safetensors", {"malformed", malformed}, {"bounds", bounds}, {"lengths", lengths},
          {"allowed", allowed}, {"golden", golden}, {"types", types})
