/* Widths of text on a terminal: equal to the C library's where it knows a character; texts cut or
 * padded to a number of columns. */
#include "base.h"
#include "harness.h"

#include "base/escape.h"

#include <locale.h>
#include <stdlib.h>
#include <wchar.h>

static void columns(void)
{
    static const struct {
        const char *text;
        int columns;
    } want[] = {
        {"", 0},
        {"abc", 3},
        {"Stra\xc3\x9f"
         "e",
         6},
        {"\xe8\x8a\xb1", 2},
        {"\xe8\x8a\xb1\xe6\x9c\xb5", 4},
        {"e\xcc\x81t\xc3\xa9", 3},
        {"\xed\x95\x9c\xea\xb8\x80", 4},
        {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 2},
        {"\xef\xbc\xa1", 2},
        {"\xef\xbd\xb1", 1},
        {"\xf0\x9f\x8c\xb8", 2},
        {"a\xe2\x80\x8d"
         "b",
         2},
        {"\xd7\xa9\xd6\xb8", 1},
        {"\xe0\xb9\x81\xe0\xb8\xa1\xe0\xb8\xa7", 3},
        {"\xe0\xb8\x81\xe0\xb8\xb1\xe0\xb8\x99", 2},
        {"a\x80\xff"
         "b",
         4},
        {"\t\x1b", 2},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
        CU_ASSERT_EQUAL(utf8_columns(want[i].text), want[i].columns);
        if (utf8_columns(want[i].text) != want[i].columns)
            printf("  '%s': %d\n", want[i].text, utf8_columns(want[i].text));
    }
}

static void put_utf8(char *to, unsigned c)
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; --i, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    to[n] = 0;
}

/* Versions of Unicode differ in some symbols; for letters in use hardly any difference is
 * accepted. */
static void as_libc(void)
{
    char text[8];
    int letters = 0, others = 0;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) TEST_SKIP("the C library has no C.UTF-8");
    static const unsigned range[][2] = {{0xa1, 0x52f},    {0x5d0, 0x5ea},   {0x900, 0xdff},
                                        {0x1100, 0x115f}, {0x3041, 0x33ff}, {0x4e00, 0x9fff},
                                        {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xff01, 0xff60}};
    for (size_t r = 0; r < sizeof range / sizeof *range; ++r)
        for (unsigned c = range[r][0]; c <= range[r][1]; ++c) {
            int want = wcwidth((wchar_t)c);
            if (want < 0) continue;
            put_utf8(text, c);
            ++letters;
            others += utf8_columns(text) != want;
        }
    CU_ASSERT(letters > 30000);
    CU_ASSERT(others < letters / 1000);
    if (others) printf("  %d of %d have other columns in the C library\n", others, letters);
}

static void fits(void)
{
    static const struct {
        const char *text;
        int columns;
        const char *fit;
    } want[] = {
        {"rose", 6, "rose  "},
        {"rose", 3, "ros"},
        {"\xe8\x8a\xb1", 4, "\xe8\x8a\xb1  "},
        {"\xe8\x8a\xb1\xe6\x9c\xb5", 3, "\xe8\x8a\xb1 "},
        {"e\xcc\x81", 1, "e\xcc\x81"},
        {"a\nb\x1b[31m", 8, "a?b?[31m"},
        {"\xff", 2, "? "},
        {"", 2, "  "},
    };
    char out[64];
    for (size_t i = 0; i < sizeof want / sizeof *want; ++i)
        CU_ASSERT_STRING_EQUAL(utf8_fit(want[i].text, want[i].columns, out), want[i].fit);
}

/* Contains each kind of character that must not reach a terminal once; other characters, and bytes
 * that are not UTF-8, are kept. */
static void escaped(void)
{
    static const struct {
        const char *text, *shown, *ascii;
    } want[] = {
        {"plain\tand\nlines", "plain\tand\nlines", "plain\tand\nlines"},
        {"caf\xc3\xa9", "caf\xc3\xa9", "caf\\u00e9"},
        {"cafe\xcc\x81", "cafe\xcc\x81", "cafe\\u0301"},
        {"a\xe2\x80\xae"
         "b",
         "a\\u202eb", "a\\u202eb"},
        {"\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c", "\\u2066\\u200f\\u061c", "\\u2066\\u200f\\u061c"},
        {"\x1b[31m\x7f\xc2\x9b", "\\u001b[31m\\u007f\\u009b", "\\u001b[31m\\u007f\\u009b"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\\U0001f600"},
        {"\xff"
         "a",
         "\xff"
         "a",
         "\\xffa"},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
        char *shown = text_escape(want[i].text, false), *ascii = text_escape(want[i].text, true);
        char to[64], cut[6];
        CU_ASSERT_STRING_EQUAL(shown, want[i].shown);
        CU_ASSERT_STRING_EQUAL(ascii, want[i].ascii);
        text_escape_to(to, sizeof to, want[i].text);
        CU_ASSERT_STRING_EQUAL(to, want[i].shown);
        text_escape_to(cut, sizeof cut, want[i].text);
        CU_ASSERT_EQUAL(strncmp(cut, want[i].shown, strlen(cut)), 0);
        mem_free(&shown);
        mem_free(&ascii);
    }
    char *x, *y;
    text_escape_pair("caf\xc3\xa9", "cafe\xcc\x81", &x, &y);
    CU_ASSERT_STRING_EQUAL(x, "caf\\u00e9");
    CU_ASSERT_STRING_EQUAL(y, "cafe\\u0301");
    mem_free(&x);
    mem_free(&y);
    text_escape_pair("K\xc3\xa4"
                     "fer",
                     "Wolf", &x, &y);
    CU_ASSERT_STRING_EQUAL(x, "K\xc3\xa4"
                              "fer");
    mem_free(&x);
    mem_free(&y);
}

TEST_MAIN("utf8", {"escaped", escaped}, {"columns", columns}, {"as the C library", as_libc},
          {"cut and filled", fits})
