/* Shared by tests of the optimizers: the numbers from which tools/golden_optim.py made the golden
 * file, and configurations from the lines of that file. */
#ifndef WEFT_TESTS_OPTIM_GOLDEN_H
#define WEFT_TESTS_OPTIM_GOLDEN_H

#include "optim.h"

#include "harness.h"

static const char *const golden_path = "tests/golden/optim.txt";

static inline uint32_t fnv(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; ++text) h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* Returns element i of the tensor `name`, by the script's formula. The number is in [-1, 1), and a
 * multiple of 2^-23. */
static inline float noise(const char *name, uint32_t i)
{
    uint32_t h = i * 0x9E3779B9u + fnv(name);
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    h ^= h >> 16;
    return ((float)(h >> 8) - 8388608.0f) * 0x1p-23f;
}

/* Splits a text such as "optim.name=sgd optim.lr=0.1" into overrides and parses them. The caller
 * owns the result. */
static inline Config *config_of(char *options)
{
    enum { MAX = 16 };
    char *word[MAX];
    int count = 0;
    Config *config = NULL;
    config_use_words(optim_words, OPTIM_WORDS);
    for (char *w; count < MAX && (w = strsep(&options, " \n"));)
        if (*w) word[count++] = w;
    CHECK_OK(config_parse(&config, "test.yaml", "run: {seed: 1}", count, word));
    return config;
}

/* Checks that the golden file has a case for each word of a list of optim_words. A case is a line
 * that begins with a letter. list: RULE_LIST or CURVE_LIST. skip: NULL, or returns true for a word
 * that other tests cover. */
static inline void golden_has_all(int list, bool (*skip)(int word))
{
    enum { LINE_CHARS = 4096 };
    static char line[LINE_CHARS];
    const char *word;
    for (int i = 0; (word = optim_words[list].word(i).word); ++i) {
        char *want = mem_format("%s=%s", optim_words[list].key, word);
        FILE *in = fopen(golden_path, "r");
        bool found = skip && skip(i);
        while (!found && in && fgets(line, LINE_CHARS, in)) {
            char *rest = line;
            for (char *w; *line >= 'a' && *line <= 'z' && (w = strsep(&rest, " \n"));)
                found = found || !strcmp(w, want);
        }
        CU_ASSERT_TRUE(found);
        if (!found) printf("  no case of %s in %s (tools/golden_optim.py)\n", want, golden_path);
        if (in) fclose(in);
        mem_free(&want);
    }
}
enum { RULE_LIST, CURVE_LIST };

#endif
