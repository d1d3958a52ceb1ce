/* Applies a configuration file's tree of nodes, then the words of the command line, to a Config.
 * Each source may set a key only once. Errors name the key that was probably meant. */
#include "config/foreign.h"
#include "option.h"

#include <string.h>

/* ---- collecting errors ---- */

void faults_add(Faults *faults, Status status)
{
    if (status == OK) return;
    const char *why = fail_message();
    size_t room = sizeof faults->text - faults->used;
    if (faults->count++ == 0) faults->status = status;
    if (faults->count > FAULTS_SHOWN || strlen(why) + 2 > room) return;
    faults->used += (size_t)snprintf(faults->text + faults->used, room, "%s%s",
                                     faults->shown++ ? "\n" : "", why);
}

Status faults_end(const Faults *faults)
{
    int more = faults->count - faults->shown;
    if (faults->count == 0) return OK;
    if (more == 0) return fail(faults->status, "%s", faults->text);
    return fail(faults->status, "%s\nand %d more", faults->text, more);
}

/* ---- keys ---- */

enum { OPTIONS_MOST = 192 };

/* Puts "name:line:column: key: " before the message of a reading that failed. */
static Status node_fail(const Config *config, const Node *node, const char *key)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s: %s", config->path, node->line, node->column, key,
                fail_message());
}

static int nearest_section(const char *word)
{
    const char *names[16] = {0};
    for (int i = 0; i < section_count; ++i) names[i] = sections[i].name;
    const char *nearest = text_nearest(word, names, section_count);
    for (int i = 0; i < section_count; ++i)
        if (nearest == names[i]) return i;
    return -1;
}

/* Returns the first option of another section (NULL: of any section) with that last word; NULL:
 * none. */
static const Option *option_elsewhere(const char *section, const char *word)
{
    for (int i = 0; i < option_count; ++i)
        if (!(section && option_in(&options[i], section)) &&
            !strcmp(option_leaf(&options[i]), word))
            return &options[i];
    return NULL;
}

/* Returns the option whose last word is nearest: in a section, or in all if section is NULL. */
static const Option *nearest_option(const char *section, const char *word)
{
    const char *leaf[OPTIONS_MOST] = {0};
    const Option *option[OPTIONS_MOST] = {0};
    int count = 0;
    for (int i = 0; i < option_count && count < OPTIONS_MOST; ++i) {
        if (section && !option_in(&options[i], section)) continue;
        option[count] = &options[i];
        leaf[count++] = option_leaf(&options[i]);
    }
    const char *nearest = text_nearest(word, leaf, count);
    for (int i = 0; i < count; ++i)
        if (nearest == leaf[i]) return option[i];
    return NULL;
}

/* Fails without a place, which the caller adds. A word may mean another key in this section than
 * elsewhere, so the table of foreign words is searched for "train.patience" first. */
static Status unknown_key(const char *section, const char *word)
{
    char *whole = mem_format("%s.%s", section, word), *foreign = foreign_text(FOREIGN_KEY, whole);
    const Option *near = foreign ? NULL : option_elsewhere(section, word);
    mem_free(&whole);
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

/* Fails if the unknown section is a full key ("train.batch: ..."), the last word of a key, or a
 * section or key of another program; otherwise returns OK. */
static Status foreign_section_fail(const char *word)
{
    int whole = option_find(word);
    if (whole >= 0)
        return fail(ERR_CONFIG, "'%s' as a key of its own; in a file write %.*s: {%s: ...}", word,
                    (int)strcspn(word, "."), word, option_leaf(&options[whole]));
    const Option *option = option_elsewhere(NULL, word);
    if (option)
        return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word, option->key);
    char *foreign = foreign_text(FOREIGN_SECTION, word);
    if (!foreign) foreign = foreign_text(FOREIGN_KEY, word);
    if (!foreign) return OK;
    fail(ERR_CONFIG, "unknown section '%s': %s", word, foreign);
    mem_free(&foreign);
    return ERR_CONFIG;
}

static Status unknown_section(const char *word)
{
    int section = nearest_section(word);
    TRY(foreign_section_fail(word));
    if (section >= 0)
        return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word,
                    sections[section].name);
    const Option *near = nearest_option(NULL, word);
    if (near) return fail(ERR_CONFIG, "unknown section '%s'; did you mean '%s'?", word, near->key);
    return fail(ERR_CONFIG, "unknown section '%s'; `weft help` lists all", word);
}

static Status read_option(Config *config, int i, const Node *node)
{
    Reading reading = {.option = &options[i], .config = config, .at = node};
    Status status = options[i].kind->read(&reading, option_field(&options[i], config), node);
    return status == OK ? OK : node_fail(config, reading.at, options[i].key);
}

static Status apply_pair(Config *config, const char *section, const Node *key, const Node *value)
{
    char *name = mem_format("%s.%s", section, key->text);
    int i = option_find(name);
    mem_free(&name);
    if (i < 0) {
        unknown_key(section, key->text);
        return fail(ERR_CONFIG, "%s:%d:%d: %s", config->path, key->line, key->column,
                    fail_message());
    }
    ConfigPlace *place = &config->place[i];
    if (place->source == SOURCE_FILE)
        return fail(ERR_CONFIG, "%s:%d:%d: %s is set already, in line %d", config->path, key->line,
                    key->column, options[i].key, place->line);
    *place = (ConfigPlace){SOURCE_FILE, key->line, key->column, NULL};
    return read_option(config, i, value);
}

