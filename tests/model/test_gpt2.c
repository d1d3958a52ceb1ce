/* gpt2: published counts and names, the head's tie to the embedding, initial values; refused
 * ties. */
#include "arena.h"
#include "fixture.h"
#include "tensor/op_list.h"

#include <math.h>

/* Memory is not allocated: 1558m has 6 GB of parameters. macs: T (12 L C^2 + V C) + L C T (T +
 * 1). */
static void counts(void)
{
    static const struct {
        const char *config;
        int64_t params, depth, width;
    } row[] = {{"model: {name: gpt2, size: 124m}", 124439808, 12, 768},
               {"model: {name: gpt2, size: 355m}", 354823168, 24, 1024},
               {"model: {name: gpt2, size: 774m}", 774030080, 36, 1280},
               {"model: {name: gpt2, size: 1558m}", 1557611200, 48, 1600},
               {"model: {name: gpt2, size: 124m, positions: rotary}", 124439808 - 786432, 12, 768},
               {"model: {name: gpt2, size: 124m, context: 2048}", 124439808 + 786432, 12, 768}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        Graph *g = graph_of(row[i].config, tokens(2, 1024), 50257);
        CU_ASSERT_PTR_NOT_NULL_FATAL(g);
        int64_t depth = row[i].depth, width = row[i].width, length = 1024;
        CU_ASSERT_EQUAL(graph_param_elements(g), row[i].params);
        CU_ASSERT_EQUAL(graph_sample_macs(g),
                        (double)(length * (12 * depth * width * width + 50257 * width) +
                                 depth * width * length * (length + 1)));
        CU_ASSERT(
            shape_equal(g->node[g->logits_node].spec.y.shape, shape_of(3, 2, 1024, 50257, 1)));
        graph_free(&g);
    }
}

static void own_size(void)
{
    Graph *g = graph_of("model: {name: gpt2}", tokens(2, 256), 65);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    int64_t c = 384, formula = 65 * c + 256 * c + 6 * (12 * c * c + 13 * c) + 2 * c;
    CU_ASSERT_EQUAL(graph_param_elements(g), formula);
    CU_ASSERT_EQUAL(g->node[index_of(g, "h.5.attn")].spec.heads, 6);
    graph_free(&g);
    g = graph_of("model: {name: gpt2, layers: 2, width: 64, heads: 4, context: 32}", tokens(3, 20),
                 300);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    formula = 300 * 64 + 32 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64;
    CU_ASSERT_EQUAL(graph_param_elements(g), formula);
    CU_ASSERT(index_of(g, "h.1.mlp.c_proj") >= 0 && index_of(g, "h.2.ln_1") < 0);
    graph_free(&g);
}

