/* The kind of optim.groups. Each entry (group) chooses parameters by name (`match`) and role
 * (`roles`), and gives some keys of section optim other values for these parameters. Such keys are
 * read, checked and printed by their rows in the option table, in which `grouped` is true. It is an
 * error if an entry has neither match nor roles, an unknown key, both lr and lr_scale, or a
 * constant that the group's rule does not use. */
#include "config/foreign.h"
#include "option.h"

#include <math.h>
#include <string.h>

const Option group_roles = {.key = "optim.groups.roles", .kind = &kind_word_set};
/* row of the key `match` of an entry */
static const Option match_row = {.kind = &kind_text, .min = 1};
/* row of the key `lr_scale` of an entry */
static const Option scale_row = {
    .kind = &kind_real, .lo = 0, .lo_open = true, .hi = INFINITY, .default_text = "1"};

uint64_t optim_bit(const Option *option)
{
    const Option *first = options;
    while (!option_is_in(first, "optim")) ++first;
    return (uint64_t)1 << (option - first);
}

/* Returns the option optim.LEAF if groups may set it; else NULL. */
static const Option *grouped_option(const char *leaf)
{
    for (int i = 0; i < option_count; ++i)
        if (options[i].grouped && !strcmp(option_leaf(&options[i]), leaf)) return &options[i];
    return NULL;
}

/* Returns the field of an option of section optim. */
static void *optim_field(OptimConfig *optim, const Option *option)
{
    return (char *)optim + (option->offset - offsetof(Config, optim));
}

/* Copies the field of an option that groups may set. Such a field is a double, a bool, an int64_t
 * or, for a word, an int. */
static void copy_field(OptimConfig *to, OptimConfig *from, const Option *option)
{
    size_t bytes = option->kind == &kind_real   ? sizeof(double)
                   : option->kind == &kind_bool ? sizeof(bool)
                   : option->kind == &kind_int  ? sizeof(int64_t)
                                                : sizeof(int);
    memcpy(optim_field(to, option), optim_field(from, option), bytes);
}

/* ---- reading ---- */

static Status read_match(Reading *r, OptimGroup *group, const YamlNode *node)
{
    Reading reading = {.option = &match_row, .config = r->config, .at = node};
    int count = node->kind == YAML_LIST ? node->count : 1;
    group->match = mem_new((size_t)(count + 1) * sizeof *group->match);
    for (int i = 0; i < count; ++i) {
        const YamlNode *item = node->kind == YAML_LIST ? node->item[i] : node;
        Status status = read_text(&reading, item);
        r->at = reading.at;
        TRY(status);
        group->match[group->match_count++] = mem_text(item->text);
    }
    return count ? OK : fail(ERR_CONFIG, "match is an empty list");
}

static Status read_roles(Reading *r, OptimGroup *group, const YamlNode *node)
{
    const char *words = option_words(&group_roles);
    int count = node->kind == YAML_LIST ? node->count : 1;
    for (int i = 0; i < count; ++i) {
        const YamlNode *item = node->kind == YAML_LIST ? node->item[i] : node;
        TRY(read_text(r, item));
        int role = words_find(words, item->text);
        if (role < 0) return words_fail(group_roles.key, words, item->text);
        group->roles |= 1 << role;
    }
    return group->roles ? OK : fail(ERR_CONFIG, "roles is an empty list");
}

static Status unknown_key_fail(const char *key)
{
    enum { NAMES_MAX = 64 };
    const char *name[NAMES_MAX] = {"match", "roles", "lr_scale"};
    int count = 3;
    if (!strcmp(key, "lr_factor")) return fail(ERR_CONFIG, "lr_factor was renamed: write lr_scale");
    for (int i = 0; i < option_count && count < NAMES_MAX; ++i)
        if (options[i].grouped) name[count++] = option_leaf(&options[i]);
    char *foreign = foreign_text(FOREIGN_KEY, key);
    if (foreign) {
        fail(ERR_CONFIG, "a group has no key '%s': %s", key, foreign);
        mem_free(&foreign);
        return ERR_CONFIG;
    }
    const char *near = text_nearest(key, name, count);
    if (near) return fail(ERR_CONFIG, "a group has no key '%s'; did you mean '%s'?", key, near);
    return fail(ERR_CONFIG,
                "a group has no key '%s': it has match, roles, lr_scale and keys of "
                "optim such as name, lr and weight_decay",
                key);
}

