/* Parses untrusted JSON in memory; the caller says which kind of value it expects next. ERR_DATA:
 * the JSON is invalid, another value than the expected one follows, or a value is longer, larger or
 * more deeply nested than allowed; the message names the file and the byte. */
#ifndef WEFT_BASE_JSON_SCAN_H
#define WEFT_BASE_JSON_SCAN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct JsonScan {
    /* name of the file in messages; first byte of the JSON, next byte, and end; borrowed */
    const char *path, *text, *at, *end;
} JsonScan;
JsonScan json_scan(const char *path, const char *text, size_t bytes);
/* Fails with ERR_DATA and the message, after the names of the file and of the byte. */
Status json_scan_fail(const JsonScan *scan, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Reads the opening bracket '{' or '['. *more true: values follow; false: the object or array is
 * empty, and its closing bracket has been read, too. */
Status json_scan_open(JsonScan *scan, char bracket, bool *more);
/* Reads what follows a value in an object or array: a comma (*more is set to true), or the closing
 * bracket `bracket` (*more is set to false). */
Status json_scan_more(JsonScan *scan, char bracket, bool *more);
/* Read a text of at most 1024 bytes of UTF-8, owned by the caller; json_scan_key also reads the
 * colon after it. */
Status json_scan_text(JsonScan *scan, char **text);
Status json_scan_key(JsonScan *scan, char **key);
/* Reads a whole number from 0 to 2^63 - 1. */
Status json_scan_count(JsonScan *scan, int64_t *value);
Status json_scan_bool(JsonScan *scan, bool *value);
/* Reads a finite number of at most 127 characters. */
Status json_scan_real(JsonScan *scan, double *value);
/* Skips any value; texts and numbers may have any length, nesting is limited to 16 levels. Skipped
 * numbers and words are not checked: 1-2 and nil pass. */
Status json_scan_skip(JsonScan *scan);
/* Checks that nothing but blanks follows. */
Status json_scan_end(JsonScan *scan);

#endif