static void names(void)
{
    static const char *const name[] = {"wte.weight",
                                       "wpe.weight",
                                       "h.0.ln_1.weight",
                                       "h.0.ln_1.bias",
                                       "h.0.attn.c_attn.weight",
                                       "h.0.attn.c_attn.bias",
                                       "h.0.attn.c_proj.weight",
                                       "h.0.attn.c_proj.bias",
                                       "h.0.ln_2.weight",
                                       "h.0.ln_2.bias",
                                       "h.0.mlp.c_fc.weight",
                                       "h.0.mlp.c_fc.bias",
                                       "h.0.mlp.c_proj.weight",
                                       "h.0.mlp.c_proj.bias",
                                       "ln_f.weight",
                                       "ln_f.bias",
                                       "lm_head.weight"};
    Graph *g = graph_of("model: {name: gpt2, layers: 1}", tokens(2, 16), 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL_FATAL(g->param_count, (int)(sizeof name / sizeof name[0]));
    for (int i = 0; i < g->param_count; ++i) CU_ASSERT_STRING_EQUAL(g->param[i].name, name[i]);
    CU_ASSERT(shape_equal(g->param[4].shape, shape_of(2, 1152, 384, 1, 1)));
    CU_ASSERT(shape_equal(g->param[1].shape, shape_of(2, 256, 384, 1, 1)));
    CU_ASSERT(index_of(g, "drop") < 0);
    CU_ASSERT_FALSE(g->node[index_of(g, "h.0.attn")].spec.rotary);
    graph_free(&g);
    g = graph_of("model: {name: gpt2, layers: 1, dropout: 0.1, positions: rotary}", tokens(2, 16),
                 100);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_PTR_NULL(param_named(g, "wpe.weight"));
    CU_ASSERT_TRUE(g->node[index_of(g, "h.0.attn")].spec.rotary);
    CU_ASSERT_EQUAL(g->node[index_of(g, "drop")].spec.drop, 0.1f);
    CU_ASSERT(index_of(g, "h.0.attn.dropout") > 0 && index_of(g, "h.0.mlp.dropout") > 0);
    graph_free(&g);
}

static void errors(void)
{
    expect_error("model: {name: gpt2, layers: 1, heads: 5}", tokens(2, 16), 100,
                 "heads (5) must divide the width (384)");
    expect_error("model: {name: gpt2, layers: 1, context: 8}", tokens(2, 16), 100,
                 "layer wpe: positions got sequences of 16, its context is 8");
    expect_error("model: {name: gpt2}", desc_plain(shape_of(4, 2, 1, 28, 28), DTYPE_F32), 10,
                 "needs integer tokens");
    expect_error("model:\n  name: lenet\n  width: 64\n",
                 desc_plain(shape_of(4, 2, 1, 28, 28), DTYPE_F32), 10,
                 "test.yaml:3:3: model.width: lenet does not use it; it is for resnet18, ");
    expect_error("model: {name: mlp, size: 124m}", desc_plain(shape_of(2, 2, 9, 1, 1), DTYPE_F32),
                 10, "model.size");
    expect_error("model: {heads: 4, layers: [dense: {width: 3}]}",
                 desc_plain(shape_of(2, 2, 9, 1, 1), DTYPE_F32), 3, "a list of layers");
    expect_error("model: {layers: [embedding: {vocab: 9, width: 4}]}", tokens(2, 8), 9,
                 "gives 4 outputs, but the data has 9 tokens");
}

static Graph *small(void)
{
    Graph *g = graph_of("model: {name: gpt2, layers: 8, width: 64, heads: 4, context: 32}",
                        tokens(2, 32), 500);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    return g;
}

/* A tied parameter is printed, counted and stored once; a value set through one name is read
 * through the other. */
static void tied_storage(void)
{
    Backend *backend = NULL;
    Graph *g = small();
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    CHECK_OK(graph_fuse(g, &backend_cpu));
    CHECK_OK(graph_plan(g, backend));
    int head = g->param_count - 1;
    const Param *p = &g->param[head], *wte = &g->param[0];
    CU_ASSERT_EQUAL(p->tied_param, 0);
    for (int i = 0; i < head; ++i) CU_ASSERT_EQUAL(g->param[i].tied_param, -1);
    CU_ASSERT(p->offset == wte->offset && p->elements == wte->elements);
    const Param *last = &g->param[head - 1];
    CU_ASSERT(g->arena_elements >= last->offset + last->elements &&
              g->arena_elements < last->offset + last->elements + 16);
    int64_t n = shape_count(p->shape);
    float *arena = mem_new((size_t)g->arena_elements * sizeof *arena);
    float *plain = mem_new((size_t)n * sizeof *plain), *back = mem_new((size_t)n * sizeof *back);
    for (int64_t i = 0; i < n; ++i) plain[i] = (float)i;
    param_set(g, 0, plain, arena);
    param_get(g, head, arena, back);
    CU_ASSERT_EQUAL(memcmp(plain, back, (size_t)n * sizeof *plain), 0);
    CU_ASSERT_EQUAL(memcmp(plain, arena + p->offset, (size_t)n * sizeof *plain), 0);
    mem_free(&arena);
    mem_free(&plain);
    mem_free(&back);
    graph_free(&g);
    backend_close(&backend);
}

/* The dw of a tied dense layer is also in plain order: dw[o,i] = sum over rows of dy[o] x[i].
 * Integers, so exact. */
static void tied_gradient(void)
{
    enum { ROWS = 24, IN = 48, OUT = 80 };
    static float x[ROWS * IN], dy[ROWS * OUT], w[OUT * IN], dw[OUT * IN];
    Backend *backend = NULL;
    Op *op = NULL;
    Desc preferred[SPEC_INPUTS];
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    OpSpec spec = {.kind = OP_DENSE,
                   .x_count = 1,
                   .w_count = 1,
                   .plain_weight = true,
                   .x = {desc_plain(shape_of(2, ROWS, IN, 1, 1), DTYPE_F32)},
                   .y = desc_plain(shape_of(2, ROWS, OUT, 1, 1), DTYPE_F32),
                   .w = {shape_of(2, OUT, IN, 1, 1)}};
    CHECK_OK(op_new(&op, backend, &spec, preferred));
    CU_ASSERT_EQUAL(op->w_elements[0], OUT * IN);
    for (int i = 0; i < ROWS * IN; ++i) x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < ROWS * OUT; ++i) dy[i] = (float)(i * 5 % 13 - 6);
    OpRun run = {.x = {x}, .dy = dy, .w = {w}, .dw = {dw}, .sample_count = ROWS, .training = true};
    run.cache = mem_new(op->cache_bytes + 1);
    run.workspace = mem_new(op->workspace_bytes + 1);
    op_backward_weight(op, &run);
    int bad = 0;
    for (int o = 0; o < OUT; ++o)
        for (int i = 0; i < IN; ++i) {
            float sum = 0;
            for (int r = 0; r < ROWS; ++r) sum += dy[r * OUT + o] * x[r * IN + i];
            bad += dw[o * IN + i] != sum;
        }
    CU_ASSERT_EQUAL(bad, 0);
    mem_free(&run.cache);
    mem_free(&run.workspace);
    op_free(&op);
    backend_close(&backend);
}

