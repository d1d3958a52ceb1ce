/* Keeps the lists of texts in a schema, such as the texts that mean "missing". */
#include "csv.h"

#include <string.h>

void csv_texts_add(CsvTexts *t, const char *text)
{
    t->text = mem_resize(t->text, (size_t)(t->count + 1) * sizeof *t->text);
    t->length = mem_resize(t->length, (size_t)(t->count + 1) * sizeof *t->length);
    t->text[t->count] = mem_text(text);
    t->length[t->count++] = strlen(text);
}

bool csv_texts_contain(const CsvTexts *t, const char *text, size_t length)
{
    for (int i = 0; i < t->count; ++i)
        if (t->length[i] == length && memcmp(t->text[i], text, length) == 0) return true;
    return false;
}

void csv_texts_fini(CsvTexts *t)
{
    for (int i = 0; i < t->count; ++i) mem_free(&t->text[i]);
    mem_free(&t->text);
    mem_free(&t->length);
    t->count = 0;
}
