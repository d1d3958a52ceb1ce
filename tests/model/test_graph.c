/* Graphs: the zoo against published counts, lists of layers, errors with their place, fusion, which
 * gradients are wanted. */
#include "model.h"
#include "tensor/op_list.h"

#include "harness.h"

static Config *config_of(const char *text)
{
    Config *config = NULL;
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    CHECK_OK(config_parse(&config, "test.yaml", text, 0, NULL));
    return config;
}

static Desc images(int64_t n, int64_t c, int64_t size)
{
    return desc_plain(shape_of(4, n, c, size, size), DTYPE_F32);
}

static Graph *graph_of(const char *text, Desc input, int64_t classes)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_OK(graph_build(&graph, config, input, classes));
    config_free(&config);
    return graph;
}

static void expect_error(const char *text, Desc input, int64_t classes, const char *message)
{
    Config *config = config_of(text);
    Graph *graph = NULL;
    if (config) CHECK_FAILS(graph_build(&graph, config, input, classes), ERR_CONFIG, message);
    CU_ASSERT_PTR_NULL(graph);
    config_free(&config);
}

static const Node *node_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->node[i].name, name) == 0) return &graph->node[i];
    return NULL;
}

static int index_of(const Graph *graph, const char *name)
{
    const Node *node = node_named(graph, name);
    return node ? (int)(node - graph->node) : -2;
}

static const Param *param_named(const Graph *graph, const char *name)
{
    for (int i = 0; i < graph->param_count; ++i)
        if (strcmp(graph->param[i].name, name) == 0) return &graph->param[i];
    return NULL;
}

/* What must hold of every graph: order, unique names, the parameter table and the nodes agree. */
static void check_graph(const Graph *g)
{
    for (int i = 0; i < g->node_count; ++i) {
        const Node *node = &g->node[i];
        for (int k = 0; k < node->spec.x_count; ++k) {
            CU_ASSERT(node->in[k] >= NODE_INPUT && node->in[k] < i);
            Desc x = node->in[k] == NODE_INPUT ? g->input : g->node[node->in[k]].spec.y;
            CU_ASSERT(shape_equal(node->spec.x[k].shape, x.shape));
        }
        CU_ASSERT_EQUAL(index_of(g, node->name), i);
        for (int k = 0; k < node->spec.w_count; ++k) {
            const Param *p = &g->param[node->param[k]];
            CU_ASSERT(p->node == i && p->slot == k);
        }
    }
    CU_ASSERT_EQUAL(g->loss, g->node_count - 1);
    CU_ASSERT_EQUAL(g->node[g->loss].in[0], g->logits);
}

typedef struct ZooRow {
    const char *config;
    int64_t channels, image, classes, params;
    /* 0: not in the table */
    double macs;
} ZooRow;

static const ZooRow zoo_rows[] = {
    {"model: {name: resnet18}", 3, 224, 1000, 11689512, 1814073344},
    {"model: {name: resnet34}", 3, 224, 1000, 21797672, 3663761408},
    {"model: {name: resnet50}", 3, 224, 1000, 25557032, 4089184256},
    {"model: {name: resnet101}", 3, 224, 1000, 44549160, 7801405440},
    {"model: {name: mobilenet_v2}", 3, 224, 1000, 3504872, 300774272},
    {"model: {name: resnet18}", 3, 224, 10, 11181642, 0},
    {"model: {name: resnet34}", 3, 224, 10, 21289802, 0},
    {"model: {name: resnet50}", 3, 224, 10, 23528522, 0},
    {"model: {name: resnet101}", 3, 224, 10, 42520650, 0},
    {"model: {name: mobilenet_v2}", 3, 224, 10, 2236682, 0},
    {"model: {name: resnet18, stem: small}", 3, 32, 10, 11173962, 0},
    {"model: {name: resnet18, stem: small}", 1, 28, 10, 11172810, 0},
    {"model: {name: lenet}", 1, 28, 10, 421642, 4241152},
    {"model: {name: mlp}", 1, 28, 10, 669706, 668672},
    {"model: {name: mlp, hidden: [32]}", 1, 28, 10, 25450, 25408},
};

