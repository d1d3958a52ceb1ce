/* Tests imports of tables of text: values in every notation; vocabularies, hashes, means; the same
 * bytes for any blocks and threads; each error names line and column, and leaves no file. */
#include "fixture.h"

#include "data/csv/csv_schema.h"

#include <math.h>
#include <unistd.h>

static const char *put_text(const char *name, const char *text)
{
    return file_put(name, text, strlen(text));
}

/* Imports these files by a schema; test NULL: no test set. */
static Status import(const char *schema, const char *file, const char *test_file, int threads,
                     const char *out, const char *test)
{
    CsvSchema s;
    CsvImport request = {.schema = &s,
                         .file = &file,
                         .count = 1,
                         .out = out,
                         .test = test,
                         .test_file = &test_file,
                         .test_count = test_file != NULL,
                         .test_share = 0.25,
                         .threads = threads,
                         .force = true};
    CsvResult done;
    Status st = csv_schema_read(&s, put_text("schema.yaml", schema));
    if (st == OK) st = csv_import(&request, &done);
    csv_schema_fini(&s);
    return st;
}

/* Does row `sample` of the set have these values? */
static bool row_is(const char *path, int64_t sample, const float *dense, const uint64_t *ids,
                   int label)
{
    DataSet set;
    Reader *reader = NULL;
    float x[8];
    uint64_t id[8];
    int32_t y = -1, first[9];
    if (data_set_open(&set, NULL, path) != OK || set.fields > 8 || set.channels > 8) return false;
    if (data_set_check(&set, 0) != OK || reader_new(&reader, &set) != OK) return false;
    bool good = reader_get(reader, sample, x, &y, NULL) == OK && y == label;
    for (int i = 0; good && i < set.channels; ++i) good = fabsf(x[i] - dense[i]) < 1e-6f;
    if (good && set.fields) good = reader_get_ids(reader, sample, id, first) == OK;
    for (int i = 0; good && i < set.fields; ++i) good = id[i] == ids[i];
    reader_free(&reader);
    if (!good) printf("  %s: sample %lld is another\n", path, (long long)sample);
    return good;
}

static bool left(const char *out)
{
    char *part = mem_format("%s.part", out);
    bool exists = access(out, F_OK) == 0 || access(part, F_OK) == 0;
    mem_free(&part);
    return exists;
}

static const char *const plain = "missing: ['?', '']\n"
                                 "columns:\n"
                                 "  y: {type: label, one: ['yes', 'yes.'], zero: no}\n"
                                 "  a: {type: number, fill: 7}\n"
                                 "  b: {type: number, transform: log, fill: 0, scale: [1, 2]}\n"
                                 "  c: category\n"
                                 "  d: {type: category, ids: sorted}\n"
                                 "  e: ignore\n";

/* Columns in another order, quotes, empty lines, a byte order mark, all line ends. */
static void values(void)
{
    const char *text = "\xef\xbb\xbf"
                       "c,d,y,b,a,e\r\n"
                       "red,\"x,\"\"\n\",yes,0,1.5,\r\n"
                       "\n"
                       "?,b,no,-3,-2e1,e\n"
                       "blue,?,yes.,,?,\"\"\n"
                       "red,a,no,100,0.1,e";
    const char *out = in_scratch("values.h5");
    for (int packed = 0; packed < 2; ++packed) {
        CHECK_OK(import(plain, put_text(packed ? "v.csv.gz" : "v.csv", text), NULL, 2, out, NULL));
        /* Ids of c: 0 missing, 1 unknown, 2 red, 3 blue; of d, sorted, from 4 on: missing, unknown,
         * a, b, x. */
        CU_ASSERT(row_is(out, 0, (float[]){1.5f, -0.5f}, (uint64_t[]){2, 8}, 1));
        CU_ASSERT(row_is(out, 1, (float[]){-20, -0.5f}, (uint64_t[]){0, 7}, 0));
        CU_ASSERT(row_is(out, 2, (float[]){7, -0.5f}, (uint64_t[]){3, 4}, 1));
        CU_ASSERT(row_is(out, 3, (float[]){0.1f, (logf(101) - 1) / 2}, (uint64_t[]){2, 6}, 0));
    }
    DataSet set;
    ClassNames names;
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT(set.samples == 4 && set.id_limit == 9 && set.fields == 2 && set.classes == 2);
    CU_ASSERT_TRUE(class_is(out, 1, "yes"));
    CHECK_OK(class_names_read_list(&names, out, "fields"));
    CU_ASSERT(names.count == 2 && strcmp(names.name[1], "d") == 0);
    class_names_free(&names);
}

