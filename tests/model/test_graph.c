/* Graphs: models of the zoo compared with published counts, lists of layers, errors with their
 * position, fusion, required gradients. */
#include "fixture.h"
#include "tensor/op_list.h"

/* Checks properties of every graph: order, unique names, agreement of parameter table and nodes. */
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
    CU_ASSERT_EQUAL(g->loss_node, g->node_count - 1);
    const Node *loss = &g->node[g->loss_node];
    int last = NODE_INPUT;
    for (int k = 0; k < loss->spec.x_count; ++k) {
        if (loss->in[k] > last) last = loss->in[k];
        CU_ASSERT_TRUE(graph_is_output(g, loss->in[k]));
    }
    CU_ASSERT_EQUAL(g->logits_node, last);
}

/* Data with ids has `channels` numbers and FIELDS ids in a sample; their tables have no number of
 * rows and are not counted. Token models read `image` tokens. */
typedef enum ZooData { ZOO_IMAGES, ZOO_TOKENS, ZOO_IDS } ZooData;
typedef struct ZooRow {
    const char *config;
    int64_t channels, image, classes, params;
    /* 0: not in the table */
    double macs;
    ZooData data;
} ZooRow;

/* Criteo's */
enum { NUMBERS = 13, FIELDS = 26 };
/* weights and biases of dense layers with the given widths, one after the other */
#define FC2(a, b)          ((a) * (b) + (b))
#define FC3(a, b, c)       (FC2(a, b) + FC2(b, c))
#define FC5(a, b, c, d, e) (FC3(a, b, c) + FC3(c, d, e))