static int find_section(const char *word)
{
    for (int i = 0; i < section_count; ++i)
        if (!strcmp(sections[i].name, word)) return i;
    return -1;
}

/* Returns the key that is probably meant if a whole section is given a single value, "model:
 * resnet18"; NULL: none. */
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

static Status single_value_fail(const Config *config, const char *section, const Node *node,
                                const Option *meant)
{
    if (meant)
        fail(ERR_CONFIG, "expected keys, not a single value; write %s: {%s: %s}", section,
             option_leaf(meant), node->text);
    else
        fail(ERR_CONFIG, "expected keys, one per line and indented, not %s",
             node_is_null(node) ? "nothing" : node_kind_name(node));
    return node_fail(config, node, section);
}

static void apply_section(Config *config, const char *section, const Node *node, Faults *faults)
{
    if (node->kind != NODE_MAP) {
        const bool single = node->kind == NODE_SCALAR && !node_is_null(node);
        const Option *meant = single ? implied_option(section) : NULL;
        faults_add(faults, single_value_fail(config, section, node, meant));
        if (!meant) return;
        /* report errors of the value, too */
        const Node key = {.line = node->line,
                          .column = node->column,
                          .text = (char *)(uintptr_t)option_leaf(meant)};
        faults_add(faults, apply_pair(config, section, &key, node));
        return;
    }
    for (int i = 0; i < node->count; ++i)
        faults_add(faults, apply_pair(config, section, node->key[i], node->item[i]));
}

static Status check_section(const Config *config, const Node *key, int section, int *line)
{
    if (section < 0) {
        unknown_section(key->text);
        return fail(ERR_CONFIG, "%s:%d:%d: %s", config->path, key->line, key->column,
                    fail_message());
    }
    if (line[section])
        return fail(ERR_CONFIG, "%s:%d:%d: section '%s' is there already, in line %d", config->path,
                    key->line, key->column, key->text, line[section]);
    line[section] = key->line;
    return OK;
}

void apply_tree(Config *config, const Node *root, Faults *faults)
{
    int line[16] = {0};
    if (root->kind != NODE_MAP) {
        faults_add(faults,
                   fail(ERR_CONFIG, "%s:%d:%d: expected sections (run:, model:, ...), not %s",
                        config->path, root->line, root->column, node_kind_name(root)));
        return;
    }
    for (int i = 0; i < root->count; ++i) {
        const Node *key = root->key[i];
        int s = find_section(key->text);
        Status status = check_section(config, key, s, line);
        faults_add(faults, status);
        if (status == OK) apply_section(config, sections[s].name, root->item[i], faults);
    }
}

static Status unknown_override(const char *key)
{
    const char *dot = strchr(key, '.');
    if (!dot) return unknown_section(key);
    char *section = mem_format("%.*s", (int)(dot - key), key);
    Status status =
        find_section(section) >= 0 ? unknown_key(section, dot + 1) : unknown_section(section);
    mem_free(&section);
    return status;
}

/* A list or mapping is parsed as YAML; any other text is the value itself, whatever characters it
 * contains. */
static Status override_node(const Option *option, const char *text, Node **node)
{
    *node = NULL;
    if (option->kind->list && (*text == '[' || *text == '{'))
        return yaml_parse(node, option->key, text, strlen(text));
    *node = node_word(text);
    return OK;
}

static void clear_places(Node *node)
{
    node->line = node->column = 0;
    for (int i = 0; i < node->count; ++i) {
        if (node->key) clear_places(node->key[i]);
        clear_places(node->item[i]);
    }
}

static Status override_value(Config *config, int i, const char *text)
{
    Node *node = NULL;
    TRY(override_node(&options[i], text, &node));
    clear_places(node);
    Reading reading = {.option = &options[i], .config = config, .at = node};
    Status status = options[i].kind->read(&reading, option_field(&options[i], config), node);
    node_free(&node);
    return status;
}

static Status override_pair(Config *config, const char *key, const char *word);

/* Fails for model=resnet18, and reports an error of the value, too. */
static Status override_section(Config *config, const char *section, const char *word)
{
    const Option *meant = implied_option(section);
    if (!meant)
        return fail(ERR_CONFIG, "'%s' is a section: name a key of it, as in %s.KEY=VALUE", section,
                    section);
    Status status = override_pair(config, meant->key, word);
    char *why = mem_text(status == OK ? "" : fail_message());
    fail(ERR_CONFIG, "'%s' is a section: write %s%s%s%s", section, meant->key, strchr(word, '='),
         *why ? ": " : "", why);
    mem_free(&why);
    return ERR_CONFIG;
}

static Status override_pair(Config *config, const char *key, const char *word)
{
    int i = option_find(key);
    if (find_section(key) >= 0) return override_section(config, key, word);
    if (i < 0) return unknown_override(key);
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