/* A column as a number, and two views of it as a category. */
static void views(void)
{
    const char *schema = "header: false\ncolumns:\n"
                         "  a: {type: number, fill: 3}\n"
                         "  b: {type: category, of: a}\n"
                         "  y: label\n"
                         "  c: {type: category, of: a, ids: sorted}\n"
                         "  d: {type: number, of: y}\n";
    const char *out = in_scratch("views.h5");
    CHECK_OK(import(schema, put_text("views.csv", "9,1\n,0\n2,1\n"), NULL, 1, out, NULL));
    CU_ASSERT(row_is(out, 0, (float[]){9, 1}, (uint64_t[]){2, 4 + 3}, 1));
    CU_ASSERT(row_is(out, 1, (float[]){3, 0}, (uint64_t[]){0, 4}, 0));
    CU_ASSERT(row_is(out, 2, (float[]){2, 1}, (uint64_t[]){3, 4 + 2}, 1));
    CHECK_FAILS(import(schema, put_text("views.csv", "9,1,2\n"), NULL, 1, out, NULL), ERR_DATA,
                "3 values, the schema 2 columns");
    CHECK_FAILS(import("columns: {y: label, a: {type: number, of: b}}\n",
                       put_text("views.csv", "y\n1\n"), NULL, 1, out, NULL),
                ERR_CONFIG, "without `of`, not b");
}

/* Blanks, comments, another separator, no header, places; without numbers there is a column of
 * ones. */
static void forms(void)
{
    const char *schema = "separator: ';'\nheader: false\ntrim: true\ncomment: '#!'\n"
                         "quotes: false\nmissing: na\n"
                         "columns:\n"
                         "  y: {type: label, at: 3}\n"
                         "  c: {type: category, at: 1}\n";
    const char *text = "#! \"x; y\n  a ; skipped; 1\n   \n\"b;;0 ;more\n#!\nna;;1;\n";
    const char *out = in_scratch("forms.h5");
    CHECK_FAILS(import(schema, put_text("f.csv", text), NULL, 1, out, NULL), ERR_DATA,
                "f.csv: line 4: more than the 3 values");
    text = "#! \"x; y\n  a ; skipped; 1\n   \n\"b;;0 \n#!\nna;;1\n";
    CHECK_OK(import(schema, put_text("f.csv", text), NULL, 1, out, NULL));
    CU_ASSERT(row_is(out, 0, (float[]){1}, (uint64_t[]){2}, 1));
    CU_ASSERT(row_is(out, 1, (float[]){1}, (uint64_t[]){3}, 0));
    CU_ASSERT(row_is(out, 2, (float[]){1}, (uint64_t[]){0}, 1));
}

/* Mean and deviation are the training set's; words only in the test set and rare words are
 * unknown. */
static void two_sets(void)
{
    const char *schema = "columns:\n"
                         "  y: label\n"
                         "  a: {type: number, scale: standard}\n"
                         "  c: {type: category, least: 2}\n";
    const char *train = "y,a,c\n1,1,x\n0,3,y\n0,5,y\n1,7,z\n1,9,x\n1,0,x\n1,0,x\n0,100,new\n";
    const char *test = "a,c,y\n4,new,1\n4,z,0\n4,y,0\n";
    const char *out = in_scratch("two.h5"), *out2 = in_scratch("two-test.h5");
    CHECK_OK(import(schema, put_text("two.csv", train), NULL, 3, out, out2));
    DataSet set;
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT(set.samples == 6 && set.id_limit == 4);
    CHECK_OK(data_set_open(&set, NULL, out2));
    CU_ASSERT(set.samples == 2 && set.id_limit == 4);
    double mean = 25.0 / 6, deviation = sqrt(165.0 / 6 - mean * mean);
    CU_ASSERT(row_is(out, 1, (float[]){(float)((3 - mean) / deviation)}, (uint64_t[]){3}, 0));
    CU_ASSERT(row_is(out, 3, (float[]){(float)((7 - mean) / deviation)}, (uint64_t[]){1}, 1));
    CU_ASSERT(row_is(out2, 0, (float[]){(float)((0 - mean) / deviation)}, (uint64_t[]){2}, 1));
    CU_ASSERT(row_is(out2, 1, (float[]){(float)((100 - mean) / deviation)}, (uint64_t[]){1}, 0));
    const char *one = put_text("two.csv", train), *other = put_text("two-test.csv", test);
    CHECK_OK(import(schema, one, other, 3, out, out2));
    CHECK_OK(data_set_open(&set, NULL, out2));
    /* `x` now occurs four times, `y` twice. */
    CU_ASSERT(set.samples == 3 && set.id_limit == 4);
    mean = 125.0 / 8, deviation = sqrt(10165.0 / 8 - mean * mean);
    CU_ASSERT(row_is(out2, 0, (float[]){(float)((4 - mean) / deviation)}, (uint64_t[]){1}, 1));
    CU_ASSERT(row_is(out2, 2, (float[]){(float)((4 - mean) / deviation)}, (uint64_t[]){3}, 0));
}

