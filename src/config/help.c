/* Prints the help of all keys and the man page, from the option table. For each key there is a line
 * with its meaning, and a line with its type, range, unit and default. */
#include "option.h"

/* column at which help texts begin, after the keys; counted from 0 */
enum { HELP_COLUMN = 27 };

/* Prints type, range, default and unit of a key, and the words with another default: "INT, at least
 * 1; default: 128 samples". */
static void print_type(FILE *out, const Option *o)
{
    char range[RANGE_CHARS];
    const char *words = option_words(o);
    fprintf(out, "%s%s", o->kind == &kind_word_set && *words ? "list of " : "", words);
    if (o->kind == &kind_resume && *words) fputc('|', out);
    if (o->kind == &kind_resume || !*words) fputs(o->kind->name, out);
    if (*option_range(o, false, range)) fprintf(out, ", %s", range);
    if (o->unset)
        fprintf(out, "; default: %s", o->unset);
    else
        fprintf(out, "; default: %s", o->default_text);
    if (o->unit && !o->unset) fprintf(out, " %s", o->unit);
    if (o->unit && o->unset) fprintf(out, "; in %s", o->unit);
    char *word_defaults = option_word_defaults(o);
    fputs(word_defaults, out);
    mem_free(&word_defaults);
}

/* Returns what print_type prints; the caller owns it. */
static char *type_text(const Option *o)
{
    char *type = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&type, &size);
    if (!memory) die_as(ERR_MEMORY, "out of memory");
    print_type(memory, o);
    if (fclose(memory) != 0) die_as(ERR_MEMORY, "out of memory");
    return type;
}

void config_help(FILE *out)
{
    for (int s = 0; s < section_count; ++s) {
        fprintf(out, "%s%s: %s\n", s ? "\n" : "", sections[s].name, sections[s].help);
        for (int i = 0; i < option_count; ++i) {
            if (!option_is_in(&options[i], sections[s].name)) continue;
            char *type = type_text(&options[i]), *help = option_help(&options[i]);
            fprintf(out, "  %-24s ", options[i].key);
            print_wrapped(out, HELP_COLUMN, help);
            fprintf(out, "%*s", HELP_COLUMN + 2, "");
            print_wrapped(out, HELP_COLUMN + 2, type);
            mem_free(&type);
            mem_free(&help);
        }
    }
}

/* Prints the line of config_tables for each word that the key accepts. */
static void print_word_rows(FILE *out, const Option *o)
{
    char word[WORD_BYTES];
    const char *words = option_words(o);
    for (int i = 0; i < words_count(words); ++i) {
        const char *help = o->word_help ? o->word_help[i] : option_word(o, i).help;
        fprintf(out, "%s\t%s\t%s\n", o->key, words_at(words, i, word), help ? help : "");
    }
}

void config_tables(FILE *out)
{
    for (int i = 0; i < option_count; ++i) {
        char *help = option_help(&options[i]);
        fprintf(out, "key\t%s\t%s\n", options[i].key, help);
        mem_free(&help);
        print_word_rows(out, &options[i]);
    }
}

/* Prints each '-' as a minus, so that it is not set as a hyphen, and allows a line break after each
 * '|'. */
void print_roff(FILE *out, const char *text)
{
    for (const char *c = text; *c; ++c) {
        bool line_start = c == text || c[-1] == '\n';
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-')
            fputs("\\-", out);
        else if (*c == '|')
            fputs("|\\:", out);
        else if (line_start && (*c == '.' || *c == '\''))
            fprintf(out, "\\&%c", *c);
        else
            fputc(*c, out);
    }
}

static void man_option(FILE *out, const Option *o)
{
    char *type = type_text(o), *help = option_help(o);
    fputs(".TP\n.B ", out);
    print_roff(out, o->key);
    fputc('\n', out);
    print_roff(out, help);
    fputs("\n.br\n", out);
    print_roff(out, type);
    fputc('\n', out);
    mem_free(&type);
    mem_free(&help);
}

static const char man_head[] =
    ".SH NAME\nweft \\- train neural networks under MPI\n"
    ".SH SYNOPSIS\n.B weft\n.I verb\n.RI [ options ]\n.RI [ config ]\n.RI [ key = value \" ...]\"\n"
    ".SH DESCRIPTION\nweft trains neural networks, alone or on many ranks started by\n"
    ".BR mpirun (1)\nor\n.BR srun (1),\n"
    "from data sets in HDF5. One YAML file describes a run; each of its keys can also be set\n"
    "on the command line as\n.IR section.key = value .\n";

static const char man_tail[] =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nDone.\n.TP\n.B 64\nThe command line is wrong.\n"
    ".TP\n.B 65\nA file's content is wrong.\n.TP\n.B 66\nA file is missing.\n"
    ".TP\n.B 70\nA bug in weft.\n.TP\n.B 71\nThe system refused memory.\n"
    ".TP\n.B 74\nReading or writing failed, or a rank was lost before there was a checkpoint.\n"
    ".TP\n.B 75\nStopped early, or a rank was lost: the same command resumes from the newest "
    "checkpoint.\n"
    ".TP\n.B 78\nThe configuration is wrong.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B NO_COLOR\nNo colour on terminals.\n"
    ".TP\n.BR OMP_WAIT_POLICY \", \" GOMP_SPINCOUNT\n"
    "How idle threads wait; weft chooses if neither is set.\n"
    ".SH EXAMPLES\n.nf\n"
    "weft data import idx images.gz labels.gz \\-o train.h5\n"
    "weft train \\-n 2 fashion.yaml train.epochs=2\n"
    "weft eval fashion.yaml \\-\\-json\n.fi\n"
    ".SH SEE ALSO\n.BR mpirun (1),\n.BR h5dump (1)\n";

void config_man(FILE *out, const char *verbs_roff)
{
    fprintf(out, ".TH WEFT 1 \"\" \"weft %s\" \"User Commands\"\n.ad l\n%s", WEFT_VERSION,
            man_head);
    fprintf(out, ".SH COMMANDS\n%s", verbs_roff);
    fputs(".SH CONFIGURATION\nA YAML file with these sections. Unknown keys are errors.\n", out);
    for (int s = 0; s < section_count; ++s) {
        fprintf(out, ".SS %s\n", sections[s].name);
        print_roff(out, sections[s].help);
        fputc('\n', out);
        for (int i = 0; i < option_count; ++i)
            if (option_is_in(&options[i], sections[s].name)) man_option(out, &options[i]);
    }
    fputs(man_tail, out);
}
