/* Reads a JSON file as a flat list of fields (hf_fields.h). */
#include "hf_fields.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DESCRIPTION_BYTES = 16 << 20, DEEPEST = 8 };

/* Adds a field. Takes ownership of `name` and `value`. */
static HfField *add(HfFields *f, char *name, HfKind kind, char *value)
{
    if ((f->count & (f->count - 1)) == 0) {
        size_t room = f->count ? (size_t)f->count * 2 : 16;
        f->field = mem_resize(f->field, room * sizeof *f->field);
    }
    f->field[f->count] = (HfField){.name = name, .value = value, .kind = kind};
    return &f->field[f->count++];
}

/* Reads a number, true, false, null, or a list as written, and sets *kind. */
static Status scan_plain(JsonScan *s, HfKind *kind, char **value)
{
    const char *begin = s->at;
    TRY(json_scan_skip(s));
    *value = mem_format("%.*s", (int)(s->at - begin), begin);
    const bool truth = strcmp(*value, "true") == 0 || strcmp(*value, "false") == 0;
    *kind = **value == '['                ? HF_LIST
            : truth                       ? HF_BOOL
            : strcmp(*value, "null") == 0 ? HF_NULL
                                          : HF_NUMBER;
    if (*kind != HF_NUMBER) return OK;
    double number;
    JsonScan again = json_scan(s->path, *value, strlen(*value));
    Status st = json_scan_real(&again, &number);
    if (st != OK) {
        s->at = begin;
        mem_free(value);
        return json_scan_fail(s, "expected a value");
    }
    return OK;
}

/* Rewrites the value of a list as "a,b", unless the list contains an object or an escape
 * sequence. */
static void join_texts(HfField *field)
{
    char *to = field->value;
    if (field->kind != HF_LIST || strpbrk(field->value, "{\\")) return;
    for (const char *from = field->value; *from; ++from)
        if (!strchr("[]\" \t\r\n", *from)) *to++ = *from;
    *to = 0;
}

/* Reads an object and adds its members as fields, with `prefix` before their names. Adds the number
 * of members to *members. depth: number of objects around this one. */
static Status scan_object(JsonScan *s, HfFields *f, const char *prefix, int depth, int *members);

/* Reads a value and adds it as a field. Takes ownership of `name`. */
static Status scan_value(JsonScan *s, HfFields *f, char *name, int depth)
{
    HfKind kind = HF_TEXT;
    char *value = NULL;
    Status st;
    const char next = json_scan_peek(s);
    if (next == '{') {
        const int first = f->count;
        int members = 0;
        add(f, name, HF_OBJECT, NULL);
        char *prefix = mem_format("%s.", name);
        st = scan_object(s, f, prefix, depth + 1, &members);
        mem_free(&prefix);
        f->field[first].value = mem_text(members ? "{...}" : "{}");
        return st;
    }
    st = next == '"' ? json_scan_text(s, &value) : scan_plain(s, &kind, &value);
    if (st != OK)
        mem_free(&name);
    else
        join_texts(add(f, name, kind, value));
    return st;
}

static Status scan_object(JsonScan *s, HfFields *f, const char *prefix, int depth, int *members)
{
    bool more;
    if (depth == DEEPEST) return json_scan_fail(s, "nested more than %d deep", DEEPEST);
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *key = NULL;
        TRY(json_scan_key(s, &key));
        /* Members of objects are stored as OBJECT.MEMBER, so a name with a dot is refused. */
        const bool dot = depth == 0 && strchr(key, '.');
        char *name = mem_format("%s%s", prefix, key);
        mem_free(&key);
        if (dot) {
            const Status st = json_scan_fail(s, "the name %.80s has a dot", name);
            mem_free(&name);
            return st;
        }
        ++*members;
        TRY(scan_value(s, f, name, depth));
        TRY(json_scan_more(s, '}', &more));
    }
    return OK;
}

/* Fails if two fields have the same name: a member that occurs twice in its object, or a member
 * whose name has a dot and which gets the same name as a member of an inner object. */
static Status check_unique(const HfFields *f)
{
    const char **name = mem_new(((size_t)f->count + 1) * sizeof *name);
    int same = 0;
    for (int i = 0; i < f->count; ++i) name[i] = f->field[i].name;
    qsort(name, (size_t)f->count, sizeof *name, text_compare);
    for (int i = 1; i < f->count && !same; ++i)
        if (strcmp(name[i], name[i - 1]) == 0) same = i;
    Status st = same ? fail(ERR_DATA, "%s: %s appears twice", f->path, name[same]) : OK;
    mem_free(&name);
    return st;
}

Status hf_open(HfFields *f, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    int members = 0;
    *f = (HfFields){.path = path};
    TRY(file_text(path, DESCRIPTION_BYTES, &text, &bytes));
    JsonScan scan = json_scan(path, text, bytes);
    const bool wide =
        bytes > 1 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
    Status st = wide ? fail(ERR_DATA, "%s: is UTF-16: save it as UTF-8", path)
                     : scan_object(&scan, f, "", 0, &members);
    if (st == OK) st = json_scan_end(&scan);
    if (st == OK) st = check_unique(f);
    mem_free(&text);
    return st;
}

void hf_close(HfFields *f)
{
    for (int i = 0; i < f->count; ++i) {
        mem_free(&f->field[i].name);
        mem_free(&f->field[i].value);
    }
    mem_free(&f->field);
    f->count = 0;
}

const HfField *hf_find(HfFields *f, const char *name)
{
    for (int i = 0; i < f->count; ++i) {
        if (strcmp(f->field[i].name, name) != 0) continue;
        f->field[i].known = true;
        return &f->field[i];
    }
    return NULL;
}

const HfField *hf_value(HfFields *f, const char *name)
{
    const HfField *field = hf_find(f, name);
    const bool empty = field && field->kind == HF_OBJECT && strcmp(field->value, "{}") == 0;
    return !field || empty || field->kind == HF_NULL ? NULL : field;
}

Status hf_refuse(const HfFields *f, const HfField *field, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return fail(ERR_DATA, "%s: %s is %.80s: %s", f->path, field->name, field->value, why);
}

/* Returns the value as the description has it, with the quotes or brackets that hf_open has
 * removed. Owner: the caller. */
static char *written(const HfField *field)
{
    if (field->kind == HF_TEXT) return mem_format("\"%.80s\"", field->value);
    if (field->kind == HF_LIST && *field->value != '[') return mem_format("[%.80s]", field->value);
    return mem_format("%.80s", field->value);
}

Status hf_check_kind(const HfFields *f, const HfField *field, HfKind kind)
{
    static const char *const names[] = {"null",   "true or false", "a number",
                                        "a text", "a list",        "an object"};
    if (field->kind == kind) return OK;
    char *value = written(field);
    const char *is = field->kind == HF_BOOL ? "a truth value" : names[field->kind];
    Status st = fail(ERR_DATA, "%s: %s is %s, %s: expected %s", f->path, field->name, value, is,
                     names[kind]);
    mem_free(&value);
    return st;
}
