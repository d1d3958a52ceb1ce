/* mlp: flatten; then a dense layer, model.activation and perhaps dropout for each width in
 * model.hidden (default 512, 512); then a dense layer with an output for each class. */
#include "build.h"

static int build(Graph *graph, const Config *config)
{
    static const double default_widths[] = {512, 512};
    int hidden = config->model.hidden.count ? config->model.hidden.count : 2;
    const double *widths = config->model.hidden.count ? config->model.hidden.value : default_widths;
    const char *act = activation_layer(config);
    char name[32], width[32];
    int x = graph_add(graph, "flatten", "flatten", (int[]){NODE_INPUT}, 1, NULL);
    for (int i = 0; i < hidden; ++i) {
        snprintf(width, sizeof width, "%.17g", widths[i]);
        snprintf(name, sizeof name, "fc%d", i + 1);
        x = graph_add(graph, "dense", name, &x, 1, "width", width, NULL);
        snprintf(name, sizeof name, "%s%d", act, i + 1);
        x = graph_add(graph, act, name, &x, 1, NULL);
        snprintf(name, sizeof name, "dropout%d", i + 1);
        x = zoo_dropout(graph, config, name, x, 0);
    }
    snprintf(width, sizeof width, "%lld", (long long)graph->classes);
    snprintf(name, sizeof name, "fc%d", hidden + 1);
    return graph_add(graph, "dense", name, &x, 1, "width", width, NULL);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_mlp = {
    .name = "mlp",
    .help = "fully connected layers; model.hidden has their widths",
    .uses = "hidden activation",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
