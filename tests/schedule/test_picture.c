/* Pictures of schedules: text compared with the expected one, its width, and SVG that is
 * well-formed at every size. */
#include "schedule.h"
#include "schedules.def"

#include "harness.h"

#include <ctype.h>

static char *picture(int kind, ScheduleShape shape, const char *name, int columns)
{
    Schedule *s;
    ScheduleReport r;
    char *text;
    size_t bytes;
    CHECK_OK(schedule_new(&s, kind, NULL, shape));
    CHECK_OK(schedule_simulate(s, NULL, &r));
    if (name) s->name = name;
    FILE *out = open_memstream(&text, &bytes);
    if (columns > 0)
        schedule_print(s, &r, columns, out);
    else
        schedule_svg(s, &r, out);
    fclose(out);
    schedule_report_fini(&r);
    schedule_free(&s);
    return text;
}

static void check_text(int kind, ScheduleShape shape, int columns, const char *wanted)
{
    char *text = picture(kind, shape, NULL, columns);
    if (strcmp(text, wanted) != 0) printf("%s", text);
    CU_ASSERT_STRING_EQUAL(text, wanted);
    /* allocated by open_memstream */
    free(text);
}

static void test_text(void)
{
    check_text(SCHEDULE_1F1B, (ScheduleShape){2, 1, 2}, 80,
               "0  F0 F1 ......B0--- ...B1---\n"
               "1  ...F0 B0--- F1 B1--- ......\n");
    check_text(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){2, 1, 2}, 80,
               "0  F0 F1 ...B0 W0 B1 W1\n"
               "1  ...F0 B0 F1 B1 W0 W1\n");
    check_text(SCHEDULE_INTERLEAVED, (ScheduleShape){1, 2, 1}, 80, "0  F0a F0b B0b---- B0a----\n");
    /* one column per unit of time */
    check_text(SCHEDULE_1F1B, (ScheduleShape){2, 1, 3}, 15,
               "0  FF..BBFBB.BB\n"
               "1  .FBBFBBFBB..\n");
}

static void test_width(void)
{
    for (int columns = 20; columns < 200; columns += 7)
        for (int m = 1; m < 40; m += 6) {
            char *text = picture(SCHEDULE_INTERLEAVED, (ScheduleShape){12, 3, m}, NULL, columns);
            int lines = 0;
            for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, ++lines)
                CU_ASSERT(end - line <= columns);
            CU_ASSERT_EQUAL(lines, 12);
            /* allocated by open_memstream */
            free(text);
        }
}

/* True if every tag is closed, in order, and nothing stands outside the root. */
static bool well_formed(const char *text)
{
    enum { DEEP = 16, NAME = 16 };
    char open[DEEP][NAME];
    int depth = 0, roots = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>'), *name = at + 1 + (at[1] == '/');
        int length = 0, quotes = 0;
        if (!end) return false;
        while (isalpha((unsigned char)name[length])) ++length;
        for (const char *c = at; c < end; ++c) {
            quotes += *c == '"';
            if (c > at && *c == '<') return false;
        }
        if (length == 0 || length >= NAME || quotes % 2) return false;
        if (at[1] == '/') {
            if (depth == 0 || strncmp(open[--depth], name, (size_t)length) != 0 ||
                open[depth][length] != '\0')
                return false;
        } else if (end[-1] != '/') {
            if (depth == DEEP || (depth == 0 && roots++)) return false;
            snprintf(open[depth++], NAME, "%.*s", length, name);
        }
        at = end;
    }
    return depth == 0 && roots == 1;
}

/* True if every & begins an entity. */
static bool entities_good(const char *text)
{
    for (const char *at = strchr(text, '&'); at; at = strchr(at + 1, '&'))
        if (strncmp(at, "&amp;", 5) && strncmp(at, "&lt;", 4) && strncmp(at, "&gt;", 4) &&
            strncmp(at, "&quot;", 6))
            return false;
    return true;
}

static int count_text(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) ++count;
    return count;
}

static void test_svg(void)
{
    char *text = picture(SCHEDULE_ZERO_BUBBLE, (ScheduleShape){4, 1, 6}, NULL, 0);
    CU_ASSERT(well_formed(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "zero-bubble: 4 stages"));
    /* 3 / 21 */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "bubble 14.3 %"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, ">stage 3<"));
    /* one more in the legend */
    CU_ASSERT_EQUAL(count_text(text, "class=\"f\""), 4 * 6 + 1);
    CU_ASSERT_EQUAL(count_text(text, "class=\"b\""), 4 * 6 + 1);
    CU_ASSERT_EQUAL(count_text(text, "class=\"w\""), 4 * 6 + 1);
    CU_ASSERT_EQUAL(count_text(text, "class=\"n\""), 4 * 6 * 3);
    /* allocated by open_memstream */
    free(text);
}

static void test_svg_escapes(void)
{
    char *text = picture(SCHEDULE_1F1B, (ScheduleShape){2, 1, 2}, "<a & \"b\">", 0);
    CU_ASSERT(well_formed(text));
    CU_ASSERT(entities_good(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "&lt;a &amp; &quot;b&quot;&gt;: 2 stages"));
    /* allocated by open_memstream */
    free(text);
}

static void test_svg_sizes(void)
{
    static const struct {
        int kind;
        ScheduleShape shape;
    } big[] = {
        {SCHEDULE_1F1B, {1, 1, 1}},           {SCHEDULE_1F1B, {64, 1, 512}},
        {SCHEDULE_ZERO_BUBBLE, {64, 1, 512}}, {SCHEDULE_INTERLEAVED, {64, 8, 512}},
        {SCHEDULE_INTERLEAVED, {7, 3, 20}},   {SCHEDULE_GPIPE, {300, 1, 3}},
        {SCHEDULE_ZB_V, {16, 2, 64}},         {SCHEDULE_DUALPIPE_V, {7, 2, 20}},
    };
    for (size_t i = 0; i < sizeof big / sizeof big[0]; ++i) {
        char *text = picture(big[i].kind, big[i].shape, NULL, 0);
        CU_ASSERT(well_formed(text));
        CU_ASSERT(entities_good(text));
        CU_ASSERT(strlen(text) < 1 << 20);
        /* allocated by open_memstream */
        free(text);
    }
}

TEST_MAIN("pictures", {"text", test_text}, {"text fits its columns", test_width}, {"svg", test_svg},
          {"svg escapes", test_svg_escapes}, {"svg at any size", test_svg_sizes})
