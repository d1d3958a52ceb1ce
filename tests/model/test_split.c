/* Slices of a graph for tensor parallelism: which rank has which part of a layer, that all parts
 * make up the whole, and refusals. */
#include "fixture.h"

static const char *const gpt = "model: {name: gpt2, layers: 2, width: 40, heads: 5, context: 12, "
                               "dropout: 0.1}\n";

typedef struct Split {
    Config *config;
    Graph *graph;
} Split;

/* Builds a model of tokens (2,12) below 29, or of vectors (2,20) with 7 classes. */
static void build(Split *s, const char *text, bool tokens)
{
    *s = (Split){0};
    Desc input = tokens ? desc_plain(shape_of(2, 2, 12, 1, 1), DTYPE_I32)
                        : desc_plain(shape_of(2, 2, 20, 1, 1), DTYPE_F32);
    CHECK_OK(config_parse(&s->config, "split.yaml", text, 0, NULL));
    CHECK_OK(graph_build(&s->graph, s->config, input, tokens ? 29 : 7));
}

/* Builds a model and takes the slice of one rank. */
static Status open_sliced(Split *s, const char *text, bool tokens, int rank, int ranks, int slices)
{
    build(s, text, tokens);
    return graph_split(&s->graph, s->config, rank, ranks, slices);
}

static Status open_split(Split *s, const char *text, bool tokens, int rank, int ranks)
{
    return open_sliced(s, text, tokens, rank, ranks, 0);
}

static void close_split(Split *s)
{
    graph_free(&s->graph);
    config_free(&s->config);
}

static bool has_shape(const Graph *g, const char *name, int64_t a, int64_t b, int64_t c)
{
    const Node *node = node_named(g, name);
    return node && shape_equal(node->spec.y.shape, shape_of(c ? 3 : 2, a, b, c ? c : 1, 1));
}

/* 5 heads of 8 over 3 ranks: 2, 2, 1; 12 tokens: 4 each; 160 gelus: 54, 53, 53; 29 tokens: 10, 10,
 * 9. */
static void test_gpt(void)
{
    static const int heads[] = {2, 2, 1}, wide[] = {54, 53, 53}, vocab[] = {10, 10, 9};
    for (int r = 0; r < 3; ++r) {
        Split s;
        CHECK_OK(open_split(&s, gpt, true, r, 3));
        const Graph *g = s.graph;
        CU_ASSERT(has_shape(g, "wte", 2, 12, 40));
        CU_ASSERT(has_shape(g, "wte.scatter", 2, 4, 40));
        CU_ASSERT(has_shape(g, "h.0.ln_1", 2, 4, 40));
        CU_ASSERT(has_shape(g, "h.0.ln_1.gather", 2, 12, 40));
        CU_ASSERT(has_shape(g, "h.0.attn.c_attn", 2, 12, 3 * 8 * heads[r]));
        CU_ASSERT(has_shape(g, "h.0.attn", 2, 12, 8 * heads[r]));
        CU_ASSERT_EQUAL(node_named(g, "h.0.attn")->spec.heads, heads[r]);
        CU_ASSERT(has_shape(g, "h.0.attn.c_proj", 2, 12, 40));
        CU_ASSERT(has_shape(g, "h.0.attn.add", 2, 4, 40));
        CU_ASSERT(has_shape(g, "h.1.mlp.act", 2, 12, wide[r]));
        CU_ASSERT(has_shape(g, "lm_head", 2, 12, vocab[r]));
        CU_ASSERT_EQUAL(node_named(g, "loss")->spec.slice.count, vocab[r]);
        CU_ASSERT_EQUAL(node_named(g, "drop")->spec.slice.first, 4 * r);
        CU_ASSERT_EQUAL(node_named(g, "wpe")->spec.slice.whole, 12);
        CU_ASSERT_EQUAL(graph_param_elements(g), graph_param_elements(g->undivided));
        close_split(&s);
    }
}

/* Checks that the slices of all ranks make up the tensor, and that every number lies in exactly one
 * of them. */
