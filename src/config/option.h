/* The option table, with an entry for each key. Parsing, overrides, defaults, the resolved
 * configuration, help, man page and completion are loops over this table; no other list of all keys
 * exists. */
#ifndef WEFT_CONFIG_OPTION_H
#define WEFT_CONFIG_OPTION_H

#include "config.h"
#include "config/yaml.h"

typedef struct Option Option;

/* Arguments and result of reading one value. Readers fail with ERR_CONFIG and a message without
 * file and line; the caller adds file and line of `at`. */
typedef struct Reading {
    /* the option that is read */
    const Option *option;
    /* receives the value */
    Config *config;
    /* the node that is read or, after an error, the node at fault, which may be inside it */
    const YamlNode *at;
    /* true: the value is the default in the table, which may be out of range if it means "not
     * set" */
    bool is_default;
} Reading;

/* A kind of value: the functions that read, print and free it. */
typedef struct OptionKind {
    /* name in the help: "INT" */
    const char *name;
    /* true: a value may be a YAML list or mapping: [a, b], {a: b} */
    bool list;
    /* Replaces the value in the field by that of the node. field: NULL for OPTION_NO_FIELD. */
    Status (*read)(Reading *reading, void *field, const YamlNode *node);
    /* Prints the value as YAML. */
    void (*print)(FILE *out, const Option *option, const Config *config);
    /* Frees the memory that the value owns. NULL: it owns none. */
    void (*free)(void *field);
} OptionKind;
extern const OptionKind kind_int, kind_real, kind_bytes, kind_bool, kind_text, kind_enum,
    kind_duration;
extern const OptionKind kind_resume, kind_schedule;
extern const OptionKind kind_files, kind_word_set, kind_ints, kind_reals, kind_names, kind_layers,
    kind_groups, kind_widths, kind_pairs, kind_variables, kind_window, kind_times, kind_patch;

struct Option {
    /* "train.batch" */
    const char *key;
    const OptionKind *kind;
    /* offset of the field in Config; OPTION_NO_FIELD: the value is only checked */
    size_t offset;
    /* the default, as a user would write it */
    const char *default_text;
    /* if the default means "not set": text that the help shows instead of the default; else NULL */
    const char *unset;
    /* kind_int: smallest value; kind_text, kind_files: smallest length in bytes */
    int64_t min;
    /* kind_int: largest value */
    int64_t max;
    /* kind_real, kind_bytes, and items of kind_reals and kind_ints: smallest value */
    double lo;
    /* the same kinds: largest value */
    double hi;
    /* true: `lo` itself is not in the range */
    bool lo_open;
    /* true: `hi` itself is not in the range */
    bool hi_open;
    /* kind_enum, kind_word_set: the accepted words, "a|b|c". A word's number, from 0, is the value
     * of a kind_enum and a bit number of a kind_word_set. NULL: the words are registered
     * (option_words). */
    const char *words;
    /* help of each word in `words`, one line each; NULL: words have no help here (option_word) */
    const char *const *word_help;
    /* true: entries of optim.groups may set the key, too */
    bool grouped;
    /* true: the key is a constant of update rules; ConfigWord.uses of a rule says whether the rule
     * uses it */
    bool constant;
    /* unit of the value for help and messages; NULL: none */
    const char *unit;
    /* help, one line. It begins with a small letter if the key has a meaning only with some values
     * of another key of the section, as optim.beta1 has with some optimizers (ConfigWord.uses);
     * option_help puts these values before the line. */
    const char *help;
};
/* value of Option.offset for a key without a field */
#define OPTION_NO_FIELD ((size_t)-1)

typedef struct Section {
    const char *name, *help;
} Section;

extern const Option options[];
/* the key `roles` of an entry of optim.groups; its value has a bit for each word */
extern const Option group_roles;
extern const int option_count;
extern const Section sections[];
extern const int section_count;

/* Check one row (option_check.c). ERR_BUG: the row lacks something; the message names the field. */
Status option_check(const Option *option);
Status option_kind_check(const OptionKind *kind);
/* Returns the index in options of the option with this key, or -1. */
int option_find(const char *key);
/* Returns the option's leaf, the part of its key after the dot: "batch" of "train.batch". */
const char *option_leaf(const Option *option);
/* Returns whether the option's key is in the section. */
bool option_is_in(const Option *option, const char *section);
/* Return the option's field in config: option_field to write it, option_value to read it. NULL for
 * OPTION_NO_FIELD. */
void *option_field(const Option *option, Config *config);
const void *option_value(const Option *option, const Config *config);
/* Sets the field to the option's default. */
Status option_set_default(const Option *option, Config *config);
enum { RANGE_CHARS = 80 };
/* Writes the option's range as text, such as "at least 1", or "" if there is none, to `out`, and
 * returns `out`. show_max: true to show the upper limit even if it is only the largest number of
 * its type. */
