/* Kinds of lists: sets of words (stored as an int with a bit for each word), numbers, names, files,
 * and the layers of model.layers. */
#include "option.h"

#include <math.h>
#include <string.h>

static Status check_list(Reading *r, const YamlNode *node)
{
    r->at = node;
    if (node->kind == YAML_LIST) return OK;
    if (yaml_node_is_null(node))
        return fail(ERR_CONFIG, "has no value: write a list, [] for none, or remove the key");
    if (node->kind == YAML_SCALAR)
        return fail(ERR_CONFIG, "expected a list: write [%s]", node->text);
    return fail(ERR_CONFIG, "expected a list, not %s", yaml_node_kind_name(node));
}

static Status word_set_read(Reading *r, void *field, const YamlNode *node)
{
    int bits = 0;
    TRY(check_list(r, node));
    for (int i = 0; i < node->count; ++i) {
        TRY(read_text(r, node->item[i]));
        const char *word = node->item[i]->text;
        int bit = words_find(option_words(r->option), word);
        if (bit < 0) return words_fail(r->option->key, option_words(r->option), word);
        if (bits & 1 << bit) return fail(ERR_CONFIG, "'%s' is in the list already", word);
        bits |= 1 << bit;
    }
    *(int *)field = bits;
    return OK;
}

static void word_set_print(FILE *out, const Option *o, const Config *config)
{
    char word[WORD_BYTES];
    const char *between = "";
    int bits = *(const int *)option_value(o, config);
    fputc('[', out);
    for (int i = 0; i < words_count(option_words(o)); ++i) {
        if (!(bits & 1 << i)) continue;
        fprintf(out, "%s%s", between, words_at(option_words(o), i, word));
        between = ", ";
    }
    fputc(']', out);
}

static void reals_free(void *field)
{
    ConfigList *list = field;
    mem_free(&list->value);
    list->count = 0;
}

static Status reals_read(Reading *r, void *field, const YamlNode *node)
{
    ConfigList *list = field;
    TRY(check_list(r, node));
    double *value = mem_new((size_t)node->count * sizeof *value);
    for (int i = 0; i < node->count; ++i) {
        Status status = read_real(r, node->item[i], &value[i]);
        if (status == OK && r->option->kind == &kind_ints && value[i] != floor(value[i]))
            status = fail(ERR_CONFIG, "'%s' is not a whole number", node->item[i]->text);
        if (status != OK) mem_free(&value);
        TRY(status);
    }
    reals_free(list);
    *list = (ConfigList){.count = node->count, .value = value};
    return OK;
}

static void reals_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigList *list = option_value(o, config);
    fputc('[', out);
    for (int i = 0; i < list->count; ++i) {
        if (i) fputs(", ", out);
        text_real(out, list->value[i]);
    }
    fputc(']', out);
}

static void layer_fini(ConfigLayer *layer)
{
    for (int i = 0; i < layer->attr_count; ++i) {
        mem_free(&layer->attr[i].key);
        mem_free(&layer->attr[i].value);
    }
    mem_free(&layer->attr);
    mem_free(&layer->kind);
}

static void layers_free(void *field)
{
    char *base = (char *)field - offsetof(Config, model.layer);
    Config *config = (Config *)(void *)base;
    for (int i = 0; i < config->model.layer_count; ++i) layer_fini(&config->model.layer[i]);
    mem_free(&config->model.layer);
    config->model.layer_count = 0;
}

/* Sets *text to the items of a list, joined with commas: "3,5". The caller owns *text. */
static Status join_list(Reading *r, const YamlNode *list, char **text)
{
    char *joined = mem_text("");
    for (int i = 0; i < list->count; ++i) {
        Status status = read_text(r, list->item[i]);
        if (status == OK && strchr(list->item[i]->text, ','))
            status = fail(ERR_CONFIG, "'%s': no comma inside an item", list->item[i]->text);
        if (status != OK) mem_free(&joined);
        TRY(status);
        char *longer = mem_format("%s%s%s", joined, i ? "," : "", list->item[i]->text);
        mem_free(&joined);
        joined = longer;
    }
    *text = joined;
    return OK;
}

