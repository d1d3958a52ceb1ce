/* The option table: one entry for each key. Parsing, overrides, defaults, the resolved
 * configuration, help, man page and completion are loops over this table; no other list of keys
 * exists. */
#ifndef WEFT_CONFIG_OPTION_H
#define WEFT_CONFIG_OPTION_H

#include "config.h"
#include "config/yaml.h"

typedef struct Option Option;

/* Arguments and result of reading one value. Readers fail with ERR_CONFIG and a message without
 * file and line; the caller adds file and line of `at`. */
typedef struct Reading {
    const Option *option;
    Config *config;
    /* the node that is read; after an error the node at fault, which may be inside the node that is
     * read */
    const Node *at;
    /* true: the value is the table's default, which may be out of range if the default means "not
     * set" */
    bool is_default;
} Reading;

/* A kind of value: how it is read, printed and freed. */
typedef struct OptionKind {
    /* name in the help: "INT" */
    const char *name;
    /* true: a value may be a YAML list or mapping: [a, b], {a: b} */
    bool list;
    /* replaces the value in the field by that of the node; field is NULL for OPTION_NO_FIELD */
    Status (*read)(Reading *reading, void *field, const Node *node);
    /* prints the value as YAML */
    void (*print)(FILE *out, const Option *option, const Config *config);
    /* NULL: the field owns nothing */
    void (*free)(void *field);
} OptionKind;
extern const OptionKind kind_int, kind_real, kind_bytes, kind_bool, kind_text, kind_enum,
    kind_duration;
extern const OptionKind kind_resume, kind_schedule;
extern const OptionKind kind_files, kind_flags, kind_ints, kind_reals, kind_names, kind_layers,
    kind_groups, kind_widths, kind_pairs, kind_variables, kind_window, kind_times, kind_patch;

struct Option {
    /* "train.batch" */
    const char *key;
    const OptionKind *kind;
    /* offset of the field in Config; OPTION_NO_FIELD: the value is only checked */
    size_t offset;
    /* the default, as a user would write it */
    const char *default_text;
    /* if the default means "not set": text for the help instead of the default; else NULL */
    const char *unset;
    /* kind_int: range. kind_text, kind_files: min is the minimum length in bytes */
    int64_t min, max;
    /* range of kind_real, of kind_bytes and of items of lists */
    double lo, hi;
    /* true: lo, or hi, is itself not in the range */
    bool lo_open, hi_open;
    /* kind_enum, kind_flags: "a|b|c", numbered from 0 (kind_flags: bit numbers); NULL: see
     * option_words */
    const char *words;
    /* help of each word in `words`, one line each; NULL: see option_word */
    const char *const *word_help;
    /* true: entries of optim.groups may set the key, too */
    bool grouped;
    /* true: the key is a constant of update rules; ConfigWord.uses of the words of optim.name says
     * which rules use it */
    bool constant;
    /* unit of the value for help and messages; NULL: none */
    const char *unit;
    /* help, one line. If only some words of another key of the section use this key
     * (ConfigWord.uses), option_help puts these words in front, and the help begins with a small
     * letter. */
    const char *help;
};
#define OPTION_NO_FIELD ((size_t)-1)

typedef struct Section {
    const char *name, *help;
} Section;

extern const Option options[];
/* the key `roles` of an entry of optim.groups; each of its words is a bit */
extern const Option group_roles;
extern const int option_count;
extern const Section sections[];
extern const int section_count;

/* Returns the index of a key in options, or -1. */
int option_find(const char *key);
/* Returns the last part of the key: "batch" of "train.batch". */
const char *option_leaf(const Option *option);
bool option_is_in(const Option *option, const char *section);
/* Return the option's field in config, to write or to read; NULL for OPTION_NO_FIELD. */
void *option_field(const Option *option, Config *config);
const void *option_value(const Option *option, const Config *config);
/* Sets the field to the option's default. */
Status option_set_default(const Option *option, Config *config);
enum { RANGE_CHARS = 80 };
/* Writes the range as text ("at least 1"), or "" if there is none, into out and returns it.
 * show_max: include the upper limit even if it is only the largest number of its type. */
