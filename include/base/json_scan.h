/* Parses untrusted JSON in memory; the caller says which kind of value it expects next. All
 * functions with a Status fail with ERR_DATA if the JSON is invalid, if another value than the
 * expected one follows, or if a value is longer, larger or more deeply nested than allowed. The
 * message has the name of the file and the offset of the byte. Not collective. */
#ifndef WEFT_BASE_JSON_SCAN_H
#define WEFT_BASE_JSON_SCAN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A JSON text, and the position up to which it has been read. */
typedef struct JsonScan {
    /* name of the file in messages; borrowed */
    const char *path;
    /* begin: first byte of the JSON; at: next byte to read; end: end of the JSON; borrowed */
    const char *begin, *at, *end;
} JsonScan;
/* Begins to parse `bytes` bytes of JSON. path: name of the file in messages. */
JsonScan json_scan(const char *path, const char *text, size_t bytes);
/* Fails with ERR_DATA. The message is "PATH: byte N: " and the formatted text; N is the offset of
 * the next byte. */
Status json_scan_fail(const JsonScan *scan, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Reads the bracket `opening`, '{' or '['. *more: true if values follow; false if the
 * object or array is empty, and then its closing bracket has been read, too. */
Status json_scan_open(JsonScan *scan, char opening, bool *more);
/* Reads the comma or the closing bracket after a value in an object or array. closing: the closing
 * bracket, '}' or ']'. *more: true after a comma, false after the bracket. */
Status json_scan_more(JsonScan *scan, char closing, bool *more);
/* json_scan_text reads a text of at most 1024 bytes of UTF-8, which the caller owns;
 * json_scan_long_text one of at most 64 KiB. json_scan_key does what json_scan_text does, and reads
 * the colon after the text. The text may contain control characters, but no zero byte: before it is
 * printed to a terminal it needs text_escape (base/escape.h), which messages of the log get. */
Status json_scan_text(JsonScan *scan, char **text);
Status json_scan_long_text(JsonScan *scan, char **text);
Status json_scan_key(JsonScan *scan, char **key);
/* Reads a whole number from 0 to 2^63 - 1. */
Status json_scan_count(JsonScan *scan, int64_t *value);
/* Reads true or false. */
Status json_scan_bool(JsonScan *scan, bool *value);
/* Reads a finite number of at most 127 characters. */
Status json_scan_real(JsonScan *scan, double *value);
/* Skips any value. Its texts and numbers may have any length, but each may be inside at most 15
 * brackets of the value. Skipped numbers and words are not checked: 1-2 and nil are accepted. */
Status json_scan_skip(JsonScan *scan);
/* Skips blanks and returns the next byte without reading it; 0 at the end. */
char json_scan_peek(JsonScan *s);
/* Checks that only blanks follow. */
Status json_scan_end(JsonScan *scan);

#endif