static void check_param(Graph *const *graph, int ranks, int param)
{
    Shape shape = graph[0]->undivided->param[param].shape;
    int64_t n = shape_count(shape), sum = 0;
    float *whole = mem_new((size_t)n * sizeof *whole), *back = mem_new((size_t)n * sizeof *back);
    float *mine = mem_new((size_t)n * sizeof *mine);
    for (int64_t i = 0; i < n; ++i) whole[i] = (float)(i + 1);
    for (int r = 0; r < ranks; ++r) {
        const Param *p = &graph[r]->param[param];
        int64_t count = param_slice_count(graph[r], param, r);
        CU_ASSERT_EQUAL(count, shape_count(p->shape));
        CU_ASSERT_STRING_EQUAL(p->name, graph[0]->undivided->param[param].name);
        CU_ASSERT(shape_equal(p->shape, graph[r]->node[p->node].spec.w[p->slot]));
        if (p->split.parts > 0 || r == 0) sum += count;
        param_slice_get(graph[r], param, r, whole, mine);
        /* any rank can compute where a slice lies */
        param_slice_put(graph[0], param, r, mine, back);
    }
    CU_ASSERT_EQUAL(sum, n);
    CU_ASSERT_EQUAL(memcmp(whole, back, (size_t)n * sizeof *whole), 0);
    mem_free(&whole);
    mem_free(&back);
    mem_free(&mine);
}

static void test_params(void)
{
    enum { RANKS = 4 };
    Split s[RANKS];
    Graph *graph[RANKS];
    for (int r = 0; r < RANKS; ++r) {
        CHECK_OK(open_split(&s[r], gpt, true, r, RANKS));
        graph[r] = s[r].graph;
    }
    for (int i = 0; i < graph[0]->param_count; ++i) check_param(graph, RANKS, i);
    for (int r = 0; r < RANKS; ++r) close_split(&s[r]);
}

/* Queries, keys and values of a head stay together: head 1 of 2, of width 3, has rows 3 to 5 of
 * each part. */
static void test_heads(void)
{
    Split s;
    CHECK_OK(open_split(&s, "model: {name: gpt2, layers: 1, width: 6, heads: 2, context: 12}\n",
                        true, 1, 2));
    /* the bias */
    int param = node_named(s.graph, "h.0.attn.c_attn")->param[1];
    float whole[18], mine[9];
    for (int i = 0; i < 18; ++i) whole[i] = (float)i;
    param_slice_get(s.graph, param, 1, whole, mine);
    for (int i = 0; i < 9; ++i) CU_ASSERT_EQUAL(mine[i], (float)(i / 3 * 6 + 3 + i % 3));
    close_split(&s);
}

/* With 3 heads of keys, each shared by 2 heads of queries, the slices of all ranks also make up the
 * tensor. */
static void test_shared_keys(void)
{
    enum { RANKS = 3 };
    static const char *const text =
        "model: {name: llama, layers: 1, width: 12, heads: 6, kv_heads: 3, ffn: 10, context: 12}\n";
    Split s[RANKS];
    Graph *graph[RANKS];
    for (int r = 0; r < RANKS; ++r) {
        CHECK_OK(open_split(&s[r], text, true, r, RANKS));
        graph[r] = s[r].graph;
        CU_ASSERT(has_shape(graph[r], "layers.0.self_attn.qkv_proj", 2, 12, 8));
        CU_ASSERT(has_shape(graph[r], "layers.0.self_attn", 2, 12, 4));
        CU_ASSERT_EQUAL(node_named(graph[r], "layers.0.self_attn")->spec.heads, 2);
        CU_ASSERT_EQUAL(node_named(graph[r], "layers.0.self_attn")->spec.kv_heads, 1);
        CU_ASSERT(has_shape(graph[r], "layers.0.mlp.gate_up_proj", 2, 12, r ? 6 : 8));
        CU_ASSERT(has_shape(graph[r], "layers.0.mlp.act", 2, 12, r ? 3 : 4));
        CU_ASSERT(has_shape(graph[r], "norm", 2, 4, 12));
    }
    for (int i = 0; i < graph[0]->param_count; ++i) check_param(graph, RANKS, i);
    for (int r = 0; r < RANKS; ++r) close_split(&s[r]);
}

/* The last of 4 ranks has the last of 4 heads of queries of 4, and the last of the 4 columns that
 * their head of keys has, and its values. There are at most as many slices as query heads, and as
 * columns of keys. If there is a key head for every slice, key heads stay whole. */
