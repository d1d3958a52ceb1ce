/* Kinds of single values: whole and real numbers, sizes in bytes, durations, true|false, text, one
 * word of several, checkpoint.resume, grid.pipeline_schedule. Where a number is expected, a text
 * that is not exactly a number is refused: 32x, nan and, for a whole number, 1e3. */
#include "config/foreign.h"
#include "option.h"
#include "schedules.def"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Status check_scalar(Reading *r, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_SCALAR)
        return fail(ERR_CONFIG, "expected a single value, not %s", yaml_node_kind_name(node));
    if (!r->is_default && yaml_node_is_null(node))
        return fail(ERR_CONFIG, "has no value: give one, or remove the key");
    return OK;
}

/* Fails if the node is no scalar, or is in quotes: a number or true|false in quotes is text. */
static Status check_unquoted(Reading *r, const YamlNode *node)
{
    TRY(check_scalar(r, node));
    if (node->quoted)
        return fail(ERR_CONFIG, "\"%s\" is text: write it without quotes", node->text);
    return OK;
}

static Status range_fail(const Reading *r, const YamlNode *node)
{
    char range[RANGE_CHARS];
    const Option *o = r->option;
    bool above = strtod(node->text, NULL) >= (o->kind == &kind_int ? (double)o->max : o->hi);
    return fail(ERR_CONFIG, "%s is out of range: must be %s%s%s%s", node->text,
                option_range(o, above, range), o->unit ? " (" : "", o->unit ? o->unit : "",
                o->unit ? ")" : "");
}

/* Returns whether the text is a number of YAML's core schema (-1.5e+3, .5, 5.), but not nan or an
 * infinity. */
static bool is_number(const char *text)
{
    const char *c = text + (*text == '-' || *text == '+');
    size_t whole = strspn(c, "0123456789"), fraction = 0;
    c += whole;
    if (*c == '.') {
        fraction = strspn(++c, "0123456789");
        c += fraction;
    }
    if (whole + fraction == 0) return false;
    if (*c == 'e' || *c == 'E') {
        ++c;
        if (*c == '-' || *c == '+') ++c;
        size_t digits = strspn(c, "0123456789");
        if (digits == 0) return false;
        c += digits;
    }
    return *c == 0;
}

/* Fails because the text is no whole number. For a number such as 1e3 the message shows how to
 * write it in digits. */
static Status whole_fail(const char *text)
{
    if (is_number(text)) {
        double value = strtod(text, NULL);
        if (value == floor(value) && fabs(value) < 1e15)
            return fail(ERR_CONFIG, "'%s' is not a whole number in digits: write %.0f", text,
                        value);
    }
    return fail(ERR_CONFIG, "'%s' is not a whole number", text);
}

