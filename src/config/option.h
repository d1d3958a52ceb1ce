/* The option table: one entry for each key. Parsing, overrides, defaults, the resolved
 * configuration, help, man page and completion are loops over it; nothing else lists the keys. */
#ifndef WEFT_CONFIG_OPTION_H
#define WEFT_CONFIG_OPTION_H

#include "config.h"
#include "config/yaml.h"

typedef struct Option Option;

/* The reading of one value. Errors are fail(ERR_CONFIG) without a place; `at` is the faulty node,
 * from which the caller adds it. */
typedef struct Reading {
    const Option *option;
    Config *config;
    const Node *at;
    /* the value is the table's default, which may be out of range if that means "not set" */
    bool fallback;
} Reading;

/* A kind of value: how it is read, printed and freed. read replaces the value in the field. */
typedef struct OptionKind {
    /* name in the help: "INT" */
    const char *name;
    /* written as a YAML list or mapping: [a, b], {a: b} */
    bool list;
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
    kind_groups, kind_widths, kind_pairs;

struct Option {
    /* "train.batch" */
    const char *key;
    const OptionKind *kind;
    /* offset of the field in Config; OPTION_NO_FIELD: the value is checked and dropped */
    size_t offset;
    /* the default, as a user would write it */
    const char *fallback;
    /* text for the help if the default means "not set"; else NULL */
    const char *unset;
    /* kind_int: range. kind_text: min is the least length in bytes */
    int64_t min, max;
    /* range of kind_real, of kind_bytes and of items of lists */
    double lo, hi;
    bool lo_open, hi_open;
    /* kind_enum, kind_flags: "a|b|c", numbered from 0 (kind_flags: bit numbers); NULL: see
     * option_words */
    const char *words;
    /* help of each word in `words`, one line each; NULL: see option_word */
    const char *const *word_help;
    /* entries of optim.groups may set it, too */
    bool grouped;
    /* a constant of update rules: each word of optim.name says whether it uses it */
    bool constant;
    const char *unit;
    /* help, one line; it begins with a small letter if only some words of the section use the key,
     * because option_help puts these words in front */
    const char *help;
};
#define OPTION_NO_FIELD ((size_t)-1)

typedef struct Section {
    const char *name, *help;
} Section;

extern const Option options[];
/* the key `roles` of an entry of optim.groups, whose words are a bit each */
extern const Option group_roles;
extern const int option_count;
extern const Section sections[];
extern const int section_count;

/* Returns the index of a key in options, or -1. */
int option_find(const char *key);
/* The last part of the key, "batch" of "train.batch"; true if the option is in that section. */
const char *option_leaf(const Option *option);
bool option_in(const Option *option, const char *section);
void *option_field(const Option *option, Config *config);
const void *option_value(const Option *option, const Config *config);
Status option_fallback(const Option *option, Config *config);
/* Writes the range as text ("at least 1"), or "" if there is none, into out (at least 80 chars) and
 * returns it. high: give the upper end even if it is only the largest possible number. */
char *option_range(const Option *option, bool high, char *out);

/* Source and place of each key's value, in the order of options. */
typedef enum Source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_COMMAND } Source;
typedef struct ConfigPlace {
    Source source;
    int line, column;
    /* SOURCE_COMMAND: the whole override, "train.batch=64"; owned */
    char *word;
} ConfigPlace;

/* Returns the option's words: from the table, or those registered by config_use_words; "" if there
 * are none. */
const char *option_words(const Option *option);
/* Returns the registered word for that value of the option; .word NULL: it has none, or none is
 * registered. */
ConfigWord option_word(const Option *option, int value);

/* Returns the words of option that use that key, joined with `between`: "sgd, muon". The caller
 * owns it. */
char *option_users(const Option *option, const char *leaf, const char *between);
/* Return the option's help after the words of its section that use it, "sgd, muon: momentum."; and
 * these words' defaults, "; muon: 0.95". The caller owns both. */
char *option_help(const Option *option);
char *option_word_defaults(const Option *option);
/* Sets the option to the word's own default, if it has one. */
Status option_set_word_default(const Option *option, Config *config, ConfigWord word);

/* Words "a|b|c": their number; word i, copied into out (at least 64 chars) and returned; the index
 * of a word, or -1. */
int words_count(const char *words);
char *words_at(const char *words, int i, char *out);
int words_find(const char *words, const char *word);
/* Returns "a, b, c"; the caller owns it. */
char *words_text(const char *words);
/* Fails with ERR_CONFIG: "'sdg' is none of sgd, adam; did you mean sgd?". key: the key that takes
 * these words. */
Status words_fail(const char *key, const char *words, const char *word);

/* Read one scalar, which may be an item of a list, by the same rules. */
Status read_whole(Reading *reading, const Node *node, int64_t *value);
Status read_real(Reading *reading, const Node *node, double *value);
Status read_text(Reading *reading, const Node *node);
/* Prints text as a YAML scalar, in quotes if needed. */
void print_text(FILE *out, const char *text);

/* Prints text for the man page, with roff's own characters escaped. */
void print_roff(FILE *out, const char *text);

/* Errors of a file and of the command line, collected to be reported together. */
enum { FAULTS_SHOWN = 20, FAULTS_BYTES = 3800 };
typedef struct Faults {
    int count, shown;
    size_t used;
    /* status of the first error */
    Status status;
    /* the errors' messages, a line each */
    char text[FAULTS_BYTES];
} Faults;
/* Adds the message of the last failure, unless status is OK. */
void faults_add(Faults *faults, Status status);
/* Returns OK, or fails once with all messages. */
Status faults_end(const Faults *faults);

void apply_tree(Config *config, const Node *root, Faults *faults);
Status apply_override(Config *config, const char *word);
Status apply_rules(Config *config);

/* Gives each entry of optim.groups the options that it does not set (OptimGroup.resolved).
 * optim_defaults reads `pairs`, defaults as "momentum=0.95 nesterov=true", into optim, except for
 * the keys in `given`. optim_bit is the bit of an option in `given`. */
Status groups_resolve(Config *config);
Status optim_defaults(Config *config, OptimConfig *optim, const char *pairs, uint64_t given);
uint64_t optim_bit(const Option *option);

#endif
