/* Makes a tree of nodes from libyaml's events. Refuses YAML that a configuration does not need:
 * anchors, aliases, tags, several documents, and deep nesting. */
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* deepest nesting of lists and mappings */
enum { DEPTH_MAX = 16 };

typedef struct Parser {
    yaml_parser_t yaml;
    /* name of the text, for messages; borrowed */
    const char *name;
    /* the whole text; borrowed */
    const char *text;
    /* the current event */
    yaml_event_t event;
    /* true: `event` is valid and must be deleted */
    bool has_event;
} Parser;

static Status fail_at(const Parser *p, int line, int column, const char *message)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s", p->name, line, column, message);
}

static int line_of(const yaml_event_t *event)
{
    return (int)event->start_mark.line + 1;
}
static int column_of(const yaml_event_t *event)
{
    return (int)event->start_mark.column + 1;
}

/* Fails with the message, preceded by the place of the current event. */
static Status event_fail(const Parser *p, const char *message)
{
    return fail_at(p, line_of(&p->event), column_of(&p->event), message);
}

/* Returns whether there is a tab among the blanks at the beginning of line number `line`, counted
 * from 1. */
static bool tab_indents(const char *text, int line)
{
    while (--line > 0 && (text = strchr(text, '\n'))) ++text;
    return text && memchr(text, '\t', strspn(text, " \t"));
}

/* Fails with the syntax error that libyaml has found. For an error of its reader libyaml gives only
 * an offset; for errors of its scanner and parser it gives line and column. */
static Status syntax_fail(const Parser *p)
{
    const char *problem = p->yaml.problem ? p->yaml.problem : "not YAML";
    int line = 1, column = 1;
    if (p->yaml.error == YAML_READER_ERROR) {
        for (size_t i = 0; i < p->yaml.problem_offset; ++i, ++column)
            if (p->text[i] == '\n') ++line, column = 0;
    } else {
        line = (int)p->yaml.problem_mark.line + 1;
        column = (int)p->yaml.problem_mark.column + 1;
    }
    if (p->yaml.context && strstr(p->yaml.context, "alias") && p->yaml.error == YAML_SCANNER_ERROR)
        return fail(ERR_CONFIG, "%s:%d:%d: YAML: %s (%s): a text that begins with * needs quotes",
                    p->name, line, column, problem, p->yaml.context);
    if (tab_indents(p->text, line))
        return fail(ERR_CONFIG, "%s:%d:1: a tab indents this line: YAML allows only spaces",
                    p->name, line);
    if (p->yaml.context && p->yaml.error != YAML_READER_ERROR)
        return fail(ERR_CONFIG, "%s:%d:%d: YAML: %s (%s)", p->name, line, column, problem,
                    p->yaml.context);
    return fail(ERR_CONFIG, "%s:%d:%d: YAML: %s", p->name, line, column, problem);
}

static Status next_event(Parser *p)
{
    if (p->has_event) yaml_event_delete(&p->event);
    p->has_event = false;
    if (!yaml_parser_parse(&p->yaml, &p->event)) return syntax_fail(p);
    p->has_event = true;
    return OK;
}

static YamlNode *node_new(YamlNodeKind kind, int line, int column)
{
    YamlNode *node = mem_new(sizeof *node);
    node->kind = kind;
    node->line = line;
    node->column = column;
    return node;
}

static void node_push(YamlNode *node, YamlNode *key, YamlNode *item)
{
    size_t bytes = (size_t)(node->count + 1) * sizeof(YamlNode *);
    node->item = mem_resize(node->item, bytes);
    node->item[node->count] = item;
    if (node->kind == YAML_MAP) {
        node->key = mem_resize(node->key, bytes);
        node->key[node->count] = key;
    }
    ++node->count;
}

/* Compares two keys, for qsort: by text, and keys with the same text by their place in the file. */
static int compare_keys(const void *a, const void *b)
{
    const YamlNode *x = *(YamlNode *const *)a, *y = *(YamlNode *const *)b;
    int order = strcmp(x->text, y->text);
    if (order) return order;
    return x->line != y->line ? x->line - y->line : x->column - y->column;
}

/* Fails if a mapping has a key twice. */
static Status refuse_twice(const Parser *p, const YamlNode *map)
{
    Status status = OK;
    size_t bytes = (size_t)map->count * sizeof(YamlNode *);
    YamlNode **key = mem_new(bytes + 1);
    if (map->count) memcpy(key, map->key, bytes);
    qsort(key, (size_t)map->count, sizeof *key, compare_keys);
    for (int i = 1; i < map->count && status == OK; ++i)
        if (!strcmp(key[i - 1]->text, key[i]->text))
            status = fail(ERR_CONFIG, "%s:%d:%d: '%s' is given twice, first in line %d", p->name,
                          key[i]->line, key[i]->column, key[i]->text, key[i - 1]->line);
    mem_free(&key);
    return status;
}

/* Fails if the node has an anchor or a tag. anchor, tag: NULL if the node has none. */
static Status refuse_extras(const Parser *p, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) return event_fail(p, "anchors (&name) are not used here: write the value out");
    if (tag) return event_fail(p, "tags (!type) are not used here: the key decides the type");
    return OK;
}