static void zoo_counts(void)
{
    for (size_t i = 0; i < sizeof zoo_rows / sizeof zoo_rows[0]; ++i) {
        const ZooRow *row = &zoo_rows[i];
        Graph *g = graph_of(row->config, images(2, row->channels, row->image), row->classes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(g);
        check_graph(g);
        CU_ASSERT_EQUAL(graph_param_count(g), row->params);
        if (row->macs > 0) CU_ASSERT_EQUAL(graph_forward_macs(g), row->macs);
        CHECK_OK(graph_fuse(g, &backend_cpu));
        check_graph(g);
        CU_ASSERT_EQUAL(graph_param_count(g), row->params);
        if (row->macs > 0) CU_ASSERT_EQUAL(graph_forward_macs(g), row->macs);
        graph_free(&g);
        CU_ASSERT_PTR_NULL(g);
    }
}

static void zoo_names(void)
{
    Graph *g = graph_of("model: {name: resnet50}", images(2, 3, 224), 1000);
    const Param *p = param_named(g, "layer1.0.conv2.weight");
    CU_ASSERT(p && shape_equal(p->shape, shape_of(4, 64, 64, 3, 3)) && p->info.decay);
    CU_ASSERT(p && p->info.init == INIT_HE_NORMAL);
    CU_ASSERT_PTR_NOT_NULL(param_named(g, "layer4.2.bn3.running_var"));
    CU_ASSERT_PTR_NOT_NULL(param_named(g, "layer3.0.downsample.0.weight"));
    CU_ASSERT_PTR_NULL(param_named(g, "layer3.1.downsample.0.weight"));
    p = param_named(g, "fc.bias");
    CU_ASSERT(p && p->shape.dim[0] == 1000 && !p->info.decay && p->info.init == INIT_UNIFORM);
    CU_ASSERT_EQUAL(p ? p->info.scale : 0, 2048);
    graph_free(&g);
    g = graph_of("model: {name: mobilenet_v2}", images(2, 3, 224), 10);
    p = param_named(g, "features.2.conv.1.0.weight");
    CU_ASSERT(p && shape_equal(p->shape, shape_of(4, 96, 1, 3, 3)));
    CU_ASSERT_PTR_NOT_NULL(param_named(g, "features.1.conv.2.weight"));
    CU_ASSERT_PTR_NOT_NULL(param_named(g, "features.18.1.running_mean"));
    p = param_named(g, "classifier.1.weight");
    CU_ASSERT(p && p->info.init == INIT_NORMAL && p->info.scale == 0.01f);
    CU_ASSERT_EQUAL(node_named(g, "classifier.0")->spec.drop, 0.2f);
    graph_free(&g);
    g = graph_of("model: {name: mobilenet_v2, dropout: 0}", images(2, 3, 224), 10);
    CU_ASSERT_PTR_NULL(node_named(g, "classifier.0"));
    graph_free(&g);
    g = graph_of("model: {name: lenet, dropout: 0.3}", images(2, 1, 28), 10);
    CU_ASSERT_EQUAL(node_named(g, "dropout")->spec.drop, 0.3f);
    graph_free(&g);
}

static void zoo_errors(void)
{
    expect_error("model: {name: resnet19}", images(2, 3, 32), 10, "did you mean 'resnet1");
    expect_error("model: {name: transformer}", images(2, 3, 32), 10, "mobilenet_v2");
    expect_error("run: {seed: 1}", images(2, 3, 32), 10, "set model.name");
    expect_error("model:\n  name: lenet\n  stem: small\n", images(2, 1, 28), 10, "test.yaml:3:");
    expect_error("model: {name: lenet}", images(2, 1, 28), 0, "set model.classes");
    expect_error("model: {name: lenet}", images(2, 1, 3), 10, "too small");
    expect_error("model: {name: lenet}", desc_plain(shape_of(2, 2, 20, 1, 1), DTYPE_F32), 10,
                 "layer conv1: conv2d got 2x20, needs images");
    expect_error("model: {name: mlp}", desc_plain(shape_of(2, 2, 20, 1, 1), DTYPE_I32), 10,
                 "embedding");
}

static const char *const list_text =
    "model:\n"
    "  layers:\n"
    "    - conv2d: {channels: 8, kernel: [3, 3], pad: same, name: c1}\n"
    "    - batch_norm\n"
    "    - relu: {name: left}\n"
    "    - conv2d: {channels: 8, kernel: 1, input: data, name: right}\n"
    "    - add: {input: [left, right]}\n"
    "    - conv2d: {channels: 4, kernel: 1}\n"
    "    - concat: {input: [add1, conv2d3, right]}\n"
    "    - global_pool\n"
    "    - flatten\n"
    "    - dropout: {p: 0.1}\n"
    "    - dense: {width: 10}\n"
    "train: {label_smoothing: 0.1}\n";

static void list(void)
{
    Graph *g = graph_of(list_text, images(4, 3, 8), 10);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    check_graph(g);
    CU_ASSERT_EQUAL(g->node_count, 12);
    CU_ASSERT_EQUAL(node_named(g, "right")->in[0], NODE_INPUT);
    CU_ASSERT_EQUAL(node_named(g, "concat1")->spec.y.shape.dim[1], 20);
    CU_ASSERT_EQUAL(node_named(g, "concat1")->in[1], index_of(g, "conv2d3"));
    CU_ASSERT_EQUAL(node_named(g, "loss")->spec.smoothing, 0.1f);
    CU_ASSERT_EQUAL(graph_param_count(g), 8 * 27 + 8 + 16 + 8 * 3 + 8 + 32 + 4 + 200 + 10);
    graph_free(&g);
    g = graph_of("model: {layers: [dense: {width: 3}]}\ntrain: {loss: mse}\n",
                 desc_plain(shape_of(2, 4, 5, 1, 1), DTYPE_F32), 3);
    CU_ASSERT_EQUAL(g->node[g->loss].spec.kind, OP_MSE_LOSS);
    graph_free(&g);
    g = graph_of("model: {layers: [dense: {width: 1}]}\ntrain: {loss: sigmoid}\n",
                 desc_plain(shape_of(2, 4, 5, 1, 1), DTYPE_F32), 1);
    CU_ASSERT_EQUAL(g->node[g->loss].spec.kind, OP_SIGMOID_LOSS);
    graph_free(&g);
}

static void list_errors(void)
{
    const Desc x = images(4, 1, 8);
    const Desc v = desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32);
    expect_error("model:\n  layers:\n    - transformer\n", v, 3,
                 "there are dense, conv2d, batch_norm");
    expect_error("model:\n  layers:\n    - dens: {width: 3}\n", v, 3,
                 "test.yaml:3:7: there is no layer 'dens'; did you mean 'dense'?");
    expect_error("model:\n  layers:\n    - dense: {widht: 3}\n", v, 3, "did you mean 'width'");
    expect_error("model:\n  layers:\n    - relu\n    - dense: {width: 3x}\n", v, 3,
                 "test.yaml:4:22: width: '3x'");
    expect_error("model:\n  layers:\n    - dense: {width: 10}\n", x, 10,
                 "test.yaml:3:7: dense got 4x1x8x8");
    expect_error("model:\n  layers:\n    - dense: {width: 4}\n", v, 3,
                 "gives 4 outputs, but the data has 3 classes");
    expect_error("train: {loss: sigmoid}\nmodel:\n  layers:\n    - dense: {width: 2}\n", v, 1,
                 "the last layer gives 2 outputs, train.loss sigmoid needs 1");
    expect_error("model:\n  layers:\n    - fm: {width: 3}\n", v, 3,
                 "fm got 4x8, which is not 1 or more vectors of 3 side by side");
    expect_error("model:\n  layers:\n    - interaction: {width: 8}\n", v, 3,
                 "interaction got 4x8, which is not 2 or more vectors of 8");
    expect_error("model:\n  layers:\n    - conv2d: {channels: 3, kernel: 1}\n", x, 3,
                 "end with flatten and dense");
    expect_error("model:\n  layers:\n    - softmax_loss\n", v, 3, "train.loss");
    expect_error("model:\n  layers:\n    - relu: {name: a}\n    - relu: {name: a}\n", v, 3,
                 "test.yaml:4:20: two layers have the name 'a'");
    expect_error("model:\n  layers:\n    - relu: {name: loss}\n", v, 3, "cannot name a layer");
    expect_error("model:\n  layers:\n    - relu: {name: a/b}\n", v, 3, "cannot name a layer");
    expect_error("model:\n  layers:\n    - relu: {name: left}\n    - relu: {input: lefd}\n", v, 3,
                 "did you mean 'left'");
    expect_error("model:\n  layers:\n    - relu\n    - add\n", v, 3, "add needs 2 inputs, got 1");
    expect_error("model:\n  layers:\n    - relu: {input: [data, data]}\n", v, 3,
                 "relu needs 1 input, got 2");
    expect_error("model:\n  layers:\n    - concat\n", v, 3, "concat needs 2 to 8 inputs");
    expect_error("model:\n  layers:\n    - relu\n    - dense: {width: 3, input: data}\n", v, 3,
                 "test.yaml:3:7: no layer reads the output of relu1");
    expect_error(
        "model:\n  layers:\n    - dense: {width: 2147483647}\n    - dense: {width: 2147483647}\n",
        v, 3, "is too large");
}

