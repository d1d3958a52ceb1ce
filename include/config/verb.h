/* The rows of verbs and their flags. Parsing, checks, messages, help, the man page and completion
 * are made from these rows. Not collective. */
#ifndef WEFT_CONFIG_VERB_H
#define WEFT_CONFIG_VERB_H

#include "base.h"

#include <stddef.h>
#include <stdio.h>

/* Kinds of flags, by their value: none, a text, a whole number, a number, one of several words, a
 * list of words. */
typedef enum FlagKind {
    FLAG_SWITCH,
    FLAG_TEXT,
    FLAG_WHOLE,
    FLAG_NUMBER,
    FLAG_CHOICE,
    FLAG_LIST
} FlagKind;
/* The value of a FLAG_LIST: words that were separated by commas. No word is empty. */
typedef struct FlagList {
    int count;
    /* [count]; owned; verb_options_fini releases it */
    char **word;
} FlagList;
/* One flag of a verb. */
typedef struct Flag {
    /* name with its dashes: "--steps", "-o" */
    const char *name;
    FlagKind kind;
    /* offset of the flag's field in the verb's options; FLAG_FIELD sets `offset` and `kind` */
    size_t offset;
    /* placeholder of the value in the help: "S"; for FLAG_CHOICE its words: "cpu|cuda"; NULL for
     * FLAG_SWITCH */
    const char *value;
    /* help text; messages quote it up to the first ';' */
    const char *help;
    /* default value, as a user would write it; NULL: there is none (see verb_options_init) */
    const char *default_text;
    /* smallest and largest value of a number; of a whole number hi is at most FLAG_WHOLE_MAX */
    double lo, hi;
    /* true: a FLAG_NUMBER must be above lo, not equal to it */
    bool lo_open;
    /* true: the flag must be given */
    bool required;
    /* true: the value is the path of a file that the verb writes, which no other word or flag may
     * name */
    bool writes;
    /* name of another flag that must be given with this one; NULL: none */
    const char *needs;
    /* name of another flag that must not be given with this one; NULL: none */
    const char *excludes;
} Flag;
#define FLAG_WHOLE_MAX 0x1p53 /* a double represents every whole number up to this one */
/* Sets .offset, and sets .kind from the type of the field, so that kind and type always agree. */
#define FLAG_FIELD(Options, field)                                                                 \
    .kind = _Generic(((Options *)0)->field,                                                        \
        bool: FLAG_SWITCH,                                                                         \
        const char *: FLAG_TEXT,                                                                   \
        int64_t: FLAG_WHOLE,                                                                       \
        double: FLAG_NUMBER,                                                                       \
        int: FLAG_CHOICE,                                                                          \
        FlagList: FLAG_LIST),                                                                      \
    .offset = offsetof(Options, field)
/* Rows of the flags -o OUT, which is required, and --force, for verbs that write a file. */
#define FLAG_OUT(Options, field, text)                                                             \
    {                                                                                              \
        "-o", FLAG_FIELD(Options, field), .value = "OUT", .required = true, .writes = true,        \
                                          .help = (text)                                           \
    }
#define FLAG_FORCE(Options, field)                                                                 \
    {                                                                                              \
        "--force", FLAG_FIELD(Options, field), .help = "overwrite existing files"                  \
    }

enum {
    /* the verb has none of the other traits; verb_check refuses 0, which means that .traits was
     * forgotten */
    VERB_NO_TRAITS = 32,
    /* the first word is the path of a configuration file, the other words are key=value */
    VERB_CONFIG = 1,
    /* data.train must be set; only together with VERB_CONFIG */
    VERB_DATA = 2,
    /* the verb computes with OpenMP */
    VERB_THREADS = 4,
    /* the verb runs for a long time: signals request a stop (stop_begin), and a failed write to
     * stdout is only a warning */
    VERB_LONG_RUNNING = 8,
    /* the verb starts ranks itself, so -n is one of its own flags */
    VERB_STARTS_RANKS = 16
};
/* One verb (subcommand) of weft. Each import is a verb, too. */
typedef struct Verb {
    /* name: "train", "data import idx" */
    const char *name;
    /* usage of the words after the name: "CONFIG [key=value ...]"; NULL: the verb has no words */
    const char *words;
    /* smallest number of words; checked only if `expects` is not NULL */
    int words_min;
    /* largest number of words, 0: no limit; checked only if `expects` is not NULL */
    int words_max;
    /* description of the words for an error message: "two checkpoint files"; NULL: `run` checks the
     * words itself */
    const char *expects;
    /* help text of one line */
    const char *help;
    /* further text for `weft NAME --help`; NULL: none */
    const char *more;
    /* flags of the verb, [flag_count] */
    const Flag *flag;
    int flag_count;
    /* bytes of the struct with the verb's options */
    size_t options_bytes;
    /* VERB_ bits */
    int traits;
    /* Runs the verb. argv: the words that are no flags; options: the struct that the flags
     * filled. */
    Status (*run)(int argc, char **argv, const void *options);
} Verb;
/* Sets the flags of a verb and the size of its options. */
#define VERB_FLAGS(Options, rows)                                                                  \
    .flag = (rows), .flag_count = sizeof(rows) / sizeof *(rows), .options_bytes = sizeof(Options)

/* Fills options, which is zeroed memory of verb->options_bytes, with the defaults and with the
 * flags on the command line. The words that are no flags move to the front of argv, in their order;
 * *argc is their number. All words after "--" are no flags. A flag that is not given and has no
 * default gets false (switch), lo - 1 (whole number), NaN (number), -1 (choice), NULL (text) or an
 * empty list. Texts are borrowed from argv or the row. ERR_USAGE: a flag or its value is wrong, or
 * a file that a flag writes is named as an input. Release with verb_options_fini, also after an
 * error. */
Status verb_options_init(const Verb *verb, int *argc, char **argv, void *options);
void verb_options_fini(const Verb *verb, void *options);
/* Checks the rows of a verb and its flags. ERR_BUG: a row is incomplete or contradicts itself. */
Status verb_check(const Verb *verb);
/* Returns the row of the flag with this name, or NULL. */
const Flag *flag_find(const Verb *verb, const char *name);
/* Reads the whole number at the beginning of *text and moves *text past it. Returns false, and
 * changes nothing, if there is no number, or if it is not in lo .. hi. */
bool whole_read(const char **text, int64_t lo, int64_t hi, int64_t *value);
/* Reads `count` whole numbers from 1 to INT32_MAX, separated by x: "3x224x224". Returns false for
 * any other text. */
bool sizes_read(const char *text, int count, int64_t *size);

/* Prints usage, help and flags of a verb, at most 100 columns wide. */
void verb_print_help(FILE *out, const Verb *verb);
/* Prints a verb's part of the man page. */
void verb_print_man(FILE *out, const Verb *verb);
/* Prints text and ends the line. The text begins at `column`, where the caller has ended its own
 * output, and is wrapped at column 100; further lines begin at `column`, too. */
void print_wrapped(FILE *out, int column, const char *text);

#endif
