/* Flags of verbs, by a table. */
#include "private.h"

#include <stdlib.h>
#include <string.h>

enum { FLAGS_MAX = 16 };

static Status unknown(const char *word, size_t length, const Flag *flag, int count)
{
    const char *names[FLAGS_MAX] = {0};
    char *name = mem_format("%.*s", (int)length, word);
    for (int i = 0; i < count && i < FLAGS_MAX; ++i) names[i] = flag[i].name;
    const char *near = text_nearest(name, names, count);
    Status status = near ? fail(ERR_USAGE, "unknown option %s; did you mean %s?", name, near)
                         : fail(ERR_USAGE, "unknown option %s; --help lists all", name);
    mem_free(&name);
    return status;
}

/* Takes word (and, where it has a value, the next one); *used: how many words. */
static Status take(char *word, char *next, const Flag *flag, int count, int *used)
{
    size_t length = strcspn(word, "=");
    const Flag *f = flag;
    while (f < flag + count && (strncmp(f->name, word, length) || f->name[length])) ++f;
    if (f == flag + count) return unknown(word, length, flag, count);
    *used = 1;
    if (f->on) {
        if (word[length]) return fail(ERR_USAGE, "%s takes no value", f->name);
        *f->on = true;
        return OK;
    }
    if (*f->value) return fail(ERR_USAGE, "%s is given twice", f->name);
    if (word[length]) {
        *f->value = word + length + 1;
    } else {
        if (!next) return fail(ERR_USAGE, "%s needs a value", f->name);
        *f->value = next;
        *used = 2;
    }
    return OK;
}

Status flags_take(int *argc, char **argv, const Flag *flag, int count)
{
    int left = 0, i = 0;
    while (i < *argc) {
        if (!strcmp(argv[i], "--")) {
            for (++i; i < *argc; ++i) argv[left++] = argv[i];
            break;
        }
        if (argv[i][0] != '-' || !argv[i][1]) {
            argv[left++] = argv[i++];
            continue;
        }
        int used = 0;
        TRY(take(argv[i], i + 1 < *argc ? argv[i + 1] : NULL, flag, count, &used));
        i += used;
    }
    *argc = left;
    return OK;
}

Status flag_number(const char *name, const char *text, double lo, double hi, double *value)
{
    char *end;
    if (!text) return OK;
    *value = strtod(text, &end);
    if (end != text && !*end && *value >= lo && *value <= hi) return OK;
    return fail(ERR_USAGE, "%s %s: a number from %g to %.10g is wanted", name, text, lo, hi);
}

Status flag_whole(const char *name, const char *text, double lo, double hi, int64_t *value)
{
    double number = (double)*value;
    TRY(flag_number(name, text, lo, hi, &number));
    *value = (int64_t)number;
    if ((double)*value == number) return OK;
    return fail(ERR_USAGE, "%s %s: a whole number is wanted", name, text);
}
