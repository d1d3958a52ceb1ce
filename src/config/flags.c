/* Parses the flags of a verb by the rows of its table, which have the defaults, the ranges and the
 * texts for messages. */
#include "config/foreign.h"
#include "option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool whole_read(const char **text, int64_t lo, int64_t hi, int64_t *value)
{
    char *end;
    const char *digit = *text + (**text == '-');
    if (!isdigit((unsigned char)*digit)) return false;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    if (errno || number < lo || number > hi) return false;
    *value = number;
    *text = end;
    return true;
}

bool sizes_read(const char *text, int count, int64_t *size)
{
    for (int i = 0; i < count; ++i) {
        if (i > 0 && *text++ != 'x') return false;
        if (!whole_read(&text, 1, INT32_MAX, &size[i])) return false;
    }
    return *text == 0;
}

const Flag *flag_find(const Verb *verb, const char *name)
{
    for (int i = 0; i < verb->flag_count; ++i)
        if (!strcmp(verb->flag[i].name, name)) return &verb->flag[i];
    return NULL;
}

/* Returns the length of the part of the help that messages quote, which ends before the first
 * ';'. */
static int quoted_length(const Flag *f)
{
    return (int)strcspn(f->help, ";");
}

static void *field_of(const Flag *f, void *fields)
{
    return (char *)fields + f->offset;
}

/* ---- values ---- */

static Status set_whole(const Flag *f, const char *text, int64_t *field)
{
    const char *end = text;
    if (whole_read(&end, (int64_t)f->lo, (int64_t)f->hi, field) && !*end) return OK;
    return fail(ERR_USAGE, "%s %s: expected a whole number from %.0f to %.0f: %.*s", f->name, text,
                f->lo, f->hi, quoted_length(f), f->help);
}

static Status set_number(const Flag *f, const char *text, double *field)
{
    char *end;
    *field = strtod(text, &end);
    bool above = f->lo_open ? *field > f->lo : *field >= f->lo;
    if (end != text && !*end && above && *field <= f->hi) return OK;
    return fail(ERR_USAGE, "%s %s: expected a number %s %g%s %.10g: %.*s", f->name, text,
                f->lo_open ? "above" : "from", f->lo, f->lo_open ? ", at most" : " to", f->hi,
                quoted_length(f), f->help);
}

static Status set_choice(const Flag *f, const char *text, int *field)
{
    *field = words_find(f->value, text);
    if (*field >= 0) return OK;
    return fail(ERR_USAGE, "%s %s: expected %s: %.*s", f->name, text, f->value, quoted_length(f),
                f->help);
}

static void list_free(FlagList *list)
{
    for (int i = 0; i < list->count; ++i) mem_free(&list->word[i]);
    mem_free(&list->word);
    list->count = 0;
}

static Status set_list(const Flag *f, const char *text, FlagList *list)
{
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        int length = (int)strcspn(at, ",");
        list->word = mem_resize(list->word, (size_t)(list->count + 1) * sizeof *list->word);
        list->word[list->count++] = mem_format("%.*s", length, at);
        if (length == 0)
            return fail(ERR_USAGE, "%s %s: a word between commas is empty", f->name, text);
    }
    return OK;
}

static Status set_value(const Flag *f, const char *text, void *field)
{
    switch (f->kind) {
    case FLAG_TEXT:
        *(const char **)field = text;
        return OK;
    case FLAG_WHOLE:
        return set_whole(f, text, field);
    case FLAG_NUMBER:
        return set_number(f, text, field);
    case FLAG_CHOICE:
        return set_choice(f, text, field);
    case FLAG_LIST:
        return set_list(f, text, field);
    case FLAG_SWITCH:
        *(bool *)field = true;
    }
    return OK;
}

/* Sets the field to the flag's default. If there is none, sets it to the value that means "not
 * given" (verb_options_init). */
static Status set_default(const Flag *f, void *field)
{
    if (f->default_text) return set_value(f, f->default_text, field);
    if (f->kind == FLAG_WHOLE) *(int64_t *)field = (int64_t)f->lo - 1;
    if (f->kind == FLAG_NUMBER) *(double *)field = (double)NAN;
    if (f->kind == FLAG_CHOICE) *(int *)field = -1;
    return OK;
}

/* ---- unknown options ---- */

