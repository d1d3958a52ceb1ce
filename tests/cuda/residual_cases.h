/* Tests of a dense layer that adds a residual. On the GPU this is one node, on the CPU two. */
#ifndef WEFT_TEST_CUDA_RESIDUAL_CASES_H
#define WEFT_TEST_CUDA_RESIDUAL_CASES_H

#include "cases.h"

typedef struct ResidualCase {
    /* attributes of the dense */
    const char *attrs;
    Shape x;
    /* activation after the sum */
    Act act;
    /* true: rows of the output are multiples of 16 bytes in every type */
    bool even;
} ResidualCase;

typedef struct ResidualTest {
    /* on the CPU: dense: the dense layer; sum: adds the residual to its output. On the GPU: fused:
     * both */
    Rig dense, sum, fused;
    float *given, *got, *expected;
} ResidualTest;

static Status residual_open(ResidualTest *t, const ResidualCase *c, Backend *device)
{
    TRY(rig_spec(&t->dense, cpu, "dense", c->attrs));
    TRY(rig_spec(&t->sum, cpu, "add", NULL));
    TRY(rig_spec(&t->fused, device, "dense", c->attrs));
    t->dense.spec.x_count = 1;
    t->dense.spec.x[0] = t->fused.spec.x[0] = desc_plain(c->x, DTYPE_F32);
    TRY(rig_open(&t->dense, "dense"));
    t->sum.spec.x_count = t->fused.spec.x_count = 2;
    t->sum.spec.x[0] = t->sum.spec.x[1] = t->fused.spec.x[1] = t->dense.spec.y;
    t->sum.spec.act = t->fused.spec.act = c->act;
    t->fused.spec.residual = true;
    TRY(rig_open(&t->sum, "add"));
    return rig_open(&t->fused, "dense");
}

static void residual_give(ResidualTest *t)
{
    const OpSpec *spec = &t->fused.spec;
    fill(t->given, shape_count(spec->x[0].shape), 1);
    rig_set_x(&t->dense, 0, t->given);
    rig_set_x(&t->fused, 0, t->given);
    fill(t->given, shape_count(spec->y.shape), 4);
    rig_set_x(&t->sum, 1, t->given);
    rig_set_x(&t->fused, 1, t->given);
    for (int i = 0; i < spec->w_count; ++i) {
        fill(t->given, shape_count(spec->w[i]), 1);
        rig_set_w(&t->dense, i, t->given);
        rig_set_w(&t->fused, i, t->given);
    }
}

static void residual_compare(ResidualTest *t, Part part, const char *tensor, int64_t n)
{
    compare("dense and add", t->fused.backend, part, allowed.product, "residual", tensor, t->got,
            t->expected, n);
}

static void residual_run(ResidualTest *t)
{
    const OpSpec *spec = &t->fused.spec;
    int64_t n = shape_count(spec->y.shape);
    residual_give(t);
    rig_forward(&t->dense);
    rig_get_y(&t->dense, t->expected);
    rig_set_x(&t->sum, 0, t->expected);
    rig_forward(&t->sum);
    rig_poison(&t->fused);
    rig_forward(&t->fused);
    rig_get_y(&t->sum, t->expected);
    rig_get_y(&t->fused, t->got);
    residual_compare(t, PART_Y, "y", n);
    fill(t->given, n, 1);
    rig_backward(&t->sum, t->given);
    rig_backward(&t->fused, t->given);
    rig_get_dx(&t->sum, 1, t->expected);
    rig_get_dx(&t->fused, 1, t->got);
    residual_compare(t, PART_DX, "dx[1]", n);
    rig_backward(&t->dense, t->expected);
    rig_get_dx(&t->dense, 0, t->expected);
    rig_get_dx(&t->fused, 0, t->got);
    residual_compare(t, PART_DX, "dx[0]", shape_count(spec->x[0].shape));
    for (int i = 0; i < spec->w_count; ++i) {
        rig_get_dw(&t->dense, i, t->expected);
        rig_get_dw(&t->fused, i, t->got);
        residual_compare(t, PART_DW, i ? "dw[1]" : "dw[0]", shape_count(spec->w[i]));
    }
}

static void check_residual(const ResidualCase *c, Backend *device)
{
    ResidualTest t = {.given = mem_new(LARGEST * sizeof(float)),
                      .got = mem_new(LARGEST * sizeof(float)),
                      .expected = mem_new(LARGEST * sizeof(float))};
    Status st = residual_open(&t, c, device);
    if (st != OK) printf("  dense %s with a residual: %s\n", c->attrs, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) {
        const char *kernels = t.fused.op->kernels;
        bool apart = kernels && strstr(kernels, "the sum");
        if (c->even) CU_ASSERT_FALSE(apart);
        residual_run(&t);
    }
    rig_close(&t.dense);
    rig_close(&t.sum);
    rig_close(&t.fused);
    mem_free(&t.given);
    mem_free(&t.got);
    mem_free(&t.expected);
}