static void test_divided_keys(void)
{
    Split s;
    float whole[24], mine[6];
    static const float last[] = {12, 13, 14, 15, 19, 23};
    CHECK_OK(open_sliced(&s,
                         "model: {name: llama, layers: 1, width: 16, heads: 4, kv_heads: 1, ffn: "
                         "16, qkv_bias: true}\n",
                         true, 3, 4, 4));
    for (int i = 0; i < 24; ++i) whole[i] = (float)i;
    const int bias = node_named(s.graph, "layers.0.self_attn.qkv_proj")->param[1];
    CU_ASSERT_EQUAL(param_slice_count(s.graph, bias, 3), 6);
    param_slice_get(s.graph, bias, 3, whole, mine);
    CU_ASSERT_EQUAL(memcmp(mine, last, sizeof last), 0);
    close_split(&s);
    CHECK_OK(open_sliced(&s, "model: {name: llama, layers: 1, width: 24, heads: 4, kv_heads: 1}\n",
                         true, 0, 2, 8));
    CU_ASSERT_EQUAL(node_named(s.graph, "layers.0.self_attn")->spec.slices.total, 4);
    close_split(&s);
    CHECK_OK(open_sliced(&s, "model: {name: llama, layers: 1, width: 48, heads: 8, kv_heads: 1}\n",
                         true, 0, 2, 8));
    CU_ASSERT_EQUAL(node_named(s.graph, "layers.0.self_attn")->spec.slices.total, 4);
    close_split(&s);
    CHECK_OK(open_sliced(&s, "model: {name: llama, layers: 1, width: 32, heads: 8, kv_heads: 4}\n",
                         true, 0, 2, 4));
    CU_ASSERT_EQUAL(node_named(s.graph, "layers.0.self_attn")->spec.slices.total, 0);
    CU_ASSERT_EQUAL(node_named(s.graph, "layers.0.self_attn.qkv_proj")->spec.slices.units, 4);
    close_split(&s);
}

/* 8 heads of queries of 8, which share 1 or 2 heads of keys, on 2, 4 and 8 ranks in 8 slices: the
 * ranks that share a key head exchange its columns; parameters are divided without a rest. */
static void test_key_exchange(void)
{
    enum { RANKS = 8 };
    static const char *const name = "layers.0.self_attn", *const qkv =
                                                              "layers.0.self_attn.qkv_proj";
    for (int kv_heads = 1; kv_heads <= 2; ++kv_heads)
        for (int ranks = 2; ranks <= RANKS; ranks *= 2) {
            Split s[RANKS];
            Graph *graph[RANKS];
            char *text = mem_format("model: {name: llama, layers: 1, width: 64, heads: 8, "
                                    "kv_heads: %d, ffn: 16, qkv_bias: true}\n",
                                    kv_heads);
            for (int r = 0; r < ranks; ++r) {
                CHECK_OK(open_sliced(&s[r], text, true, r, ranks, 8));
                const Graph *g = graph[r] = s[r].graph;
                const int heads = 8 / ranks;
                CU_ASSERT(has_shape(g, qkv, 2, 12, heads * 8 + 2 * kv_heads * 8 / ranks));
                CU_ASSERT(has_shape(g, name, 2, 12, heads * 8));
                CU_ASSERT_EQUAL(node_named(g, name)->spec.heads, heads);
                CU_ASSERT_EQUAL(node_named(g, name)->spec.kv_heads, 1);
                CU_ASSERT_EQUAL(node_named(g, name)->spec.slices.count, 8 / ranks);
                CU_ASSERT_EQUAL(node_named(g, qkv)->spec.slices.total, 8);
                const Node *gather = node_named(g, "layers.0.self_attn.keys");
                CU_ASSERT_EQUAL(gather != NULL, ranks > kv_heads);
                if (!gather) continue;
                CU_ASSERT(has_shape(g, gather->name, 2, 12, heads * 8 + 16));
                CU_ASSERT_EQUAL(gather->spec.slice.ranks, ranks / kv_heads);
                CU_ASSERT_EQUAL(gather->spec.slice.rank, r % (ranks / kv_heads));
            }
            for (int i = 0; i < graph[0]->param_count; ++i) check_param(graph, ranks, i);
            for (int r = 0; r < ranks; ++r) close_split(&s[r]);
            mem_free(&text);
        }
}

/* Rank 1 of 2 has heads 2 and 3 of 4 heads of queries of width 1, and the second of 2 heads of keys
 * and of values; of a swiglu of width 3 it has the last column of gate and value. */
