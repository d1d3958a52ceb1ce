/* Which parameters model.freeze freezes, and the depth groups of a graph for optim.layer_decay. */
#include "fixture.h"

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
    CU_ASSERT_EQUAL(graph_param_elements(graph) - graph_trained_elements(graph), still);
    graph_free(&graph);
}

/* Freezing by layer, by parameter and by pattern; norms in three ways; tied parameters together.
 * Below the lowest trained layer there are no gradients. */
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
        /* the statistics of a norm that is only partly frozen move */
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
    const char *gpt =
        "model: {name: gpt2, layers: 1, width: 8, heads: 2, context: 4, freeze: [%s]}";
    char *head = mem_format(gpt, "lm_head"), *table = mem_format(gpt, "wte");
    const char *const both[] = {"wte.weight", "lm_head.weight", NULL};
    check_frozen(head, tokens(2, 4), both, 80);
    check_frozen(table, tokens(2, 4), both, 80);
    mem_free(&head);
    mem_free(&table);
}

static void check_depth_groups(const char *text, Desc input, int count, const char *const *name,
                               const int *want)
{
    Graph *graph = graph_of(text, input, 10);
    int *depth_group = mem_new((size_t)graph->param_count * sizeof *depth_group);
    CU_ASSERT_EQUAL(graph_depth_groups(graph, depth_group), count);
    for (int i = 0; name[i]; ++i) {
        const Param *p = param_named(graph, name[i]);
        CU_ASSERT_PTR_NOT_NULL(p);
        if (p) CU_ASSERT_EQUAL(depth_group[p - graph->param], want[i]);
        if (p && depth_group[p - graph->param] != want[i])
            printf("  %s: %d\n", name[i], depth_group[p - graph->param]);
    }
    mem_free(&depth_group);
    graph_free(&graph);
}

/* Stem, each block, head; ResNet-50 has 18, as timm counts them. */
static void depth_groups(void)
{
    check_depth_groups("model: {name: resnet50}", images(1, 3, 64), 18,
                       (const char *const[]){"conv1.weight", "bn1.bias", "layer1.0.conv1.weight",
                                             "layer1.0.downsample.1.bias", "layer1.1.conv1.weight",
                                             "layer4.2.bn3.weight", "fc.weight", "fc.bias", NULL},
                       (const int[]){0, 0, 1, 1, 2, 16, 17, 17});
    check_depth_groups("model: {name: mobilenet_v2}", images(1, 3, 64), 20,
                       (const char *const[]){"features.0.0.weight", "features.1.conv.0.0.weight",
                                             "features.18.0.weight", "classifier.1.weight", NULL},
                       (const int[]){0, 1, 18, 19});
    check_depth_groups(
        "model: {name: gpt2, layers: 3, width: 8, heads: 2, context: 4}", tokens(2, 4), 5,
        (const char *const[]){"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.2.mlp.c_fc.bias",
                              "ln_f.weight", "lm_head.weight", NULL},
        (const int[]){0, 0, 1, 3, 4, 0});
    check_depth_groups(
        "model: {name: llama, layers: 2, width: 8, heads: 2, context: 4}", tokens(2, 4), 4,
        (const char *const[]){"embed_tokens.weight", "norm.weight", "lm_head.weight", NULL},
        (const int[]){0, 3, 3});
    check_depth_groups(
        "model: {name: lenet}", images(1, 1, 28), 4,
        (const char *const[]){"conv1.weight", "conv2.bias", "fc1.weight", "fc2.weight", NULL},
        (const int[]){0, 1, 2, 3});
}

TEST_MAIN("frozen", {"frozen", frozen}, {"depth_groups", depth_groups})