char *option_range(const Option *option, bool show_max, char out[RANGE_CHARS]);

/* The source of a key's value, and the position in that source. A larger Source overrides a smaller
 * one. */
typedef enum Source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_COMMAND } Source;
typedef struct ConfigPlace {
    Source source;
    /* SOURCE_FILE: position of the key, counted from 1 */
    int line, column;
    /* SOURCE_COMMAND: the whole override, "train.batch=64"; owned */
    char *word;
} ConfigPlace;

/* Returns the option's words, from the table or registered by config_use_words; "" if there are
 * none. */
const char *option_words(const Option *option);
/* Returns the registered word for this value of the option. Its .word is NULL if the option has no
 * registered words, or none for this value. */
ConfigWord option_word(const Option *option, int value);

/* Returns the words of `option` that use the key `leaf`, joined with `between`: "sgd, muon". The
 * caller owns the text. */
char *option_users(const Option *option, const char *leaf, const char *between);
/* Returns the option's help, preceded by the words of its section that use the option: "sgd, muon:
 * momentum factor." The caller owns the text. */
char *option_help(const Option *option);
/* Returns the words for which the option has another default: "; muon: 0.95". The caller owns the
 * text. */
char *option_word_defaults(const Option *option);
/* Sets the option to its default for this word, if there is one. */
Status option_set_word_default(const Option *option, Config *config, ConfigWord word);

/* Returns the number of words in "a|b|c"; NULL and "" have none. */
int words_count(const char *words);
enum { WORD_BYTES = 64 };
/* Copies word i into out and returns it. */
char *words_at(const char *words, int i, char out[WORD_BYTES]);
/* Returns the index of a word, or -1. */
int words_find(const char *words, const char *word);
/* Returns "a, b, c"; the caller owns it. */
char *words_text(const char *words);
/* Fails with ERR_CONFIG: "'sdg' is none of: sgd, adam; did you mean 'sgd'?". key: the key that
 * takes these words. */
Status words_fail(const char *key, const char *words, const char *word);

/* Read one scalar, a key's value or an item of a list, and check it by the range of
 * reading->option. read_text only checks: the text is node->text. */
Status read_whole(Reading *reading, const Node *node, int64_t *value);
Status read_real(Reading *reading, const Node *node, double *value);
Status read_text(Reading *reading, const Node *node);
/* Prints text as a YAML scalar, in quotes if needed. */
void print_text(FILE *out, const char *text);

/* Prints text for the man page, with roff's own characters escaped. */
void print_roff(FILE *out, const char *text);

/* Errors in a file and on the command line, which are collected and reported together. */
enum { FAULTS_SHOWN_MAX = 20, FAULTS_BYTES = 3800 };
typedef struct Faults {
    /* number of errors added, and of errors whose message is in `text` */
    int count, shown;
    /* length of text in bytes */
    size_t used;
    /* status of the first error */
    Status status;
    /* the errors' messages, a line each */
    char text[FAULTS_BYTES];
} Faults;
/* Adds the message of the last failure, unless status is OK. Beyond FAULTS_SHOWN_MAX messages or
 * FAULTS_BYTES, errors are only counted. */
void faults_add(Faults *faults, Status status);
/* Returns OK, or fails once, with the first error's status, the messages in `text` and the number
 * of the other errors. */
Status faults_end(const Faults *faults);

/* apply.c: apply_tree sets the keys of a file's tree; apply_override sets one key from a word
 * key=value of the command line. */
void apply_tree(Config *config, const Node *root, Faults *faults);
Status apply_override(Config *config, const char *word);
/* rules.c: checks the rules across keys, and sets defaults that depend on other keys. */
Status apply_rules(Config *config);

/* Sets OptimGroup.resolved of all entries of optim.groups. */
Status groups_resolve(Config *config);
/* Reads `pairs`, such as "momentum=0.95 nesterov=true", into optim, but skips keys whose optim_bit
 * is set in `given`. */
Status optim_set_defaults(Config *config, OptimConfig *optim, const char *pairs, uint64_t given);
/* Returns the bit of an option of section optim in OptimGroup.given. */
uint64_t optim_bit(const Option *option);

#endif
