/* Lookup in the table of other programs' words. */
#include "config/foreign.h"

#include <ctype.h>
#include <string.h>

enum { WORD_BYTES = 64 };

/* Copies the word to out in lower case, without '-', '_', '.' and blanks; false if it is too long
 * or nothing is left. */
static bool normalise(const char *word, size_t bytes, char out[WORD_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < bytes; ++i) {
        unsigned char c = (unsigned char)word[i];
        if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
        if (used == WORD_BYTES - 1) return false;
        out[used++] = (char)tolower(c);
    }
    out[used] = 0;
    return used > 0;
}

bool foreign_same(const char *a, const char *b)
{
    char x[WORD_BYTES], y[WORD_BYTES];
    return normalise(a, strlen(a), x) && normalise(b, strlen(b), y) && !strcmp(x, y);
}

/* True if the word is one of "a|b*|c". */
static bool among(const char *words, const char *word)
{
    char one[WORD_BYTES];
    for (const char *at = words; *at; at += *at == '|') {
        size_t bytes = strcspn(at, "|");
        bool begins = bytes > 0 && at[bytes - 1] == '*';
        bool good = normalise(at, bytes - begins, one);
        if (good && (begins ? !strncmp(word, one, strlen(one)) : !strcmp(word, one))) return true;
        at += bytes;
    }
    return false;
}

const ForeignWord *foreign_find(const char *where, const char *word)
{
    char plain[WORD_BYTES];
    if (!normalise(word, strlen(word), plain)) return NULL;
    const ForeignWord *const half[] = {foreign_keys, foreign_values};
    for (int i = 0; i < 2; ++i)
        for (const ForeignWord *f = half[i]; f->where; ++f)
            if (!strcmp(f->where, where) && among(f->words, plain)) return f;
    return NULL;
}

char *foreign_text(const char *where, const char *word)
{
    const ForeignWord *f = foreign_find(where, word);
    if (!f) return NULL;
    if (!f->weft) return mem_text(f->note);
    return mem_format("that is %s here%s%s", f->weft, f->note ? ": " : "", f->note ? f->note : "");
}
