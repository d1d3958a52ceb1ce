/* Lists of words in the option table, "a|b|c": count, find, pick, and the message for a word that is none of them. */
#include "option.h"

#include <string.h>

enum { WORDS_MAX = 16, WORD_BYTES = 64 };

int words_count(const char *words)
{
    int count = words && *words ? 1 : 0;
    for (const char *c = words; count && *c; ++c) count += *c == '|';
    return count;
}

char *words_at(const char *words, int i, char *out)
{
    while (i-- > 0) words = strchr(words, '|') + 1;
    snprintf(out, WORD_BYTES, "%.*s", (int)strcspn(words, "|"), words);
    return out;
}

int words_find(const char *words, const char *word)
{
    char text[WORD_BYTES];
    for (int i = 0; i < words_count(words); ++i)
        if (!strcmp(words_at(words, i, text), word)) return i;
    return -1;
}

Status words_fail(const char *words, const char *word)
{
    char text[WORDS_MAX][WORD_BYTES], all[WORDS_MAX * WORD_BYTES];
    const char *list[WORDS_MAX];
    size_t used = 0;
    int count = words_count(words);
    for (int i = 0; i < count; ++i) {
        list[i] = words_at(words, i, text[i]);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", list[i]);
    }
    const char *nearest = text_nearest(word, list, count);
    if (nearest)
        return fail(ERR_CONFIG, "'%s' is none of: %s; did you mean '%s'?", word, all, nearest);
    return fail(ERR_CONFIG, "'%s' is none of: %s", word, all);
}
