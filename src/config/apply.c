/* Sets the keys of a Config from the tree of nodes of a configuration file, and from the words
 * key=value of the command line. The file may set a key only once, and so may the command line. The
 * message for an unknown key names the key that is probably meant. */
#include "config/foreign.h"
#include "option.h"

#include <string.h>

/* ---- collecting errors ---- */

void faults_add(Faults *faults, Status status)
{
    if (status == OK) return;
    const char *message = fail_message();
    size_t free_bytes = sizeof faults->text - faults->used, length = strlen(message);
    if (faults->count++ == 0) faults->status = status;
    if (faults->shown == 0) {
        snprintf(faults->text, sizeof faults->text, "%s", message);
        faults->used = strlen(faults->text);
        faults->shown = 1;
    } else if (faults->count <= FAULTS_SHOWN_MAX && length + 2 <= free_bytes) {
        faults->used += (size_t)snprintf(faults->text + faults->used, free_bytes, "\n%s", message);
        ++faults->shown;
    }
}

Status faults_end(const Faults *faults)
{
    int more = faults->count - faults->shown;
    if (faults->count == 0) return OK;
    if (more == 0) return fail(faults->status, "%s", faults->text);
    return fail(faults->status, "%s\nand %d more", faults->text, more);
}

/* ---- keys ---- */

/* largest number of sections */
enum { SECTIONS_MAX = 16 };

/* Puts "file:line:column: key: " before the message of the last failure. */
static Status node_fail(const Config *config, const YamlNode *node, const char *key)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s: %s", config->path, node->line, node->column, key,
                fail_message());
}

/* Returns the index of the section whose name is most like `word`; -1: none is near. */
static int nearest_section(const char *word)
{
    const char *names[SECTIONS_MAX] = {0};
    for (int i = 0; i < section_count; ++i) names[i] = sections[i].name;
    const char *nearest = text_nearest(word, names, section_count);
    for (int i = 0; i < section_count; ++i)
        if (nearest == names[i]) return i;
    return -1;
}

/* Returns the first option whose leaf (option_leaf) is `word`, in another section than `section`
 * or, if section is NULL, in any section. NULL: there is none. */
static const Option *option_elsewhere(const char *section, const char *word)
{
    for (int i = 0; i < option_count; ++i)
        if (!(section && option_is_in(&options[i], section)) &&
            !strcmp(option_leaf(&options[i]), word))
            return &options[i];
    return NULL;
}

/* Returns the option whose leaf (option_leaf) is most like `word`, in `section` or, if section is
 * NULL, in any section. NULL: none is near. */
static const Option *nearest_option(const char *section, const char *word)
{
    const char **leaf = mem_new((size_t)option_count * sizeof *leaf);
    const Option **option = mem_new((size_t)option_count * sizeof *option);
    const Option *found = NULL;
    int count = 0;
    for (int i = 0; i < option_count; ++i) {
        if (section && !option_is_in(&options[i], section)) continue;
        option[count] = &options[i];
        leaf[count++] = option_leaf(&options[i]);
    }
    const char *nearest = text_nearest(word, leaf, count);
    for (int i = 0; nearest && !found && i < count; ++i)
        if (nearest == leaf[i]) found = option[i];
    mem_free(&leaf);
    mem_free(&option);
    return found;
}

/* Fails because the section has no key `word`; the caller adds file and line. A word of another
 * program may mean different keys in different sections, so the table of foreign words is searched
 * for "train.patience" before "patience". */
static Status unknown_key_fail(const char *section, const char *word)
{
    char *key = mem_format("%s.%s", section, word), *foreign = foreign_text(FOREIGN_KEY, key);
    const Option *near = foreign ? NULL : option_elsewhere(section, word);
    mem_free(&key);
    if (!near && !foreign) foreign = foreign_text(FOREIGN_KEY, word);
    if (foreign) {
        fail(ERR_CONFIG, "unknown key '%s' in %s: %s", word, section, foreign);
        mem_free(&foreign);
        return ERR_CONFIG;
    }
    if (!near) {
        near = nearest_option(section, word);
        if (near)
            return fail(ERR_CONFIG, "unknown key '%s' in %s; did you mean '%s'?", word, section,
                        option_leaf(near));
        near = nearest_option(NULL, word);
    }
    if (near)
        return fail(ERR_CONFIG, "unknown key '%s' in %s; did you mean '%s'?", word, section,
                    near->key);
    return fail(ERR_CONFIG, "unknown key '%s' in %s; `weft help` lists all", word, section);
}