static void fuse_lenet(void)
{
    Graph *g = graph_of("model: {name: lenet}", images(2, 1, 28), 10);
    CHECK_OK(graph_fuse(g, &backend_cpu));
    check_graph(g);
    /* conv pool conv pool flatten fc fc loss */
    CU_ASSERT_EQUAL(g->node_count, 8);
    CU_ASSERT_EQUAL(node_named(g, "conv1")->spec.act, ACT_NONE);
    CU_ASSERT_EQUAL(node_named(g, "pool1")->spec.act, ACT_RELU);
    CU_ASSERT_EQUAL(node_named(g, "pool1")->in[0], index_of(g, "conv1"));
    CU_ASSERT_EQUAL(node_named(g, "fc1")->spec.act, ACT_RELU);
    CU_ASSERT_EQUAL(node_named(g, "fc2")->spec.act, ACT_NONE);
    graph_free(&g);
}

static void fuse_resnet(void)
{
    Graph *g = graph_of("model: {name: resnet18}", images(2, 3, 64), 10);
    CHECK_OK(graph_fuse(g, &backend_cpu));
    check_graph(g);
    /* 20 convolutions, 20 norms, maxpool, avgpool, flatten, fc, loss */
    CU_ASSERT_EQUAL(g->node_count, 45);
    const Node *n = node_named(g, "layer1.0.bn2");
    CU_ASSERT(n->spec.residual && n->spec.act == ACT_RELU && n->spec.x_count == 2);
    CU_ASSERT_EQUAL(n->in[1], index_of(g, "maxpool"));
    n = node_named(g, "layer2.0.downsample.1");
    CU_ASSERT(n->spec.residual && n->spec.act == ACT_RELU);
    CU_ASSERT_EQUAL(n->in[1], index_of(g, "layer2.0.bn2"));
    n = node_named(g, "layer2.0.bn2");
    CU_ASSERT(!n->spec.residual && n->spec.act == ACT_NONE);
    CU_ASSERT_EQUAL(node_named(g, "layer2.1.conv1")->in[0], index_of(g, "layer2.0.downsample.1"));
    CU_ASSERT_EQUAL(node_named(g, "maxpool")->spec.act, ACT_RELU);
    graph_free(&g);
    g = graph_of("model: {name: mobilenet_v2}", images(2, 3, 64), 10);
    CHECK_OK(graph_fuse(g, &backend_cpu));
    n = node_named(g, "features.3.conv.3");
    CU_ASSERT(n->spec.residual && n->spec.act == ACT_NONE);
    CU_ASSERT_EQUAL(n->in[1], index_of(g, "features.2.conv.3"));
    CU_ASSERT_EQUAL(node_named(g, "features.0.1")->spec.act, ACT_RELU6);
    graph_free(&g);
}

