/* Writes JSON. Not collective. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `json_object(&json, NULL); json_int(&json, "step", 3); json_end(&json);` writes {"step": 3} and a
 * line feed, which follows the outermost value. key: name of the value in its object; NULL in an
 * array and for the outermost value. Nothing is buffered; errors of writing are found with
 * ferror(out). */
enum { JSON_DEPTH = 8 };
typedef struct JsonLevel {
    char close;
    bool lines, filled;
} JsonLevel;
typedef struct Json {
    /* borrowed */
    FILE *out;
    /* true: a blank after commas and colons */
    bool spaced;
    int depth;
    JsonLevel level[JSON_DEPTH];
} Json;
Json json_to(FILE *out, bool spaced);
void json_object(Json *json, const char *key);
void json_array(Json *json, const char *key);
/* Begins an array with one line for each value. */
void json_lines(Json *json, const char *key);
/* Closes the innermost object or array. */
void json_end(Json *json);
/* NULL writes null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(Json *json, const char *key, const char *text);
void json_format(Json *json, const char *key, const char *fmt, ...) BASE_PRINTF(3, 4);
void json_bool(Json *json, const char *key, bool value);
void json_int(Json *json, const char *key, int64_t value);
/* Write a number as text_real does, or with a number of decimals. NaN and infinities become
 * null. */
void json_real(Json *json, const char *key, double value);
void json_fixed(Json *json, const char *key, int decimals, double value);
/* Writes value, which is JSON already. */
void json_raw(Json *json, const char *key, const char *value);

#endif
