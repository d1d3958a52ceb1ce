/* Reads values of a file from its tree of nodes; errors are ERR_CONFIG with file, line and
 * column. */
#ifndef WEFT_TOPO_VALUE_H
#define WEFT_TOPO_VALUE_H

#include "config/yaml.h"

Status value_fail(const char *path, const Node *at, const char *what);
Status value_number(const char *path, const Node *n, double least, double most, double *value);
Status value_whole(const char *path, const Node *n, int least, int most, int *value);
/* ERR_CONFIG also if the flag is neither true nor false. */
Status value_flag(const char *path, const Node *n, bool *value);
/* Reads a text, owned by the caller; what *text was before is released. */
Status value_text(const char *path, const Node *n, char **text);
/* Reads a list of `count` texts. */
Status value_texts(const char *path, const Node *n, int count, char **text);
/* Finds the values of keys in a mapping: value[i] for name[i], NULL where it is missing, which is
 * an error for the first `required` of them. value[count] */
Status value_keys(const char *path, const Node *map, const char *const *name, int count,
                  int required, const Node **value);

#endif
