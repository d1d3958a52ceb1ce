/* Reads values of a file from its tree of nodes, and checks them (value.h). */
#include "value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status value_fail(const char *path, const Node *at, const char *what)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s", path, at->line, at->column, what);
}

Status value_number(const char *path, const Node *n, double least, double most, double *value)
{
    char *end = NULL;
    if (n->kind == NODE_SCALAR && !n->quoted) *value = strtod(n->text, &end);
    if (!end || end == n->text || *end || !(*value >= least && *value <= most)) {
        char what[80];
        snprintf(what, sizeof what, "expected a number from %g to %g", least, most);
        return value_fail(path, n, what);
    }
    return OK;
}

Status value_whole(const char *path, const Node *n, int least, int most, int *value)
{
    double real;
    TRY(value_number(path, n, least, most, &real));
    if (real != floor(real)) return value_fail(path, n, "expected a whole number");
    *value = (int)real;
    return OK;
}

Status value_flag(const char *path, const Node *n, bool *value)
{
    bool is_true = n->kind == NODE_SCALAR && strcmp(n->text, "true") == 0;
    if (!is_true && (n->kind != NODE_SCALAR || strcmp(n->text, "false") != 0))
        return value_fail(path, n, "expected true or false");
    *value = is_true;
    return OK;
}

Status value_text(const char *path, const Node *n, char **text)
{
    if (n->kind != NODE_SCALAR) return value_fail(path, n, "expected a text");
    mem_free(text);
    *text = mem_text(n->text);
    return OK;
}

Status value_texts(const char *path, const Node *n, int count, char **text)
{
    if (n->kind != NODE_LIST || n->count != count)
        return value_fail(path, n, "wrong number of texts");
    for (int i = 0; i < count; ++i) TRY(value_text(path, n->item[i], &text[i]));
    return OK;
}

Status value_keys(const char *path, const Node *map, const char *const *name, int count,
                  int required, const Node **value)
{
    for (int key = 0; key < count; ++key) value[key] = NULL;
    if (map->kind != NODE_MAP) return value_fail(path, map, "expected a mapping of keys");
    for (int i = 0; i < map->count; ++i) {
        int key = 0;
        while (key < count && strcmp(map->key[i]->text, name[key]) != 0) ++key;
        if (key == count) return value_fail(path, map->key[i], "unknown key");
        value[key] = map->item[i];
    }
    for (int key = 0; key < required; ++key)
        if (!value[key]) {
            char what[80];
            snprintf(what, sizeof what, "key `%s` is missing", name[key]);
            return value_fail(path, map, what);
        }
    return OK;
}
