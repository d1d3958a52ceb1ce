/* JSON text: commas, nesting, escapes, valid and invalid UTF-8, numbers; texts that are read;
 * misuse dies (in child processes). */
#include "base.h"
#include "harness.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

static char *got;
static size_t got_bytes;

static Json begin(bool spaced)
{
    return json_to(open_memstream(&got, &got_bytes), spaced);
}

static void check(Json *json, const char *want)
{
    fclose(json->out);
    CU_ASSERT_STRING_EQUAL(got, want);
    free(got);
}

static void write_all(Json *json)
{
    json_object(json, NULL);
    json_text(json, "name", "a");
    json_text(json, "none", NULL);
    json_format(json, "grid", "%dx%d", 2, 3);
    json_bool(json, "yes", true);
    json_bool(json, "no", false);
    json_int(json, "least", INT64_MIN);
    json_real(json, "tenth", 0.1);
    json_fixed(json, "two", 2, 1.005);
    json_raw(json, "raw", "1e0");
    json_array(json, "empty");
    json_end(json);
    json_array(json, "rows");
    for (int i = 0; i < 2; ++i) {
        json_array(json, NULL);
        json_int(json, NULL, i);
        json_int(json, NULL, -i);
        json_end(json);
    }
    json_object(json, NULL);
    json_end(json);
    json_end(json);
    json_end(json);
}

static void both_spacings(void)
{
    Json json = begin(false);
    write_all(&json);
    check(&json,
          "{\"name\":\"a\",\"none\":null,\"grid\":\"2x3\",\"yes\":true,\"no\":false,"
          "\"least\":-9223372036854775808,\"tenth\":0.1,\"two\":1.00,\"raw\":1e0,\"empty\":[],"
          "\"rows\":[[0,0],[1,-1],{}]}\n");
    json = begin(true);
    write_all(&json);
    check(&json,
          "{\"name\": \"a\", \"none\": null, \"grid\": \"2x3\", \"yes\": true, \"no\": false, "
          "\"least\": -9223372036854775808, \"tenth\": 0.1, \"two\": 1.00, \"raw\": 1e0, "
          "\"empty\": [], \"rows\": [[0, 0], [1, -1], {}]}\n");
}

static void lines(void)
{
    Json json = begin(false);
    for (int i = 0; i < 2; ++i) {
        json_object(&json, NULL);
        json_int(&json, "i", i);
        json_array_by_line(&json, "events");
        json_int(&json, NULL, 1);
        json_int(&json, NULL, 2);
        json_end(&json);
        json_end(&json);
    }
    check(&json, "{\"i\":0,\"events\":[\n1,\n2\n]}\n{\"i\":1,\"events\":[\n1,\n2\n]}\n");
}

static void check_text(const char *text, const char *want)
{
    Json json = begin(false);
    json_text(&json, NULL, text);
    check(&json, want);
}

static void escapes(void)
{
    check_text("", "\"\"");
    check_text("plain", "\"plain\"");
    check_text("a\"b\\c\n\t\r\x01\x1f\x7f", "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u001f\x7f\"");
}

/* The reader accepts the escapes of the writer. */
static void read_back(void)
{
    char text[0x80], *back = NULL;
    for (int i = 1; i < (int)sizeof text; ++i) text[i - 1] = (char)i;
    text[sizeof text - 1] = 0;
    Json json = begin(false);
    json_text(&json, NULL, text);
    fclose(json.out);
    JsonScan scan = json_scan("x.json", got, got_bytes), skipped = scan;
    CHECK_OK(json_scan_text(&scan, &back));
    CHECK_OK(json_scan_end(&scan));
    CHECK_OK(json_scan_skip(&skipped));
    CU_ASSERT_STRING_EQUAL(back ? back : "", text);
    mem_free(&back);
    free(got);
}