/* Nothing is fused where somebody else reads the number in between, or the backend has no such
 * pair. */
static void fuse_not(void)
{
    Graph *g = graph_of("model:\n"
                        "  layers:\n"
                        "    - dense: {width: 4, name: a}\n"
                        "    - relu: {name: r}\n"
                        "    - add: {input: [a, r], name: s}\n"
                        "    - gelu\n"
                        "    - dense: {width: 4, name: b}\n"
                        "    - relu6: {name: r6}\n"
                        "    - add: {input: [r6, r6], name: twice}\n"
                        "    - relu: {name: last}\n",
                        desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32), 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CHECK_OK(graph_fuse(g, &backend_cpu));
    check_graph(g);
    CU_ASSERT_EQUAL(g->node_count, 8);
    CU_ASSERT_EQUAL(node_named(g, "a")->spec.act, ACT_NONE);
    CU_ASSERT_EQUAL(node_named(g, "b")->spec.act, ACT_NONE);
    CU_ASSERT_EQUAL(node_named(g, "twice")->spec.act, ACT_RELU);
    CU_ASSERT_EQUAL(g->logits, index_of(g, "twice"));
    graph_free(&g);
}

static void wanted_gradients(void)
{
    Graph *g = graph_of("model:\n"
                        "  layers:\n"
                        "    - relu: {name: before}\n"
                        "    - dense: {width: 8, name: a}\n"
                        "    - add: {input: [before, a], name: s}\n"
                        "    - dense: {width: 3}\n",
                        desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32), 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_FALSE(node_named(g, "before")->spec.need_dx[0]);
    CU_ASSERT_FALSE(node_named(g, "a")->spec.need_dx[0]);
    CU_ASSERT_FALSE(node_named(g, "s")->spec.need_dx[0]);
    CU_ASSERT_TRUE(node_named(g, "s")->spec.need_dx[1]);
    CU_ASSERT_TRUE(g->node[g->loss].spec.need_dx[0]);
    graph_free(&g);
}