static Status read_scalar(Parser *p, YamlNode **out)
{
    const yaml_event_t *e = &p->event;
    TRY(refuse_extras(p, e->data.scalar.anchor, e->data.scalar.tag));
    if (strlen((char *)e->data.scalar.value) != e->data.scalar.length)
        return event_fail(p, "the text contains a zero byte");
    *out = node_new(YAML_SCALAR, line_of(e), column_of(e));
    (*out)->text = mem_text((char *)e->data.scalar.value);
    (*out)->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return OK;
}

static Status read_node(Parser *p, YamlNode **out, int depth);

static Status read_list(Parser *p, YamlNode *list, int depth)
{
    for (;;) {
        YamlNode *item = NULL;
        TRY(next_event(p));
        if (p->event.type == YAML_SEQUENCE_END_EVENT) return OK;
        Status status = read_node(p, &item, depth + 1);
        node_push(list, NULL, item);
        TRY(status);
    }
}

static Status read_map(Parser *p, YamlNode *map, int depth)
{
    for (;;) {
        YamlNode *key = NULL, *item = NULL;
        TRY(next_event(p));
        if (p->event.type == YAML_MAPPING_END_EVENT) return refuse_twice(p, map);
        if (p->event.type != YAML_SCALAR_EVENT && p->event.type != YAML_ALIAS_EVENT)
            return event_fail(p, "a key must be a word, not a list or a mapping");
        TRY(read_node(p, &key, depth + 1));
        Status status = next_event(p);
        if (status == OK) status = read_node(p, &item, depth + 1);
        node_push(map, key, item);
        TRY(status);
    }
}

/* Reads the node that begins with the current event. After an error *out has the part that was
 * read; the caller frees it. */
static Status read_node(Parser *p, YamlNode **out, int depth)
{
    const yaml_event_t *e = &p->event;
    if (depth > DEPTH_MAX) return event_fail(p, "nested too deeply: no key needs that");
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(p, out);
    case YAML_SEQUENCE_START_EVENT:
        TRY(refuse_extras(p, e->data.sequence_start.anchor, e->data.sequence_start.tag));
        *out = node_new(YAML_LIST, line_of(e), column_of(e));
        return read_list(p, *out, depth);
    case YAML_MAPPING_START_EVENT:
        TRY(refuse_extras(p, e->data.mapping_start.anchor, e->data.mapping_start.tag));
        *out = node_new(YAML_MAP, line_of(e), column_of(e));
        return read_map(p, *out, depth);
    default:
        return event_fail(p, "aliases (*name) are not used here: write the value out");
    }
}

static Status read_stream(Parser *p, YamlNode **root)
{
    /* the stream's start, then the document's */
    TRY(next_event(p));
    TRY(next_event(p));
    if (p->event.type == YAML_STREAM_END_EVENT)
        return fail_at(p, 1, 1, "the file is empty: it must hold at least one key");
    TRY(next_event(p));
    TRY(read_node(p, root, 0));
    if (yaml_node_is_null(*root))
        return event_fail(p, "the document is empty: it must hold at least one key");
    /* the document's end, then the stream's */
    TRY(next_event(p));
    TRY(next_event(p));
    if (p->event.type != YAML_STREAM_END_EVENT)
        return event_fail(p, "a second document begins: one file holds one configuration");
    return OK;
}

Status yaml_parse(YamlNode **root, const char *name, const char *text, size_t length)
{
    Parser p = {.name = name, .text = text};
    *root = NULL;
    if (!yaml_parser_initialize(&p.yaml)) die_as(ERR_MEMORY, "libyaml: out of memory");
    yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, length);
    Status status = read_stream(&p, root);
    if (p.has_event) yaml_event_delete(&p.event);
    yaml_parser_delete(&p.yaml);
    if (status != OK) yaml_node_free(root);
    return status;
}

YamlNode *yaml_node_word(const char *text)
{
    YamlNode *node = node_new(YAML_SCALAR, 0, 0);
    node->text = mem_text(text);
    return node;
}

void yaml_node_free(YamlNode **node)
{
    if (!*node) return;
    for (int i = 0; i < (*node)->count; ++i) {
        if ((*node)->key) yaml_node_free(&(*node)->key[i]);
        yaml_node_free(&(*node)->item[i]);
    }
    mem_free(&(*node)->key);
    mem_free(&(*node)->item);
    mem_free(&(*node)->text);
    mem_free(node);
}

bool yaml_node_is_null(const YamlNode *node)
{
    if (node->kind != YAML_SCALAR || node->quoted) return false;
    const char *t = node->text;
    return !*t || !strcmp(t, "~") || !strcmp(t, "null") || !strcmp(t, "Null") || !strcmp(t, "NULL");
}

const char *yaml_node_kind_name(const YamlNode *node)
{
    if (node->kind == YAML_LIST) return "a list";
    if (node->kind == YAML_MAP) return "a mapping";
    return "a single value";
}