/* Fails because there is no section `word`. The message explains the word if it is a full key
 * ("train.batch"), the leaf of a key, or a section or key of another program. Otherwise it names
 * the nearest section or key. */
static Status unknown_section_fail(const char *word)
{
    int full_key = option_find(word);
    if (full_key >= 0)
        return fail(ERR_CONFIG, "'%s' is a key, not a section; in a file write %.*s: {%s: ...}",
                    word, (int)strcspn(word, "."), word, option_leaf(&options[full_key]));
    const Option *option = option_elsewhere(NULL, word);
    if (option)
        return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word, option->key);
    char *foreign = foreign_text(FOREIGN_SECTION, word);
    if (!foreign) foreign = foreign_text(FOREIGN_KEY, word);
    if (foreign) {
        fail(ERR_CONFIG, "unknown section '%s': %s", word, foreign);
        mem_free(&foreign);
        return ERR_CONFIG;
    }
    int section = nearest_section(word);
    if (section >= 0)
        return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word,
                    sections[section].name);
    const Option *near = nearest_option(NULL, word);
    if (near) return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word, near->key);
    return fail(ERR_CONFIG, "unknown section '%s'; `weft help` lists all", word);
}

static Status apply_pair(Config *config, const char *section, const YamlNode *key,
                         const YamlNode *value)
{
    char *name = mem_format("%s.%s", section, key->text);
    int i = option_find(name);
    mem_free(&name);
    if (i < 0) {
        unknown_key_fail(section, key->text);
        return fail(ERR_CONFIG, "%s:%d:%d: %s", config->path, key->line, key->column,
                    fail_message());
    }
    config->place[i] = (ConfigPlace){SOURCE_FILE, key->line, key->column, NULL};
    Reading reading = {.option = &options[i], .config = config, .at = value};
    Status status = options[i].kind->read(&reading, option_field(&options[i], config), value);
    return status == OK ? OK : node_fail(config, reading.at, options[i].key);
}

/* Returns the index of the section, or -1. */
static int find_section(const char *word)
{
    for (int i = 0; i < section_count; ++i)
        if (!strcmp(sections[i].name, word)) return i;
    return -1;
}

/* Returns the option that is probably meant if a section has a single value: SECTION.name or, if
 * there is no such key, SECTION.train. So "model: resnet18" means model.name, and "data: train.h5"
 * means data.train. NULL: the section has neither key. */
static const Option *implied_option(const char *section)
{
    static const char *const keys[] = {"name", "train"};
    int found = -1;
    for (int i = 0; i < 2 && found < 0; ++i) {
        char *name = mem_format("%s.%s", section, keys[i]);
        found = option_find(name);
        mem_free(&name);
    }
    return found < 0 ? NULL : &options[found];
}

/* Fails because a section is not a mapping. meant: the result of implied_option, or NULL. */
static Status single_value_fail(const Config *config, const char *section, const YamlNode *node,
                                const Option *meant)
{
    if (meant)
        fail(ERR_CONFIG, "expected keys, not a single value; write %s: {%s: %s}", section,
             option_leaf(meant), node->text);
    else
        fail(ERR_CONFIG, "expected keys, one per line and indented, not %s",
             yaml_node_is_null(node) ? "nothing" : yaml_node_kind_name(node));
    return node_fail(config, node, section);
}

static void apply_section(Config *config, const char *section, const YamlNode *node, Faults *faults)
{
    if (node->kind != YAML_MAP) {
        const bool single = node->kind == YAML_SCALAR && !yaml_node_is_null(node);
        const Option *meant = single ? implied_option(section) : NULL;
        faults_add(faults, single_value_fail(config, section, node, meant));
        if (!meant) return;
        /* reads the value, too, so that errors in it are also reported */
        const YamlNode key = {.line = node->line,
                              .column = node->column,
                              .text = (char *)(uintptr_t)option_leaf(meant)};
        faults_add(faults, apply_pair(config, section, &key, node));
        return;
    }
    for (int i = 0; i < node->count; ++i)
        faults_add(faults, apply_pair(config, section, node->key[i], node->item[i]));
}

