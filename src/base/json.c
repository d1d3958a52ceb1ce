/* Writes JSON (RFC 8259) as a stream: values, commas, keys and brackets, so that a caller never
 * prints punctuation. Calls that would not give JSON end the job (die): nesting that is too deep, a
 * key outside of an object, a value without a key in an object, json_end without an open object or
 * array. */
#include "base.h"

#include <math.h>
#include <stdlib.h>

/* Writes a text in quotes. replaces = true: bytes that are not UTF-8 become U+FFFD; false: they are
 * kept. */
static void quote(FILE *out, const char *text, bool replaces)
{
    static const char letter[] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    int bytes;
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c += bytes) {
        int known = utf8_bytes(c);
        bytes = known ? known : 1;
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < sizeof letter && letter[*c])
            fprintf(out, "\\%c", letter[*c]);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else if (!known && replaces)
            fputs("\\ufffd", out);
        else
            fwrite(c, 1, (size_t)bytes, out);
    }
    fputc('"', out);
}

void text_quote(FILE *out, const char *text)
{
    quote(out, text, false);
}

void text_real(FILE *out, double value)
{
    char text[32] = "null";
    if (isfinite(value)) {
        for (int digits = 15; digits <= 17; ++digits) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value) break;
        }
    }
    fputs(text, out);
}

Json json_to(FILE *out, bool spaced)
{
    return (Json){.out = out, .spaced = spaced};
}

/* Writes the comma, the line break and the key before a value. */
static void lead(Json *json, const char *key)
{
    JsonLevel *level = &json->level[json->depth];
    if ((level->close == '}') != (key != NULL))
        die("JSON: %s%s", key ? "a key outside of objects: " : "a value without a key",
            key ? key : "");
    if (level->filled) fputs(json->spaced && !level->lines ? ", " : ",", json->out);
    if (level->lines) fputc('\n', json->out);
    level->filled = true;
    if (!key) return;
    quote(json->out, key, true);
    fputs(json->spaced ? ": " : ":", json->out);
}

static void open_level(Json *json, const char *key, char open, JsonLevel level)
{
    lead(json, key);
    if (json->depth + 1 == JSON_DEPTH) die("JSON: deeper than %d levels", JSON_DEPTH - 1);
    fputc(open, json->out);
    json->level[++json->depth] = level;
}

void json_object(Json *json, const char *key)
{
    open_level(json, key, '{', (JsonLevel){.close = '}'});
}

void json_array(Json *json, const char *key)
{
    open_level(json, key, '[', (JsonLevel){.close = ']'});
}

void json_array_by_line(Json *json, const char *key)
{
    open_level(json, key, '[', (JsonLevel){.close = ']', .lines = true});
}

void json_end(Json *json)
{
    if (json->depth == 0) die("JSON: an end without a beginning");
    JsonLevel level = json->level[json->depth--];
    if (level.lines) fputc('\n', json->out);
    fputc(level.close, json->out);
    if (json->depth > 0) return;
    fputc('\n', json->out);
    json->level[0].filled = false;
}

void json_text(Json *json, const char *key, const char *text)
{
    lead(json, key);
    if (text)
        quote(json->out, text, true);
    else
        fputs("null", json->out);
}

void json_format(Json *json, const char *key, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    if (length < 0) die_as(ERR_MEMORY, "out of memory while JSON was written");
    json_text(json, key, text);
    mem_free(&text);
}

void json_int(Json *json, const char *key, int64_t value)
{
    lead(json, key);
    fprintf(json->out, "%lld", (long long)value);
}

void json_real(Json *json, const char *key, double value)
{
    lead(json, key);
    text_real(json->out, value);
}

void json_fixed(Json *json, const char *key, int decimals, double value)
{
    lead(json, key);
    if (isfinite(value))
        fprintf(json->out, "%.*f", decimals, value);
    else
        fputs("null", json->out);
}

void json_bool(Json *json, const char *key, bool value)
{
    lead(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_raw(Json *json, const char *key, const char *value)
{
    lead(json, key);
    fputs(value, json->out);
}
