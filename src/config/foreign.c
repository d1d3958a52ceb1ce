/* Finds words of other programs in the tables. Case, '-', '_', '.' and blanks are ignored. */
#include "config/foreign.h"

#include <ctype.h>
#include <string.h>

enum { FOREIGN_BYTES = 64 };

/* Copies the first `bytes` bytes of the word to `out` in lower case, without '-', '_', '.' and
 * blanks. Returns false if the result is too long or empty. */
static bool normalise(const char *word, size_t bytes, char out[FOREIGN_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < bytes; ++i) {
        unsigned char c = (unsigned char)word[i];
        if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
        if (used == FOREIGN_BYTES - 1) return false;
        out[used++] = (char)tolower(c);
    }
    out[used] = 0;
    return used > 0;
}

bool foreign_words_match(const char *a, const char *b)
{
    char x[FOREIGN_BYTES], y[FOREIGN_BYTES];
    return normalise(a, strlen(a), x) && normalise(b, strlen(b), y) && !strcmp(x, y);
}

/* Returns whether the normalised word is in the list `words`, such as "a|b*|c", where "b*" stands
 * for all words that begin with b. */
static bool is_listed(const char *words, const char *word)
{
    char listed[FOREIGN_BYTES];
    for (const char *at = words; *at; at += *at == '|') {
        size_t bytes = strcspn(at, "|");
        bool prefix = bytes > 0 && at[bytes - 1] == '*';
        if (normalise(at, bytes - prefix, listed) &&
            (prefix ? !strncmp(word, listed, strlen(listed)) : !strcmp(word, listed)))
            return true;
        at += bytes;
    }
    return false;
}

const ForeignWord *foreign_find(const char *where, const char *word)
{
    char normal[FOREIGN_BYTES];
    if (!normalise(word, strlen(word), normal)) return NULL;
    const ForeignWord *const tables[] = {foreign_keys, foreign_values, foreign_commands};
    for (int i = 0; i < 3; ++i)
        for (const ForeignWord *row = tables[i]; row->where; ++row)
            if (!strcmp(row->where, where) && is_listed(row->words, normal)) return row;
    return NULL;
}

char *foreign_text(const char *where, const char *word)
{
    const ForeignWord *row = foreign_find(where, word);
    if (!row) return NULL;
    if (!row->weft) return mem_text(row->note);
    return mem_format("that is %s here%s%s", row->weft, row->note ? ": " : "",
                      row->note ? row->note : "");
}
