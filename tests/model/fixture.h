/* Shared by tests of models: makes configurations from texts, inputs, and graphs from both; finds
 * nodes and parameters by name. */
#ifndef WEFT_TESTS_MODEL_FIXTURE_H
#define WEFT_TESTS_MODEL_FIXTURE_H

#include "model.h"

#include "harness.h"

/* Parses a text as the file test.yaml. If it cannot be parsed, an assertion fails, and the result
 * is NULL. The caller owns the result. */
static inline Config *config_of(const char *text)
{
    Config *config = NULL;
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    CHECK_OK(config_parse(&config, "test.yaml", text, 0, NULL));
    return config;
}

/* Returns the layout of n images (c,size,size). */
static inline Desc images(int64_t n, int64_t c, int64_t size)
{
    return desc_plain(shape_of(4, n, c, size, size), DTYPE_F32);
}

/* Returns the layout of n texts of `length` tokens. */
static inline Desc tokens(int64_t n, int64_t length)
{
    return desc_plain(shape_of(2, n, length, 1, 1), DTYPE_I32);
}

/* Makes a graph, neither fused nor planned; ends the test if it cannot be made. Owned by the
 * caller. */
static inline Graph *graph_of(const char *text, Desc input, int64_t classes)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_OK(graph_build(&graph, config, input, classes));
    config_free(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    return graph;
}

/* Checks that graph_build fails with ERR_CONFIG and this message. */
static inline void expect_error(const char *text, Desc input, int64_t classes, const char *message)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_FAILS(graph_build(&graph, config, input, classes), ERR_CONFIG, message);
    CU_ASSERT_PTR_NULL(graph);
    config_free(&config);
}

/* Returns the node with this name, or NULL if there is none. */
static inline const Node *node_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->node[i].name, name) == 0) return &graph->node[i];
    return NULL;
}

/* Returns the index of the node with this name, or -2 if there is none. */
static inline int index_of(const Graph *graph, const char *name)
{
    const Node *node = node_named(graph, name);
    return node ? (int)(node - graph->node) : -2;
}

/* Returns the parameter with this name, or NULL if there is none. */
static inline const Param *param_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->param_count; ++i)
        if (strcmp(graph->param[i].name, name) == 0) return &graph->param[i];
    return NULL;
}

#endif
