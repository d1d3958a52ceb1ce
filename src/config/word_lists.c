/* Functions for lists of words, "a|b|c": their length, their words, and the message for a word that
 * is not in the list. This file also keeps the words that modules register for keys, each with its
 * help, the keys that it uses, and the defaults that it changes. */
#include "config/foreign.h"
#include "option.h"

#include <string.h>

enum { WORDS_MAX = 32, LISTS_MAX = 64, JOINED_BYTES = WORDS_MAX * WORD_BYTES };

/* lists registered with config_use_words */
static const ConfigWords *list[LISTS_MAX];
/* words of each list, joined as "a|b|c"; "" if ConfigWords.word is NULL */
static char joined[LISTS_MAX][JOINED_BYTES];
static int list_count;

static void join(const ConfigWords *words, char out[JOINED_BYTES])
{
    const char *word;
    size_t used = 0;
    for (int i = 0; i < WORDS_MAX && (word = words->word(i).word); ++i)
        used += (size_t)snprintf(out + used, JOINED_BYTES - used, "%s%s", i ? "|" : "", word);
}

void config_use_words(const ConfigWords *lists, int count)
{
    for (int i = 0; i < count; ++i) {
        const char *key = lists[i].key;
        int at = 0;
        while (at < list_count && strcmp(list[at]->key, key) != 0) ++at;
        if (at == LISTS_MAX || (option_find(key) < 0 && strcmp(key, group_roles.key) != 0))
            die("words of %s: no such key, or too many lists", key);
        if (at == list_count) ++list_count;
        list[at] = &lists[i];
        if (list[at]->word) join(list[at], joined[at]);
    }
}

/* Returns the index of the option's registered list, or -1. */
static int list_of(const Option *option)
{
    for (int i = 0; i < list_count; ++i)
        if (!strcmp(list[i]->key, option->key)) return i;
    return -1;
}

/* Returns the definition of word i of a list. Its .word is NULL after the last word, and for lists
 * without definitions (ConfigWords.word is NULL). */
static ConfigWord word_at(const ConfigWords *words, int i)
{
    return words->word ? words->word(i) : (ConfigWord){0};
}

/* Returns whether two keys are in the same section. */
static bool same_section(const char *a, const char *b)
{
    size_t length = strcspn(a, ".");
    return length == strcspn(b, ".") && !strncmp(a, b, length);
}

/* Appends the texts `first` and `second` to *text, which is freed and replaced. */
static void text_append(char **text, const char *first, const char *second)
{
    char *longer = mem_format("%s%s%s", *text, first, second);
    mem_free(text);
    *text = longer;
}

const char *option_words(const Option *option)
{
    int at = option->words ? -1 : list_of(option);
    if (at < 0) return option->words ? option->words : "";
    return list[at]->word ? joined[at] : list[at]->text;
}

ConfigWord option_word(const Option *option, int value)
{
    int at = list_of(option);
    return at >= 0 ? word_at(list[at], value) : (ConfigWord){0};
}

/* Returns the words that use the key with the leaf `leaf`, joined with `between`; the caller owns
 * the text. */
static char *words_using(const ConfigWords *words, const char *leaf, const char *between)
{
    ConfigWord word;
    char *all = mem_text("");
    for (int i = 0; (word = word_at(words, i)).word; ++i)
        if (word_uses(word, leaf)) text_append(&all, *all ? between : "", word.word);
    return all;
}

char *option_users(const Option *option, const char *leaf, const char *between)
{
    int at = list_of(option);
    return at >= 0 ? words_using(list[at], leaf, between) : mem_text("");
}

char *option_help(const Option *option)
{
    char *help = mem_text("");
    for (int i = 0; i < list_count; ++i) {
        if (!same_section(list[i]->key, option->key)) continue;
        char *users = words_using(list[i], option_leaf(option), ", ");
        if (*users) text_append(&help, users, ": ");
        mem_free(&users);
    }
    text_append(&help, option->help, "");
    return help;
}

/* Returns the default that a key has for this word, as a pointer into word.defaults; it ends at the
 * next blank. In "momentum=0.95 nesterov=true" the leaf momentum gives "0.95 nesterov=true". NULL:
 * the word has no such default. */
static const char *default_of(ConfigWord word, const char *leaf)
{
    size_t length = strlen(leaf);
    for (const char *at = word.defaults; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, leaf, length) && at[length] == '=') return at + length + 1;
    return NULL;
}

Status option_set_word_default(const Option *option, Config *config, ConfigWord word)
{
    const char *default_text = default_of(word, option_leaf(option));
    if (!default_text) return OK;
    char *text = mem_format("%.*s", (int)strcspn(default_text, " "), default_text);
    Option changed = *option;
    changed.default_text = text;
    Status status = option_set_default(&changed, config);
    mem_free(&text);
    return status;
}

