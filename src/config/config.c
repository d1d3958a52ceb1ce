/* Loads and frees a Config, makes messages with file and line, and makes the resolved text. */
#include "option.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* largest size of a configuration file in bytes */
enum { FILE_MAX = 16 << 20 };

/* characters that a key may have in TOML and INI */
static const char KEY_CHARS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

/* Reads the whole file; *text ends with a zero byte, which *length does not count. The caller frees
 * *text, also after an error. */
static Status read_open_file(FILE *file, const char *path, char **text, size_t *length)
{
    size_t size = 0;
    do {
        size += 65536;
        if (size > FILE_MAX)
            return fail(ERR_CONFIG, "%s:1:1: too large for a configuration file", path);
        *text = mem_resize(*text, size);
        *length += fread(*text + *length, 1, size - *length, file);
    } while (*length == size);
    if (ferror(file)) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    (*text)[*length] = 0;
    return OK;
}

static Status read_file(const char *path, char **text, size_t *length)
{
    int fd = file_open(path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file && errno == ENXIO)
        return fail(ERR_NOINPUT,
                    "%s: %s: a configuration is read more than once, by each rank too; save it in "
                    "a file",
                    path, file_error(errno));
    if (!file)
        return fail(ERR_NOINPUT,
                    "%s: cannot open the configuration file: %s; CONFIG is a YAML "
                    "file, such as jobs/fashion.yaml",
                    path, file_error(errno));
    Status status = read_open_file(file, path, text, length);
    fclose(file);
    return status;
}

/* the check that config_use_check has registered; NULL: none */
static Status (*module_check)(const Config *config);

void config_use_check(Status (*check)(const Config *config))
{
    module_check = check;
}

/* Makes a Config with the defaults. name: its path or name for messages; NULL: "defaults". */
static Status config_new(Config **config, const char *name)
{
    *config = mem_new(sizeof **config);
    (*config)->path = mem_text(name ? name : "defaults");
    (*config)->place = mem_new((size_t)option_count * sizeof(ConfigPlace));
    for (int i = 0; i < option_count; ++i) TRY(option_set_default(&options[i], *config));
    return OK;
}

/* Returns the number of the first line that is neither blank nor a comment, if that line is TOML or
 * INI: "[train]" or "batch = 64"; else 0. */
static int line_of_toml(const char *text)
{
    int line = 1;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n', ++line) {
        const char *word = at + strspn(at, " \t");
        if (strchr("#;\r\n", *word)) continue;
        const bool section = *word == '[';
        const char *end = word + section + strspn(word + section, KEY_CHARS);
        end += section && *end == ']';
        const char *next = end + strspn(end, " \t");
        if (section && end[-1] == ']' && strchr("#\r\n", *next)) return line;
        return !section && end > word && *next == '=' ? line : 0;
    }
    return 0;
}

/* Fails with a clearer message if the file is HDF5, TOML or INI. Otherwise returns `status`, which
 * is the result of parsing the file as YAML. */
static Status format_fail(const Config *config, const char *text, size_t length, Status status)
{
    /* the first bytes of an HDF5 file */
    static const char hdf5[] = "\x89HDF";
    const int line = line_of_toml(text);
    if (length > 4 && memcmp(text, hdf5, 4) == 0)
        return fail(ERR_CONFIG, "%s: is an HDF5 file, where a configuration is expected",
                    config->path);
    if (line == 0) return status;
    return fail(
        ERR_CONFIG,
        "%s:%d:1: looks like TOML or INI; a configuration is YAML, as in train: {batch: 64}",
        config->path, line);
}

/* Sets the keys from the text and the overrides, then runs the registered check and the rules
 * across keys. */
static Status fill(Config *config, const char *text, size_t length, int count,
                   char *const *overrides)
{
    Faults faults = {0};
    if (text) {
        YamlNode *root = NULL;
        Status status = yaml_parse(&root, config->path, text, length);
        if (status != OK || root->kind != YAML_MAP)
            status = format_fail(config, text, length, status);
        if (status == OK) apply_tree(config, root, &faults);
        yaml_node_free(&root);
        TRY(status);
    }
    for (int i = 0; i < count; ++i) faults_add(&faults, apply_override(config, overrides[i]));
    faults_add(&faults, module_check ? module_check(config) : OK);
    TRY(faults_end(&faults));
    return apply_rules(config);
}

