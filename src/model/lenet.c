/* lenet, after LeCun et al. 1998 but with relu and max-pooling: two 3x3 convolutions of 32 and 64
 * channels, each with relu and max-pooling, then two dense layers with 128 values between them. */
#include "build.h"

/* Adds convolution, relu and pooling, and returns the pooling. */
static int conv_block(Graph *graph, int x, int number, const char *channels)
{
    char name[32];
    snprintf(name, sizeof name, "conv%d", number);
    x = graph_add(graph, "conv2d", name, &x, 1, "channels", channels, "kernel", "3", "pad", "1",
                  NULL);
    snprintf(name, sizeof name, "relu%d", number);
    x = graph_add(graph, "relu", name, &x, 1, NULL);
    snprintf(name, sizeof name, "pool%d", number);
    return graph_add(graph, "max_pool", name, &x, 1, "kernel", "2", NULL);
}

static int build(Graph *graph, const Config *config)
{
    char classes[32];
    snprintf(classes, sizeof classes, "%lld", (long long)graph->classes);
    int x = conv_block(graph, NODE_INPUT, 1, "32");
    x = conv_block(graph, x, 2, "64");
    x = graph_add(graph, "flatten", "flatten", &x, 1, NULL);
    x = graph_add(graph, "dense", "fc1", &x, 1, "width", "128", NULL);
    x = graph_add(graph, "relu", "relu3", &x, 1, NULL);
    x = zoo_dropout(graph, config, "dropout", x, 0);
    return graph_add(graph, "dense", "fc2", &x, 1, "width", classes, NULL);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_lenet = {
    .name = "lenet",
    .help = "two convolutions and two dense layers, for small images",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