static void test_residual(void)
{
    const ResidualCase cases[] = {
        {"width=40", {2, {37, 24, 1, 1}}, ACT_NONE, true},
        {"width=48 bias=false", {3, {3, 5, 17, 1}}, ACT_NONE, true},
        {"width=64", {2, {19, 32, 1, 1}}, ACT_RELU, true},
        {"width=33", {2, {20, 17, 1, 1}}, ACT_NONE, false},
        {"width=33 bias=false", {2, {20, 24, 1, 1}}, ACT_RELU, false},
        /* In 16-bit types this case has padded rows. */
        {"width=1027", {3, {3, 7, 40, 1}}, ACT_NONE, false},
        {"width=1028 bias=false", {2, {21, 24, 1, 1}}, ACT_RELU, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        check_residual(&cases[i], gpu);
        /* relu depends on the sign of the sum, which may change if the product is rounded before
         * the sum. */
        if (cases[i].act != ACT_NONE && !cases[i].even) continue;
        check_residual(&cases[i], gpu_bf16);
        check_residual(&cases[i], gpu_fp16);
    }
}

/* Returns the number of add nodes in a model's graph after the CUDA backend's fusion. nodes: number
 * of all nodes after fusion, on the CPU and on the GPU. */
static int adds_left(const char *text, Desc input, int nodes[2])
{
    const BackendTable *table[] = {&backend_cpu, &backend_cuda};
    int adds = 0;
    for (int d = 0; d < 2; ++d) {
        Config *config = NULL;
        Graph *g = NULL;
        CHECK_OK(config_parse(&config, "test", text, 0, NULL));
        CHECK_OK(graph_build(&g, config, input, CLASSES));
        CHECK_OK(graph_fuse(g, table[d]));
        nodes[d] = g->node_count;
        for (int i = 0; d == 1 && i < g->node_count; ++i) adds += g->node[i].spec.kind == OP_ADD;
        graph_free(&g);
        config_free(&config);
    }
    return adds;
}

/* The residual has plain rows, so there is a reorder between the dense layer with gelu and the
 * dense layer that computes gelu's slope. No stage may begin between the two. */
static void test_residual_reorder(void)
{
    static const char text[] =
        "model: {layers: [dense: {width: 1027}, silu: {name: s}, dense: {width: 16, name: b}, "
        "gelu, "
        "dense: {width: 1027, name: c}, add: {input: [s, c]}, dense: {width: 10}]}\n"
        "grid: {pp: 2, cuts: [s.reorder64]}\n";
    Config *config = NULL;
    Graph *g = NULL;
    int first[3];
    CHECK_OK(config_parse(&config, "test", text, 0, NULL));
    CHECK_OK(graph_build(&g, config, desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32), CLASSES));
    CHECK_OK(graph_fuse(g, &backend_cuda));
    CHECK_OK(graph_plan(g, gpu_bf16));
    int c = 0;
    while (c + 1 < g->node_count && strcmp(g->node[c].name, "c") != 0) ++c;
    CU_ASSERT_EQUAL_FATAL(strcmp(g->node[c - 1].name, "s.reorder64"), 0);
    CU_ASSERT_EQUAL(g->node[c].spec.x_act, ACT_GELU);
    CU_ASSERT_EQUAL(g->node[c].in[0], c - 2);
    CHECK_FAILS(graph_partition(g, config, 2, first), ERR_CONFIG, "cannot begin a chunk");
    graph_free(&g);
    config_free(&config);
}

/* A transformer's graph has no add node after fusion, and other models do not change. */
static void test_residual_models(void)
{
    enum { LAYERS_OF_GPT = 3 };
    Desc tokens = desc_plain(shape_of(2, 2, 8, 1, 1), DTYPE_I32),
         images = desc_plain(shape_of(4, 2, 3, 32, 32), DTYPE_F32);
    int nodes[2];
    CU_ASSERT_EQUAL(adds_left("model: {name: gpt2, layers: 3, width: 16, heads: 2, context: 8}\n",
                              tokens, nodes),
                    0);
    /* two sums and a gelu in each block */
    CU_ASSERT_EQUAL(nodes[0] - nodes[1], LAYERS_OF_GPT * 3);
    CU_ASSERT_EQUAL(adds_left("model: {name: gpt2, layers: 3, width: 16, heads: 2, context: 8, "
                              "dropout: 0.1}\n",
                              tokens, nodes),
                    LAYERS_OF_GPT * 2);
    adds_left("model: {name: lenet}\n", images, nodes);
    CU_ASSERT_EQUAL(nodes[0], nodes[1]);
    adds_left("model: {name: resnet50}\n", images, nodes);
    CU_ASSERT_EQUAL(nodes[0], nodes[1]);
}

#endif