/* Where the backend has it; the dense behind it does its part of backward. */
static void fuse_gelu(void)
{
    static const char text[] = "model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 8}";
    BackendTable table = backend_cpu;
    Desc tokens = desc_plain(shape_of(2, 2, 8, 1, 1), DTYPE_I32);
    for (int fuses = 0; fuses < 2; ++fuses) {
        Graph *g = graph_of(text, tokens, 50);
        table.fuses_gelu = fuses;
        CHECK_OK(graph_fuse(g, &table));
        check_graph(g);
        const Node *first = node_named(g, "h.0.mlp.c_fc"),
                   *second = node_named(g, "h.0.mlp.c_proj");
        CU_ASSERT_PTR_NOT_NULL_FATAL(first);
        CU_ASSERT_PTR_NOT_NULL_FATAL(second);
        CU_ASSERT_EQUAL(first->spec.act, fuses ? ACT_GELU : ACT_NONE);
        CU_ASSERT_EQUAL(first->spec.act_passed, fuses);
        CU_ASSERT_EQUAL(second->spec.x_act, fuses ? ACT_GELU : ACT_NONE);
        CU_ASSERT_EQUAL(second - first, fuses ? 1 : 2);
        graph_free(&g);
    }
}

/* Where the backend has it: the later of an add's inputs takes the other one, if nobody else reads
 * it and it has no activation. */
