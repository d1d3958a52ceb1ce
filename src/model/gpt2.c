/* gpt2 (Radford et al. 2019): pre-norm blocks of causal attention and a gelu mlp four times as wide
 * as the vectors, and a head that shares the embedding's weight. Parameter names are GPT-2's.
 * Weights have the shape out x in; GPT-2's files store them as in x out. Initial weights are those
 * of the paper: N(0, 0.02^2), but N(0, 0.02^2 / (2L)) for projections into the residual stream of L
 * blocks. Positions are also N(0, 0.02^2); OpenAI's code uses the standard deviation 0.01 for them.
 * Attention probabilities have no dropout. graph->classes is the size of the vocabulary. Samples
 * may be shorter than the context. */
#include "build.h"

#include <math.h>

enum { NAME_CHARS = 64 };

static const double INIT_STD = 0.02;

typedef struct Gpt2 {
    /* borrowed */
    Graph *graph;
    /* borrowed */
    const Config *config;
    /* sizes; depth is the number of blocks, the others are the keys of section model */
    int64_t depth, width, heads, context;
} Gpt2;

/* Returns the sizes that model.size selects, replaced by those keys of section model that are set.
 * Entry GPT_OWN has the sizes for a model that is not a published one. */
static Gpt2 gpt2_sizes(Graph *graph, const Config *config)
{
    static const Gpt2 published[] = {
        [GPT_OWN] = {.depth = 6, .width = 384, .heads = 6, .context = 256},
        [GPT_124M] = {.depth = 12, .width = 768, .heads = 12, .context = 1024},
        [GPT_355M] = {.depth = 24, .width = 1024, .heads = 16, .context = 1024},
        [GPT_774M] = {.depth = 36, .width = 1280, .heads = 20, .context = 1024},
        [GPT_1558M] = {.depth = 48, .width = 1600, .heads = 25, .context = 1024},
    };
    Gpt2 m = published[config->model.size];
    m.graph = graph;
    m.config = config;
    if (config->model.depth) m.depth = config->model.depth;
    if (config->model.width) m.width = config->model.width;
    if (config->model.heads) m.heads = config->model.heads;
    if (config->model.context) m.context = config->model.context;
    return m;
}

/* Returns a name such as "h.3.mlp.c_fc". */
static char *block_name(int64_t block, const char *part, char out[NAME_CHARS])
{
    snprintf(out, NAME_CHARS, "h.%lld.%s", (long long)block, part);
    return out;
}

/* Adds a dense layer from x, (N,T,in), to (N,T,width), with initial weights N(0, std^2). */
static int project(const Gpt2 *m, const char *name, int x, int64_t width, double std)
{
    char w[ZOO_NUMBER], s[ZOO_NUMBER];
    return graph_add(m->graph, "dense", name, &x, 1, "width", zoo_number(width, w), "init",
                     "normal", "init_std", zoo_real(std, s), NULL);
}

/* Ends one half of a block, "attn" or "mlp", with a projection, dropout, and the sum with the
 * residual stream. x: node of the residual stream; y: node of the half's last layer so far. */
static int add_residual(const Gpt2 *m, int64_t block, const char *half, int x, int y)
{
    char part[NAME_CHARS / 2], name[NAME_CHARS];
    snprintf(part, sizeof part, "%s.c_proj", half);
    y = project(m, block_name(block, part, name), y, m->width,
                INIT_STD / sqrt(2 * (double)m->depth));
    snprintf(part, sizeof part, "%s.dropout", half);
    y = zoo_dropout(m->graph, m->config, block_name(block, part, name), y, 0);
    snprintf(part, sizeof part, "%s.add", half);
    return graph_add(m->graph, "add", block_name(block, part, name), (int[]){x, y}, 2, NULL);
}

static int self_attention(const Gpt2 *m, int64_t block, int x)
{
    char name[NAME_CHARS], heads[ZOO_NUMBER];
    bool rotary = m->config->model.positions == POSITIONS_ROTARY;
    int y = graph_add(m->graph, "layer_norm", block_name(block, "ln_1", name), &x, 1, NULL);
    y = project(m, block_name(block, "attn.c_attn", name), y, 3 * m->width, INIT_STD);
    y = graph_add(m->graph, "attention", block_name(block, "attn", name), &y, 1, "heads",
                  zoo_number(m->heads, heads), "rotary", rotary ? "true" : "false", NULL);
    return add_residual(m, block, "attn", x, y);
}

static int feed_forward(const Gpt2 *m, int64_t block, int x)
{
    char name[NAME_CHARS];
    int y = graph_add(m->graph, "layer_norm", block_name(block, "ln_2", name), &x, 1, NULL);
    y = project(m, block_name(block, "mlp.c_fc", name), y, 4 * m->width, INIT_STD);
    y = graph_add(m->graph, "gelu", block_name(block, "mlp.act", name), &y, 1, NULL);
    return add_residual(m, block, "mlp", x, y);
}

/* Adds the layers from the tokens, (N,T), to the first residual stream, (N,T,width). */
static int embed(const Gpt2 *m)
{
    char vocab[ZOO_NUMBER], width[ZOO_NUMBER], context[ZOO_NUMBER], std[ZOO_NUMBER];
    zoo_real(INIT_STD, std);
    int x = graph_add(m->graph, "embedding", "wte", (int[]){NODE_INPUT}, 1, "vocab",
                      zoo_number(m->graph->classes, vocab), "width", zoo_number(m->width, width),
                      "init_std", std, NULL);
    if (m->config->model.positions == POSITIONS_LEARNED)
        x = graph_add(m->graph, "positions", "wpe", &x, 1, "context",
                      zoo_number(m->context, context), "init_std", std, NULL);
    return zoo_dropout(m->graph, m->config, "drop", x, 0);
}

static int head(const Gpt2 *m, int x)
{
    char vocab[ZOO_NUMBER];
    x = graph_add(m->graph, "layer_norm", "ln_f", &x, 1, NULL);
    x = graph_add(m->graph, "dense", "lm_head", &x, 1, "width",
                  zoo_number(m->graph->classes, vocab), "bias", "false", NULL);
    return graph_tie(m->graph, x, 0, "wte.weight") == OK ? x : GRAPH_FAILED;
}

static int build(Graph *graph, const Config *config)
{
    const Gpt2 m = gpt2_sizes(graph, config);
    int x = embed(&m);
    for (int64_t block = 0; block < m.depth && x != GRAPH_FAILED; ++block)
        x = feed_forward(&m, block, self_attention(&m, block, x));
    return head(&m, x);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_gpt2 = {
    .name = "gpt2",
    .help = "Radford et al. 2019: model.size, or model.layers (blocks), width, heads, context; "
            "model.dropout is 0 unless set, and never on attention",
    .uses = "size blocks width heads positions context vocab",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
