/* llama (Touvron et al. 2023): pre-norm blocks of causal attention with rotary positions and a
 * gated feed-forward (Shazeer 2020), with rms_norm. Keys and values may have fewer heads than
 * queries (Ainslie et al. 2023). Layers have no biases, but queries, keys and values can have them
 * (model.qkv_bias). The head has a weight of its own or shares the embedding's (model.tied). One
 * dense layer computes queries, keys and values; another computes both halves of the gated layer.
 * Parameter names are those of Hugging Face's models with packed projections (qkv_proj,
 * gate_up_proj), without the prefix "model."; weights have the shape out x in. Initial weights are
 * as in gpt2: N(0, 0.02^2), but N(0, 0.02^2 / (2L)) for projections into the residual stream of L
 * blocks. graph->classes is the size of the vocabulary. */
#include "build.h"

#include <math.h>
#include <string.h>

enum {
    NAME_CHARS = 64,
    /* the default of model.ffn is a multiple of this number */
    FFN_STEP = 64
};

static const double INIT_STD = 0.02;

typedef struct Llama {
    /* borrowed */
    Graph *graph;
    /* borrowed */
    const Config *config;
    /* sizes; depth is the number of blocks, the others are the keys of section model */
    int64_t depth, width, heads, kv_heads, ffn;
} Llama;

/* Returns a key's value, or default_value if the value is 0, which means that the key is not
 * set. */
static int64_t value_or(int64_t value, int64_t default_value)
{
    return value > 0 ? value : default_value;
}

static Status read_sizes(Llama *m, Graph *graph, const Config *config)
{
    *m = (Llama){.graph = graph,
                 .config = config,
                 .depth = value_or(config->model.depth, 6),
                 .width = value_or(config->model.width, 384),
                 .heads = value_or(config->model.heads, 6)};
    m->kv_heads = value_or(config->model.kv_heads, m->heads);
    /* With ffn = 8/3 width, the three matrices (one is the gate's) have as many parameters as the
     * two matrices of an mlp that is four times as wide as the vectors. */
    m->ffn = value_or(config->model.ffn, (8 * m->width / 3 + FFN_STEP - 1) / FFN_STEP * FFN_STEP);
    if (m->width % m->heads != 0)
        return fail(ERR_CONFIG, "llama: model.heads (%lld) must divide model.width (%lld)",
                    (long long)m->heads, (long long)m->width);
    if (m->heads % m->kv_heads != 0)
        return fail(ERR_CONFIG, "llama: model.kv_heads (%lld) must divide model.heads (%lld)",
                    (long long)m->kv_heads, (long long)m->heads);
    if (config->model.window_from > 0 && config->model.window == 0)
        return fail(ERR_CONFIG, "llama: model.window_from needs model.window");
    if (config->model.window_from >= m->depth)
        return fail(ERR_CONFIG,
                    "llama: model.window_from (%lld) must be less than model.layers (%lld), or no "
                    "block has the window: for full attention leave out both it and model.window",
                    (long long)config->model.window_from, (long long)m->depth);
    return OK;
}

/* Returns a name such as "layers.3.mlp.down_proj". */
static char *block_name(int64_t block, const char *part, char out[NAME_CHARS])
{
    snprintf(out, NAME_CHARS, "layers.%lld.%s", (long long)block, part);
    return out;
}

static int normalize(const Llama *m, const char *name, int x)
{
    char eps[ZOO_NUMBER];
    return graph_add(m->graph, "rms_norm", name, &x, 1, "eps",
                     zoo_real(m->config->model.rms_eps, eps), NULL);
}

/* Adds a dense layer from x, (N,T,in), to (N,T,width), with initial weights N(0, std^2). */
static int project(const Llama *m, const char *name, int x, int64_t width, bool bias, double std)
{
    char w[ZOO_NUMBER], s[ZOO_NUMBER];
    return graph_add(m->graph, "dense", name, &x, 1, "width", zoo_number(width, w), "bias",
                     bias ? "true" : "false", "init", "normal", "init_std", zoo_real(std, s), NULL);
}

/* Ends one half of a block, "self_attn" or "mlp", with dropout, if model.dropout is set, and the
 * sum with the residual stream. x: node of the residual stream; y: node of the half's last
 * layer. */
static int add_residual(const Llama *m, int64_t block, const char *half, int x, int y)
{
    char part[NAME_CHARS / 2], name[NAME_CHARS];
    snprintf(part, sizeof part, "%s.dropout", half);
    y = zoo_dropout(m->graph, m->config, block_name(block, part, name), y, 0);
    snprintf(part, sizeof part, "%s.add", half);
    return graph_add(m->graph, "add", block_name(block, part, name), (int[]){x, y}, 2, NULL);
}

static double residual_std(const Llama *m)
{
    return INIT_STD / sqrt(2 * (double)m->depth);
}

/* Sets an attribute rope_KEY of attention for each key of model.rope_scaling; `rope_type` and
 * `type` both set the attribute rope_type. */