static const ZooRow zoo_rows[] = {
    {"model: {name: resnet18}", 3, 224, 1000, 11689512, 1814073344, ZOO_IMAGES},
    {"model: {name: resnet34}", 3, 224, 1000, 21797672, 3663761408, ZOO_IMAGES},
    {"model: {name: resnet50}", 3, 224, 1000, 25557032, 4089184256, ZOO_IMAGES},
    {"model: {name: resnet101}", 3, 224, 1000, 44549160, 7801405440, ZOO_IMAGES},
    {"model: {name: mobilenet_v2}", 3, 224, 1000, 3504872, 300774272, ZOO_IMAGES},
    {"model: {name: resnet18}", 3, 224, 10, 11181642, 0, ZOO_IMAGES},
    {"model: {name: resnet34}", 3, 224, 10, 21289802, 0, ZOO_IMAGES},
    {"model: {name: resnet50}", 3, 224, 10, 23528522, 0, ZOO_IMAGES},
    {"model: {name: resnet101}", 3, 224, 10, 42520650, 0, ZOO_IMAGES},
    {"model: {name: mobilenet_v2}", 3, 224, 10, 2236682, 0, ZOO_IMAGES},
    {"model: {name: resnet18, stem: small}", 3, 32, 10, 11173962, 0, ZOO_IMAGES},
    {"model: {name: resnet18, stem: small}", 1, 28, 10, 11172810, 0, ZOO_IMAGES},
    {"model: {name: lenet}", 1, 28, 10, 421642, 4241152, ZOO_IMAGES},
    {"model: {name: mlp}", 1, 28, 10, 669706, 668672, ZOO_IMAGES},
    {"model: {name: mlp, hidden: [32]}", 1, 28, 10, 25450, 25408, ZOO_IMAGES},
    {"model: {name: unet}\ntrain: {loss: mse}", 8, 64, 8, 1928680, 0, ZOO_IMAGES},
    {"model: {name: fieldresnet}\ntrain: {loss: mse}", 8, 64, 8, 597128, 0, ZOO_IMAGES},
    /* a group norm, and two 1x1 convolutions of 256 channels */
    {"model: {name: unet, attention: 8}\ntrain: {loss: mse}", 8, 64, 8,
     1928680 + 2 * 256 + FC3(256, 3 * 256, 0) + FC2(256, 256), 0, ZOO_IMAGES},
    /* two channels of the hour; a scale and a shift of each block's channels */
    {"model: {name: unet, film: 64}\ntrain: {loss: mse}\n"
     "data: {variables: {inputs: [a], extra: [hour], targets: [a]}}",
     8, 64, 8, 1928680 + FC3(2, 64, 64) + 65 * 2 * (480 + 224), 0, ZOO_IMAGES},
    {"model: {name: columns}\ntrain: {loss: mse}", 8, 64, 8, FC5(8, 128, 128, 128, 8), 0,
     ZOO_IMAGES},
    {"model: {name: columns, norm: layer}\ntrain: {loss: mse}", 8, 64, 8,
     FC5(8, 128, 128, 128, 8) + 3 * 2 * 128, 0, ZOO_IMAGES},
    /* the published 1.9 M and 4.5 GFLOP of pictures of 640 pixels, and 7.2 M and 16.5 GFLOP */
    {"model: {name: yolov5n}\ntrain: {loss: yolo}", 3, 640, 80, 1872157, 2234060800, ZOO_IMAGES},
    {"model: {name: yolov5n}\ntrain: {loss: yolo}", 3, 320, 20, 1790977, 0, ZOO_IMAGES},
    {"model: {name: yolov5n}\ntrain: {loss: yolo}", 3, 96, 10, 1777447, 0, ZOO_IMAGES},
    {"model: {name: yolov5n}\ntrain: {loss: yolo}", 3, 32, 1, 1765270, 0, ZOO_IMAGES},
    {"model: {name: yolov5s}\ntrain: {loss: yolo}", 3, 640, 80, 7235389, 8216780800, ZOO_IMAGES},
    {"model: {name: gpt2, size: 124m}", 1, 1024, 50257, 124439808, 0, ZOO_TOKENS},
    {"model: {name: llama, layers: 32, width: 4096, heads: 32, ffn: 11008}", 1, 16, 32000,
     6738415616, 0, ZOO_TOKENS},
    /* a vector of 10 for each field, next to the numbers; the linear layer of the numbers */
    {"model: {name: wide_deep}", NUMBERS, 0, 1,
     FC5(FIELDS * 10 + NUMBERS, 400, 400, 400, 1) + FC2(NUMBERS, 1), 0, ZOO_IDS},
    /* a vector of 9 for each field and each number */
    {"model: {name: deepfm}", NUMBERS, 0, 1,
     FC5((FIELDS + NUMBERS) * 9, 400, 400, 400, 1) + NUMBERS * 9 + FC2(NUMBERS, 1), 0, ZOO_IDS},
    /* vectors of 16, and the products of all pairs of 27 of them */
    {"model: {name: dlrm}", NUMBERS, 0, 1,
     FC5(NUMBERS, 512, 256, 64, 16) + FC3(27 * 26 / 2 + 16, 512, 256) + FC2(256, 1), 0, ZOO_IDS},
};