static void fuse_residual(void)
{
    static const char text[] = "model:\n"
                               "  layers:\n"
                               "    - dense: {width: 4, name: a}\n"
                               "    - relu: {name: r}\n"
                               "    - dense: {width: 4, name: b}\n"
                               "    - add: {input: [b, r], name: s}\n" /* goes into b */
                               "    - relu: {name: sr}\n"              /* and so does this */
                               "    - dense: {width: 4, name: c}\n"
                               "    - add: {input: [sr, c], name: t}\n" /* goes into c */
                               "    - gelu: {name: g}\n"
                               "    - dense: {width: 4, name: d}\n"
                               "    - relu: {name: dr}\n"
                               "    - add: {input: [g, dr], name: u}\n" /* d has an activation */
                               "    - dense: {width: 4, name: e}\n"
                               "    - add: {input: [u, e], name: v}\n" /* two read e */
                               "    - add: {input: [v, e], name: last}\n";
    BackendTable table = backend_cpu;
    Desc x = desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32);
    table.fuses_gelu = true;
    for (int adds = 0; adds < 2; ++adds) {
        Graph *g = graph_of(text, x, 4);
        table.adds_to_dense = adds;
        CHECK_OK(graph_fuse(g, &table));
        check_graph(g);
        CU_ASSERT_EQUAL(g->node_count, adds ? 10 : 12);
        const Node *b = node_named(g, "b"), *c = node_named(g, "c"), *gelu = node_named(g, "g");
        /* never behind a residual, nor is it part of an add */
        CU_ASSERT_PTR_NOT_NULL_FATAL(gelu);
        CU_ASSERT_EQUAL(b->spec.residual, adds);
        CU_ASSERT_EQUAL(b->spec.act, adds ? ACT_RELU : ACT_NONE);
        CU_ASSERT_EQUAL(c->spec.residual, adds);
        CU_ASSERT_EQUAL(c->spec.x_count, 1 + adds);
        if (adds) CU_ASSERT_EQUAL(b->in[1], index_of(g, "a"));
        if (adds) CU_ASSERT_EQUAL(c->in[1], index_of(g, "b"));
        if (adds) CU_ASSERT_EQUAL(gelu->in[0], index_of(g, "c"));
        CU_ASSERT_FALSE(node_named(g, "d")->spec.residual || node_named(g, "e")->spec.residual);
        CU_ASSERT_EQUAL(node_named(g, "u")->spec.x_count, 2);
        CU_ASSERT_EQUAL(g->logits, index_of(g, "last"));
        graph_free(&g);
    }
}

static void print(void)
{
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    Graph *g = graph_of("model: {name: lenet}", images(2, 1, 28), 10);
    CHECK_OK(graph_fuse(g, &backend_cpu));
    graph_print(g, out);
    fclose(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "max_pool+relu"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "421,642 trained parameters; 8.48 MFLOP"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "2x64x14x14"));
    graph_free(&g);
}

static void check_frozen(const char *text, Desc input, const char *const *names, int64_t still)
{
    Graph *graph = graph_of(text, input, 10);
    int count = 0;
    for (int i = 0; i < graph->param_count; ++i) count += graph->param[i].frozen;
    for (int i = 0; names[i]; ++i) {
        const Param *p = param_named(graph, names[i]);
        CU_ASSERT(p && p->frozen);
        if (!p || !p->frozen) printf("  %s: %s is not frozen\n", text, names[i]);
        --count;
    }
    CU_ASSERT_EQUAL(count, 0);
    CU_ASSERT_EQUAL(graph_param_count(graph) - graph_trained_count(graph), still);
    graph_free(&graph);
}

/* By layer, by parameter, by pattern; norms of three kinds; tied ones together; no gradient comes
 * to what lies below all that is trained. */