static Status read_key(Reading *r, OptimGroup *group, const YamlNode *key, const YamlNode *value)
{
    r->at = key;
    if (!strcmp(key->text, "match")) return read_match(r, group, value);
    if (!strcmp(key->text, "roles")) return read_roles(r, group, value);
    bool is_scale = !strcmp(key->text, "lr_scale");
    const Option *option = is_scale ? &scale_row : grouped_option(key->text);
    if (!option) return unknown_key_fail(key->text);
    Reading reading = {.option = option, .config = r->config, .at = value};
    void *field = is_scale ? &group->lr_scale : optim_field(&group->options, option);
    Status status = option->kind->read(&reading, field, value);
    r->at = reading.at;
    if (status != OK) return fail(ERR_CONFIG, "%s: %s", key->text, fail_message());
    if (!is_scale) group->given |= optim_bit(option);
    return OK;
}

static Status read_group(Reading *r, OptimGroup *group, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_MAP)
        return fail(ERR_CONFIG, "expected a group: - {match: PATTERN, lr: NUMBER}, not %s",
                    yaml_node_kind_name(node));
    group->line = node->line;
    group->column = node->column;
    for (int i = 0; i < node->count; ++i) TRY(read_key(r, group, node->key[i], node->item[i]));
    r->at = node;
    if (group->match_count == 0 && group->roles == 0)
        return fail(ERR_CONFIG,
                    "the group has neither match nor roles, so it chooses no parameters");
    if (group->lr_scale > 0 && group->given & optim_bit(grouped_option("lr")))
        return fail(ERR_CONFIG, "the group gives both lr and lr_scale: keep one of the two");
    return OK;
}

static void groups_free(void *field)
{
    char *base = (char *)field - offsetof(Config, optim.group);
    OptimConfig *optim = &((Config *)(void *)base)->optim;
    for (int i = 0; i < optim->group_count; ++i) {
        for (int k = 0; k < optim->group[i].match_count; ++k) mem_free(&optim->group[i].match[k]);
        mem_free(&optim->group[i].match);
    }
    mem_free(&optim->group);
    optim->group_count = 0;
}

static Status groups_read(Reading *r, void *field, const YamlNode *node)
{
    r->at = node;
    if (node->kind != YAML_LIST)
        return fail(ERR_CONFIG, "expected a list of groups: - {match: PATTERN, lr: NUMBER}, not %s",
                    yaml_node_kind_name(node));
    groups_free(field);
    OptimConfig *optim = &r->config->optim;
    optim->group = mem_new((size_t)(node->count + 1) * sizeof *optim->group);
    for (int i = 0; i < node->count; ++i) {
        ++optim->group_count;
        TRY(read_group(r, &optim->group[i], node->item[i]));
    }
    return OK;
}

/* ---- printing ---- */

static void print_roles(FILE *out, int roles)
{
    char word[WORD_BYTES];
    const char *between = "", *words = option_words(&group_roles);
    for (int i = 0; i < words_count(words); ++i) {
        if (!(roles & 1 << i)) continue;
        fprintf(out, "%s%s", between, words_at(words, i, word));
        between = ", ";
    }
}

static void print_group(FILE *out, const OptimGroup *group, const Config *config)
{
    /* the print functions of options read section optim of a Config, so make one with the group's
     * options */
    Config printed = *config;
    const char *between = "";
    printed.optim = group->options;
    if (group->match_count > 0) fputs("match: [", out);
    for (int i = 0; i < group->match_count; ++i) {
        if (i) fputs(", ", out);
        print_text(out, group->match[i]);
    }
    if (group->match_count > 0) fputc(']', out), between = ", ";
    if (group->roles) {
        fprintf(out, "%sroles: [", between);
        print_roles(out, group->roles);
        fputc(']', out);
    }
    if (group->lr_scale > 0) {
        fputs(", lr_scale: ", out);
        text_real(out, group->lr_scale);
    }
    for (int i = 0; i < option_count; ++i) {
        if (!options[i].grouped || !(group->given & optim_bit(&options[i]))) continue;
        fprintf(out, ", %s: ", option_leaf(&options[i]));
        options[i].kind->print(out, &options[i], &printed);
    }
}