/* Owned by the caller. */
static Graph *zoo_graph(const ZooRow *row)
{
    Config *config = config_of(row->config);
    Graph *g = NULL;
    Desc input = row->data == ZOO_TOKENS ? tokens(2, row->image)
                 : row->data == ZOO_IDS ? desc_plain(shape_of(2, 2, row->channels, 1, 1), DTYPE_F32)
                                        : images(2, row->channels, row->image);
    GraphIds ids = {.fields = row->data == ZOO_IDS ? FIELDS : 0};
    if (config) CHECK_OK(graph_build_ids(&g, config, input, ids, row->classes));
    config_free(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    return g;
}

static void zoo_every_model(void)
{
    for (const ZooEntry *const *m = zoo; *m; ++m) {
        bool here = false;
        char *want = mem_format("{name: %s", (*m)->name);
        for (size_t i = 0; i < sizeof zoo_rows / sizeof zoo_rows[0]; ++i) {
            const char *at = strstr(zoo_rows[i].config, want);
            here = here || (at && strchr(",}", at[strlen(want)]));
        }
        CU_ASSERT_TRUE(here);
        if (!here) printf("  no case of %s\n", (*m)->name);
        mem_free(&want);
    }
}

static void zoo_counts(void)
{
    for (size_t i = 0; i < sizeof zoo_rows / sizeof zoo_rows[0]; ++i) {
        const ZooRow *row = &zoo_rows[i];
        Graph *g = zoo_graph(row);
        check_graph(g);
        CU_ASSERT_EQUAL(graph_param_elements(g), row->params);
        if (row->macs > 0) CU_ASSERT_EQUAL(graph_sample_macs(g), row->macs);
        CHECK_OK(graph_fuse(g, &backend_cpu));
        check_graph(g);
        CU_ASSERT_EQUAL(graph_param_elements(g), row->params);
        if (row->macs > 0) CU_ASSERT_EQUAL(graph_sample_macs(g), row->macs);
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
    g = graph_of("model: {name: mlp, hidden: [8, 8], activation: elu}", images(2, 1, 4), 10);
    const Node *elu = node_named(g, "elu2");
    CU_ASSERT(elu && elu->spec.act == ACT_ELU && elu->spec.act_factor == 1);
    CU_ASSERT_PTR_NULL(node_named(g, "relu1"));
    graph_free(&g);
}

/* The resolved configuration of a model sets all keys, also those that the model does not use. */
static void resolved(void)
{
    Config *config = config_of("model: {name: lenet}"), *again = NULL;
    Graph *g = NULL;
    char *text = config_text(config);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  hidden: [512, 512]\n"));
    CHECK_OK(config_parse(&again, "resolved.yaml", text, 0, NULL));
    CHECK_OK(graph_build(&g, again, images(2, 1, 28), 10));
    graph_free(&g);
    config_free(&again);
    config_free(&config);
    mem_free(&text);
}

static void zoo_errors(void)
{
    expect_error("model: {name: resnet19}", images(2, 3, 32), 10, "did you mean one of resnet18");
    expect_error("model: {name: xyzzy}", images(2, 3, 32), 10, "mobilenet_v2");
    expect_error("run: {seed: 1}", images(2, 3, 32), 10, "set model.name");
    expect_error("model:\n  name: lenet\n  stem: small\n", images(2, 1, 28), 10, "test.yaml:3:");
    expect_error("model: {name: lenet, activation: tanh}", images(2, 1, 28), 10,
                 "model.activation: lenet does not use it; it is for mlp");
    expect_error("model: {name: lenet, hidden: [64]}", images(2, 1, 28), 10,
                 "model.hidden: lenet does not use it; it is for mlp, ");
    expect_error("model: {hidden: [64], layers: [flatten, dense: {width: 10}]}", images(2, 1, 28),
                 10, "model.hidden: a list of layers does not use it");
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
    CU_ASSERT_EQUAL(graph_param_elements(g), 8 * 27 + 8 + 16 + 8 * 3 + 8 + 32 + 4 + 200 + 10);
    graph_free(&g);
    g = graph_of("model: {layers: [dense: {width: 3}]}\ntrain: {loss: mse}\n",
                 desc_plain(shape_of(2, 4, 5, 1, 1), DTYPE_F32), 3);
    CU_ASSERT_EQUAL(g->node[g->loss_node].spec.kind, OP_POINT_LOSS);
    graph_free(&g);
    g = graph_of("model: {layers: [dense: {width: 1}]}\ntrain: {loss: sigmoid}\n",
                 desc_plain(shape_of(2, 4, 5, 1, 1), DTYPE_F32), 1);
    CU_ASSERT_EQUAL(g->node[g->loss_node].spec.kind, OP_SIGMOID_LOSS);
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
    expect_error(
        "train: {loss: sigmoid}\nmodel:\n  layers:\n    - conv2d: {channels: 1, kernel: 1}\n", x, 1,
        "end with flatten and dense");
    expect_error("model:\n  layers:\n    - conv2d: {channels: 4, kernel: 1}\n", x, 3,
                 "gives 4 outputs, but the data has 3 classes");
    expect_error("train: {class_weights: [1, 2, 1]}\nmodel:\n  layers:\n    - dense: {width: 3}\n",
                 v, 3, "class_weights are for a label for each pixel");
    expect_error("train: {loss: focal, class_weights: [1, 2]}\nmodel:\n  layers:\n"
                 "    - conv2d: {channels: 3, kernel: 1}\n",
                 x, 3, "2 class_weights: each channel needs one");
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

/* Nodes are not fused if another node reads the value between them, or if the backend lacks the
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
    CU_ASSERT_EQUAL(g->logits_node, index_of(g, "twice"));
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
    CU_ASSERT_TRUE(g->node[g->loss_node].spec.need_dx[0]);
    graph_free(&g);
}

/* Fused only if the backend supports it; the following dense layer does its part of backward. */
static void fuse_gelu(void)
{
    static const char text[] = "model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 8}";
    BackendTable table = backend_cpu;
    for (int fuses = 0; fuses < 2; ++fuses) {
        Graph *g = graph_of(text, tokens(2, 8), 50);
        table.dense_gelu = fuses ? SUPPORTED : UNSUPPORTED;
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

/* Fused only if the backend supports it: the later input of an add takes in the other one, if no
 * other node reads it and it has no activation. */
static void fuse_residual(void)
{
    static const char text[] = "model:\n"
                               "  layers:\n"
                               "    - dense: {width: 4, name: a}\n"
                               "    - relu: {name: r}\n"
                               "    - dense: {width: 4, name: b}\n"
                               "    - add: {input: [b, r], name: s}\n" /* fused into b */
                               "    - relu: {name: sr}\n"              /* fused as well */
                               "    - dense: {width: 4, name: c}\n"
                               "    - add: {input: [sr, c], name: t}\n" /* fused into c */
                               "    - gelu: {name: g}\n"
                               "    - dense: {width: 4, name: d}\n"
                               "    - relu: {name: dr}\n"
                               "    - add: {input: [g, dr], name: u}\n" /* d has an activation */
                               "    - dense: {width: 4, name: e}\n"
                               "    - add: {input: [u, e], name: v}\n" /* two nodes read e */
                               "    - add: {input: [v, e], name: last}\n";
    BackendTable table = backend_cpu;
    Desc x = desc_plain(shape_of(2, 4, 8, 1, 1), DTYPE_F32);
    table.dense_gelu = SUPPORTED;
    for (int adds = 0; adds < 2; ++adds) {
        Graph *g = graph_of(text, x, 4);
        table.dense_residual = adds ? SUPPORTED : UNSUPPORTED;
        CHECK_OK(graph_fuse(g, &table));
        check_graph(g);
        CU_ASSERT_EQUAL(g->node_count, adds ? 10 : 12);
        const Node *b = node_named(g, "b"), *c = node_named(g, "c"), *gelu = node_named(g, "g");
        /* a gelu is neither fused behind a residual nor part of an add */
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
        CU_ASSERT_EQUAL(g->logits_node, index_of(g, "last"));
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

/* The summary names what is counted besides convolutions and dense layers, each once. */
static void print_notes(void)
{
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    Graph *g = graph_of("model: {layers: [pixels_to_tokens, dense: {width: 24}, attention: {heads: "
                        "2, full: true}, dense: {width: 24}, attention: {heads: 2}, flatten, "
                        "interaction: {width: 8}, dense: {width: 10}]}",
                        images(2, 4, 4), 10);
    graph_print(g, out);
    fclose(out);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "(convolutions and dense layers, attended pairs of tokens, dots of pairs)\n"));
    graph_free(&g);
}

TEST_MAIN("graph", {"zoo counts", zoo_counts}, {"zoo: every model", zoo_every_model},
          {"zoo names", zoo_names}, {"resolved", resolved}, {"zoo errors", zoo_errors},
          {"list", list}, {"list errors", list_errors}, {"fuse gelu", fuse_gelu},
          {"fuse residual", fuse_residual}, {"fuse lenet", fuse_lenet},
          {"fuse resnet, mobilenet", fuse_resnet}, {"not fused", fuse_not},
          {"wanted gradients", wanted_gradients}, {"print", print}, {"notes", print_notes})
