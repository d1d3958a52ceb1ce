/* Parses a YAML text to a tree of nodes with their lines and columns: scalars, lists and mappings.
 * Not collective. */
#ifndef WEFT_CONFIG_YAML_H
#define WEFT_CONFIG_YAML_H

#include "base.h"

typedef enum YamlNodeKind { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlNodeKind;

typedef struct YamlNode {
    YamlNodeKind kind;
    /* text of a scalar; owned */
    char *text;
    /* true: the scalar is in quotes or in a block, so it is neither a number nor null */
    bool quoted;
    /* position in the text, counted from 1; 0: the value is from the command line */
    int line, column;
    /* number of items of a list, or of pairs of a mapping */
    int count;
    /* item: items of a list, or values of a mapping; key: keys of a mapping, NULL in a list;
     * [count]; the arrays and the nodes are owned */
    struct YamlNode **key, **item;
} YamlNode;

/* Parses a text of one document. name: name of the text in messages. ERR_CONFIG, with
 * NAME:LINE:COLUMN: the text is no valid YAML, is empty or has more than one document; it has
 * anchors, aliases, tags, keys that are not scalars, a key twice in a mapping, more than 16 levels
 * of nesting, or a zero byte. The caller owns *root. */
Status yaml_parse(YamlNode **root, const char *name, const char *text, size_t length);
/* Returns a scalar with this text and line 0, for a value from the command line. The caller owns
 * it. */
YamlNode *yaml_node_word(const char *text);
void yaml_node_free(YamlNode **node);
/* Returns true for a missing value (`key:`), and for null, Null, NULL and ~. */
bool yaml_node_is_null(const YamlNode *node);
/* Returns "a list", "a mapping" or "a single value", for messages. */
const char *yaml_node_kind_name(const YamlNode *node);

#endif