static void check_normal(const Graph *g, const float *arena, const char *name, double deviation)
{
    const Param *p = param_named(g, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    int64_t n = shape_count(p->shape);
    float *plain = mem_new((size_t)n * sizeof *plain);
    double sum = 0, squares = 0;
    param_get(g, (int)(p - g->param), arena, plain);
    for (int64_t i = 0; i < n; ++i) {
        sum += (double)plain[i];
        squares += (double)plain[i] * (double)plain[i];
    }
    /* five standard deviations of the mean */
    double error = 5 / sqrt((double)n);
    bool good = fabs(sum / (double)n) <= error * deviation &&
                fabs(sqrt(squares / (double)n) - deviation) <= error * deviation;
    if (!good) printf("  %s: %g, wanted %g\n", name, sqrt(squares / (double)n), deviation);
    CU_ASSERT_TRUE(good);
    mem_free(&plain);
}

static void first_values(void)
{
    Backend *backend = NULL;
    Graph *g = small();
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    CHECK_OK(graph_plan(g, backend));
    float *arena = mem_new((size_t)g->arena_elements * sizeof *arena);
    arena_init(g, 3, arena);
    check_normal(g, arena, "wte.weight", 0.02);
    check_normal(g, arena, "lm_head.weight", 0.02);
    check_normal(g, arena, "wpe.weight", 0.02);
    check_normal(g, arena, "h.0.attn.c_attn.weight", 0.02);
    check_normal(g, arena, "h.7.mlp.c_fc.weight", 0.02);
    /* sqrt(2 * 8) */
    check_normal(g, arena, "h.3.attn.c_proj.weight", 0.02 / 4);
    check_normal(g, arena, "h.7.mlp.c_proj.weight", 0.02 / 4);
    check_normal(g, arena, "h.3.attn.c_proj.bias", 0);
    check_normal(g, arena, "h.0.attn.c_attn.bias", 0);
    float *embedding = mem_new((size_t)shape_count(g->param[0].shape) * sizeof *embedding);
    layer_param_init(&g->param[0].info, &g->node[g->param[0].node].spec, 0, "wte.weight", 3,
                     embedding);
    CU_ASSERT_EQUAL(memcmp(embedding, arena + g->param[0].offset,
                           (size_t)shape_count(g->param[0].shape) * sizeof *embedding),
                    0);
    mem_free(&embedding);
    mem_free(&arena);
    graph_free(&g);
    backend_close(&backend);
}

static const char *const pair = "model:\n"
                                "  layers:\n"
                                "    - embedding: {vocab: 9, width: 4, name: e}\n"
                                "    - layer_norm: {name: n}\n"
                                "    - dense: {width: 4, name: a}\n"
                                "    - dense: {width: 9, name: b}\n"
                                "    - dense: {width: 9, name: c}\n";

static void ties(void)
{
    Graph *g = graph_of(pair, tokens(2, 8), 9);
    int e = index_of(g, "e"), n = index_of(g, "n"), a = index_of(g, "a");
    int b = index_of(g, "b"), c = index_of(g, "c");
    int64_t before = graph_param_elements(g);
    CHECK_FAILS(graph_tie(g, a, 0, "e.weight"), ERR_CONFIG,
                "a.weight is 4x4 and cannot be tied to e.weight, which is 9x4");
    CHECK_FAILS(graph_tie(g, b, 0, "e.wieght"), ERR_CONFIG, "did you mean 'e.weight'");
    CHECK_FAILS(graph_tie(g, e, 0, "b.weight"), ERR_CONFIG, "no earlier parameter");
    CHECK_FAILS(graph_tie(g, b, 0, "b.weight"), ERR_CONFIG, "no earlier parameter");
    CHECK_FAILS(graph_tie(g, a, 1, "n.bias"), ERR_CONFIG,
                "only dense, embedding, positions and numeric_embedding");
    CHECK_FAILS(graph_tie(g, n, 2, "e.weight"), ERR_BUG, "no parameter 2");
    CU_ASSERT_EQUAL(graph_param_elements(g), before);
    CHECK_OK(graph_tie(g, b, 0, "e.weight"));
    CU_ASSERT_EQUAL(graph_param_elements(g), before - 36);
    CHECK_OK(graph_tie(g, c, 1, "b.bias"));
    CU_ASSERT_EQUAL(graph_param_elements(g), before - 45);
    CU_ASSERT(g->node[e].spec.plain_weight && g->node[b].spec.plain_weight);
    CU_ASSERT_FALSE(g->node[a].spec.plain_weight);
    graph_free(&g);
}

/* A tie to a tied parameter becomes a tie to the first one. */
static void tie_chain(void)
{
    Graph *g = graph_of("model: {layers: [dense: {width: 9, name: a}, dense: {width: 9, name: b}, "
                        "dense: {width: 9, name: c}]}",
                        desc_plain(shape_of(2, 4, 9, 1, 1), DTYPE_F32), 9);
    CHECK_OK(graph_tie(g, 1, 0, "a.weight"));
    CHECK_OK(graph_tie(g, 2, 0, "b.weight"));
    const Param *c = param_named(g, "c.weight");
    CU_ASSERT_EQUAL(c ? c->tied_param : -1, 0);
    graph_free(&g);
}

static void print(void)
{
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    Graph *g = graph_of("model: {name: gpt2, size: 124m, layers: 1}", tokens(2, 1024), 50257);
    graph_print(g, out);
    fclose(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "46,473,216 trained parameters"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "lm_head.weight is tied to wte.weight"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "attended pairs of tokens"));
    /* attention: 2 * 768 * 1024 * 1025 */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  1612.19\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  tied "));
    graph_free(&g);
}

TEST_MAIN("gpt2", {"counts", counts}, {"own size", own_size}, {"names", names}, {"errors", errors},
          {"tied storage", tied_storage}, {"tied gradient", tied_gradient},
          {"first values", first_values}, {"ties", ties}, {"tie chain", tie_chain},
          {"print", print})
