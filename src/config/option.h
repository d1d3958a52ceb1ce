/* The option table: one entry a key. Parsing, overrides, defaults, the resolved file, help, man
 * page and completion are loops over it; a key lives nowhere else. */
#ifndef WEFT_CONFIG_OPTION_H
#define WEFT_CONFIG_OPTION_H

#include "config.h"
#include "config/yaml.h"

typedef struct Option Option;

/* One reading of one value. Errors are fail(ERR_CONFIG) without a place; `at` is the node at
 * fault. */
typedef struct Reading {
    const Option *option;
    Config *config;
    const Node *at;
    /* the table's default: may lie outside the range, where that means "not set" */
    bool fallback;
} Reading;

/* What a kind of value can do. read replaces what the field holds. */
typedef struct OptionKind {
    /* as the help shows it: "INT" */
    const char *name;
    /* written [a, b] */
    bool list;
    Status (*read)(Reading *reading, void *field, const Node *node);
    /* as YAML */
    void (*print)(FILE *out, const Option *option, const Config *config);
    /* NULL: owns nothing */
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
    /* of the field in Config; OPTION_NO_FIELD: checked and dropped */
    size_t offset;
    /* the default, as a user would write it */
    const char *fallback;
    /* what the default means where it stands for "not set"; else NULL */
    const char *unset;
    /* kind_int: range. kind_text: least length */
    int64_t min, max;
    /* kind_real, kind_bytes and items of lists: range */
    double lo, hi;
    bool lo_open, hi_open;
    /* kind_enum, kind_flags: "a|b|c", numbered from 0 (flags: a bit each); NULL: see
     * option_words */
    const char *words;
    /* one line for each of `words`; NULL: there is no more to say of them */
    const char *const *word_help;
    /* an entry of optim.groups may say it, too */
    bool grouped;
    /* of a rule: the words of optim.name say which of them have a use for it */
    bool constant;
    const char *unit;
    /* one line; that of a key which some words of its section alone have a use for begins with a
     * small letter: see option_help */
    const char *help;
};
#define OPTION_NO_FIELD ((size_t)-1)

typedef struct Section {
    const char *name, *help;
} Section;

extern const Option options[];
/* of an entry of optim.groups: roles, whose words are a bit each */
extern const Option group_roles;
extern const int option_count;
extern const Section sections[];
extern const int section_count;

/* index, or -1 */
int option_find(const char *key);
/* "batch" of "train.batch", and whether an option is of that section. */
const char *option_leaf(const Option *option);
bool option_in(const Option *option, const char *section);
void *option_field(const Option *option, Config *config);
const void *option_value(const Option *option, const Config *config);
Status option_fallback(const Option *option, Config *config);
/* The range as text ("at least 1"), into at least 80 chars, returned; "" if there is none. high:
 * with the upper end, also where it is only the largest number there may be. */
char *option_range(const Option *option, bool high, char *out);

/* Where a key was set. The same order as options. */
typedef enum Source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_COMMAND } Source;
typedef struct ConfigPlace {
    Source source;
    int line, column;
    /* SOURCE_COMMAND: the whole override; owned */
    char *word;
} ConfigPlace;

/* Its words: the table's, or those of config_use_words; "" where there are none. */
const char *option_words(const Option *option);
/* The word that option's value stands for, as its module has it; .word NULL: there is none, or
 * nobody has said. */
ConfigWord option_word(const Option *option, int value);

/* The words of option that have a use for that key: "sgd, muon", with `between` as the comma.
 * Owner: the caller. */
char *option_users(const Option *option, const char *leaf, const char *between);
/* Its help behind the words of its section that have a use for it, and their defaults where these
 * are others: "sgd, muon: momentum.", "; muon: 0.95". Owner: the caller. */
char *option_help(const Option *option);
char *option_own_defaults(const Option *option);
/* Sets it to the word's own default, where that has one. */
Status option_own_default(const Option *option, Config *config, ConfigWord word);

/* words "a|b|c": how many, number i into out (at least 64 chars, returned), position of a word or
 * -1. */
int words_count(const char *words);
char *words_at(const char *words, int i, char *out);
int words_find(const char *words, const char *word);
/* "a, b, c"; owner: the caller */
char *words_text(const char *words);
/* "'sdg' is none of sgd, adam; did you mean sgd?" as fail(ERR_CONFIG). key: the one that takes
 * these words. */
Status words_fail(const char *key, const char *words, const char *word);

/* Scalars of lists go by the same rules as single ones. */
Status read_whole(Reading *reading, const Node *node, int64_t *value);
Status read_real(Reading *reading, const Node *node, double *value);
Status read_text(Reading *reading, const Node *node);
/* Text as a YAML scalar, quoted where it must be. */
void print_text(FILE *out, const char *text);

/* Text for the man page. */
void print_roff(FILE *out, const char *text);

/* apply.c, rules.c */
/* All errors of a file and of the command line, which are reported together. */
enum { FAULTS_SHOWN = 20, FAULTS_BYTES = 3800 };
typedef struct Faults {
    int count, shown;
    size_t used;
    /* status of the first error */
    Status status;
    /* messages of the errors, a line each */
    char text[FAULTS_BYTES];
} Faults;
/* Takes the last failure's message, where status is not OK. */
void faults_add(Faults *faults, Status status);
/* OK, or one failure with all messages. */
Status faults_end(const Faults *faults);

void apply_tree(Config *config, const Node *root, Faults *faults);
Status apply_override(Config *config, const char *word);
Status apply_rules(Config *config);

/* kind_groups.c: optim.groups as resolved. Reads `key=value ...` (leaves of optim) into optim, but
 * for the keys of `given`; what a word's defaults are written as. */
Status groups_resolve(Config *config);
Status optim_defaults(Config *config, OptimConfig *optim, const char *pairs, uint64_t given);
uint64_t optim_bit(const Option *option);

#endif