char *option_word_defaults(const Option *option)
{
    char *all = mem_text("");
    for (int i = 0; i < list_count; ++i) {
        if (!same_section(list[i]->key, option->key)) continue;
        ConfigWord word;
        for (int k = 0; (word = word_at(list[i], k)).word; ++k) {
            const char *default_text = default_of(word, option_leaf(option));
            if (!default_text) continue;
            char *text =
                mem_format("%s: %.*s", word.word, (int)strcspn(default_text, " "), default_text);
            text_append(&all, "; ", text);
            mem_free(&text);
        }
    }
    return all;
}

bool word_uses(ConfigWord word, const char *leaf)
{
    size_t length = strlen(leaf);
    if (!word.word) return true;
    for (const char *at = word.uses; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !strncmp(at, leaf, length)) return true;
    return false;
}

/* Returns true if Option.constant is true for each key that the word, an update rule, uses. */
static bool uses_constants(ConfigWord word)
{
    for (int i = 0; i < option_count; ++i)
        if (option_is_in(&options[i], "optim") && !options[i].constant && word.uses &&
            word_uses(word, option_leaf(&options[i])))
            return false;
    return true;
}

/* Returns whether each key in `keys`, "a b" or "a=1 b=2", is in the section of `words` and, if
 * must_use is true, among the keys that the word uses. */
static bool keys_known(const ConfigWords *words, ConfigWord word, const char *keys, bool must_use)
{
    bool known = true;
    for (const char *at = keys; at && *at; at += strcspn(at, " "), at += *at == ' ') {
        char *leaf = mem_format("%.*s", (int)strcspn(at, " ="), at);
        char *key = mem_format("%.*s.%s", (int)strcspn(words->key, "."), words->key, leaf);
        /* there is no key model.blocks; in words, "blocks" is model.layers as a number */
        known = known && (option_find(key) >= 0 || !strcmp(key, "model.blocks")) &&
                (!must_use || word_uses(word, leaf));
        mem_free(&leaf);
        mem_free(&key);
    }
    return known;
}

Status config_words_check(void)
{
    ConfigWord word;
    for (int i = 0; i < list_count; ++i)
        for (int k = 0; (word = word_at(list[i], k)).word; ++k) {
            const char *fault = !word.help ? "has no help"
                                : !keys_known(list[i], word, word.uses, false)
                                    ? "uses a key that is not in its section"
                                : !keys_known(list[i], word, word.defaults, true)
                                    ? "has a default of a key that it does not use"
                                : !strcmp(list[i]->key, "optim.name") && !uses_constants(word)
                                    ? "uses a key whose row has no .constant"
                                    : NULL;
            TRY(row_check(list[i]->key, word.word, fault));
        }
    return OK;
}

int words_count(const char *words)
{
    int count = words && *words ? 1 : 0;
    for (const char *c = words; count && *c; ++c) count += *c == '|';
    return count;
}

char *words_at(const char *words, int i, char out[WORD_BYTES])
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

char *words_text(const char *words)
{
    char *text = mem_new(2 * strlen(words) + 1), *end = text;
    for (const char *c = words; *c; ++c) {
        *end++ = *c == '|' ? ',' : *c;
        if (*c == '|') *end++ = ' ';
    }
    return text;
}

/* Returns the word of the list that differs from `word` only in case and separators; NULL: there is
 * none. */
static const char *same_word(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; ++i)
        if (foreign_words_match(word, words[i])) return words[i];
    return NULL;
}

Status words_fail(const char *key, const char *words, const char *word)
{
    if (!*words) return fail(ERR_BUG, "'%s': the words of this key are not registered", word);
    char text[WORDS_MAX][WORD_BYTES], *all = words_text(words);
    const char *each[WORDS_MAX];
    int count = words_count(words);
    for (int i = 0; i < count; ++i) each[i] = words_at(words, i, text[i]);
    const char *nearest = same_word(word, each, count);
    char *foreign = nearest ? NULL : foreign_text(key, word);
    if (!nearest && !foreign) nearest = text_nearest(word, each, count);
    if (foreign)
        fail(ERR_CONFIG, "'%s' is none of: %s; %s", word, all, foreign);
    else if (nearest)
        fail(ERR_CONFIG, "'%s' is none of: %s; did you mean '%s'?", word, all, nearest);
    else
        fail(ERR_CONFIG, "'%s' is none of: %s", word, all);
    mem_free(&foreign);
    mem_free(&all);
    return ERR_CONFIG;
}
