/* wide_deep (Cheng et al. 2016): the sum of a linear layer and a perceptron. The linear layer reads
 * the dense numbers of a sample. The perceptron reads these numbers and the rows of the ids, from a
 * table that all fields share. As in FleetX's model, there are no crossed features; PaddleRec's
 * model has width 9 and hidden [512,256,128,32]. */
#include "build.h"

static int build(Graph *graph, const Config *config)
{
    int ids = zoo_bag(graph, config, "embedding", config->model.width, "tables", "shared");
    if (ids == GRAPH_FAILED) return ids;
    int deep = graph_add(graph, "concat", "deep.input", (int[]){ids, NODE_INPUT}, 2, NULL);
    deep = zoo_hidden(graph, config, "deep", deep, &config->model.hidden);
    deep = zoo_dense(graph, "deep.output", deep, graph->classes);
    int wide = zoo_dense(graph, "wide", NODE_INPUT, graph->classes);
    return graph_add(graph, "add", "logits", (int[]){wide, deep}, 2, NULL);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_wide_deep = {
    .name = "wide_deep",
    .help = "Cheng et al. 2016, for data with ids: model.width (of a row), vocab (rows), hidden",
    .uses = "width vocab hidden",
    .defaults = "width=10 hidden=[400,400,400]",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