/* Returns whether the word is a short option such as -b. */
static bool is_short_option(const char *word)
{
    return word[0] == '-' && word[1] != '-' && word[1] && !word[2];
}

/* Returns a hint if an unknown option is a key of the configuration (--lr 0.1) or another program's
 * word for a key; otherwise NULL. The caller owns the hint. */
static char *key_hint(const Verb *verb, const char *word)
{
    const char *name = word + strspn(word, "-");
    const ForeignWord *row = foreign_find(FOREIGN_KEY, name);
    const char *key = row ? row->weft : NULL, *note = row ? row->note : NULL;
    for (int i = 0; !is_short_option(word) && i < option_count; ++i)
        if (!strcmp(options[i].key, name) || foreign_words_match(option_leaf(&options[i]), name)) {
            key = options[i].key;
            if (verb->traits & VERB_CONFIG)
                return mem_format("keys stand after the configuration: %s=VALUE", key);
            note = NULL;
            break;
        }
    if (!key || option_find(key) < 0) return row ? foreign_text(FOREIGN_KEY, name) : NULL;
    return mem_format(verb->traits & VERB_CONFIG
                          ? "write %s=VALUE after the configuration%s%s"
                          : "write %s=VALUE after the CONFIG of weft train%s%s",
                      key, note ? ": " : "", note ? note : "");
}

/* Returns a hint if an unknown option is another program's word for a flag of this verb, or for an
 * option of another verb; otherwise NULL. The caller owns the hint. */
static char *option_hint(const Verb *verb, const char *word)
{
    const char *name = word + strspn(word, "-");
    if (!strncmp(word, "--", 2) && is_short_option(word + 1) && flag_find(verb, word + 1))
        return mem_format("that is %s here", word + 1);
    const ForeignWord *flag = foreign_find(FOREIGN_FLAG, name);
    if (flag && flag_find(verb, flag->weft)) return foreign_text(FOREIGN_FLAG, name);
    /* a hint that names this same verb would be useless */
    const ForeignWord *option = foreign_find(FOREIGN_OPTION, name);
    const char *other = option && option->weft ? option->weft + strlen("weft ") : "";
    return strcmp(other, verb->name) ? foreign_text(FOREIGN_OPTION, name) : NULL;
}

/* Returns the flag with which a word begins if a value follows it in the same word (-n2, -oFILE);
 * otherwise NULL. */
static const Flag *flag_of_joined(const Verb *verb, const char *word)
{
    const char name[] = {word[0], word[1], 0};
    const Flag *flag = flag_find(verb, name);
    return flag && flag->kind != FLAG_SWITCH && word[2] ? flag : NULL;
}

static Status unknown_flag_fail(const Verb *verb, const char *text)
{
    /* a short option with a number, such as -b32 */
    const bool joined = text[1] != '-' && isdigit((unsigned char)text[2]);
    char *word = mem_format("%.*s", joined ? 2 : (int)strlen(text), text);
    const char **names = mem_new((size_t)(verb->flag_count + 1) * sizeof *names);
    for (int i = 0; i < verb->flag_count; ++i) names[i] = verb->flag[i].name;
    const char *near = is_short_option(word) ? NULL : text_nearest(word, names, verb->flag_count);
    char *hint = option_hint(verb, word);
    const Flag *flag = joined || !hint ? flag_of_joined(verb, text) : NULL;
    if (!hint && !flag && (!near || verb->traits & VERB_CONFIG)) hint = key_hint(verb, word);
    if (!strcmp(text, "-n"))
        fail(ERR_USAGE, "weft %s starts no ranks: leave -n out", verb->name);
    else if (flag)
        fail(ERR_USAGE, "unknown option %s; write the value as a separate word: %s %s", text,
             flag->name, text + 2);
    else if (hint)
        fail(ERR_USAGE, "unknown option %s: %s", text, hint);
    else if (near)
        fail(ERR_USAGE, "unknown option %s; did you mean %s?", text, near);
    else
        fail(ERR_USAGE, "unknown option %s; --help lists all", text);
    mem_free(&names);
    mem_free(&hint);
    mem_free(&word);
    return ERR_USAGE;
}

/* Parses one flag and its value, which may be the next word (next; NULL: there is none). given[i]:
 * set to true if flag i of the verb is given. *used: number of words parsed. */
