/* Parses configurations for tests in which parsing must succeed. */
#ifndef WEFT_TESTS_CONFIG_FIXTURE_H
#define WEFT_TESTS_CONFIG_FIXTURE_H

#include "config.h"

#include "harness.h"
#include "words.h"

/* Parses a text; a text that cannot be parsed ends the test. Owned by the caller. */
static inline Config *parse(const char *text)
{
    Config *config = NULL;
    CHECK_OK(config_parse(&config, "jobs/good-one.yaml", text, 0, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    return config;
}

/* Parses `text`, to which it applies the override `word`. text: NULL: there is only the override.
 * The caller owns the result. */
static inline Config * override(const char *text, const char *word)
{
    Config *config = NULL;
    char *words[] = {(char *)word};
    CHECK_OK(config_parse(&config, "good.yaml", text, 1, words));
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    return config;
}

#endif
