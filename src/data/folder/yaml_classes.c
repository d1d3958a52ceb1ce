/* Reads the names of classes from a data.yaml of YOLO's programs. Its key `names` is a list of
 * names, or a mapping from the numbers 0, 1, 2, ... to names. If there is a key `nc`, its value
 * must be the number of names. All other keys, for example `path`, `train` and `val`, are
 * ignored. */
#include "folder_files.h"
#include "../data_private.h"

#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>

enum { YAML_BYTES_MAX = 16 << 20 };

static Status node_refuse(const char *path, const YamlNode *node, const char *why)
{
    return fail(ERR_DATA, "%s:%d:%d: %s", path, node->line, node->column, why);
}

/* Returns the value of a scalar that is a whole number of at most 9 digits; -1: the node is not
 * such a scalar. */
static int64_t whole_number(const YamlNode *node)
{
    if (node->kind != YAML_SCALAR || !*node->text || strlen(node->text) > 9 ||
        node->text[strspn(node->text, "0123456789")])
        return -1;
    return atoll(node->text);
}

static const YamlNode *find_key(const YamlNode *map, const char *key)
{
    for (int i = 0; i < map->count; ++i)
        if (strcmp(map->key[i]->text, key) == 0) return map->item[i];
    return NULL;
}

/* Sets name[i] to the node with the name of class i. name: [names->count], all NULL before the
 * call. ERR_DATA: a number or a name is not valid. */
static Status order_names(const char *path, const YamlNode *names, const YamlNode **name)
{
    for (int i = 0; i < names->count; ++i) {
        const YamlNode *item = names->item[i];
        const int64_t class = names->kind == YAML_MAP ? whole_number(names->key[i]) : i;
        if (class < 0 || class >= names->count)
            return node_refuse(path, names->key[i],
                               "the keys of `names` are not the numbers of its classes, from 0");
        if (name[class]) return node_refuse(path, names->key[i], "this class has a name already");
        if (item->kind != YAML_SCALAR || yaml_node_is_null(item) || !*item->text ||
            strchr(item->text, '\n'))
            return node_refuse(path, item, "expected the name of a class");
        name[class] = item;
    }
    return OK;
}

static Status copy_names(const char *path, const YamlNode *names, ClassNames *out)
{
    const YamlNode **name = mem_new((size_t)(names->count + 1) * sizeof *name);
    Status st = order_names(path, names, name);
    size_t bytes = 0;
    for (int i = 0; st == OK && i < names->count; ++i) bytes += strlen(name[i]->text) + 1;
    char *text = mem_new(bytes + 1), *at = text;
    for (int i = 0; st == OK && i < names->count; ++i) at = stpcpy(at, name[i]->text) + 1;
    if (st == OK)
        class_names_split(out, text, bytes, 0);
    else
        mem_free(&text);
    mem_free(&name);
    return st;
}

static Status read_root(const char *path, const YamlNode *root, ClassNames *out)
{
    const YamlNode *names = root->kind == YAML_MAP ? find_key(root, "names") : NULL;
    const YamlNode *count = names ? find_key(root, "nc") : NULL;
    if (!names)
        return node_refuse(path, root, "the key `names` is missing: the names of the classes");
    if (names->kind == YAML_SCALAR)
        return node_refuse(path, names, "expected a list of names, or numbers with names");
    if (count && whole_number(count) != names->count)
        return node_refuse(path, count, "`nc` is not the number of `names`");
    return copy_names(path, names, out);
}

Status yaml_classes_read(ClassNames *names, const char *path)
{
    char *text = NULL;
    size_t bytes;
    YamlNode *root = NULL;
    TRY(file_text(path, YAML_BYTES_MAX, &text, &bytes));
    Status st = yaml_parse(&root, path, text, bytes);
    if (st == ERR_CONFIG) {
        /* ERR_CONFIG would blame the configuration of a run, but this file is data. */
        char *why = mem_text(fail_message());
        st = fail(ERR_DATA, "%s", why);
        mem_free(&why);
    }
    if (st == OK) st = read_root(path, root, names);
    yaml_node_free(&root);
    mem_free(&text);
    return st;
}