static Status load(Config **config, const char *name, const char *text, size_t length, int count,
                   char *const *overrides)
{
    Status status = config_new(config, name);
    if (status == OK) status = fill(*config, text, length, count, overrides);
    if (status != OK) config_free(config);
    return status;
}

Status config_load(Config **config, const char *path, int count, char *const *overrides)
{
    char *text = NULL;
    size_t length = 0;
    *config = NULL;
    Status status = path ? read_file(path, &text, &length) : OK;
    if (status == OK) status = load(config, path, text, length, count, overrides);
    mem_free(&text);
    return status;
}

Status config_parse(Config **config, const char *name, const char *text, int count,
                    char *const *overrides)
{
    return load(config, name, text, text ? strlen(text) : 0, count, overrides);
}

void config_free(Config **config)
{
    Config *c = *config;
    if (!c) return;
    for (int i = 0; i < option_count; ++i) {
        if (options[i].kind->free) options[i].kind->free(option_field(&options[i], c));
        if (c->place) mem_free(&c->place[i].word);
    }
    mem_free(&c->place);
    mem_free(&c->path);
    mem_free(config);
}

Status config_fail(const Config *config, int line, int column, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (line == 0) return fail(ERR_CONFIG, "command line: %s", text);
    return fail(ERR_CONFIG, "%s:%d:%d: %s", config->path, line, column, text);
}

Status config_fail_key(const Config *config, const char *key, const char *fmt, ...)
{
    static const ConfigPlace nowhere = {0};
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    int i = option_find(key);
    const ConfigPlace *place = i >= 0 && config->place ? &config->place[i] : &nowhere;
    if (place->source == SOURCE_FILE)
        return fail(ERR_CONFIG, "%s:%d:%d: %s: %s", config->path, place->line, place->column, key,
                    text);
    if (place->source == SOURCE_COMMAND)
        return fail(ERR_CONFIG, "command line: %s: %s", place->word, text);
    return fail(ERR_CONFIG, "%s: %s (not set): %s", config->path ? config->path : "defaults", key,
                text);
}

bool config_key_is_set(const Config *config, const char *key)
{
    int i = option_find(key);
    return i >= 0 && config->place && config->place[i].source != SOURCE_DEFAULT;
}

/* Returns the option's value as YAML; the caller owns it. */
static char *value_text(const Option *option, const Config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    option->kind->print(out, option, config);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return text;
}

char *config_key_text(const Config *config, const char *key)
{
    return value_text(&options[option_find(key)], config);
}

bool config_key_is_default(const Config *config, const char *key)
{
    const Option *option = &options[option_find(key)];
    Config *defaults = mem_new(sizeof *defaults);
    if (option_set_default(option, defaults) != OK) die("the option table: %s", fail_message());
    char *default_text = value_text(option, defaults), *text = value_text(option, config);
    bool is_default = strcmp(text, default_text) == 0;
    mem_free(&text);
    mem_free(&default_text);
    if (option->kind->free) option->kind->free(option_field(option, defaults));
    mem_free(&defaults);
    return is_default;
}

/* Prints one option as a line of the resolved text. Leaves out a default that means "not set",
 * because reading it back would fail. */
static void print_option(FILE *out, const Option *option, const Config *config,
                         const Config *defaults)
{
    if (option->offset == OPTION_NO_FIELD) return;
    char *text = value_text(option, config);
    char *default_text = option->unset ? value_text(option, defaults) : NULL;
    const char *space = *text == '\n' || !*text ? "" : " ";
    if (!default_text || strcmp(text, default_text) != 0)
        fprintf(out, "  %s:%s%s\n", option_leaf(option), space, text);
    mem_free(&text);
    mem_free(&default_text);
}

char *config_text(const Config *config)
{
    char *text = NULL;
    size_t size = 0;
    Config *defaults = NULL;
    if (config_new(&defaults, NULL) != OK) die("the option table: %s", fail_message());
    FILE *out = open_memstream(&text, &size);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    for (int s = 0; s < section_count; ++s) {
        fprintf(out, "%s:\n", sections[s].name);
        for (int i = 0; i < option_count; ++i)
            if (option_is_in(&options[i], sections[s].name))
                print_option(out, &options[i], config, defaults);
    }
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    config_free(&defaults);
    return text;
}