static void refused_texts(void)
{
    static const char *const bad[][2] = {
        {"\"a\\u0000b\"", "byte 8: a text has \\u0000"},
        {"\"a\001\"", "a control character that is not escaped"},
        {"\"\\u00g0\"", "or a bad escape"},
        {"\"\\ud800\\u0000\"", "or a bad escape"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char *text = NULL;
        JsonScan scan = json_scan("x.json", bad[i][0], strlen(bad[i][0])), skipped = scan;
        CHECK_FAILS(json_scan_text(&scan, &text), ERR_DATA, bad[i][1]);
        CHECK_FAILS(json_scan_skip(&skipped), ERR_DATA, bad[i][1]);
        CU_ASSERT_PTR_NULL(text);
    }
}

#define FFFD "\\ufffd"

static void utf8(void)
{
    /* the first and last character of each length, and those next to the surrogates */
    static const char *const good[] = {"\xc2\x80",         "\xdf\xbf",        "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",     "\xee\x80\x80",    "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        char want[16];
        snprintf(want, sizeof want, "\"%s\"", good[i]);
        check_text(good[i], want);
    }
    static const char *const bad[][2] = {
        {"a\xff", "\"a" FFFD "\""},
        /* not a first byte */
        {"\x80z", "\"" FFFD "z\""},
        /* cut short, at the end and before another character */
        {"\xc3", "\"" FFFD "\""},
        {"\xe2\x82z", "\"" FFFD FFFD "z\""},
        {"\xf0\x9f\x98", "\"" FFFD FFFD FFFD "\""},
        {"\xc3\"", "\"" FFFD "\\\"\""},
        /* overlong forms */
        {"\xc0\x80", "\"" FFFD FFFD "\""},
        {"\xe0\x9f\xbf", "\"" FFFD FFFD FFFD "\""},
        {"\xf0\x8f\xbf\xbf", "\"" FFFD FFFD FFFD FFFD "\""},
        /* half of a surrogate pair, and a character above the last one */
        {"\xed\xa0\x80", "\"" FFFD FFFD FFFD "\""},
        {"\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) check_text(bad[i][0], bad[i][1]);
}

static void keys_are_escaped(void)
{
    Json json = begin(true);
    json_object(&json, NULL);
    json_int(&json, "a\"\xff", 1);
    json_end(&json);
    check(&json, "{\"a\\\"\\ufffd\": 1}\n");
}

static void quotes_keep_bytes(void)
{
    Json json = begin(false);
    text_quote(json.out, "a\"\n\xff\xc3");
    check(&json, "\"a\\\"\\n\xff\xc3\"");
}

static void numbers(void)
{
    static const struct {
        double value;
        const char *real, *fixed;
    } cases[] = {{0.1, "0.1", "0.100"},
                 {1.0 / 3, "0.3333333333333333", "0.333"},
                 {-2, "-2", "-2.000"},
                 {1e300, "1e+300", NULL},
                 {2251799813685249.5, "2251799813685249.5", NULL},
                 {NAN, "null", "null"},
                 {INFINITY, "null", "null"},
                 {-INFINITY, "null", "null"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        Json json = begin(false);
        json_real(&json, NULL, cases[i].value);
        check(&json, cases[i].real);
        json = begin(false);
        json_fixed(&json, NULL, 3, cases[i].value);
        if (cases[i].fixed) {
            check(&json, cases[i].fixed);
        } else {
            fclose(json.out);
            CU_ASSERT_EQUAL(strtod(got, NULL), cases[i].value);
            free(got);
        }
    }
}

static void value_without_key(Json *json)
{
    json_object(json, NULL);
    json_int(json, NULL, 1);
}

static void key_in_array(Json *json)
{
    json_array(json, NULL);
    json_int(json, "key", 1);
}

static void too_deep(Json *json)
{
    for (int i = 0; i < JSON_DEPTH; ++i) json_array(json, NULL);
}

static void end_too_many(Json *json)
{
    json_array(json, NULL);
    json_end(json);
    json_end(json);
}

static void refused(void)
{
    static void (*const wrong[])(Json *) = {value_without_key, key_in_array, too_deep,
                                            end_too_many};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            Json json = json_to(fopen("/dev/null", "w"), false);
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            wrong[i](&json);
            _exit(0);
        }
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == ERR_BUG);
    }
}

TEST_MAIN("json", {"both spacings", both_spacings}, {"lines", lines}, {"escapes", escapes},
          {"escapes that are read back", read_back}, {"texts that are refused", refused_texts},
          {"utf-8", utf8}, {"keys are escaped", keys_are_escaped},
          {"quotes keep bytes", quotes_keep_bytes}, {"numbers", numbers}, {"refused", refused})