char *option_range(const Option *option, bool show_max, char out[RANGE_CHARS]);

/* The source of a key's value. A source overrides those before it in this list. */
typedef enum Source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_COMMAND } Source;
/* The source of a key's value, and the place in that source. */
typedef struct ConfigPlace {
    Source source;
    /* SOURCE_FILE: position of the key, counted from 1 */
    int line, column;
    /* SOURCE_COMMAND: the whole override, "train.batch=64"; owned */
    char *word;
} ConfigPlace;

/* Returns the words that the option accepts, "a|b|c": those of the table or those registered with
 * config_use_words; "": there are none. */
const char *option_words(const Option *option);
/* Returns the definition of the option's word with this number, if it is registered. Its .word is
 * NULL if the option has no registered definitions, or none with this number. */
ConfigWord option_word(const Option *option, int value);

/* Returns the words of `option` that use the key with the leaf `leaf`, joined with `between`: "sgd,
 * muon". The caller owns the text. */
char *option_users(const Option *option, const char *leaf, const char *between);
/* Returns the option's help. If only some words of other keys of the section use the option, they
 * come before it: "sgd, muon: momentum factor." The caller owns the text. */
char *option_help(const Option *option);
/* Returns the words for which the option has another default, with this default: "; muon: 0.95".
 * The caller owns the text. */
char *option_word_defaults(const Option *option);
/* Sets the option's field to the default that it has for this word, if there is one. */
Status option_set_word_default(const Option *option, Config *config, ConfigWord word);

/* Returns the number of words in "a|b|c"; NULL and "" have none. */
int words_count(const char *words);
enum { WORD_BYTES = 64 };
/* Copies word i of "a|b|c", counted from 0, to `out`, and returns `out`. */
char *words_at(const char *words, int i, char out[WORD_BYTES]);
/* Returns the index of a word in "a|b|c", or -1. */
int words_find(const char *words, const char *word);
/* Returns "a|b|c" as "a, b, c"; the caller owns the text. */
char *words_text(const char *words);
/* Fails with ERR_CONFIG because `word` is not in `words`: "'sdg' is none of: sgd, adam; did you
 * mean 'sgd'?". key: the key that takes these words. */
Status words_fail(const char *key, const char *words, const char *word);

/* Read one scalar, which is a key's value or an item of a list, and check it by the range of
 * reading->option. read_text only checks the text; the value is node->text. */
Status read_whole(Reading *reading, const YamlNode *node, int64_t *value);
Status read_real(Reading *reading, const YamlNode *node, double *value);
Status read_text(Reading *reading, const YamlNode *node);
/* Prints text as a YAML scalar, in quotes if needed. */
void print_text(FILE *out, const char *text);

/* Prints text for the man page, with roff's own characters escaped. */
void print_roff(FILE *out, const char *text);

/* Errors in a file and on the command line, which are collected and reported together. */
enum { FAULTS_SHOWN_MAX = 20, FAULTS_BYTES = 3800 };
typedef struct Faults {
    /* number of errors that were added */
    int count;
    /* number of errors whose message is in `text` */
    int shown;
    /* length of `text` in bytes */
    size_t used;
    /* status of the first error */
    Status status;
    /* the messages, a line each */
    char text[FAULTS_BYTES];
} Faults;
/* Adds the message of the last failure, unless status is OK. The first message is cut if it does
 * not fit into `text`. A later error is only counted if there are FAULTS_SHOWN_MAX errors already,
 * or if its message does not fit. */
void faults_add(Faults *faults, Status status);
/* Returns OK if there are no errors. Otherwise fails with the status of the first error; the
 * message is `text` and, if errors were only counted, "and N more". */
Status faults_end(const Faults *faults);

/* Sets the keys that the tree of a configuration file gives (apply.c). */
void apply_tree(Config *config, const YamlNode *root, Faults *faults);
/* Sets one key from a word key=value of the command line (apply.c). */
Status apply_override(Config *config, const char *word);
/* Checks the rules across keys, and sets defaults that depend on other keys (rules.c). */
Status apply_rules(Config *config);

/* Sets OptimGroup.options of all entries of optim.groups. */
Status groups_resolve(Config *config);
/* Reads `pairs`, such as "momentum=0.95 nesterov=true", into *optim, but skips keys whose optim_bit
 * is set in `given`. */
Status optim_set_defaults(Config *config, OptimConfig *optim, const char *pairs, uint64_t given);
/* Returns the bit of an option of section optim in OptimGroup.given. */
uint64_t optim_bit(const Option *option);

#endif