static Status parse_flag(const Verb *verb, const char *word, const char *next, void *fields,
                         bool *given, int *used)
{
    const char *value = strchr(word, '=');
    char *name = mem_format("%.*s", (int)strcspn(word, "="), word);
    const Flag *f = flag_find(verb, name);
    Status status = f ? OK : unknown_flag_fail(verb, name);
    mem_free(&name);
    if (status != OK) return status;
    bool *flag_given = &given[f - verb->flag];
    *used = 1;
    if (f->kind == FLAG_SWITCH) {
        if (value) return fail(ERR_USAGE, "%s takes no value", f->name);
    } else {
        if (*flag_given && f->kind != FLAG_LIST)
            return fail(ERR_USAGE, "%s is given twice", f->name);
        if (!*flag_given && f->kind == FLAG_LIST) list_free(field_of(f, fields));
        *used = value ? 1 : 2;
        value = value ? value + 1 : next && strcmp(next, "--") != 0 ? next : NULL;
        if (!value)
            return fail(ERR_USAGE, "%s needs a value, %s: %.*s", f->name, f->value,
                        quoted_length(f), f->help);
    }
    *flag_given = true;
    return set_value(f, value, field_of(f, fields));
}

static bool is_number(const char *word)
{
    char *end;
    (void)strtod(word, &end);
    return end != word && !*end;
}

/* Parses all flags and reports all errors together. After an error, a negative number counts as the
 * value of the faulty option and not as another option. given: as in parse_flag. */
static Status parse_flags(const Verb *verb, int *argc, char **argv, void *fields, bool *given)
{
    Faults faults = {0};
    /* words: number of words so far that are no flags; they move to the front of argv */
    int words = 0, i = 0;
    while (i < *argc && strcmp(argv[i], "--") != 0) {
        int used = 1;
        if (argv[i][0] != '-' || !argv[i][1] || (faults.count && is_number(argv[i])))
            argv[words++] = argv[i];
        else
            faults_add(&faults, parse_flag(verb, argv[i], i + 1 < *argc ? argv[i + 1] : NULL,
                                           fields, given, &used));
        i += used;
    }
    for (++i; i < *argc; ++i) argv[words++] = argv[i];
    *argc = words;
    return faults_end(&faults);
}

/* Checks the number of words, and that required flags are given, that a flag is given with the flag
 * that it needs, and that it is not given with the flag that it excludes. */
static Status check_given(const Verb *verb, int argc, const bool *given)
{
    if (verb->expects && (argc < verb->words_min || (verb->words_max && argc > verb->words_max)))
        return fail(ERR_USAGE, "expected %s; see --help", verb->expects);
    for (int i = 0; i < verb->flag_count; ++i) {
        const Flag *f = &verb->flag[i], *other = f->needs ? flag_find(verb, f->needs) : NULL;
        if (f->required && !given[i])
            return fail(ERR_USAGE, "%s %s is missing: %.*s", f->name, f->value, quoted_length(f),
                        f->help);
        if (given[i] && other && !given[other - verb->flag])
            return fail(ERR_USAGE, "%s needs %s%s%s: %.*s", f->name, other->name,
                        other->value ? " " : "", other->value ? other->value : "",
                        quoted_length(other), other->help);
        other = f->excludes ? flag_find(verb, f->excludes) : NULL;
        if (given[i] && other && given[other - verb->flag])
            return fail(ERR_USAGE, "%s and %s exclude each other: leave one out", f->name,
                        other->name);
    }
    return OK;
}

/* ---- outputs that would overwrite an input ---- */

/* Fails if the output is the same file as `word` or, if the word is KEY=VALUE, the same file as
 * VALUE. */
static Status refuse_input(const char *out, const char *word)
{
    const char *value = strchr(word, '=');
    TRY(file_check_not_input(out, &word, 1));
    if (!value++) return OK;
    return file_check_not_input(out, &value, 1);
}

/* Fails if the output is a file that one of the flags names as an input. */
static Status refuse_flag_inputs(const Verb *verb, const char *out, void *fields)
{
    for (const Flag *f = verb->flag; f < verb->flag + verb->flag_count; ++f) {
        const char *text = f->kind == FLAG_TEXT ? *(const char **)field_of(f, fields) : NULL;
        const FlagList *list = f->kind == FLAG_LIST ? field_of(f, fields) : NULL;
        if (text && !f->writes) TRY(refuse_input(out, text));
        for (int i = 0; list && i < list->count; ++i) TRY(refuse_input(out, list->word[i]));
    }
    return OK;
}