/* Results of the hash must not change in later versions or on other machines. */
static void hashes(void)
{
    const char *columns =
        "columns: {y: label, c: {type: category, hash: 1000}, d: {type: category, "
        "hash: 50}}\n";
    const char *shared = "hash: 1000001\ncolumns: {y: label, c: category, d: category}\n";
    const char *hex = "columns: {y: label, c: {type: category, ids: hex}, d: {type: category, ids: "
                      "hex}}\n";
    const char *text = "y,c,d\n1,ffffffff,5\n0,,68fd1e64\n";
    const char *file = put_text("hash.csv", text), *out = in_scratch("hash.h5");
    DataSet set;
    CHECK_OK(import(columns, file, NULL, 1, out, NULL));
    CU_ASSERT(row_is(out, 0, (float[]){1}, (uint64_t[]){330, 1017}, 1));
    CU_ASSERT(row_is(out, 1, (float[]){1}, (uint64_t[]){0, 1021}, 0));
    CHECK_OK(import(shared, file, NULL, 1, out, NULL));
    CU_ASSERT(row_is(out, 0, (float[]){1}, (uint64_t[]){944187, 726315}, 1));
    CHECK_OK(data_set_open(&set, NULL, out));
    CU_ASSERT_EQUAL(set.id_limit, 1000001);
    CHECK_OK(import(hex, file, NULL, 1, out, NULL));
    uint64_t field = UINT64_C(1) << 33;
    CU_ASSERT(row_is(out, 0, (float[]){1}, (uint64_t[]){0xffffffff, field + 5}, 1));
    CU_ASSERT(row_is(out, 1, (float[]){1}, (uint64_t[]){field / 2, field + 0x68fd1e64}, 0));
}

/* Puts quoted line breaks near every end of a block. */
static void threads(void)
{
    enum { BYTES = 11 << 20 };
    char *text = mem_new(BYTES + 200), *at = text;
    at += sprintf(at, "y,a,b,c,d,e\n");
    for (int i = 0; at < text + BYTES; ++i) {
        char word[64];
        snprintf(word, sizeof word, "\"w%d\n,\"\"%d\n\"", i % 977 * (i % 91), i % 3);
        at += sprintf(at, "%s,%d.25,%d,%s,%d,\"%*s\"\n", i % 3 ? "no" : "yes", i % 1000, i % 77,
                      word, i * 7919 % 5003, i % 60, "\n");
    }
    const char *file = file_put("big.csv", text, (size_t)(at - text));
    char *first = NULL, *now;
    size_t bytes = 0, now_bytes;
    const char *standard = "columns:\n  y: {type: label, one: yes, zero: no}\n"
                           "  a: {type: number, scale: standard}\n"
                           "  b: {type: number, scale: standard}\n"
                           "  c: category\n  d: {type: category, ids: sorted}\n  e: ignore\n";
    for (int t = 1; t <= 5; t += 2) {
        const char *out = in_scratch("threads.h5");
        CHECK_OK(import(standard, file, NULL, t, out, NULL));
        CHECK_OK(file_text(out, 1 << 28, &now, &now_bytes));
        if (!first) {
            first = now, bytes = now_bytes;
            continue;
        }
        CU_ASSERT(bytes == now_bytes && memcmp(first, now, bytes) == 0);
        mem_free(&now);
    }
    /* The first of two errors is reported, whichever thread finds it. */
    memcpy(text + BYTES / 2, "\"", 1);
    memcpy(text + BYTES - 100, "\"", 1);
    char *message = NULL;
    file = file_put("big.csv", text, (size_t)(at - text));
    for (int t = 1; t <= 5; t += 2) {
        const char *out = in_scratch("none.h5");
        CU_ASSERT_EQUAL(import(standard, file, NULL, t, out, NULL), ERR_DATA);
        if (message) CU_ASSERT_STRING_EQUAL(message, fail_message());
        mem_free(&message);
        message = mem_text(fail_message());
        CU_ASSERT_FALSE(left(out));
    }
    mem_free(&message);
    mem_free(&first);
    mem_free(&text);
}

