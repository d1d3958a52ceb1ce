/* The models there are by name, and what their files share. */
#include "build.h"

const ZooEntry *const zoo[] = {
    &zoo_mlp,       &zoo_lenet,        &zoo_resnet18, &zoo_resnet34, &zoo_resnet50,
    &zoo_resnet101, &zoo_mobilenet_v2, &zoo_gpt2,     NULL,
};

int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double own)
{
    double p = config->model.dropout < 0 ? own : config->model.dropout;
    char text[32];
    if (p == 0) return x;
    snprintf(text, sizeof text, "%.9g", p);
    return graph_add(graph, "dropout", name, &x, 1, "p", text, NULL);
}
