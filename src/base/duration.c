/* Parses durations with units ("1h30m") and in Slurm's form ("1-12:00:00"). Ambiguous forms are
 * refused: a bare number, which may be seconds or minutes, and "12:00", which is 12 minutes for
 * Slurm and 12 hours on a clock. */
#include "base.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number, "12" or, if `fraction` is true, also "1.5", and moves *text behind it. Returns
 * false if there is none. */
static bool read_number(const char **text, bool fraction, double *number)
{
    const char *digit = *text;
    size_t whole = strspn(digit, "0123456789"), length = whole;
    if (whole == 0) return false;
    if (fraction && digit[whole] == '.') {
        size_t part = strspn(digit + whole + 1, "0123456789");
        if (part == 0) return false;
        length += 1 + part;
    }
    *number = strtod(digit, NULL);
    *text += length;
    return isfinite(*number);
}

/* Reads numbers with units, larger units first, each unit at most once: "1h30m". */
static bool read_units(const char *text, double *seconds)
{
    static const char letters[] = "dhms";
    static const double unit_s[] = {86400, 3600, 60, 1};
    const char *next = letters;
    double sum = 0, number;
    do {
        if (!read_number(&text, true, &number)) return false;
        const char *unit = *text ? strchr(next, *text) : NULL;
        if (!unit) return false;
        sum += number * unit_s[unit - letters];
        next = unit + 1;
        ++text;
    } while (*text);
    *seconds = sum;
    return isfinite(sum);
}

/* Reads [D-]HH:MM:SS, D-HH or D-HH:MM. A field after a larger unit is limited: HH must be below 24,
 * MM and SS below 60. */
static bool read_clock(const char *text, double *seconds)
{
    static const double limit[] = {24, 60, 60}, unit_s[] = {3600, 60, 1};
    double days = 0, number, sum = 0;
    bool has_days = text[strcspn(text, "-")] == '-';
    if (has_days && !(read_number(&text, false, &days) && *text++ == '-')) return false;
    int fields = 0;
    for (; fields < 3; ++fields) {
        if (fields > 0 && *text++ != ':') return false;
        if (!read_number(&text, false, &number)) return false;
        if ((fields > 0 || has_days) && number >= limit[fields]) return false;
        sum += number * unit_s[fields];
        if (has_days && !*text) break;
    }
    *seconds = days * 86400 + sum;
    return *text == 0 && isfinite(*seconds);
}

bool text_read_seconds(const char *text, double *seconds)
{
    return strpbrk(text, ":-") ? read_clock(text, seconds) : read_units(text, seconds);
}
