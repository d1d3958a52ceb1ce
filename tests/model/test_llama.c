/* llama: published counts, names, defaults, initial values, refused settings. */
#include "fixture.h"

#include <math.h>

static void refused(const char *text, const char *message)
{
    expect_error(text, tokens(2, 16), 100, message);
}

/* Llama 7B (Touvron et al. 2023), Llama 2 70B, Llama 3 8B, Llama 3.2 1B, whose head is its
 * embedding, and TinyLlama (Zhang et al. 2024), counted as by Hugging Face. Memory is not
 * allocated. */
static void counts(void)
{
    static const struct {
        const char *config;
        int64_t vocab, params;
    } row[] = {
        {"model: {name: llama, layers: 32, width: 4096, heads: 32, ffn: 11008}", 32000, 6738415616},
        {"model: {name: llama, layers: 80, width: 8192, heads: 64, kv_heads: 8, ffn: 28672}", 32000,
         68976648192},
        {"model: {name: llama, layers: 32, width: 4096, heads: 32, kv_heads: 8, ffn: 14336, "
         "rotary_base: 500000}",
         128256, 8030261248},
        {"model: {name: llama, layers: 16, width: 2048, heads: 32, kv_heads: 8, ffn: 8192, tied: "
         "true}",
         128256, 1235814400},
        {"model: {name: llama, layers: 22, width: 2048, heads: 32, kv_heads: 4, ffn: 5632}", 32000,
         1100048384}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        Graph *g = graph_of(row[i].config, tokens(2, 16), row[i].vocab);
        CU_ASSERT_EQUAL(graph_param_elements(g), row[i].params);
        graph_free(&g);
    }
}

static void names(void)
{
    static const char *const name[] = {"embed_tokens.weight",
                                       "layers.0.input_layernorm.weight",
                                       "layers.0.self_attn.qkv_proj.weight",
                                       "layers.0.self_attn.o_proj.weight",
                                       "layers.0.post_attention_layernorm.weight",
                                       "layers.0.mlp.gate_up_proj.weight",
                                       "layers.0.mlp.down_proj.weight",
                                       "norm.weight",
                                       "lm_head.weight"};
    Graph *g = graph_of("model: {name: llama, layers: 1, kv_heads: 2}", tokens(2, 16), 100);
    CU_ASSERT_EQUAL_FATAL(g->param_count, (int)(sizeof name / sizeof name[0]));
    for (int i = 0; i < g->param_count; ++i) CU_ASSERT_STRING_EQUAL(g->param[i].name, name[i]);
    CU_ASSERT(shape_equal(g->param[2].shape, shape_of(2, 384 + 2 * 2 * 64, 384, 1, 1)));
    CU_ASSERT(shape_equal(g->param[5].shape, shape_of(2, 2 * 1024, 384, 1, 1)));
    CU_ASSERT(!g->param[1].info.decay && g->param[2].info.decay);
    graph_free(&g);
}

static void attributes(void)
{
    Graph *g = graph_of("model: {name: llama}", tokens(2, 16), 65);
    const Node *attention = node_named(g, "layers.5.self_attn");
    CU_ASSERT_PTR_NOT_NULL_FATAL(attention);
    CU_ASSERT(attention->spec.rotary && attention_rotary_base(&attention->spec) == 10000);
    CU_ASSERT(attention->spec.heads == 6 && attention_kv_heads(&attention->spec) == 6);
    CU_ASSERT_EQUAL(node_named(g, "norm")->spec.eps, 1e-5f);
    CU_ASSERT_PTR_NULL(node_named(g, "dropout"));
    graph_free(&g);
    g = graph_of(
        "model: {name: llama, layers: 2, width: 64, heads: 8, kv_heads: 1, rotary_base: 5e5, "
        "rms_eps: 1e-6, tied: true, dropout: 0.1}",
        tokens(2, 16), 65);
    attention = node_named(g, "layers.1.self_attn");
    CU_ASSERT_EQUAL(attention_rotary_base(&attention->spec), 500000);
    CU_ASSERT_EQUAL(attention_kv_heads(&attention->spec), 1);
    CU_ASSERT_EQUAL(node_named(g, "layers.0.input_layernorm")->spec.eps, 1e-6f);
    CU_ASSERT_EQUAL(node_named(g, "layers.1.mlp.act")->spec.y.shape.dim[2], 192);
    CU_ASSERT_EQUAL(g->param[g->param_count - 1].tied_param, 0);
    CU_ASSERT(node_named(g, "dropout") && node_named(g, "layers.1.mlp.dropout"));
    graph_free(&g);
}

