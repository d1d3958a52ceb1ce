/* Runs verbs that import or make data (the table `importers`) in the test's own process. */
#ifndef WEFT_TESTS_VERB_RUN_H
#define WEFT_TESTS_VERB_RUN_H

#include "data/import.h"

#include <stdarg.h>
#include <string.h>

/* Runs a verb such as "data import idx". words: the verb's arguments and flags, texts, and then
 * NULL. */
static inline Status verb_run_words(const char *name, va_list words)
{
    char *word[24];
    int count = 0;
    while (count < 24 && (word[count] = va_arg(words, char *))) ++count;
    const Verb *const *verb = importers;
    while (*verb && strcmp((*verb)->name, name) != 0) ++verb;
    if (!*verb) return fail(ERR_BUG, "there is no verb %s", name);
    void *options = mem_new((*verb)->options_bytes + 1);
    Status status = verb_options_init(*verb, &count, word, options);
    if (status == OK) status = (*verb)->run(count, word, options);
    verb_options_fini(*verb, options);
    mem_free(&options);
    return status;
}

/* Runs a verb; its arguments and flags follow, and then NULL. */
static inline Status verb_run(const char *name, ...)
{
    va_list words;
    va_start(words, name);
    Status status = verb_run_words(name, words);
    va_end(words);
    return status;
}

#endif