static void test_packed(void)
{
    Split s;
    CHECK_OK(open_split(&s,
                        "model: {layers: [embedding: {vocab: 29, width: 4}, dense: {width: 8}, "
                        "attention: {heads: 4, kv_heads: 2}, dense: {width: 6}, swiglu, "
                        "dense: {width: 29}]}\n",
                        true, 1, 2));
    static const float queries[] = {2, 3, 5, 7};
    float whole[8], mine[8];
    for (int i = 0; i < 8; ++i) whole[i] = (float)i;
    int bias = node_named(s.graph, "dense1")->param[1];
    CU_ASSERT_EQUAL(param_slice_count(s.graph, bias, 1), 4);
    param_slice_get(s.graph, bias, 1, whole, mine);
    CU_ASSERT_EQUAL(memcmp(mine, queries, sizeof queries), 0);
    close_split(&s);
    CHECK_OK(open_split(&s, "model: {layers: [dense: {width: 6}, swiglu, dense: {width: 7}]}\n",
                        false, 1, 2));
    bias = node_named(s.graph, "dense1")->param[1];
    CU_ASSERT_EQUAL(param_slice_count(s.graph, bias, 1), 2);
    param_slice_get(s.graph, bias, 1, whole, mine);
    CU_ASSERT(mine[0] == 2 && mine[1] == 5);
    close_split(&s);
}

/* Vectors are not cut as sequences are: every rank has all that is not divided. A sum's bias is
 * added after it, once. */
static void test_dense(void)
{
    Split s;
    CHECK_OK(open_split(&s,
                        "model: {layers: [dense: {width: 11}, relu, dense: {width: 9}, layer_norm, "
                        "dense: {width: 7}]}\n",
                        false, 1, 2));
    const Graph *g = s.graph;
    CU_ASSERT(has_shape(g, "dense1", 2, 5, 0));
    CU_ASSERT(has_shape(g, "dense2", 2, 9, 0));
    CU_ASSERT_EQUAL(node_named(g, "dense2")->spec.w_count, 1);
    CU_ASSERT(has_shape(g, "dense2.sum", 2, 9, 0));
    CU_ASSERT_EQUAL(node_named(g, "dense2.sum")->spec.exchange, EXCHANGE_LEAVE);
    CU_ASSERT_EQUAL(node_named(g, "dense2.sum")->spec.w_count, 1);
    CU_ASSERT(has_shape(g, "layer_norm1", 2, 9, 0));
    CU_ASSERT_EQUAL(node_named(g, "layer_norm1.enter")->spec.exchange, EXCHANGE_ENTER);
    /* 7 columns: 4 and 3 */
    CU_ASSERT(has_shape(g, "dense3", 2, 3, 0));
    for (int i = 0; i < g->param_count; ++i) CU_ASSERT(!g->param[i].partial);
    close_split(&s);
}

static void refused(const char *text, bool tokens, int ranks, const char *says)
{
    Split s;
    CU_ASSERT_EQUAL(open_split(&s, text, tokens, 0, ranks), ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), says));
    if (!strstr(fail_message(), says)) printf("  %s\n", fail_message());
    close_split(&s);
}

/* Key heads are divided by columns only on CPUs and in fp32. */
static void refused_keys(DeviceKind device, Precision precision)
{
    Split s;
    build(&s, "model: {name: llama, layers: 1, width: 24, heads: 4, kv_heads: 2}\n", true);
    s.config->train.device = device;
    s.config->train.precision = precision;
    CHECK_FAILS(graph_split(&s.graph, s.config, 0, 4, 8), ERR_CONFIG,
                "which has 2 kv_heads: set grid.tp to at most 2; more ranks share key heads only "
                "with train.device: cpu, train.precision: fp32");
    close_split(&s);
}

