/* columns: applies a perceptron to each column of a grid separately, for example as a closure in a
 * model of the atmosphere. The perceptron's inputs are the channels of a pixel, which are variables
 * and levels. The model consists of dense layers on a sequence of pixels, equivalent to 1x1
 * convolutions. */
#include "build.h"

/* default of model.layers: hidden layers */
enum { LAYERS = 3 };

static int build(Graph *graph, const Config *config)
{
    char name[ZOO_NUMBER + 8], width[ZOO_NUMBER];
    const int norm = config->model.norm;
    const int64_t layers = config->model.depth > 0 ? config->model.depth : LAYERS;
    const char *act = activation_layer(config);
    if (norm != FIELD_NORM_NONE && norm != FIELD_NORM_LAYER) {
        fail(ERR_CONFIG,
             "columns: set model.norm to layer or none: other norms take means over several "
             "columns, which are computed independently");
        return GRAPH_FAILED;
    }
    int x = graph_add(graph, "pixels_to_tokens", "tokens", (int[]){NODE_INPUT}, 1, NULL);
    for (int64_t i = 1; i <= layers; ++i) {
        snprintf(name, sizeof name, "fc%lld", (long long)i);
        x = graph_add(graph, "dense", name, &x, 1, "width", zoo_number(config->model.width, width),
                      NULL);
        snprintf(name, sizeof name, "norm%lld", (long long)i);
        if (norm == FIELD_NORM_LAYER) x = graph_add(graph, "layer_norm", name, &x, 1, NULL);
        snprintf(name, sizeof name, "act%lld", (long long)i);
        x = graph_add(graph, act, name, &x, 1, NULL);
        snprintf(name, sizeof name, "dropout%lld", (long long)i);
        x = zoo_dropout(graph, config, name, x, 0);
    }
    x = graph_add(graph, "dense", "head", &x, 1, "width", zoo_number(graph->classes, width), NULL);
    return graph_add(graph, "tokens_to_pixels", "columns", (int[]){x, NODE_INPUT}, 2, NULL);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_columns = {
    .name = "columns",
    .help = "fields to fields: a perceptron on each column",
    .uses = "width blocks norm activation",
    .defaults = "width=128 norm=none",
    .maps = MAPS_FIELDS,
    .build = build,
};
