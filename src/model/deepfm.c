/* deepfm (Guo et al. 2017): a factorization machine and a perceptron read the same vectors. The
 * vector of an id is its row in a table that all fields share. Each dense number of a sample has a
 * trained vector, which is multiplied by the number. As in PaddleRec's model, the first-order term
 * has a table of its own, with rows of width 1. */
#include "build.h"

/* Adds the sum of two nodes. */
static int sum(Graph *graph, const char *name, int a, int b)
{
    return graph_add(graph, "add", name, (int[]){a, b}, 2, NULL);
}

static int build(Graph *graph, const Config *config)
{
    char width[ZOO_NUMBER];
    zoo_number(config->model.width, width);
    if (graph->classes != 1) {
        fail(ERR_CONFIG, "deepfm has one output: set train.loss: sigmoid");
        return GRAPH_FAILED;
    }
    int first = zoo_bag(graph, config, "first_order", 1, "together", "true");
    if (first == GRAPH_FAILED) return first;
    int linear = zoo_dense(graph, "linear", NODE_INPUT, 1);
    int ids = zoo_bag(graph, config, "embedding", config->model.width, "tables", "shared");
    int numbers = graph_add(graph, "numeric_embedding", "numeric", (int[]){NODE_INPUT}, 1, "width",
                            width, NULL);
    int vectors = graph_add(graph, "concat", "vectors", (int[]){ids, numbers}, 2, NULL);
    int pairs = graph_add(graph, "fm", "fm", &vectors, 1, "width", width, NULL);
    int deep = zoo_hidden(graph, config, "deep", vectors, &config->model.hidden);
    deep = zoo_dense(graph, "deep.output", deep, 1);
    int low = sum(graph, "low_order", sum(graph, "first", first, linear), pairs);
    return sum(graph, "logits", low, deep);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_deepfm = {
    .name = "deepfm",
    .help = "Guo et al. 2017, for data with ids: model.width (of a row), vocab (rows), hidden; "
            "train.loss: sigmoid",
    .uses = "width vocab hidden",
    .defaults = "width=9 hidden=[400,400,400]",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
