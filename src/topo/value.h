/* Reads values of a file from its tree of nodes (yaml.h). All functions return ERR_CONFIG for a
 * value of another form; the message has file, line and column. path: name of the file in messages.
 * least, most: smallest and largest allowed value. */
#ifndef WEFT_TOPO_VALUE_H
#define WEFT_TOPO_VALUE_H

#include "config/yaml.h"

/* Returns ERR_CONFIG with the message "path:line:column: " and what printf would print. */
Status value_fail(const char *path, const YamlNode *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads a number that is not in quotes. */
Status value_number(const char *path, const YamlNode *n, double least, double most, double *value);
/* Reads a whole number. */
Status value_whole(const char *path, const YamlNode *n, int least, int most, int *value);
/* Reads a flag, which must be true or false. */
Status value_flag(const char *path, const YamlNode *n, bool *value);
/* Reads a text, owned by the caller, and escapes characters that a terminal must not get. Frees the
 * previous *text. */
Status value_text(const char *path, const YamlNode *n, char **text);
/* Reads a list of exactly `count` texts, each owned by the caller. belongs_to: the thing to which
 * each text belongs, for messages, for example "node". */
Status value_texts(const char *path, const YamlNode *n, const char *belongs_to, int count,
                   char **text);
/* Finds the values of `count` keys in a mapping. value[i] is the value of key name[i], or NULL if
 * the mapping does not have this key. Errors: one of the first `required` keys is missing, or the
 * mapping has a key that is not in `name`. */
Status value_keys(const char *path, const YamlNode *map, const char *const *name, int count,
                  int required, const YamlNode **value);

#endif
