/* Growing lists of words. */
#include "private.h"

void words_add(Words *w, char *word)
{
    w->word = mem_resize(w->word, (size_t)(w->count + 2) * sizeof *w->word);
    w->word[w->count++] = word;
    w->word[w->count] = NULL;
}

void words_free(char **word)
{
    for (int i = 0; word && word[i]; ++i) mem_free(&word[i]);
    mem_free(&word);
}
