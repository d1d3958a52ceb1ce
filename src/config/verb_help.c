/* Prints the help of a verb and its part of the man page, from the verb's row and the rows of its
 * flags. Lines of help are at most COLUMNS wide. */
#include "option.h"

#include <string.h>

/* Columns are counted from 0. */
enum {
    /* largest width of a line */
    COLUMNS = 100,
    /* column at which the name of a flag begins */
    FLAG_COLUMN = 2,
    /* width of the column of flags' names */
    FLAG_WIDTH = 24,
    /* column at which the help of a flag begins */
    HELP_COLUMN = 27,
    /* indentation of the second line of the usage and of further lines */
    USAGE_INDENT = 4
};

/* the line that is being printed */
typedef struct Line {
    /* borrowed */
    FILE *out;
    /* column of the next character */
    int at;
    /* column at which the lines after this one begin */
    int indent;
} Line;

/* Prints a piece of text without breaking it. It is printed after a space or, if it does not fit,
 * on a new line. */
static void put_piece(Line *line, const char *text, int length)
{
    if (line->at > 0 && line->at + 1 + length > COLUMNS) {
        fprintf(line->out, "\n%*s", line->indent, "");
        line->at = line->indent;
    } else if (line->at > line->indent) {
        fputc(' ', line->out);
        ++line->at;
    }
    fwrite(text, 1, (size_t)length, line->out);
    line->at += length;
}

/* Returns the length of the next piece of the text: a word or, if the word is longer than a line,
 * its part up to the last '|' that fits. */
static int piece_length(const Line *line, const char *text)
{
    int length = (int)strcspn(text, " "), cut = COLUMNS - line->indent - 1;
    if (length <= cut) return length;
    while (cut > 0 && text[cut - 1] != '|') --cut;
    return cut > 0 ? cut : length;
}

static void put_words(Line *line, const char *text)
{
    for (; *text; text += strspn(text, " ")) {
        int length = piece_length(line, text);
        put_piece(line, text, length);
        text += length;
    }
}

void print_wrapped(FILE *out, int column, const char *text)
{
    put_words(&(Line){out, column, column}, text);
    fputc('\n', out);
}

/* Returns a flag's name and the placeholder of its value, "--mb MB"; the caller owns the text. */
static char *flag_text(const Flag *f)
{
    return mem_format("%s%s%s", f->name, f->value ? " " : "", f->value ? f->value : "");
}

/* Returns "--mb MB" and, in brackets, the flags that need this flag; the caller owns the text. */
static char *flag_usage(const Verb *verb, const Flag *f)
{
    char *text = flag_text(f);
    for (int i = 0; i < verb->flag_count; ++i) {
        const Flag *inner = &verb->flag[i];
        if (!inner->needs || strcmp(inner->needs, f->name) != 0) continue;
        char *within = flag_usage(verb, inner), *longer = mem_format("%s [%s]", text, within);
        mem_free(&within);
        mem_free(&text);
        text = longer;
    }
    return text;
}

static void print_usage(FILE *out, const Verb *verb)
{
    Line line = {.out = out, .indent = USAGE_INDENT};
    line.at = fprintf(out, "weft %s", verb->name);
    if (verb->words) put_words(&line, verb->words);
    for (int i = 0; i < verb->flag_count; ++i) {
        const Flag *f = &verb->flag[i];
        if (f->needs) continue;
        char *flag = flag_usage(verb, f);
        char *text = f->required ? mem_text(flag) : mem_format("[%s]", flag);
        put_piece(&line, text, (int)strlen(text));
        mem_free(&text);
        mem_free(&flag);
    }
}

/* Returns a flag's help with its range and its default, "size of the sum (0.001 to 4096; default
 * 45)". The caller owns the text. */
static char *flag_meaning(const Flag *f)
{
    char range[80] = "";
    if (f->kind == FLAG_WHOLE && f->hi >= INT32_MAX)
        snprintf(range, sizeof range, "at least %.0f", f->lo);
    else if (f->kind == FLAG_WHOLE)
        snprintf(range, sizeof range, "%.0f to %.0f", f->lo, f->hi);
    else if (f->kind == FLAG_NUMBER && f->lo_open)
        snprintf(range, sizeof range, "above %g, at most %.10g", f->lo, f->hi);
    else if (f->kind == FLAG_NUMBER)
        snprintf(range, sizeof range, "%g to %.10g", f->lo, f->hi);
    if (!*range && !f->default_text) return mem_text(f->help);
    return mem_format("%s (%s%s%s%s)", f->help, range, *range && f->default_text ? "; " : "",
                      f->default_text ? "default " : "", f->default_text ? f->default_text : "");
}

void verb_print_help(FILE *out, const Verb *verb)
{
    print_usage(out, verb);
    fprintf(out, "\n\n%s\n%s", verb->help, verb->flag_count ? "\n" : "");
    for (int i = 0; i < verb->flag_count; ++i) {
        char *name = flag_text(&verb->flag[i]), *meaning = flag_meaning(&verb->flag[i]);
        fprintf(out, "%*s%-*s ", FLAG_COLUMN, "", FLAG_WIDTH, name);
        print_wrapped(out, HELP_COLUMN, meaning);
        mem_free(&meaning);
        mem_free(&name);
    }
    if (!verb->more) return;
    fputc('\n', out);
    print_wrapped(out, 0, verb->more);
}

void verb_print_man(FILE *out, const Verb *verb)
{
    fprintf(out, ".TP\n.B weft %s\n", verb->name);
    if (verb->words && *verb->words) {
        print_roff(out, verb->words);
        fprintf(out, "\n.br\n");
    }
    print_roff(out, verb->help);
    fputc('\n', out);
    if (verb->flag_count) fprintf(out, ".RS\n");
    for (int i = 0; i < verb->flag_count; ++i) {
        char *name = flag_text(&verb->flag[i]), *meaning = flag_meaning(&verb->flag[i]);
        fprintf(out, ".TP\n.B ");
        print_roff(out, name);
        fputc('\n', out);
        print_roff(out, meaning);
        fputc('\n', out);
        mem_free(&meaning);
        mem_free(&name);
    }
    if (verb->flag_count) fprintf(out, ".RE\n");
}