static Status set_rope_scaling(const Llama *m, Draft *draft)
{
    const ConfigPairs *pairs = &m->config->model.rope_scaling;
    bool has_type = pairs->count == 0;
    for (int i = 0; i < pairs->count; ++i) {
        const ConfigAttr *pair = &pairs->item[i];
        const bool is_type = strcmp(pair->key, "rope_type") == 0 || strcmp(pair->key, "type") == 0;
        char *key = is_type ? mem_text("rope_type") : mem_format("rope_%s", pair->key);
        Status st = layer_set_attr(draft->kind, &draft->spec, &draft->size, key, pair->value);
        mem_free(&key);
        TRY(st);
        has_type = has_type || is_type;
    }
    return has_type ? OK : fail(ERR_CONFIG, "model.rope_scaling needs rope_type");
}

static Status add_attention(const Llama *m, int64_t block, const char *name, int x, int *y)
{
    char heads[ZOO_NUMBER], kv_heads[ZOO_NUMBER], base[ZOO_NUMBER], window[ZOO_NUMBER];
    const bool has_window = m->config->model.window > 0 && block >= m->config->model.window_from;
    const char *const pairs[][2] = {{"heads", zoo_number(m->heads, heads)},
                                    {"kv_heads", zoo_number(m->kv_heads, kv_heads)},
                                    {"rotary", "true"},
                                    {"rotary_base", zoo_real(m->config->model.rotary_base, base)}};
    Draft draft;
    TRY(draft_begin(m->graph, &draft, layer_kind("attention"), name, &x, 1));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
        TRY(layer_set_attr(draft.kind, &draft.spec, &draft.size, pairs[i][0], pairs[i][1]));
    if (has_window)
        TRY(layer_set_attr(draft.kind, &draft.spec, &draft.size, "window",
                           zoo_number(m->config->model.window, window)));
    TRY(set_rope_scaling(m, &draft));
    return draft_finish(m->graph, &draft, y);
}

static int self_attention(const Llama *m, int64_t block, int x)
{
    char name[NAME_CHARS];
    const int64_t qkv_width = m->width / m->heads * (m->heads + 2 * m->kv_heads);
    int y = normalize(m, block_name(block, "input_layernorm", name), x);
    y = project(m, block_name(block, "self_attn.qkv_proj", name), y, qkv_width,
                m->config->model.qkv_bias, INIT_STD);
    if (y == GRAPH_FAILED) return y;
    Status status = add_attention(m, block, block_name(block, "self_attn", name), y, &y);
    if (status != OK) {
        char *message = mem_text(fail_message());
        fail(status, "layer %s: %s", name, message);
        mem_free(&message);
        return GRAPH_FAILED;
    }
    y = project(m, block_name(block, "self_attn.o_proj", name), y, m->width, false,
                residual_std(m));
    return add_residual(m, block, "self_attn", x, y);
}

static int feed_forward(const Llama *m, int64_t block, int x)
{
    char name[NAME_CHARS];
    int y = normalize(m, block_name(block, "post_attention_layernorm", name), x);
    y = project(m, block_name(block, "mlp.gate_up_proj", name), y, 2 * m->ffn, false, INIT_STD);
    y = graph_add(m->graph, "swiglu", block_name(block, "mlp.act", name), &y, 1, NULL);
    y = project(m, block_name(block, "mlp.down_proj", name), y, m->width, false, residual_std(m));
    return add_residual(m, block, "mlp", x, y);
}

/* Adds the layers from the tokens, (N,T), to the first residual stream, (N,T,width). */
static int embed(const Llama *m)
{
    char vocab[ZOO_NUMBER], width[ZOO_NUMBER], std[ZOO_NUMBER];
    int x = graph_add(m->graph, "embedding", "embed_tokens", (int[]){NODE_INPUT}, 1, "vocab",
                      zoo_number(m->graph->classes, vocab), "width", zoo_number(m->width, width),
                      "init_std", zoo_real(INIT_STD, std), NULL);
    return zoo_dropout(m->graph, m->config, "dropout", x, 0);
}

static int build(Graph *graph, const Config *config)
{
    Llama m;
    if (read_sizes(&m, graph, config) != OK) return GRAPH_FAILED;
    int x = embed(&m);
    for (int64_t block = 0; block < m.depth && x != GRAPH_FAILED; ++block)
        x = feed_forward(&m, block, self_attention(&m, block, x));
    x = normalize(&m, "norm", x);
    x = project(&m, "lm_head", x, graph->classes, false, INIT_STD);
    if (!config->model.tied || x == GRAPH_FAILED) return x;
    return graph_tie(graph, x, 0, "embed_tokens.weight") == OK ? x : GRAPH_FAILED;
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_llama = {
    .name = "llama",
    .help = "Touvron et al. 2023: model.layers (blocks), width, heads, kv_heads, ffn, rotary_base, "
            "rope_scaling, window, window_from, qkv_bias, rms_eps, tied; model.dropout is 0 unless "
            "set, and never on attention",
    /* blocks: model.layers as a number */
    .uses = "blocks width heads kv_heads ffn rotary_base rope_scaling window window_from qkv_bias "
            "rms_eps tied context vocab",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