static Status check_outputs(const Verb *verb, int argc, char **argv, void *fields)
{
    for (const Flag *f = verb->flag; f < verb->flag + verb->flag_count; ++f) {
        const char *out = f->writes ? *(const char **)field_of(f, fields) : NULL;
        if (!out) continue;
        for (int i = 0; i < argc; ++i) TRY(refuse_input(out, argv[i]));
        TRY(refuse_flag_inputs(verb, out, fields));
    }
    return OK;
}

Status verb_options_init(const Verb *verb, int *argc, char **argv, void *fields)
{
    bool *given = mem_new((size_t)verb->flag_count + 1);
    Status status = OK;
    for (int i = 0; status == OK && i < verb->flag_count; ++i)
        status = set_default(&verb->flag[i], field_of(&verb->flag[i], fields));
    if (status == OK) status = parse_flags(verb, argc, argv, fields, given);
    if (status == OK) status = check_given(verb, *argc, given);
    if (status == OK) status = check_outputs(verb, *argc, argv, fields);
    mem_free(&given);
    return status;
}

void verb_options_fini(const Verb *verb, void *fields)
{
    for (int i = 0; i < verb->flag_count; ++i)
        if (verb->flag[i].kind == FLAG_LIST) list_free(field_of(&verb->flag[i], fields));
}

/* ---- checks of rows ---- */

/* Returns a text that says what is wrong with the row of a flag, or NULL. */
static const char *flag_fault(const Verb *v, const Flag *f)
{
    static const size_t bytes[] = {[FLAG_SWITCH] = sizeof(bool),   [FLAG_TEXT] = sizeof(char *),
                                   [FLAG_WHOLE] = sizeof(int64_t), [FLAG_NUMBER] = sizeof(double),
                                   [FLAG_CHOICE] = sizeof(int),    [FLAG_LIST] = sizeof(FlagList)};
    const bool number = f->kind == FLAG_WHOLE || f->kind == FLAG_NUMBER;
    return f->name[0] != '-'                                  ? "the name does not begin with -"
           : flag_find(v, f->name) != f                       ? "the name is used twice"
           : !f->help || !*f->help                            ? ".help is not given"
           : f->offset + bytes[f->kind] > v->options_bytes    ? "its field is outside the options"
           : (f->value == NULL) != (f->kind == FLAG_SWITCH)   ? ".value is for all but switches"
           : f->kind == FLAG_CHOICE && !strchr(f->value, '|') ? ".value has no words: a|b"
           : number && !(f->lo < f->hi)                       ? ".lo and .hi are not given"
           : f->kind == FLAG_WHOLE && f->hi > FLAG_WHOLE_MAX  ? ".hi is above FLAG_WHOLE_MAX"
           : f->needs && !flag_find(v, f->needs)              ? ".needs is no flag of the verb"
           : f->excludes && !flag_find(v, f->excludes)        ? ".excludes is no flag of the verb"
           : f->required && f->default_text
               ? "has .required and .default_text, which exclude each other"
           : f->writes && f->kind != FLAG_TEXT                  ? ".writes is for texts"
           : f->value && !strcmp(f->value, "OUT") && !f->writes ? ".writes is not set"
                                                                : NULL;
}

Status verb_check(const Verb *v)
{
    const char *fault = !v->name || !*v->name   ? ".name is not given"
                        : !v->help || !*v->help ? ".help is not given"
                        : !v->run               ? ".run is not given"
                        : v->traits == 0        ? ".traits is not given (VERB_NO_TRAITS: none)"
                        : v->words_max && v->words_max < v->words_min
                            ? ".words_max is below .words_min"
                        : (v->words_min > 0 || v->words_max > 0) != (v->expects != NULL)
                            ? ".expects goes with .words_min and .words_max"
                            : NULL;
    TRY(row_check("verb", v->name, fault));
    for (int i = 0; i < v->flag_count; ++i) {
        fault = flag_fault(v, &v->flag[i]);
        if (fault) return fail(ERR_BUG, "verb %s: %s: %s", v->name, v->flag[i].name, fault);
    }
    return OK;
}
