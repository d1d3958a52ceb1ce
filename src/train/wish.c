/* Reads a hook's answer. Not all of JSON: an object of three known keys, true or false, a number.
 * Whatever else a program prints is refused, so that a line of its log is never taken for a
 * wish. */
#include "wish.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool wish_any(const Wish *wish)
{
    return wish->stop || wish->save || wish->lr > 0;
}

void wish_add(Wish *wish, const Wish *later)
{
    wish->stop |= later->stop;
    wish->save |= later->save;
    if (later->lr > 0) wish->lr = later->lr;
}

static const char *behind_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Is that character next? Moves behind it and what is blank. */
static bool took(const char **at, char c)
{
    if (**at != c) return false;
    *at = behind_blanks(*at + 1);
    return true;
}

static Status wrong(const char *at)
{
    char near[41];
    int count = 0;
    for (; at[count] && count < 40; ++count) {
        unsigned char c = (unsigned char)at[count];
        near[count] = (char)(c < ' ' || c > '~' ? '?' : c);
    }
    near[count] = 0;
    return fail(ERR_DATA,
                "it does not print a JSON object such as {\"stop\": true}, {\"save\": true} or "
                "{\"lr\": 0.01}, but '%s'",
                near);
}

static Status read_bool(const char **at, int *value)
{
    static const char *const word[] = {"false", "true"};
    for (int i = 0; i < 2; ++i) {
        size_t length = strlen(word[i]);
        if (strncmp(*at, word[i], length) != 0) continue;
        *value = i;
        *at = behind_blanks(*at + length);
        return OK;
    }
    return wrong(*at);
}

/* strtod takes more than JSON does: hexadecimal, infinities, leading blanks. */
static Status read_rate(const char **at, double *value)
{
    size_t length = strspn(*at, "0123456789.eE+-");
    char *end;
    if (!strchr("0123456789", **at) || length == 0) return wrong(*at);
    *value = strtod(*at, &end);
    if (end != *at + length) return wrong(*at);
    if (!(*value > 0) || !isfinite(*value))
        return fail(ERR_DATA, "it asks for the learning rate %g, which must be above 0", *value);
    *at = behind_blanks(end);
    return OK;
}

/* *key: which of the three; each of them once. */
static Status read_key(const char **at, unsigned *seen, int *key)
{
    static const char *const word[] = {"\"stop\"", "\"save\"", "\"lr\""};
    for (*key = 0; *key < 3; ++*key) {
        size_t length = strlen(word[*key]);
        if (strncmp(*at, word[*key], length) != 0) continue;
        if (*seen & 1u << *key) return fail(ERR_DATA, "it says %s twice", word[*key]);
        *seen |= 1u << *key;
        *at = behind_blanks(*at + length);
        return took(at, ':') ? OK : wrong(*at);
    }
    return wrong(*at);
}

Status wish_read(Wish *wish, const char *text)
{
    const char *at = behind_blanks(text);
    unsigned seen = 0;
    Wish w = {0};
    *wish = w;
    if (!*at) return OK;
    if (!took(&at, '{')) return wrong(at);
    for (bool first = true; !took(&at, '}'); first = false) {
        int key;
        if (!first && !took(&at, ',')) return wrong(at);
        TRY(read_key(&at, &seen, &key));
        TRY(key == 2 ? read_rate(&at, &w.lr) : read_bool(&at, key ? &w.save : &w.stop));
    }
    if (*at) return wrong(at);
    *wish = w;
    return OK;
}