static void test_refused(void)
{
    refused_keys(DEVICE_CPU, PRECISION_BF16);
    refused_keys(DEVICE_CUDA, PRECISION_FP32);
    refused(gpt, true, 6, "layer h.0.attn.c_attn, which has 5 heads: set grid.tp to at most 5");
    refused("model: {name: llama, layers: 1, width: 24, heads: 4, kv_heads: 2}\n", true, 3,
            "layer layers.0.self_attn.qkv_proj, which has 2 kv_heads: set grid.tp to at most 2");
    refused("model: {name: llama, layers: 1, width: 24, heads: 4, kv_heads: 2}\n", true, 6,
            "which has 4 heads: set grid.tp to at most 4");
    refused("model: {name: llama, layers: 1, width: 12, heads: 6, kv_heads: 1}\n", true, 3,
            "which has 2 columns of keys: set grid.tp to at most 2");
    refused("model: {layers: [dense: {width: 8}, dropout: {p: 0.1}, swiglu, dense: {width: 7}]}\n",
            false, 2, "nothing to divide");
    refused("model: {layers: [dense: {width: 7}]}\n", false, 2, "nothing to divide");
    refused("model: {layers: [dense: {width: 3}, relu, dense: {width: 7}]}\n", false, 4,
            "layer dense1, which has 3 outputs");
    refused("model: {layers: [dense: {width: 8}, layer_norm, dense: {width: 7}]}\n", false, 2,
            "nothing to divide");
}

/* 5 heads allow 4 of 8 slices, in which ranks 0 and 1 of 2 have slices 0, 1 and 2, 3 of every sum,
 * and one rank has all. A rank's heads are those of its slices. */
static void test_slices(void)
{
    Split s;
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        for (int r = 0; r < ranks; ++r) {
            CHECK_OK(open_sliced(&s, gpt, true, r, ranks, 8));
            static const char *const cut[] = {"h.0.attn.c_attn", "h.0.attn.c_proj", "h.1.mlp.c_fc",
                                              "lm_head", "loss"};
            for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
                const SumSlices *sums = &node_named(s.graph, cut[i])->spec.slices;
                CU_ASSERT_EQUAL(sums->total, 4);
                CU_ASSERT_EQUAL(sums->count, 4 / ranks);
                CU_ASSERT_EQUAL(sums->first, 4 / ranks * r);
                CU_ASSERT_EQUAL(node_named(s.graph, cut[i])->spec.slices_inputs, i == 1);
            }
            CU_ASSERT_EQUAL(node_named(s.graph, "h.0.attn.c_attn")->spec.slices.parts, 3);
            CU_ASSERT_EQUAL(node_named(s.graph, "h.0.attn.c_attn")->spec.slices.units, 5);
            CU_ASSERT_EQUAL(node_named(s.graph, "h.0.ln_1")->spec.token_slices.total, 4);
            const int64_t heads =
                slice_first(5, 4, 4 / ranks * (r + 1)) - slice_first(5, 4, 4 / ranks * r);
            CU_ASSERT_EQUAL(node_named(s.graph, "h.0.attn")->spec.heads, heads);
            close_split(&s);
        }
    CU_ASSERT_EQUAL(open_sliced(&s, gpt, true, 0, 3, 8), ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "3 is no power of two"));
    close_split(&s);
    CU_ASSERT_EQUAL(open_sliced(&s, gpt, true, 0, 4, 2), ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "set train.sum_slices to 4"));
    close_split(&s);
    /* one rank may have a model that nothing divides */
    CHECK_OK(open_sliced(&s, "model: {layers: [dense: {width: 7}]}\n", false, 0, 1, 8));
    CU_ASSERT_EQUAL(node_named(s.graph, "dense1")->spec.slices.total, 0);
    close_split(&s);
}

/* Slices of few ranks are whole slices of more, and none differs by more than one item. */
static void test_nested(void)
{
    for (int64_t items = 1; items < 70; ++items)
        for (int ranks = 1; ranks <= 64; ++ranks) {
            CU_ASSERT_EQUAL(slice_first(items, ranks, ranks), items);
            for (int r = 0; r < ranks; ++r) {
                const int64_t first = slice_first(items, ranks, r);
                const int64_t count = slice_first(items, ranks, r + 1) - first;
                CU_ASSERT(count == items / ranks || count == (items + ranks - 1) / ranks);
                CU_ASSERT_EQUAL(slice_first(items, 4 * ranks, 4 * r), first);
            }
        }
}

TEST_MAIN("split", {"slices", test_slices}, {"nested slices", test_nested}, {"gpt", test_gpt},
          {"parameters", test_params}, {"heads", test_heads}, {"shared keys", test_shared_keys},
          {"divided keys", test_divided_keys}, {"key exchange", test_key_exchange},
          {"packed", test_packed}, {"dense", test_dense}, {"refused", test_refused})