static double deviation(const Graph *graph, const char *name)
{
    double square = 0;
    int at = 0;
    while (strcmp(graph->param[at].name, name) != 0) ++at;
    int64_t n = shape_count(graph->param[at].shape);
    float *v = mem_new((size_t)n * sizeof *v);
    param_init(graph, at, 1, v);
    for (int64_t i = 0; i < n; ++i) square += (double)v[i] * v[i] / (double)n;
    mem_free(&v);
    return sqrt(square);
}

static void first_values(void)
{
    Graph *g = graph_of("model: {name: llama, layers: 8, width: 64, heads: 4}", tokens(2, 16), 300);
    CU_ASSERT_DOUBLE_EQUAL(deviation(g, "embed_tokens.weight"), 0.02, 6e-4);
    CU_ASSERT_DOUBLE_EQUAL(deviation(g, "lm_head.weight"), 0.02, 6e-4);
    CU_ASSERT_DOUBLE_EQUAL(deviation(g, "layers.3.mlp.gate_up_proj.weight"), 0.02, 6e-4);
    CU_ASSERT_DOUBLE_EQUAL(deviation(g, "layers.3.mlp.down_proj.weight"), 0.005, 2e-4);
    CU_ASSERT_DOUBLE_EQUAL(deviation(g, "layers.3.self_attn.o_proj.weight"), 0.005, 2e-4);
    CU_ASSERT_EQUAL(deviation(g, "layers.0.input_layernorm.weight"), 1);
    graph_free(&g);
}

/* The message names exactly those models of the zoo whose row uses the key. */
static void users_of_width(void)
{
    refused("model: {name: lenet, width: 64}", "model.width: lenet does not use it; it is for ");
    const char *list = strstr(fail_message(), "it is for ");
    for (const ZooEntry *const *m = zoo; list && *m; ++m) {
        char *users = mem_format(", %s,", list + strlen("it is for "));
        char *word = mem_format(", %s,", (*m)->name);
        bool uses = word_uses((ConfigWord){.word = (*m)->name, .uses = (*m)->uses}, "width");
        CU_ASSERT_EQUAL(strstr(users, word) != NULL, uses);
        mem_free(&users);
        mem_free(&word);
    }
}

static void errors(void)
{
    refused("model: {name: llama, layers: 4, window: 8, window_from: 4}",
            "model.window_from (4) must be less than model.layers (4)");
    refused("model: {name: llama, window: 8, window_from: 7}",
            "must be less than model.layers (6)");
    refused("model: {name: llama, heads: 5}", "model.heads (5) must divide model.width (384)");
    refused("model: {name: llama, heads: 6, kv_heads: 4}",
            "model.kv_heads (4) must divide model.heads (6)");
    refused("model: {name: llama, width: 6, heads: 2}", "a head's width is odd (3)");
    refused("model: {name: llama, size: 124m}",
            "model.size: llama does not use it; it is for gpt2");
    refused("model: {name: gpt2, kv_heads: 2}",
            "model.kv_heads: gpt2 does not use it; it is for llama");
    refused("model: {name: gpt2, rotary_base: 500}",
            "model.rotary_base: gpt2 does not use it; it is for llama");
    refused("model: {tied: true, layers: [dense: {width: 3}]}",
            "a list of layers does not use it; it is for llama");
    users_of_width();
}

TEST_MAIN("llama", {"counts", counts}, {"names", names}, {"attributes", attributes},
          {"first values", first_values}, {"errors", errors})
