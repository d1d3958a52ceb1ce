/* The table of other programs' words: every word here is one that weft knows, every other one leads
 * to its row, and no word of weft's own is among them. */
#include "cli/cli.h"
#include "config/foreign.h"
#include "config/option.h"
#include "harness.h"
#include "layers.h"

/* train.h has a type of the same name as config's private header. */
void train_use_words(void);

/* "weft run --nnodes": a verb, or a verb and one of its flags. */
static bool is_command(const char *text)
{
    if (strncmp(text, "weft ", 5) != 0) return false;
    for (int i = 0; i < verb_count(); ++i) {
        const Verb *v = verb_at(i);
        size_t length = strlen(v->name);
        if (strncmp(text + 5, v->name, length) != 0) continue;
        const char *flag = text + 5 + length;
        if (!*flag || (*flag == ' ' && flag_find(v, flag + 1))) return true;
    }
    return false;
}

static bool is_attr(const char *word)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i)
        for (int k = 0; kind->attrs && kind->attrs[k]; ++k)
            if (!strcmp(kind->attrs[k], word)) return true;
    return false;
}

/* Is it what weft knows by that word in that place? */
static bool is_known(const char *where, const char *word)
{
    if (!strcmp(where, FOREIGN_KEY)) return option_find(word) >= 0 || is_command(word);
    if (!strcmp(where, FOREIGN_OPTION)) return is_command(word);
    if (!strcmp(where, FOREIGN_LAYER)) return layer_kind(word) != NULL;
    if (!strcmp(where, FOREIGN_ATTR)) return is_attr(word);
    if (!strcmp(where, FOREIGN_SECTION)) {
        for (int i = 0; i < section_count; ++i)
            if (!strcmp(sections[i].name, word)) return true;
        return false;
    }
    if (!strcmp(where, FOREIGN_VERB)) {
        char *text = mem_format("weft %s", word);
        bool known = is_command(text);
        mem_free(&text);
        return known;
    }
    int option = option_find(where);
    return option >= 0 && words_find(option_words(&options[option]), word) >= 0;
}

/* Is it a word of weft's own in that place, for which the table would never be asked? */
static bool is_own(const char *where, const char *word)
{
    for (int i = 0; !strcmp(where, FOREIGN_KEY) && i < option_count; ++i)
        if (!strcmp(option_leaf(&options[i]), word)) return true;
    return strcmp(where, FOREIGN_KEY) != 0 && strcmp(where, FOREIGN_OPTION) != 0 &&
           is_known(where, word);
}

static int check_words(const ForeignWord *row)
{
    int count = 0;
    char *words = mem_text(row->words), *rest = words;
    for (char *word; (word = strsep(&rest, "|")); ++count) {
        bool pattern = *word && word[strlen(word) - 1] == '*';
        if (pattern) word[strlen(word) - 1] = 0;
        const ForeignWord *found = foreign_find(row->where, word);
        if (found != row || is_own(row->where, word))
            printf("  %s: '%s' is in two rows, or weft's own\n", row->where, word);
        CU_ASSERT_PTR_EQUAL(found, row);
        CU_ASSERT(pattern || !is_own(row->where, word));
    }
    mem_free(&words);
    return count;
}

/* Every word here is one that weft knows; every word of others leads to its row. */
static void test_foreign(void)
{
    const ForeignWord *const half[] = {foreign_keys, foreign_values};
    int count = 0;
    train_use_words();
    for (int i = 0; i < 2; ++i)
        for (const ForeignWord *row = half[i]; row->where; ++row) {
            bool known = row->here ? is_known(row->where, row->here) : row->note != NULL;
            if (!known) printf("  %s: '%s' is not known here\n", row->where, row->here);
            CU_ASSERT(known);
            count += check_words(row);
        }
    CU_ASSERT(count > 900);
    CU_ASSERT_PTR_NULL(foreign_find(FOREIGN_KEY, "xyzzy"));
    CU_ASSERT_PTR_NULL(foreign_find(FOREIGN_KEY, ""));
    CU_ASSERT_STRING_EQUAL(foreign_find(FOREIGN_KEY, "learningRate")->here, "optim.lr");
    CU_ASSERT_STRING_EQUAL(foreign_find("train.loss", "CELoss")->here, "softmax");
}

TEST_MAIN("foreign", {"words", test_foreign})