static Status names_read(Reading *r, void *field, const YamlNode *node)
{
    char *text = NULL;
    TRY(check_list(r, node));
    for (int i = 0; i < node->count; ++i) {
        TRY(read_text(r, node->item[i]));
        if (!*node->item[i]->text) return fail(ERR_CONFIG, "a name is empty");
        for (int j = 0; j < i; ++j)
            if (!strcmp(node->item[i]->text, node->item[j]->text))
                return fail(ERR_CONFIG, "'%s' is in the list already", node->item[i]->text);
    }
    TRY(join_list(r, node, &text));
    mem_free((char **)field);
    *(char **)field = text;
    return OK;
}

/* Prints the items of "a,b" with ", " between them. */
static void print_items(FILE *out, const char *joined)
{
    char *copy = mem_text(joined), *rest = copy, *item;
    for (int i = 0; (item = strsep(&rest, ",")); ++i) {
        if (i) fputs(", ", out);
        print_text(out, item);
    }
    mem_free(&copy);
}

static void names_print(FILE *out, const Option *o, const Config *config)
{
    const char *joined = *(char *const *)option_value(o, config);
    fputc('[', out);
    if (*joined) print_items(out, joined);
    fputc(']', out);
}

static void names_free(void *field)
{
    mem_free((char **)field);
}

/* Reads one file name, or a list of file names, which is stored as one text with a name on each
 * line. */
static Status files_read(Reading *r, void *field, const YamlNode *node)
{
    char *joined = NULL;
    if (node->kind != YAML_LIST) return kind_text.read(r, field, node);
    r->at = node;
    if (node->count == 0) return fail(ERR_CONFIG, "the list of files is empty");
    for (int i = 0; i < node->count; ++i) {
        TRY(read_text(r, node->item[i]));
        if (!*node->item[i]->text) return fail(ERR_CONFIG, "a file's name is empty");
        for (int j = 0; j < i; ++j)
            if (!strcmp(node->item[i]->text, node->item[j]->text))
                return fail(ERR_CONFIG, "'%s' is in the list already", node->item[i]->text);
    }
    for (int i = 0; i < node->count; ++i) {
        char *longer =
            mem_format("%s%s%s", joined ? joined : "", i ? "\n" : "", node->item[i]->text);
        mem_free(&joined);
        joined = longer;
    }
    mem_free((char **)field);
    *(char **)field = joined;
    return OK;
}

static void files_print(FILE *out, const Option *o, const Config *config)
{
    const char *joined = *(char *const *)option_value(o, config);
    if (!joined || !strchr(joined, '\n')) {
        kind_text.print(out, o, config);
        return;
    }
    char *copy = mem_text(joined), *rest = copy, *item;
    fputc('[', out);
    for (int i = 0; (item = strsep(&rest, "\n")); ++i) {
        if (i) fputs(", ", out);
        print_text(out, item);
    }
    fputc(']', out);
    mem_free(&copy);
}

static Status read_attr(Reading *r, ConfigLayer *layer, const YamlNode *key, const YamlNode *value)
{
    TRY(read_text(r, key));
    char *text = NULL;
    if (value->kind == YAML_LIST) {
        if (value->count == 0) {
            r->at = value;
            return fail(ERR_CONFIG, "'%s' is an empty list", key->text);
        }
        TRY(join_list(r, value, &text));
    } else {
        TRY(read_text(r, value));
        text = mem_text(value->text);
    }
    layer->attr[layer->attr_count++] =
        (ConfigAttr){mem_text(key->text), text, value->line, value->column};
    return OK;
}

