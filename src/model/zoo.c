/* The models there are by name, and what their files share. */
#include "build.h"

/* one a line, a new one above the last */
#define MODELS(_)                                                                                  \
    _(mlp)                                                                                         \
    _(lenet)                                                                                       \
    _(resnet18)                                                                                    \
    _(resnet34)                                                                                    \
    _(resnet50)                                                                                    \
    _(resnet101)                                                                                   \
    _(mobilenet_v2)                                                                                \
    _(gpt2)                                                                                        \
    _(llama)

#define DECLARE(name) extern const ZooEntry zoo_##name;
#define ENTRY(name)   &zoo_##name,

MODELS(DECLARE)

const ZooEntry *const zoo[] = {MODELS(ENTRY) NULL};

static ConfigWord zoo_word(int i)
{
    enum { COUNT = sizeof zoo / sizeof zoo[0] - 1 };
    if (i >= COUNT) return (ConfigWord){0};
    return (ConfigWord){.word = zoo[i]->name, .help = zoo[i]->help, .uses = zoo[i]->uses};
}

const ConfigWords model_words[MODEL_WORDS] = {
    {"model.name", .word = zoo_word},
    {"model.stem", .text = LIST_TEXT(STEM_WORDS)},
    {"model.positions", .text = LIST_TEXT(POSITIONS_WORDS)},
    {"model.freeze_norm", .text = LIST_TEXT(FREEZE_NORM_WORDS)},
};

char *zoo_number(int64_t n, char out[ZOO_NUMBER])
{
    snprintf(out, ZOO_NUMBER, "%lld", (long long)n);
    return out;
}

char *zoo_real(double value, char out[ZOO_NUMBER])
{
    snprintf(out, ZOO_NUMBER, "%.9g", value);
    return out;
}

int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double own)
{
    double p = config->model.dropout < 0 ? own : config->model.dropout;
    char text[ZOO_NUMBER];
    if (p == 0) return x;
    return graph_add(graph, "dropout", name, &x, 1, "p", zoo_real(p, text), NULL);
}