static void frozen(void)
{
    const char *list = "conv2d: {name: a, channels: 4, kernel: 3}, batch_norm: {name: b}, relu,"
                       " flatten, dense: {name: c, width: 10}";
    const Desc input = images(2, 1, 6);
    const struct {
        const char *freeze;
        const char *names[8];
        int64_t still;
    } cases[] = {
        {"[a]", {"a.weight", "a.bias"}, 40},
        {"['?.bias']", {"a.bias", "b.bias", "c.bias"}, 18},
        {"[b]", {"b.weight", "b.bias", "b.running_mean", "b.running_var"}, 8},
        {"[b], freeze_norm: affine", {"b.weight", "b.bias"}, 8},
        {"[a, b], freeze_norm: none", {"a.weight", "a.bias"}, 40},
        /* of a norm that is frozen by half the statistics move */
        {"[b.weight]", {"b.weight"}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char *text = mem_format("model: {layers: [%s], freeze: %s}", list, cases[i].freeze);
        check_frozen(text, input, cases[i].names, cases[i].still);
        mem_free(&text);
    }
    char *text = mem_format("model: {layers: [%s], freeze: [a, b]}", list);
    Graph *graph = graph_of(text, input, 10);
    CU_ASSERT(node_named(graph, "b")->spec.fixed_stats && node_named(graph, "b")->spec.frozen);
    CU_ASSERT(!node_named(graph, "b")->spec.need_dx[0] && !node_named(graph, "c")->spec.need_dx[0]);
    graph_free(&graph);
    mem_free(&text);
    text = mem_format("model: {layers: [%s], freeze: [a, x.*]}", list);
    expect_error(text, input, 10, "'x.*' matches no layer");
    mem_free(&text);
    const Desc tokens = desc_plain(shape_of(2, 2, 4, 1, 1), DTYPE_I32);
    const char *gpt =
        "model: {name: gpt2, layers: 1, width: 8, heads: 2, context: 4, freeze: [%s]}";
    char *head = mem_format(gpt, "lm_head"), *table = mem_format(gpt, "wte");
    const char *const both[] = {"wte.weight", "lm_head.weight", NULL};
    check_frozen(head, tokens, both, 80);
    check_frozen(table, tokens, both, 80);
    mem_free(&head);
    mem_free(&table);
}

static void check_tiers(const char *text, Desc input, int count, const char *const *name,
                        const int *want)
{
    Graph *graph = graph_of(text, input, 10);
    int *tier = mem_new((size_t)graph->param_count * sizeof *tier);
    CU_ASSERT_EQUAL(graph_tiers(graph, tier), count);
    for (int i = 0; name[i]; ++i) {
        const Param *p = param_named(graph, name[i]);
        CU_ASSERT_PTR_NOT_NULL(p);
        if (p) CU_ASSERT_EQUAL(tier[p - graph->param], want[i]);
        if (p && tier[p - graph->param] != want[i])
            printf("  %s: %d\n", name[i], tier[p - graph->param]);
    }
    mem_free(&tier);
    graph_free(&graph);
}

/* Stem, each block, head; as timm counts ResNet-50's: 18. */
static void tiers(void)
{
    const Desc tokens = desc_plain(shape_of(2, 2, 4, 1, 1), DTYPE_I32);
    check_tiers("model: {name: resnet50}", images(1, 3, 64), 18,
                (const char *const[]){"conv1.weight", "bn1.bias", "layer1.0.conv1.weight",
                                      "layer1.0.downsample.1.bias", "layer1.1.conv1.weight",
                                      "layer4.2.bn3.weight", "fc.weight", "fc.bias", NULL},
                (const int[]){0, 0, 1, 1, 2, 16, 17, 17});
    check_tiers("model: {name: mobilenet_v2}", images(1, 3, 64), 20,
                (const char *const[]){"features.0.0.weight", "features.1.conv.0.0.weight",
                                      "features.18.0.weight", "classifier.1.weight", NULL},
                (const int[]){0, 1, 18, 19});
    check_tiers("model: {name: gpt2, layers: 3, width: 8, heads: 2, context: 4}", tokens, 5,
                (const char *const[]){"wte.weight", "wpe.weight", "h.0.ln_1.weight",
                                      "h.2.mlp.c_fc.bias", "ln_f.weight", "lm_head.weight", NULL},
                (const int[]){0, 0, 1, 3, 4, 0});
    check_tiers("model: {name: llama, layers: 2, width: 8, heads: 2, context: 4}", tokens, 4,
                (const char *const[]){"embed_tokens.weight", "norm.weight", "lm_head.weight", NULL},
                (const int[]){0, 3, 3});
    check_tiers(
        "model: {name: lenet}", images(1, 1, 28), 4,
        (const char *const[]){"conv1.weight", "conv2.bias", "fc1.weight", "fc2.weight", NULL},
        (const int[]){0, 1, 2, 3});
}

TEST_MAIN("graph", {"zoo counts", zoo_counts}, {"zoo names", zoo_names}, {"zoo errors", zoo_errors},
          {"list", list}, {"list errors", list_errors}, {"fuse gelu", fuse_gelu},
          {"fuse residual", fuse_residual}, {"fuse lenet", fuse_lenet},
          {"fuse resnet, mobilenet", fuse_resnet}, {"not fused", fuse_not},
          {"wanted gradients", wanted_gradients}, {"frozen", frozen}, {"tiers", tiers},
          {"print", print})