Status read_whole(Reading *r, const YamlNode *node, int64_t *whole)
{
    TRY(check_unquoted(r, node));
    const char *digits = node->text + (*node->text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")]) return whole_fail(node->text);
    if (digits[0] == '0' && digits[1])
        return fail(ERR_CONFIG, "'%s' begins with a zero: write it without", node->text);
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    bool outside = value < r->option->min || value > r->option->max;
    if (errno == ERANGE || (outside && !r->is_default)) return range_fail(r, node);
    *whole = value;
    return OK;
}

static Status int_read(Reading *r, void *field, const YamlNode *node)
{
    int64_t checked;
    return read_whole(r, node, field ? field : &checked);
}

static void int_print(FILE *out, const Option *o, const Config *config)
{
    fprintf(out, "%lld", (long long)*(const int64_t *)option_value(o, config));
}

/* Sets *value to v, which is the number in the node's text; fails if v is infinite or out of
 * range. */
static Status set_real(const Reading *r, const YamlNode *node, double v, double *value)
{
    const Option *o = r->option;
    if (!isfinite(v))
        return fail(ERR_CONFIG, "%s is too large for a double-precision number", node->text);
    bool low = o->lo_open ? v <= o->lo : v < o->lo, high = o->hi_open ? v >= o->hi : v > o->hi;
    if (!r->is_default && (low || high)) return range_fail(r, node);
    *value = v;
    return OK;
}

Status read_real(Reading *r, const YamlNode *node, double *value)
{
    TRY(check_unquoted(r, node));
    if (!is_number(node->text)) return fail(ERR_CONFIG, "'%s' is not a number", node->text);
    return set_real(r, node, strtod(node->text, NULL), value);
}

static Status real_read(Reading *r, void *field, const YamlNode *node)
{
    return read_real(r, node, field);
}

static void real_print(FILE *out, const Option *o, const Config *config)
{
    text_real(out, *(const double *)option_value(o, config));
}

/* Returns the number of bytes of a unit, "", "kB", "GiB" and so on, in upper or lower case; 0: it
 * is no unit. */
static double unit_bytes(const char *word)
{
    static const char letters[] = "kmgt";
    if (!*word || !strcasecmp(word, "B")) return 1;
    const char *letter = strchr(letters, tolower((unsigned char)*word));
    bool binary = letter && !strcasecmp(word + 1, "iB");
    if (!letter || (!binary && strcasecmp(word + 1, "B") != 0)) return 0;
    return pow(binary ? 1024 : 1000, (double)(letter - letters + 1));
}

/* Reads a size in bytes, with or without a unit: 8GB, 1.5 GiB, 1000. */
static Status bytes_read(Reading *r, void *field, const YamlNode *node)
{
    TRY(check_unquoted(r, node));
    size_t digits = strspn(node->text, "+-.0123456789eE");
    char *number = mem_format("%.*s", (int)digits, node->text);
    double value = strtod(number, NULL);
    bool valid = is_number(number);
    mem_free(&number);
    const char *unit = node->text + digits + strspn(node->text + digits, " ");
    if (!valid || unit_bytes(unit) == 0)
        return fail(ERR_CONFIG, "'%s' is not a size: write a number of bytes, 500MB, 8GB or 2GiB",
                    node->text);
    return set_real(r, node, value * unit_bytes(unit), field);
}

/* Reads a duration, in seconds. "none" and "0" are 0, which means no limit. Quotes are allowed,
 * because other YAML tools read 12:00:00 as a number. Values outside 1e-3 to 1e12 s are refused:
 * they would be printed with an exponent, which text_read_seconds does not read. */
static Status duration_read(Reading *r, void *field, const YamlNode *node)
{
    double *seconds = field;
    TRY(check_scalar(r, node));
    bool none = !strcmp(node->text, "none") || !strcmp(node->text, "0");
    if (none) *seconds = 0;
    if (none) return OK;
    bool valid = text_read_seconds(node->text, seconds);
    if (valid && (*seconds == 0 || (*seconds >= 1e-3 && *seconds <= 1e12))) return OK;
    return fail(ERR_CONFIG,
                "'%s' is not a length of time: write 90s, 30m, 1h30m, 2d, 12:00:00 or "
                "1-12:00:00 (days-hours:minutes:seconds), or none",
                node->text);
}

static void duration_print(FILE *out, const Option *o, const Config *config)
{
    double seconds = *(const double *)option_value(o, config);
    if (seconds > 0) text_real(out, seconds);
    fputs(seconds > 0 ? "s" : "none", out);
}

/* Fails because the text is neither true nor false. For words that mean true or false in YAML 1.1,
 * Python and other languages, the message says which word to write. */
static Status bool_fail(const char *text)
{
    static const char *const yes[] = {"true", "yes", "on", "y", "1"};
    static const char *const no[] = {"false", "no", "off", "n", "0"};
    for (int i = 0; i < 5; ++i) {
        bool is_yes = !strcasecmp(text, yes[i]), is_no = !strcasecmp(text, no[i]);
        if (is_yes || is_no)
            return fail(ERR_CONFIG, "'%s' is neither true nor false: write %s", text,
                        is_yes ? "true" : "false");
    }
    return fail(ERR_CONFIG, "'%s' is neither true nor false", text);
}

static Status bool_read(Reading *r, void *field, const YamlNode *node)
{
    TRY(check_unquoted(r, node));
    bool yes = !strcmp(node->text, "true");
    if (!yes && strcmp(node->text, "false") != 0) return bool_fail(node->text);
    *(bool *)field = yes;
    return OK;
}

static void bool_print(FILE *out, const Option *o, const Config *config)
{
    fputs(*(const bool *)option_value(o, config) ? "true" : "false", out);
}

Status read_text(Reading *r, const YamlNode *node)
{
    TRY(check_scalar(r, node));
    const unsigned char *c = (const unsigned char *)node->text;
    while (*c) {
        int bytes = utf8_bytes(c);
        if (bytes == 0) return fail(ERR_CONFIG, "the text is not UTF-8");
        /* U+0080 to U+009F are control characters, too */
        if (iscntrl(*c) || (bytes == 2 && *c == 0xc2 && c[1] < 0xa0))
            return fail(ERR_CONFIG, "the text contains a control character");
        c += bytes;
    }
    if (!r->is_default && (int64_t)strlen(node->text) < r->option->min)
        return fail(ERR_CONFIG, "the text is empty: give a value, or remove the key");
    return OK;
}

static Status text_read(Reading *r, void *field, const YamlNode *node)
{
    TRY(read_text(r, node));
    mem_free((char **)field);
    *(char **)field = mem_text(node->text);
    return OK;
}

/* Prints text without quotes if it consists of safe characters; where weft expects a text, it reads
 * 12 and true as texts, too. Otherwise prints the text in JSON's quotes, which mean the same in
 * YAML. */
void print_text(FILE *out, const char *text)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    const YamlNode node = {.kind = YAML_SCALAR, .text = (char *)text};
    if (!yaml_node_is_null(&node) && text[strspn(text, safe)] == 0 && *text != '-')
        fputs(text, out);
    else
        text_quote(out, text);
}

