/* What tests of models begin with: a configuration's text, inputs, the graph of both, and what is
 * in it by name. */
#ifndef WEFT_TESTS_MODEL_FIXTURE_H
#define WEFT_TESTS_MODEL_FIXTURE_H

#include "model.h"

#include "harness.h"

/* Of a file test.yaml; NULL: it cannot be read, which fails the test. Owner: the caller. */
static inline Config *config_of(const char *text)
{
    Config *config = NULL;
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    CHECK_OK(config_parse(&config, "test.yaml", text, 0, NULL));
    return config;
}

/* n images (c,size,size). */
static inline Desc images(int64_t n, int64_t c, int64_t size)
{
    return desc_plain(shape_of(4, n, c, size, size), DTYPE_F32);
}

/* n texts of `length` tokens. */
static inline Desc tokens(int64_t n, int64_t length)
{
    return desc_plain(shape_of(2, n, length, 1, 1), DTYPE_I32);
}

/* Neither fused nor planned; where none is made, the test ends. Owner: the caller. */
static inline Graph *graph_of(const char *text, Desc input, int64_t classes)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_OK(graph_build(&graph, config, input, classes));
    config_free(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    return graph;
}

/* No graph is made of it, for its configuration's fault. */
static inline void expect_error(const char *text, Desc input, int64_t classes, const char *message)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_FAILS(graph_build(&graph, config, input, classes), ERR_CONFIG, message);
    CU_ASSERT_PTR_NULL(graph);
    config_free(&config);
}

/* NULL: there is none. */
static inline const Node *node_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->node[i].name, name) == 0) return &graph->node[i];
    return NULL;
}

/* -2: there is none. */
static inline int index_of(const Graph *graph, const char *name)
{
    const Node *node = node_named(graph, name);
    return node ? (int)(node - graph->node) : -2;
}

/* NULL: there is none. */
static inline const Param *param_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->param_count; ++i)
        if (strcmp(graph->param[i].name, name) == 0) return &graph->param[i];
    return NULL;
}

#endif