static void bad_files(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"c,d,y,b,a\nr,b,yes,0,1\n", "line 1: the header has no column e"},
        {"c,d,y,b,a,e,f\n", "line 1, column 7: the schema has no column f"},
        {"c,d,y,b,a,e,a\n", "line 1, column 7: the header has column a twice"},
        {"c,d,y,b,a,e\n", "holds no records"},
        {"", "holds no records"},
        {"c,d,y,b,a,e\nr,b,yes,0,1,\nr,b,yes,0,1\n",
         "line 3: 5 values, but the first record has 6"},
        {"c,d,y,b,a,e\nr,b,yes,0,1,,\n", "line 2: more than the 6 values"},
        {"c,d,y,b,a,e\nr,\"b\n,yes,0,1,\n", "line 2, column 2 (d): a quote is opened here and not"},
        {"c,d,y,b,a,e\nr,\"b\" b,yes,0,1,\n", "line 2, column 2 (d): there is text after"},
        {"c,d,y,b,a,e\nr,b\"b,yes,0,1,\n", "line 2, column 2 (d): a quote inside a value"},
        {"c,d,y,b,a,e\n\"\n\",b,ja,0,1,\n", "line 3, column 3 (y): label 'ja' is neither 'yes'"},
        {"c,d,y,b,a,e\nr,b,,0,1,\n", "column 3 (y): label '' is neither"},
        {"c,d,y,b,a,e\nr,b,no,0,1,\nr,b,no,1x,1,\n", "line 3, column 4 (b): '1x' is no number"},
        {"c,d,y,b,a,e\nr,b,no,0,nan,\n", "column 5 (a): 'nan' is no number"},
        {"c,d,y,b,a,e\nr,b,no,0,1e99,\n", "column 5 (a): the number is too large"},
        {"c,d,y,b,a,e\nr,b,no,0,1e400,\n", "line 2, column 5 (a): '1e400' is out of range"},
        {"c,d,y,b,a,e\nr,b,no,-1e400,1,\n", "column 4 (b): '-1e400' is out of range"},
    };
    char *out = mem_text(in_scratch("bad.h5"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        CHECK_FAILS(import(plain, put_text("bad.csv", bad[i].text), NULL, 2, out, NULL), ERR_DATA,
                    bad[i].message);
        CU_ASSERT_FALSE(left(out));
    }
    CHECK_FAILS(import(plain, in_scratch("nix"), NULL, 1, out, NULL), ERR_NOINPUT, "nix");
    const char *fill = "columns: {y: label, a: number}\n";
    CHECK_FAILS(import(fill, put_text("bad.csv", "y,a\n1,\n"), NULL, 1, out, NULL), ERR_DATA,
                "line 2, column 2 (a): a value is missing");
    const char *packed = put_text("cut.csv.gz", bad[0].text);
    CU_ASSERT_EQUAL(truncate(packed, 20), 0);
    CHECK_FAILS(import(plain, packed, NULL, 1, out, NULL), ERR_DATA, "truncated");
    mem_free(&out);
}

