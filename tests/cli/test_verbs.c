/* Every row of the table of verbs is whole: what the help, the man page, completion and parsing
 * stand on. */
#include "cli/cli.h"
#include "harness.h"

static char *help_of(const Verb *verb)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    verb_print_help(out, verb);
    fclose(out);
    return text;
}

static void test_rows(void)
{
    CU_ASSERT(verb_count() > 10);
    for (int i = 0; i < verb_count(); ++i) {
        const Verb *v = verb_at(i);
        CU_ASSERT(*v->name != 0 && *v->help != 0 && v->run != NULL);
        CU_ASSERT((v->least > 0 || v->most > 0) == (v->expects != NULL));
        CU_ASSERT(v->most == 0 || v->most >= v->least);
        for (int j = 0; j < i; ++j) CU_ASSERT_STRING_NOT_EQUAL(v->name, verb_at(j)->name);
        char *text = help_of(v);
        for (const char *line = text; *line; line = strchr(line, '\n') + 1)
            CU_ASSERT(strcspn(line, "\n") <= 100);
        free(text);
    }
    CU_ASSERT_PTR_NULL(verb_at(verb_count()));
}

static void check_flag(const Verb *v, const Flag *f)
{
    static const size_t bytes[] = {[FLAG_SWITCH] = sizeof(bool),   [FLAG_TEXT] = sizeof(char *),
                                   [FLAG_WHOLE] = sizeof(int64_t), [FLAG_NUMBER] = sizeof(double),
                                   [FLAG_CHOICE] = sizeof(int),    [FLAG_LIST] = sizeof(FlagList)};
    CU_ASSERT(f->name[0] == '-' && *f->help != 0);
    /* no name twice */
    CU_ASSERT_PTR_EQUAL(flag_find(v, f->name), f);
    CU_ASSERT(f->offset + bytes[f->kind] <= v->options_bytes);
    CU_ASSERT_EQUAL(f->value == NULL, f->kind == FLAG_SWITCH);
    CU_ASSERT(f->kind != FLAG_CHOICE || strchr(f->value, '|') != NULL);
    if (f->kind == FLAG_WHOLE || f->kind == FLAG_NUMBER) CU_ASSERT(f->lo < f->hi);
    if (f->kind == FLAG_WHOLE) CU_ASSERT(f->hi <= FLAG_WHOLE_MOST);
    CU_ASSERT(!f->needs || flag_find(v, f->needs) != NULL);
    CU_ASSERT(!(f->required && f->fallback));
    /* help is aligned */
    CU_ASSERT(strlen(f->name) + (f->value ? 1 + strlen(f->value) : 0) <= 24);
}

/* Each default is one that the flag takes. */
static void test_flags(void)
{
    for (int i = 0; i < verb_count(); ++i) {
        const Verb *v = verb_at(i);
        for (int f = 0; f < v->flag_count; ++f) {
            check_flag(v, &v->flag[f]);
            if (!v->flag[f].fallback) continue;
            Flag alone = v->flag[f];
            alone.needs = NULL;
            Verb one = {.name = v->name, .flag = &alone, .flag_count = 1};
            void *options = calloc(1, v->options_bytes);
            int none = 0;
            CHECK_OK(verb_options_init(&one, &none, NULL, options));
            verb_options_fini(&one, options);
            free(options);
        }
    }
}

TEST_MAIN("verbs", {"rows", test_rows}, {"flags", test_flags})
