/* A YAML text as a tree of nodes with their places: scalars, lists and mappings, nothing else. */
#ifndef WEFT_CONFIG_YAML_H
#define WEFT_CONFIG_YAML_H

#include "base.h"

typedef enum NodeKind { NODE_SCALAR, NODE_LIST, NODE_MAP } NodeKind;

typedef struct Node {
    NodeKind kind;
    /* scalar; owned */
    char *text;
    /* scalar in quotes or a block: never a number, never null */
    bool quoted;
    /* from 1; 0 where the text has no lines (command line) */
    int line, column;
    /* list: items; map: pairs */
    int count;
    /* owned; key is NULL in lists */
    struct Node **key, **item;
} Node;

/* Reads one document. name stands for the text in messages. Errors are ERR_CONFIG with
 * name:line:column: broken YAML, an empty text, more than one document, anchors, aliases, tags,
 * keys that are not words. Owner: the caller. */
Status yaml_parse(Node **root, const char *name, const char *text, size_t length);
/* A scalar made from a word of the command line, without a place. */
Node *node_word(const char *text);
void node_free(Node **node);
/* True for `key:` with nothing behind it, and for null and ~. */
bool node_is_null(const Node *node);
/* "a list", ... */
const char *node_kind_name(const Node *node);

#endif
