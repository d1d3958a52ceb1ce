/* Reads values of a file from its tree of nodes, and checks them (value.h). */
#include "value.h"

#include "base/escape.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

Status value_fail(const char *path, const YamlNode *at, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return fail(ERR_CONFIG, "%s:%d:%d: %s", path, at->line, at->column, what);
}

/* Returns the text of a scalar ("an empty text" if it is empty), else "a list" or "a mapping". */
static const char *shown(const YamlNode *n)
{
    return n->kind != YAML_SCALAR ? yaml_node_kind_name(n) : *n->text ? n->text : "an empty text";
}

Status value_number(const char *path, const YamlNode *n, double least, double most, double *value)
{
    char *end = NULL;
    if (n->kind == YAML_SCALAR && !n->quoted) *value = strtod(n->text, &end);
    if (end && end != n->text && !*end && *value >= least && *value <= most) return OK;
    const char *quote = n->kind == YAML_SCALAR && n->quoted ? "\"" : "";
    if (least == most)
        return value_fail(path, n, "expected %g, not %s%.40s%s", least, quote, shown(n), quote);
    return value_fail(path, n, "expected a number from %g to %g, not %s%.40s%s", least, most, quote,
                      shown(n), quote);
}

Status value_whole(const char *path, const YamlNode *n, int least, int most, int *value)
{
    double real;
    TRY(value_number(path, n, least, most, &real));
    if (real != floor(real))
        return value_fail(path, n, "expected a whole number, not %.40s", n->text);
    *value = (int)real;
    return OK;
}

Status value_flag(const char *path, const YamlNode *n, bool *value)
{
    bool is_true = n->kind == YAML_SCALAR && strcmp(n->text, "true") == 0;
    if (!is_true && (n->kind != YAML_SCALAR || strcmp(n->text, "false") != 0))
        return value_fail(path, n, "expected true or false, not %.40s", shown(n));
    *value = is_true;
    return OK;
}

Status value_text(const char *path, const YamlNode *n, char **text)
{
    if (n->kind != YAML_SCALAR)
        return value_fail(path, n, "expected a text, not %s", yaml_node_kind_name(n));
    mem_free(text);
    *text = text_escape(n->text, false);
    return OK;
}

Status value_texts(const char *path, const YamlNode *n, const char *belongs_to, int count,
                   char **text)
{
    if (n->kind != YAML_LIST)
        return value_fail(path, n, "expected a list with a text for each %s, not %s", belongs_to,
                          yaml_node_kind_name(n));
    if (n->count != count)
        return value_fail(path, n, "expected %d texts, one for each %s, not %d", count, belongs_to,
                          n->count);
    for (int i = 0; i < count; ++i) TRY(value_text(path, n->item[i], &text[i]));
    return OK;
}

/* Fails for a key that is not in `name`. */
static Status refuse_key(const char *path, const YamlNode *key, const char *const *name, int count)
{
    TextList list;
    const char *near = text_nearest(key->text, name, count);
    if (near)
        return value_fail(path, key, "unknown key '%.40s'; did you mean '%s'?", key->text, near);
    text_list_begin(&list, count);
    for (int i = 0; i < count; ++i) text_list_add(&list, name[i]);
    char *names = text_list_end(&list);
    value_fail(path, key, "unknown key '%.40s'; there are: %s", key->text, names);
    mem_free(&names);
    return ERR_CONFIG;
}

Status value_keys(const char *path, const YamlNode *map, const char *const *name, int count,
                  int required, const YamlNode **value)
{
    for (int key = 0; key < count; ++key) value[key] = NULL;
    if (map->kind != YAML_MAP)
        return value_fail(path, map, "expected a mapping of keys, not %s",
                          yaml_node_kind_name(map));
    for (int i = 0; i < map->count; ++i) {
        int key = 0;
        while (key < count && strcmp(map->key[i]->text, name[key]) != 0) ++key;
        if (key == count) return refuse_key(path, map->key[i], name, count);
        value[key] = map->item[i];
    }
    for (int key = 0; key < required; ++key)
        if (!value[key]) return value_fail(path, map, "key `%s` is missing", name[key]);
    return OK;
}
