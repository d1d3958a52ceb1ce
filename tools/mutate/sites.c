/* Finds sites by the statements of function bodies. It assumes code that compiles and that
 * clang-format has laid out; it knows no types, so some sites do not compile when they are
 * changed. Initial values of static variables, sizes of arrays and the third part of a for are left
 * out, and removed calls that only release memory: LeakSanitizer sees those (make asan). */
#include "sites.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Finder {
    Source *source;
    int file;
    Sites *sites;
    /* from here to line_at there are `line` line feeds */
    size_t line_at;
    int line;
} Finder;

void *array_grow(void *items, int count, size_t item_bytes)
{
    if (count & (count - 1)) return items;
    void *more = realloc(items, (size_t)(count ? 2 * count : 1) * item_bytes);
    if (!more) {
        fprintf(stderr, "mutate: out of memory\n");
        exit(71);
    }
    return more;
}

/* Replaces comments, the characters of texts and preprocessor lines by blanks; line feeds and
 * quotes stay. */
static void blank_text(char *code)
{
    bool line_start = true;
    for (char *p = code; *p;) {
        char *begin = p, *end = p;
        if (p[0] == '/' && p[1] == '*') {
            end = strstr(p + 2, "*/") + 2;
        } else if (*p == '"' || *p == '\'') {
            for (begin = end = p + 1; *end && *end != *p;) end += 1 + (*end == '\\');
        } else if (*p == '#' && line_start) {
            while (*end && (*end != '\n' || end[-1] == '\\')) ++end;
        }
        line_start = (line_start && isspace((unsigned char)*p)) || *p == '\n';
        for (; begin < end; ++begin) *begin = *begin == '\n' ? '\n' : ' ';
        p = end > p ? end + (*p == '"' || *p == '\'') : p + 1;
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t skip_space(const char *code, size_t p)
{
    while (isspace((unsigned char)code[p])) ++p;
    return p;
}

static size_t skip_word(const char *code, size_t p)
{
    while (is_word(code[p])) ++p;
    return p;
}

static bool word_is(const char *code, size_t p, const char *word)
{
    size_t length = strlen(word);
    return !strncmp(code + p, word, length) && !is_word(code[p + length]);
}

static bool word_in(const char *code, size_t p, const char *const *words)
{
    while (*words && !word_is(code, p, *words)) ++words;
    return *words;
}

/* Returns the offset after the bracket that closes the one at p. */
static size_t skip_brackets(const char *code, size_t p)
{
    int depth = 0;
    for (; code[p]; ++p) {
        depth += strchr("([{", code[p]) ? 1 : strchr(")]}", code[p]) ? -1 : 0;
        if (depth == 0) return p + 1;
    }
    return p;
}

/* Returns the offset of the first of the characters `stops` outside brackets, or `end`. */
static size_t find_outside(const char *code, size_t p, size_t end, const char *stops)
{
    while (p < end && !strchr(stops, code[p]))
        p = strchr("([{", code[p]) ? skip_brackets(code, p) : p + 1;
    return p;
}

static int line_of(Finder *f, size_t at)
{
    if (at < f->line_at) f->line_at = 0, f->line = 1;
    for (; f->line_at < at; ++f->line_at) f->line += f->source->text[f->line_at] == '\n';
    return f->line;
}

static void add_site(Finder *f, size_t at, size_t length, const char *with, const char *what)
{
    Sites *s = f->sites;
    s->site = array_grow(s->site, s->count, sizeof *s->site);
    s->site[s->count++] = (Site){.file = f->file,
                                 .region = f->source->regions - 1,
                                 .line = line_of(f, at),
                                 .at = at,
                                 .length = length,
                                 .with = with,
                                 .what = what};
}

static const struct {
    const char *from, *to;
} exchanges[] = {
    {"<=", "<"},
    {">=", ">"},
    {"==", "!="},
    {"!=", "=="},
    {"&&", "||"},
    {"||", "&&"},
    {"+=", "-="},
    {"-=", "+="},
    {"<", "<="},
    {">", ">="},
    {"+", "-"},
    {"-", "+"},
    {"0", "1"},
    {"1", "0"},
    {"true", "false"},
    {"false", "true"},
    {"fmin", "fmax"},
    {"fmax", "fmin"},
    {"fminf", "fmaxf"},
    {"fmaxf", "fminf"},
    {"MPI_MIN", "MPI_MAX"},
    {"MPI_MAX", "MPI_MIN"},
};
static const char *const longer[] = {"<<=", ">>=", "<<", ">>", "->", "++", "--", NULL};

/* The text between two offsets without blanks; at most 99 characters. */
static void squeeze(const char *code, size_t begin, size_t end, char out[100])
{
    size_t n = 0;
    for (; begin < end && n < 99; ++begin)
        if (!isspace((unsigned char)code[begin])) out[n++] = code[begin];
    out[n] = '\0';
}

/* Is the comparison at p, of `length` characters, the condition of a minimum or maximum, as in
 * a < b ? a : b? */
static bool chooses_extreme(const char *code, const Region *r, size_t p, size_t length)
{
    size_t question = find_outside(code, p, r->end, "?;,)");
    if (question >= r->end || code[question] != '?') return false;
    size_t colon = find_outside(code, question, r->end, ":;,)"), begin = p;
    size_t end = find_outside(code, colon + 1, r->end, ";,)?");
    while (begin > r->begin && !strchr("=:,;", code[begin - 1])) --begin;
    begin += (size_t)(code[begin] == '(');
    char left[100], right[100], yes[100], no[100];
    squeeze(code, begin, p, left);
    squeeze(code, p + length, question, right);
    squeeze(code, question + 1, colon, yes);
    squeeze(code, colon + 1, end, no);
    return (!strcmp(left, yes) && !strcmp(right, no)) || (!strcmp(left, no) && !strcmp(right, yes));
}

/* Returns the length of the operator, number or word at p; adds its site if it can be exchanged.
 * binary: an operand stands before it. */
static size_t visit_token(Finder *f, size_t p, bool binary)
{
    const char *code = f->source->code;
    const Region *r = &f->source->region[f->source->regions - 1];
    for (const char *const *l = longer; *l; ++l)
        if (!strncmp(code + p, *l, strlen(*l))) return strlen(*l);
    size_t word = skip_word(code, p) - p;
    if (isdigit((unsigned char)code[p]))
        while (is_word(code[p + word]) || code[p + word] == '.') ++word;
    for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; ++i) {
        size_t length = strlen(exchanges[i].from);
        if (strncmp(code + p, exchanges[i].from, length) || (word && word != length)) continue;
        bool extreme = strchr("<>", *exchanges[i].from) && chooses_extreme(code, r, p, length);
        const char *with = !extreme ? exchanges[i].to : code[p] == '<' ? ">" : "<";
        if (word || binary) add_site(f, p, length, with, NULL);
        return length;
    }
    return word ? word : 1;
}

/* Does the statement at p only release memory? */
static bool releases(const char *code, size_t p)
{
    static const char *const ends[] = {"free", "_fini"};
    size_t end = skip_word(code, p);
    for (int i = 0; i < 2; ++i) {
        size_t length = strlen(ends[i]);
        if (end >= p + length && !strncmp(code + end - length, ends[i], length)) return true;
    }
    return false;
}

static void add_whole(Finder *f, const Region *r, const char *what)
{
    add_site(f, r->begin, r->end - r->begin, NULL, what);
}

static const char *const fixed[] = {"0", "1", "OK", "true", "false", "NULL", NULL};

static void add_region(Finder *f, RegionKind kind, size_t begin, size_t end)
{
    Source *s = f->source;
    const char *code = s->code;
    begin = skip_space(code, begin);
    while (end > begin && isspace((unsigned char)code[end - 1])) --end;
    if (end <= begin || code[begin] == '{') return;
    s->region = array_grow(s->region, s->regions, sizeof *s->region);
    s->region[s->regions++] = (Region){kind, begin, end, line_of(f, begin), line_of(f, end), false};
    Region r = s->region[s->regions - 1];
    bool literal = word_in(code, begin, fixed) && skip_word(code, begin) == end;
    if (kind == REGION_CONDITION) add_whole(f, &r, "1");
    if (kind == REGION_CONDITION || kind == REGION_LOOP) add_whole(f, &r, "0");
    if (kind == REGION_RETURN && !literal) add_whole(f, &r, "0");
    if (kind == REGION_RETURN && word_is(code, begin, "OK")) add_whole(f, &r, "1");
    if (kind == REGION_STATEMENT && code[begin] != '(' && !releases(code, begin))
        add_whole(f, &r, "");
    bool operand = false;
    for (size_t p = begin; p < end;) {
        if (isspace((unsigned char)code[p])) {
            ++p;
            continue;
        }
        size_t length = visit_token(f, p, operand);
        operand = is_word(code[p]) || strchr(")]", code[p]);
        p += length;
    }
}

static const char *const types[] = {"const",  "struct",   "enum", "union", "unsigned",
                                    "signed", "char",     "int",  "float", "double",
                                    "long",   "volatile", "bool", NULL};
static const char *const constants[] = {"static",         "typedef",  "extern",
                                        "_Static_assert", "_Alignas", NULL};

static bool is_declaration(const char *code, size_t p)
{
    if (word_in(code, p, types)) return true;
    size_t next = skip_space(code, skip_word(code, p));
    if (next == p) return false;
    while (code[next] == '*') ++next;
    return is_word(code[next]) && !isdigit((unsigned char)code[next]) && next > skip_word(code, p);
}

/* The right sides of a declaration or of the first part of a for; end: its semicolon. */
static void visit_values(Finder *f, size_t p, size_t end)
{
    const char *code = f->source->code;
    while (p < end) {
        size_t equals = find_outside(code, p, end, "=,");
        if (equals >= end) return;
        p = code[equals] == '=' ? find_outside(code, equals, end, ",") : equals;
        if (code[equals] == '=') add_region(f, REGION_VALUE, equals + 1, p);
        ++p;
    }
}

static size_t visit_statement(Finder *f, size_t p);

/* An if, while, for or switch whose word ends at p. */
static size_t visit_head(Finder *f, size_t word, size_t p)
{
    const char *code = f->source->code;
    size_t open = skip_space(code, p), close = skip_brackets(code, open);
    bool is_if = word_is(code, word, "if");
    if (word_is(code, word, "for")) {
        size_t first = find_outside(code, open + 1, close, ";");
        size_t second = find_outside(code, first + 1, close, ";");
        visit_values(f, open + 1, first);
        add_region(f, REGION_LOOP, first + 1, second);
    } else if (!word_is(code, word, "switch")) {
        add_region(f, is_if ? REGION_CONDITION : REGION_LOOP, open + 1, close - 1);
    }
    p = visit_statement(f, close);
    size_t next = skip_space(code, p);
    return is_if && word_is(code, next, "else") ? visit_statement(f, next + 4) : p;
}

/* A declaration, an expression or a jump. */
static size_t visit_simple(Finder *f, size_t p)
{
    const char *code = f->source->code;
    size_t end = find_outside(code, p, f->source->size, ";"), word = skip_word(code, p);
    if (word_is(code, p, "return"))
        add_region(f, REGION_RETURN, word, end);
    else if (word_in(code, p, constants))
        return end + 1;
    else if (is_declaration(code, p) && !word_is(code, p, "goto"))
        visit_values(f, p, end);
    else
        add_region(f, REGION_STATEMENT, p, end + 1);
    return end + 1;
}

static size_t visit_statement(Finder *f, size_t p)
{
    static const char *const heads[] = {"if", "while", "for", "switch", NULL};
    const char *code = f->source->code;
    p = skip_space(code, p);
    size_t end = skip_word(code, p), after = skip_space(code, end);
    if (code[p] == ';') return p + 1;
    if (code[p] == '{') {
        for (p = skip_space(code, p + 1); code[p] && code[p] != '}';)
            p = skip_space(code, visit_statement(f, p));
        return p + 1;
    }
    if (word_in(code, p, heads)) return visit_head(f, p, end);
    if (word_is(code, p, "do")) {
        p = skip_space(code, visit_statement(f, end));
        return visit_head(f, p, p + 5);
    }
    if (word_is(code, p, "case") || word_is(code, p, "default"))
        return visit_statement(f, find_outside(code, p, f->source->size, ":") + 1);
    if (end > p && code[after] == ':') return visit_statement(f, after + 1);
    if (end > p && code[after] == '(' && !word_is(code, p, "return")) { /* a macro with a body */
        size_t body = skip_space(code, skip_brackets(code, after));
        if (code[body] == '{') return visit_statement(f, body);
    }
    return visit_simple(f, p);
}

void sites_find(Source *sources, int file, Sites *sites)
{
    Source *s = &sources[file];
    Finder finder = {.source = s, .file = file, .sites = sites, .line = 1};
    blank_text(s->code);
    char before = ' ';
    for (size_t p = 0; s->code[p];) {
        if (s->code[p] == '{') {
            p = before == ')' ? visit_statement(&finder, p) : skip_brackets(s->code, p);
            before = '}';
            continue;
        }
        if (!isspace((unsigned char)s->code[p])) before = s->code[p];
        ++p;
    }
}
