/* JSON of strangers, read in one go from memory: the caller says what must come next. Lengths and
 * depths are bounded; what is not JSON, or not what was asked for, is ERR_DATA that names the file
 * and the byte. */
#ifndef WEFT_BASE_JSON_SCAN_H
#define WEFT_BASE_JSON_SCAN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct JsonScan {
    /* borrowed */
    const char *path, *text, *at, *end;
} JsonScan;
JsonScan json_scan(const char *path, const char *text, size_t bytes);
Status json_scan_fail(const JsonScan *scan, const char *fmt, ...) BASE_PRINTF(2, 3);
/* '{' or '['; *more: something is in it. */
Status json_scan_open(JsonScan *scan, char bracket, bool *more);
/* Behind a value: a comma (*more), or that bracket. */
Status json_scan_more(JsonScan *scan, char bracket, bool *more);
/* A text, in UTF-8, of at most 1024 bytes; owned by the caller. key: with the colon behind it. */
Status json_scan_text(JsonScan *scan, char **text);
Status json_scan_key(JsonScan *scan, char **key);
/* A whole number from 0 to 2^63 - 1. */
Status json_scan_count(JsonScan *scan, int64_t *value);
Status json_scan_bool(JsonScan *scan, bool *value);
/* A finite number. */
Status json_scan_real(JsonScan *scan, double *value);
/* Any value. */
Status json_scan_skip(JsonScan *scan);
/* Nothing but blanks is left. */
Status json_scan_end(JsonScan *scan);

#endif
