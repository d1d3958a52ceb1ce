/* The table of models, helpers that the models' files share, and the words that keys of section
 * model accept. */
#include "build.h"
#include "model/units.h"

#include <math.h>

/* One model on each line: _(NAME) stands for the ZooEntry zoo_NAME, which the model's file defines.
 * Add a new model above the last line. */
#define MODELS(_)                                                                                  \
    _(mlp)                                                                                         \
    _(lenet)                                                                                       \
    _(resnet18)                                                                                    \
    _(resnet34)                                                                                    \
    _(resnet50)                                                                                    \
    _(resnet101)                                                                                   \
    _(mobilenet_v2)                                                                                \
    _(unet)                                                                                        \
    _(fieldresnet)                                                                                 \
    _(columns)                                                                                     \
    _(gpt2)                                                                                        \
    _(llama)                                                                                       \
    _(wide_deep)                                                                                   \
    _(deepfm)                                                                                      \
    _(yolov5n)                                                                                     \
    _(yolov5s)                                                                                     \
    _(dlrm)

#define DECLARE(name) extern const ZooEntry zoo_##name;
#define ENTRY(name)   &zoo_##name,

MODELS(DECLARE)

const ZooEntry *const zoo[] = {MODELS(ENTRY) NULL};

Status zoo_row_check(const ZooEntry *row)
{
    const char *fault = !row->help                    ? ".help is not given"
                        : !row->build                 ? ".build is not given"
                        : !row->maps                  ? ".maps is not given"
                        : row->defaults && !row->uses ? ".defaults is given without .uses"
                                                      : NULL;
    return row_check("model", row->name, row->name ? fault : ".name is not given");
}

Status model_check(void)
{
    for (const ZooEntry *const *row = zoo; *row; ++row) TRY(zoo_row_check(*row));
    for (int i = 0; i < PRUNE_METHODS; ++i)
        TRY(row_check("method of pruning", prune_methods[i].name,
                      prune_methods[i].name ? NULL : ".name is not given"));
    return OK;
}

static ConfigWord zoo_word(int i)
{
    enum { COUNT = sizeof zoo / sizeof zoo[0] - 1 };
    if (i >= COUNT) return (ConfigWord){0};
    return (ConfigWord){.word = zoo[i]->name,
                        .help = zoo[i]->help,
                        .uses = zoo[i]->uses,
                        .defaults = zoo[i]->defaults};
}

const ConfigWords model_words[MODEL_WORDS] = {
    {"model.name", .word = zoo_word},
    {"model.stem", .text = LIST_TEXT(STEM_WORDS)},
    {"model.positions", .text = LIST_TEXT(POSITIONS_WORDS)},
    {"model.freeze_norm", .text = LIST_TEXT(FREEZE_NORM_WORDS)},
    {"model.norm", .text = LIST_TEXT(FIELD_NORM_WORDS)},
    {"model.up", .text = LIST_TEXT(UP_WORDS)},
    {"model.down", .text = LIST_TEXT(DOWN_WORDS)},
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

int zoo_dropout(Graph *graph, const Config *config, const char *name, int x, double default_value)
{
    double p = config->model.dropout < 0 ? default_value : config->model.dropout;
    char text[ZOO_NUMBER];
    if (p == 0) return x;
    return graph_add(graph, "dropout", name, &x, 1, "p", zoo_real(p, text), NULL);
}

int zoo_dense(Graph *graph, const char *name, int x, int64_t width)
{
    char w[ZOO_NUMBER], std[ZOO_NUMBER];
    if (x == GRAPH_FAILED) return x;
    const Shape in = graph_output(graph, x).shape;
    const double fan = (double)(in.ndim > 1 ? in.dim[in.ndim - 1] : 1);
    return graph_add(graph, "dense", name, &x, 1, "width", zoo_number(width, w), "init", "normal",
                     "init_std", zoo_real(1 / sqrt(fan), std), NULL);
}

int zoo_hidden(Graph *graph, const Config *config, const char *name, int x,
               const ConfigList *widths)
{
    enum { NAME_CHARS = 48 };
    char layer[NAME_CHARS];
    for (int i = 0; i < widths->count; ++i) {
        snprintf(layer, sizeof layer, "%s.%d", name, i);
        x = zoo_dense(graph, layer, x, (int64_t)widths->value[i]);
        snprintf(layer, sizeof layer, "%s.%d.relu", name, i);
        x = graph_add(graph, "relu", layer, &x, 1, NULL);
        snprintf(layer, sizeof layer, "%s.%d.dropout", name, i);
        x = zoo_dropout(graph, config, layer, x, 0);
    }
    return x;
}

int zoo_bag(Graph *graph, const Config *config, const char *name, int64_t width, const char *key,
            const char *value)
{
    char w[ZOO_NUMBER], v[ZOO_NUMBER];
    const uint64_t ids = graph->ids.id_limit;
    const int64_t all_ids = ids <= INT32_MAX ? (int64_t)ids : 0;
    const int64_t vocab = config->model.vocab > 0 ? config->model.vocab : all_ids;
    const bool hashed = vocab > 0 && (ids == 0 || ids > (uint64_t)vocab);
    /* NULL ends the list of attributes if there is no vocab */
    return graph_add(graph, "bag", name, (int[]){NODE_INPUT}, 1, "width", zoo_number(width, w), key,
                     value, vocab > 0 ? "vocab" : NULL, zoo_number(vocab, v), "hashed",
                     hashed ? "true" : "false", NULL);
}
