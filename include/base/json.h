/* Writes JSON. Example: `json_object(&json, NULL); json_int(&json, "step", 3); json_end(&json);`
 * writes {"step":3} and a line feed, which follows the outermost object or array. In all functions
 * key is the name of the value in its object, or NULL in an array and for the outermost value.
 * Errors of writing are found with ferror(out). Calls that would not give JSON, such as a key in an
 * array, end the job (die). Not collective. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* number of levels: level 0, outside of all brackets, and up to 7 open objects and arrays */
enum { JSON_DEPTH = 8 };
/* An object or array that is open, or level 0. */
typedef struct JsonLevel {
    /* closing bracket */
    char close;
    /* lines: true if each value is on a line of its own; filled: true if a value has been
     * written */
    bool lines, filled;
} JsonLevel;
typedef struct Json {
    /* borrowed */
    FILE *out;
    /* true: a blank follows colons, and commas that do not end a line */
    bool spaced;
    /* number of open objects and arrays */
    int depth;
    JsonLevel level[JSON_DEPTH];
} Json;
/* Returns a writer of JSON to `out`. */
Json json_to(FILE *out, bool spaced);
/* json_object begins an object, json_array an array. */
void json_object(Json *json, const char *key);
void json_array(Json *json, const char *key);
/* Begins an array in which each value is on a line of its own. */
void json_array_by_line(Json *json, const char *key);
/* Closes the innermost object or array. */
void json_end(Json *json);
/* Writes a text; NULL is written as null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(Json *json, const char *key, const char *text);
/* Writes a text in quotes, made from fmt as printf makes it. */
void json_format(Json *json, const char *key, const char *fmt, ...) BASE_PRINTF(3, 4);
void json_bool(Json *json, const char *key, bool value);
void json_int(Json *json, const char *key, int64_t value);
/* Both write a number: json_real as text_real does, json_fixed with `decimals` decimals. NaN and
 * infinities become null. */
void json_real(Json *json, const char *key, double value);
void json_fixed(Json *json, const char *key, int decimals, double value);
/* Writes the text `value` unchanged; it must be JSON. */
void json_raw(Json *json, const char *key, const char *value);

#endif
