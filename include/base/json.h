/* JSON as it is written. Not collective. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `json_object(&json, NULL); json_int(&json, "step", 3); json_end(&json);` writes {"step": 3} and a
 * line's end, which follows what is outermost. key: NULL in an array and outermost, else the
 * value's name in its object. Nothing is kept in memory; whether writing went well is asked of
 * out. */
enum { JSON_DEPTH = 8 };
typedef struct JsonLevel {
    char close;
    bool lines, filled;
} JsonLevel;
typedef struct Json {
    /* borrowed */
    FILE *out;
    /* a blank behind commas and colons */
    bool spaced;
    int depth;
    JsonLevel level[JSON_DEPTH];
} Json;
Json json_to(FILE *out, bool spaced);
void json_object(Json *json, const char *key);
void json_array(Json *json, const char *key);
/* An array with a line for each value. */
void json_lines(Json *json, const char *key);
/* Closes the innermost object or array. */
void json_end(Json *json);
/* NULL: null. Bytes that are no UTF-8 become U+FFFD. */
void json_text(Json *json, const char *key, const char *text);
void json_format(Json *json, const char *key, const char *fmt, ...) BASE_PRINTF(3, 4);
void json_bool(Json *json, const char *key, bool value);
void json_int(Json *json, const char *key, int64_t value);
/* As text_real, and with so many decimals. NaN and infinities are null. */
void json_real(Json *json, const char *key, double value);
void json_fixed(Json *json, const char *key, int decimals, double value);
/* value: JSON already. */
void json_raw(Json *json, const char *key, const char *value);

#endif
