/* Reads values of a file from its tree of nodes (yaml.h). Errors are ERR_CONFIG; the message has
 * file, line and column. least, most: limits of the value. */
#ifndef WEFT_TOPO_VALUE_H
#define WEFT_TOPO_VALUE_H

#include "config/yaml.h"

Status value_fail(const char *path, const Node *at, const char *what);
Status value_number(const char *path, const Node *n, double least, double most, double *value);
Status value_whole(const char *path, const Node *n, int least, int most, int *value);
/* Reads a flag, which must be true or false. */
Status value_flag(const char *path, const Node *n, bool *value);
/* Reads a text, owned by the caller. Frees the previous *text. */
Status value_text(const char *path, const Node *n, char **text);
/* Reads a list of exactly `count` texts, each owned by the caller. */
Status value_texts(const char *path, const Node *n, int count, char **text);
/* Finds the values of keys in a mapping: value[i] for key name[i], [count]; NULL: the key is
 * missing. A missing key among the first `required`, and an unknown key, are errors. */
Status value_keys(const char *path, const Node *map, const char *const *name, int count,
                  int required, const Node **value);

#endif