/* Reads the attributes of a layer from a mapping. */
static Status read_attrs(Reading *r, ConfigLayer *layer, const YamlNode *map)
{
    /* `- relu:` has no attributes */
    if (yaml_node_is_null(map)) return OK;
    r->at = map;
    if (map->kind != YAML_MAP)
        return fail(ERR_CONFIG, "expected attributes: write - %s: {key: value}, not %s",
                    layer->kind, yaml_node_kind_name(map));
    layer->attr = mem_new((size_t)map->count * sizeof *layer->attr);
    for (int i = 0; i < map->count; ++i) TRY(read_attr(r, layer, map->key[i], map->item[i]));
    return OK;
}

/* Reads an entry of model.layers: a kind, `relu`, or a mapping from the kind to its attributes. */
static Status read_layer(Reading *r, ConfigLayer *layer, const YamlNode *node)
{
    const YamlNode *kind = node;
    r->at = node;
    if (node->kind == YAML_MAP) {
        if (node->count != 1)
            return fail(ERR_CONFIG,
                        "each entry is one layer: - kind, or - kind: {key: value} with the "
                        "attributes in braces or indented below the kind");
        kind = node->key[0];
    }
    if (node->kind == YAML_LIST)
        return fail(ERR_CONFIG, "expected a layer: - kind, or - kind: {key: value}");
    TRY(read_text(r, kind));
    if (!*kind->text) return fail(ERR_CONFIG, "the kind of layer is empty");
    layer->kind = mem_text(kind->text);
    layer->line = kind->line;
    layer->column = kind->column;
    return node->kind == YAML_MAP ? read_attrs(r, layer, node->item[0]) : OK;
}

/* Reads model.layers: a list of layers, or the number of blocks of the model that model.name
 * selects, which goes to model.depth. */
static Status layers_read(Reading *r, void *field, const YamlNode *node)
{
    static const Option blocks = {.kind = &kind_int, .min = 1, .max = 65536};
    Reading depth_reading = {.option = &blocks, .config = r->config};
    int64_t depth = 0;
    r->at = node;
    bool is_number = node->kind == YAML_SCALAR && !node->quoted && *node->text &&
                     strchr("-0123456789", *node->text);
    if (is_number)
        TRY(read_whole(&depth_reading, node, &depth));
    else
        TRY(check_list(r, node));
    if (!r->is_default && !depth && node->count == 0)
        return fail(ERR_CONFIG, "the list of layers is empty");
    layers_free(field);
    r->config->model.depth = depth;
    r->config->model.layer = mem_new((size_t)node->count * sizeof(ConfigLayer));
    for (int i = 0; i < node->count; ++i) {
        ++r->config->model.layer_count;
        TRY(read_layer(r, &r->config->model.layer[i], node->item[i]));
    }
    return OK;
}

static void print_attr(FILE *out, const ConfigAttr *attr)
{
    print_text(out, attr->key);
    fputs(": ", out);
    bool list = strchr(attr->value, ',') != NULL;
    if (list) fputc('[', out);
    print_items(out, attr->value);
    if (list) fputc(']', out);
}

static void layers_print(FILE *out, const Option *o, const Config *config)
{
    (void)o;
    if (config->model.depth > 0) fprintf(out, "%lld", (long long)config->model.depth);
    for (int i = 0; i < config->model.layer_count; ++i) {
        const ConfigLayer *layer = &config->model.layer[i];
        fputs("\n    - ", out);
        print_text(out, layer->kind);
        if (layer->attr_count) fputs(": {", out);
        for (int a = 0; a < layer->attr_count; ++a) {
            if (a) fputs(", ", out);
            print_attr(out, &layer->attr[a]);
        }
        if (layer->attr_count) fputc('}', out);
    }
}

const OptionKind kind_files = {"FILE|LIST", true, files_read, files_print, names_free};
const OptionKind kind_word_set = {"[WORD, ...]", true, word_set_read, word_set_print, NULL};
const OptionKind kind_ints = {"[INT, ...]", true, reals_read, reals_print, reals_free};
const OptionKind kind_reals = {"[NUMBER, ...]", true, reals_read, reals_print, reals_free};
const OptionKind kind_names = {"[NAME, ...]", true, names_read, names_print, names_free};
const OptionKind kind_layers = {"LIST|INT", true, layers_read, layers_print, layers_free};