void apply_tree(Config *config, const YamlNode *root, Faults *faults)
{
    if (root->kind != YAML_MAP) {
        faults_add(faults,
                   fail(ERR_CONFIG, "%s:%d:%d: expected sections (run:, model:, ...), not %s",
                        config->path, root->line, root->column, yaml_node_kind_name(root)));
        return;
    }
    for (int i = 0; i < root->count; ++i) {
        const YamlNode *key = root->key[i];
        int s = find_section(key->text);
        if (s >= 0) {
            apply_section(config, sections[s].name, root->item[i], faults);
        } else {
            unknown_section_fail(key->text);
            faults_add(faults, fail(ERR_CONFIG, "%s:%d:%d: %s", config->path, key->line,
                                    key->column, fail_message()));
        }
    }
}

/* Fails because there is no key `key`. */
static Status unknown_override_fail(const char *key)
{
    const char *dot = strchr(key, '.');
    if (!dot) return unknown_section_fail(key);
    char *section = mem_format("%.*s", (int)(dot - key), key);
    Status status = find_section(section) >= 0 ? unknown_key_fail(section, dot + 1)
                                               : unknown_section_fail(section);
    mem_free(&section);
    return status;
}

/* Makes the node of a value from the command line; the caller owns it. A list or mapping is parsed
 * as YAML if the option's kind accepts it. Any other text is the value itself, whatever characters
 * it contains. */
static Status parse_override(const Option *option, const char *text, YamlNode **node)
{
    *node = NULL;
    if (option->kind->list && (*text == '[' || *text == '{'))
        return yaml_parse(node, option->key, text, strlen(text));
    *node = yaml_node_word(text);
    return OK;
}

/* Sets line and column of a node and of all nodes in it to 0, which means the command line. */
static void clear_places(YamlNode *node)
{
    node->line = node->column = 0;
    for (int i = 0; i < node->count; ++i) {
        if (node->key) clear_places(node->key[i]);
        clear_places(node->item[i]);
    }
}

static Status override_value(Config *config, int i, const char *text)
{
    YamlNode *node = NULL;
    TRY(parse_override(&options[i], text, &node));
    clear_places(node);
    Reading reading = {.option = &options[i], .config = config, .at = node};
    Status status = options[i].kind->read(&reading, option_field(&options[i], config), node);
    yaml_node_free(&node);
    return status;
}

static Status override_pair(Config *config, const char *key, const char *word);

/* Fails for a section with a value, such as model=resnet18. If the value is wrong for the key that
 * is probably meant, the message says so, too. */
static Status override_section(Config *config, const char *section, const char *word)
{
    const Option *meant = implied_option(section);
    const char *value = strchr(word, '=');
    if (!meant || (value && value[1] == '{'))
        return fail(ERR_CONFIG, "'%s' is a section: name a key of it, as in %s.KEY=VALUE", section,
                    section);
    Status status = override_pair(config, meant->key, word);
    char *value_error = mem_text(status == OK ? "" : fail_message());
    fail(ERR_CONFIG, "'%s' is a section: write %s%s%s%s", section, meant->key, value,
         *value_error ? ": " : "", value_error);
    mem_free(&value_error);
    return ERR_CONFIG;
}

static Status override_pair(Config *config, const char *key, const char *word)
{
    int i = option_find(key);
    if (find_section(key) >= 0) return override_section(config, key, word);
    if (i < 0) return unknown_override_fail(key);
    ConfigPlace *place = &config->place[i];
    if (place->source == SOURCE_COMMAND) return fail(ERR_CONFIG, "%s is given twice", key);
    *place = (ConfigPlace){.source = SOURCE_COMMAND, .word = mem_text(word)};
    return override_value(config, i, strchr(word, '=') + 1);
}

Status apply_override(Config *config, const char *word)
{
    const char *equals = strchr(word, '=');
    if (!equals || equals == word)
        return fail(ERR_CONFIG, "command line: %s: expected key=value, as in train.batch=64", word);
    char *key = mem_format("%.*s", (int)(equals - word), word);
    Status status = override_pair(config, key, word);
    mem_free(&key);
    if (status != OK) return fail(ERR_CONFIG, "command line: %s: %s", word, fail_message());
    return OK;
}
