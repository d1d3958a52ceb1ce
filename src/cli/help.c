/* weft help: prints help texts, the man page, shell completion, the kinds of layer, and the rows of
 * all tables. */
#include "private.h"

#include "checkpoint.h"
#include "doctor.h"
#include "layers.h"
#include "tensor.h"

#include <string.h>

static bool in_group(const char *name, const char *group)
{
    size_t length = strlen(group);
    return !strncmp(name, group, length) && name[length] == ' ';
}

/* Lists the verbs of a group, or all verbs if `group` is NULL. */
static void list_verbs(FILE *out, const char *group)
{
    for (int i = 0; i < verb_count(); ++i) {
        if (group && !in_group(verb_at(i)->name, group)) continue;
        int column = fprintf(out, "  weft %-23s ", verb_at(i)->name);
        print_wrapped(out, column, verb_at(i)->help);
    }
}

void help_all(FILE *out)
{
    fprintf(out, "weft %s: trains neural networks, alone or on many ranks under MPI\n\n",
            WEFT_VERSION);
    list_verbs(out, NULL);
    fprintf(out,
            "\n`weft VERB --help` describes a command, `weft help` lists all keys of a "
            "configuration,\n`weft --version` prints the versions.\nExit codes: 0 done, 64 usage, "
            "65 bad data, 66 no input, 70 a bug in weft, 71 memory refused,\n74 input/output error "
            "or lost rank, 75 stopped early: start it again to continue,\n78 bad configuration.\n");
}

void help_group(FILE *out, const char *group)
{
    list_verbs(out, group);
}

void help_verb(FILE *out, const Verb *verb)
{
    verb_print_help(out, verb);
    if (!(verb->traits & VERB_CONFIG)) return;
    fprintf(out,
            "\nCONFIG is a YAML file; key=value on the command line sets any of its keys:\n\n");
    config_help(out);
}

static void print_man(FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *roff = open_memstream(&text, &size);
    if (!roff) die_as(ERR_MEMORY, "out of memory");
    for (int i = 0; i < verb_count(); ++i) verb_print_man(roff, verb_at(i));
    if (fclose(roff) != 0) die_as(ERR_MEMORY, "out of memory");
    config_man(out, text);
    mem_free(&text);
}

static void print_completion(FILE *out)
{
    const Verb **verbs = mem_new((size_t)verb_count() * sizeof *verbs);
    for (int i = 0; i < verb_count(); ++i) verbs[i] = verb_at(i);
    config_completion(out, verbs, verb_count());
    mem_free(&verbs);
}

static void print_layers(FILE *out)
{
    enum { COLUMN = 18 };
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i) {
        fprintf(out, "  %-15s ", kind->name);
        print_wrapped(out, COLUMN, kind->help);
        if (!kind->attrs) continue;
        char all[256] = "";
        for (const char *const *attr = kind->attrs; *attr; ++attr) {
            size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, attr[1] ? "%s, " : "%s", *attr);
        }
        fprintf(out, "%*s", COLUMN + 2, "");
        print_wrapped(out, COLUMN + 2, all);
    }
}

/* Prints a line "TABLE<tab>ROW<tab>MEANING" for each row of the tables that developers extend.
 * Pages of the manual are made from this list and checked against it. */
static void print_tables(FILE *out)
{
    const LayerKind *kind;
    const char *name, *help;
    for (int i = 0; i < verb_count(); ++i)
        fprintf(out, "verb\t%s\t%s\n", verb_at(i)->name, verb_at(i)->help);
    for (int i = 0; (name = doctor_check_name(i, &help)); ++i)
        fprintf(out, "check\t%s\t%s\n", name, help);
    for (int i = 0; (name = checkpoint_format_name(i, &help)); ++i)
        fprintf(out, "format\t%s\t%s\n", name, help);
    for (int i = 0; (name = checkpoint_family_name(i, &help)); ++i)
        fprintf(out, "family\t%s\t%s\n", name, help);
    for (int i = 0; (kind = layer_kind_at(i)); ++i)
        fprintf(out, "layer\t%s\t%s\n", kind->name, kind->help);
    config_tables(out);
}

typedef struct HelpOptions {
    bool man, completion, layers, tables;
} HelpOptions;

static const Flag flags[] = {
    {"--man", FLAG_FIELD(HelpOptions, man), .help = "print the manual page, in roff"},
    {"--layers", FLAG_FIELD(HelpOptions, layers),
     .help = "print the kinds of layer and their attributes"},
    {"--tables", FLAG_FIELD(HelpOptions, tables),
     .help = "print verbs, layers, keys and their values, checks and formats: one per line, "
             "separated by tabs"},
    {"--completion", FLAG_FIELD(HelpOptions, completion),
     .help = "print a completion script for "
             "bash"},
};

static Status run(int argc, char **argv, const void *options)
{
    const HelpOptions *o = options;
    if (argc > 0) return fail(ERR_USAGE, "`weft %s --help` is the help of a verb", argv[0]);
    if (o->man) print_man(stdout);
    if (o->completion) print_completion(stdout);
    if (o->layers) print_layers(stdout);
    if (o->tables) print_tables(stdout);
    if (o->man || o->completion || o->layers || o->tables) return OK;
    help_all(stdout);
    fprintf(stdout, "\nKeys of a configuration:\n\n");
    config_help(stdout);
    return OK;
}

const Verb verb_help = {
    .name = "help",
    .help = "prints this list and all keys of a configuration",
    VERB_FLAGS(HelpOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