static void text_print(FILE *out, const Option *o, const Config *config)
{
    const char *text = *(char *const *)option_value(o, config);
    print_text(out, text ? text : "");
}

static void text_free(void *field)
{
    mem_free((char **)field);
}

static Status enum_read(Reading *r, void *field, const YamlNode *node)
{
    const char *words = option_words(r->option);
    TRY(check_scalar(r, node));
    int i = words_find(words, node->text);
    if (!*words && !strcmp(node->text, r->option->default_text)) i = 0;
    if (i < 0) return words_fail(r->option->key, words, node->text);
    *(int *)field = i;
    return OK;
}

static void enum_print(FILE *out, const Option *o, const Config *config)
{
    char word[WORD_BYTES];
    const char *words = option_words(o);
    fputs(*words ? words_at(words, *(const int *)option_value(o, config), word) : o->default_text,
          out);
}

static Status resume_fail(const char *key, const char *words, const char *text)
{
    char *all = words_text(words), *foreign = foreign_text(key, text);
    Status status = fail(ERR_CONFIG, "'%s' is neither %s nor the path of a checkpoint file%s%s",
                         text, all, foreign ? ": " : "", foreign ? foreign : "");
    mem_free(&foreign);
    mem_free(&all);
    return status;
}

/* Reads checkpoint.resume: a word, or a path, which contains a '/' or a '.'. */
static Status resume_read(Reading *r, void *field, const YamlNode *node)
{
    char **path = &r->config->checkpoint.resume_path;
    const char *words = option_words(r->option);
    TRY(read_text(r, node));
    bool is_path = strpbrk(node->text, "/.");
    if (!is_path && *words && words_find(words, node->text) < 0)
        return resume_fail(r->option->key, words, node->text);
    if (!is_path) TRY(enum_read(r, field, node));
    mem_free(path);
    if (is_path) *path = mem_text(node->text);
    if (is_path) *(int *)field = RESUME_FILE;
    return OK;
}

static void resume_print(FILE *out, const Option *o, const Config *config)
{
    if (config->checkpoint.resume == RESUME_FILE)
        print_text(out, config->checkpoint.resume_path);
    else
        enum_print(out, o, config);
}

/* Frees the path, which is stored in another field than the option's own. */
static void resume_free(void *field)
{
    char *config = (char *)field - offsetof(Config, checkpoint.resume);
    mem_free(&((Config *)(void *)config)->checkpoint.resume_path);
}

/* Reads grid.pipeline_schedule: a word, or file:PATH, the path of a list of tasks. */
static Status schedule_read(Reading *r, void *field, const YamlNode *node)
{
    static const char prefix[] = "file:";
    char **path = &r->config->grid.schedule_path;
    TRY(read_text(r, node));
    bool is_file = !strncmp(node->text, prefix, strlen(prefix));
    if (!is_file) TRY(enum_read(r, field, node));
    if (is_file && !node->text[strlen(prefix)])
        return fail(ERR_CONFIG, "file: names no file: write file:PATH");
    mem_free(path);
    if (is_file) *path = mem_text(node->text + strlen(prefix));
    if (is_file) *(int *)field = SCHEDULE_FILE;
    return OK;
}

static void schedule_print(FILE *out, const Option *o, const Config *config)
{
    if (config->grid.pipeline_schedule != SCHEDULE_FILE) {
        enum_print(out, o, config);
        return;
    }
    char *text = mem_format("file:%s", config->grid.schedule_path);
    print_text(out, text);
    mem_free(&text);
}

static void schedule_free(void *field)
{
    char *config = (char *)field - offsetof(Config, grid.pipeline_schedule);
    mem_free(&((Config *)(void *)config)->grid.schedule_path);
}

const OptionKind kind_int = {"INT", false, int_read, int_print, NULL};
const OptionKind kind_real = {"NUMBER", false, real_read, real_print, NULL};
const OptionKind kind_bytes = {"BYTES", false, bytes_read, real_print, NULL};
const OptionKind kind_duration = {"TIME", false, duration_read, duration_print, NULL};
const OptionKind kind_bool = {"true|false", false, bool_read, bool_print, NULL};
const OptionKind kind_text = {"TEXT", false, text_read, text_print, text_free};
const OptionKind kind_enum = {"WORD", false, enum_read, enum_print, NULL};
const OptionKind kind_resume = {"PATH", false, resume_read, resume_print, resume_free};
const OptionKind kind_schedule = {"WORD", false, schedule_read, schedule_print, schedule_free};
