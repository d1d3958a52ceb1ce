/* A YAML text as a tree of nodes with their lines and columns: scalars, lists and mappings. */
#ifndef WEFT_CONFIG_YAML_H
#define WEFT_CONFIG_YAML_H

#include "base.h"

typedef enum NodeKind { NODE_SCALAR, NODE_LIST, NODE_MAP } NodeKind;

typedef struct Node {
    NodeKind kind;
    /* text of a scalar; owned */
    char *text;
    /* true: the scalar is in quotes or in a block, so it is neither a number nor null */
    bool quoted;
    /* counted from 1; 0 if the value is from the command line */
    int line, column;
    /* number of items of a list, or of pairs of a mapping */
    int count;
    /* [count], owned with the nodes; key is NULL in a list */
    struct Node **key, **item;
} Node;

/* Reads one document. name: name of the text in messages. Errors are ERR_CONFIG with
 * name:line:column: broken YAML, an empty text, more than one document, anchors, aliases, tags,
 * keys that are not scalars, a key that a mapping has twice, more than 16 levels of nesting, a zero
 * byte. The caller owns *root. */
Status yaml_parse(Node **root, const char *name, const char *text, size_t length);
/* Returns a scalar with this text and line 0, for a value from the command line. The caller owns
 * it. */
Node *node_word(const char *text);
void node_free(Node **node);
/* True for a missing value (`key:`), for null, Null and NULL, and for ~. */
bool node_is_null(const Node *node);
/* Returns "a list", "a mapping" or "a single value", for messages. */
const char *node_kind_name(const Node *node);

#endif