/* Values, lines and quotes without an end use little memory. */
static void endless(void)
{
    enum { BYTES = 20 << 20 };
    const char *out = in_scratch("endless.h5"), *head = "c,d,y,b,a,e\nr,b,no,0,1,\n";
    char *text = mem_new(BYTES);
    static const struct {
        const char *begin, *message;
        int fill;
    } bad[] = {
        {"\"", "line 3, column 1 (c): a quote is opened here and not closed within 4 MB", 'x'},
        {"", "line 3, column 1 (c): a value of more than 4", 'x'},
        {"", "line 3: more than the 6 values", ','},
        {"r,b,no,0,1,\"", "line 3, column 6 (e): a quote is opened here and not closed within",
         ','},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        memset(text, bad[i].fill, BYTES);
        int n = sprintf(text, "%s%s", head, bad[i].begin);
        text[n] = (char)bad[i].fill;
        CHECK_FAILS(import(plain, file_put("endless.csv", text, BYTES), NULL, 2, out, NULL),
                    ERR_DATA, bad[i].message);
        CU_ASSERT_FALSE(left(out));
    }
    memset(text, 'x', BYTES);
    memcpy(text, head, strlen(head));
    strcpy(text + (2 << 20), ",b,no,0,1,\n");
    CHECK_FAILS(import(plain, put_text("endless.csv", text), NULL, 2, out, NULL), ERR_DATA,
                "line 3, column 1 (c): a value of 2097128 bytes; at most 1048576");
    mem_free(&text);
}

static void bad_schemas(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"columns: {y: number}\n", "schema.yaml:1:10: exactly one column must be the label"},
        {"colums: {y: label}\n", "1:1: unknown key: colums; did you mean columns?"},
        {"trim: true\n", "key `columns` is missing"},
        {"columns: {y: label, a: {type: numbr}}\n", "1:31: expected one of: ignore, label, number"},
        {"columns: {y: label, a: {type: number, one: 1}}\n", "have no key one"},
        {"columns: {y: {type: label, one: a, zero: [b, a]}}\n",
         "one and zero are the same text: a"},
        {"columns: {y: label, y: number}\n", "'y' is given twice, first in line 1"},
        {"columns: {y: label, a: {type: number, fill: x}}\n", "1:45: expected a number"},
        {"columns: {y: label, a/b: number}\n", "a column's name has 1 to 199"},
        {"columns: {y: label, a: {type: category, hash: 1}}\n", "whole number from 2 to 90"},
        {"columns: {y: label, a: {type: category, hash: 99999999999999999999}}\n",
         "1:47: expected a whole number from 2 to 9007199254740992"},
        {"columns: {y: label, a: {type: number, fill: 1e400}}\n",
         "1:45: the number is out of range"},
        {"columns: {y: label, a: {type: category, hash: 10, ids: sorted}}\n",
         "schema.yaml:1:24: `ids` and `hash` contradict"},
        {"columns: {y: label, a: {type: category, ids: hex, hash: 10}}\n",
         "`ids` and `hash` contradict"},
        {"columns: {y: label, a: {type: category, ids: first, hash: 10}}\n",
         "`ids` and `hash` contradict"},
        {"columns: {y: label, a: {type: category, hash: 10, least: 2}}\n",
         "1:51: `least` applies to voc"},
        {"columns: {y: label, a: {type: category, least: 3, ids: hex}}\n",
         "`least` applies to vocabul"},
        {"hash: 9\ncolumns: {y: label, a: {type: category, least: 3}}\n", "2:41: `least` applies"},
        {"columns: {y: label, a: {type: category, ids: first}}\nhash: 9\n",
         "sets the ids of all fields"},
        {"hash: 9\ncolumns: {y: label, a: {type: category, hash: 5}}\n",
         "sets the ids of all fields"},
        {"columns: {y: {type: label, at: 2}}\n", "`at` is for files without a header"},
        {"header: false\ncolumns: {y: {type: label, at: 2}, a: {type: number, at: 2}}\n",
         "another column has this position: y"},
        {"separator: ab\ncolumns: {y: label}\n", "expected one byte"},
        {"columns: [y]\n", "expected columns"},
    };
    char *file = mem_text(put_text("some.csv", "y\n1\n")), *out = mem_text(in_scratch("schema.h5"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        CHECK_FAILS(import(bad[i].text, file, NULL, 1, out, NULL), ERR_CONFIG, bad[i].message);
        CU_ASSERT_FALSE(left(out));
    }
    CHECK_FAILS(import("header: false\ncolumns: {a: number, y: label}\n", file, NULL, 1, out, NULL),
                ERR_DATA, "line 1: its first record has 1 values, but the schema's column y");
    mem_free(&file);
    mem_free(&out);
}

TEST_MAIN("csv", {"values", values}, {"forms", forms}, {"views", views}, {"two sets", two_sets},
          {"hashes", hashes}, {"threads", threads}, {"bad files", bad_files}, {"endless", endless},
          {"bad schemas", bad_schemas})
