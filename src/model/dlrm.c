/* dlrm (Naumov et al. 2019): a bottom perceptron computes a vector from the dense numbers, and each
 * field of ids has its own table. A top perceptron reads the bottom's vector and the dot products
 * of all pairs of vectors. The defaults are those of the authors' configuration for Kaggle's Criteo
 * set. */
#include "build.h"

static int build(Graph *graph, const Config *config)
{
    char width[ZOO_NUMBER];
    zoo_number(config->model.width, width);
    int ids = zoo_bag(graph, config, "embedding", config->model.width, "tables", "each");
    if (ids == GRAPH_FAILED) return ids;
    /* the bottom network's last layer has the width of the tables' rows */
    const ConfigList *given = &config->model.bottom;
    ConfigList bottom = {.count = given->count + 1};
    bottom.value = mem_new((size_t)bottom.count * sizeof *bottom.value);
    for (int i = 0; i < given->count; ++i) bottom.value[i] = given->value[i];
    bottom.value[given->count] = (double)config->model.width;
    int x = zoo_hidden(graph, config, "bottom", NODE_INPUT, &bottom);
    mem_free(&bottom.value);
    int vectors = graph_add(graph, "concat", "vectors", (int[]){x, ids}, 2, NULL);
    int pairs = graph_add(graph, "interaction", "interaction", &vectors, 1, "width", width, NULL);
    int top = graph_add(graph, "concat", "top.input", (int[]){x, pairs}, 2, NULL);
    top = zoo_hidden(graph, config, "top", top, &config->model.hidden);
    return zoo_dense(graph, "top.output", top, graph->classes);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_dlrm = {
    .name = "dlrm",
    .help = "Naumov et al. 2019, for data with ids: model.bottom, width (of a row, and of the "
            "last bottom layer), vocab (rows of each field's table), hidden (of the top network)",
    .uses = "width vocab hidden bottom",
    .defaults = "width=16 hidden=[512,256] bottom=[512,256,64]",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
