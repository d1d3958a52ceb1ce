/* JSON text (RFC 8259): quoted strings and numbers. Bytes above 0x7f pass as they are: names come as UTF-8. */
#include "base.h"

#include <math.h>
#include <stdlib.h>

void json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
        switch (*c) {
        case '"':
            fputs("\\\"", out);
            break;
        case '\\':
            fputs("\\\\", out);
            break;
        case '\n':
            fputs("\\n", out);
            break;
        case '\r':
            fputs("\\r", out);
            break;
        case '\t':
            fputs("\\t", out);
            break;
        default:
            if (*c < 0x20)
                fprintf(out, "\\u%04x", *c);
            else
                fputc(*c, out);
        }
    }
    fputc('"', out);
}

/* The shortest of 15, 16 or 17 digits that reads back as the same double. */
void json_number(FILE *out, double value)
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