static void groups_print(FILE *out, const Option *o, const Config *config)
{
    (void)o;
    if (config->optim.group_count == 0) fputs("[]", out);
    for (int i = 0; i < config->optim.group_count; ++i) {
        fputs("\n    - {", out);
        print_group(out, &config->optim.group[i], config);
        fputc('}', out);
    }
}

/* ---- resolving: all options of each group ---- */

/* Sets the field of optim.LEAF in `optim` to `value`, unless its bit is set in `given`. */
static Status set_default(Config *config, OptimConfig *optim, const char *leaf, const char *value,
                          uint64_t given)
{
    const Option *option = grouped_option(leaf);
    if (!option) return fail(ERR_BUG, "a rule's default of optim.%s: no such key", leaf);
    if (given & optim_bit(option)) return OK;
    YamlNode *node = yaml_node_word(value);
    Reading reading = {.option = option, .config = config};
    Status status = option->kind->read(&reading, optim_field(optim, option), node);
    yaml_node_free(&node);
    return status;
}

Status optim_set_defaults(Config *config, OptimConfig *optim, const char *pairs, uint64_t given)
{
    char *copy = mem_text(pairs ? pairs : ""), *rest = copy;
    Status status = OK;
    for (char *pair; status == OK && (pair = strsep(&rest, " "));) {
        char *value = strchr(pair, '=');
        if (value) {
            *value = 0;
            status = set_default(config, optim, pair, value + 1, given);
        }
    }
    mem_free(&copy);
    return status;
}

/* Sets all constants to their defaults for the rule resolved->name. Called if the group has another
 * rule than optim.name. */
static Status reset_constants(Config *config, OptimConfig *resolved)
{
    const Option *name = grouped_option("name");
    for (int i = 0; i < option_count; ++i)
        if (options[i].constant)
            TRY(set_default(config, resolved, option_leaf(&options[i]), options[i].default_text,
                            0));
    return optim_set_defaults(config, resolved, option_word(name, resolved->name).defaults, 0);
}

/* Returns a constant that the group sets although its rule does not use it; NULL: there is none.
 * word: definition of the rule. */
static const char *unused_key(const OptimGroup *group, ConfigWord word)
{
    for (int i = 0; i < option_count; ++i) {
        const Option *o = &options[i];
        if (o->constant && group->given & optim_bit(o) && !word_uses(word, option_leaf(o)))
            return option_leaf(o);
    }
    return NULL;
}

/* Computes all options of a group. Before the call group->options has only the options that the
 * group sets; after the call it has all options. */
static Status resolve(Config *config, OptimGroup *group)
{
    const Option *name = grouped_option("name");
    OptimConfig resolved = config->optim, given = group->options;
    resolved.group = NULL;
    resolved.group_count = 0;
    resolved.milestones = (ConfigList){0};
    if (group->given & optim_bit(name) && given.name != resolved.name) {
        resolved.name = given.name;
        TRY(reset_constants(config, &resolved));
    }
    if (group->lr_scale > 0) resolved.lr *= group->lr_scale;
    for (int i = 0; i < option_count; ++i)
        if (options[i].grouped && group->given & optim_bit(&options[i]))
            copy_field(&resolved, &given, &options[i]);
    ConfigWord word = option_word(name, resolved.name);
    const char *unused = unused_key(group, word);
    if (unused)
        return config_fail(config, group->line, group->column,
                           "optim.groups: %s has no %s: its constants are %s", word.word, unused,
                           word.uses ? word.uses : "none");
    if (resolved.nesterov && resolved.momentum == 0)
        return config_fail(config, group->line, group->column,
                           "optim.groups: nesterov needs momentum above 0");
    group->options = resolved;
    return OK;
}

Status groups_resolve(Config *config)
{
    for (int i = 0; i < config->optim.group_count; ++i)
        TRY(resolve(config, &config->optim.group[i]));
    return OK;
}

const OptionKind kind_groups = {"[GROUP, ...]", true, groups_read, groups_print, groups_free};
