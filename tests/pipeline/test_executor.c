/* The plan and its executor against a plain interpreter that gives every tensor memory of its own: the same bits, on the
 * CPU backend and on the one that poisons memory before it is written. Whatever liveness, aliases and in-place
 * operations do, they must not be seen. */
#include "plain.h"

static const char *const models[] = {
    "model: {name: resnet18, stem: small}\n",
    "model: {name: resnet50, stem: imagenet}\n",
    "model: {name: mobilenet_v2, stem: imagenet}\n",
    "model: {name: lenet}\n",
    "model: {name: mlp, hidden: [20, 30]}\n",
    "model: {layers: [conv2d: {channels: 20, kernel: 3, pad: 1}, gelu: {name: a}, conv2d: "
    "{channels: 20, kernel: 1}, "
    "silu: {name: b}, add: {input: [a, b]}, relu6: {name: c}, avg_pool: {kernel: 2, name: d}, "
    "max_pool: {kernel: 2, name: c2, input: [c]}, "
    "concat: {name: e, input: [d, c2]}, global_pool, flatten, layer_norm, dropout: {p: 0.4}, "
    "dense: {width: 9}]}\n",
    "model: {layers: [relu: {name: a}, flatten: {name: f}, dense: {width: 12, name: h}, add: "
    "{name: s, input: [h, h]}, "
    "dense: {width: 9}]}\n",
};

enum { SIDE = 16 };

static void test_cpu(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        check_model(models[i], &backend_cpu, SIDE);
}

static void test_poison(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        check_model(models[i], &backend_poison, SIDE);
}

/* Liveness must pay: far less than the sum of all tensors. */
static void test_memory(void)
{
    Fixture f;
    if (!fixture_open(&f, models[0], &backend_cpu, SIDE)) return;
    size_t all = 0;
    for (int i = 0; i < f.graph->node_count; ++i)
        all += 2 * desc_bytes(f.graph->node[i].op->spec.y);
    CU_ASSERT(f.plan->activation_bytes < all * 7 / 10);
    fixture_close(&f);
}

TEST_MAIN("executor", {"same bits as a plain interpreter", test_cpu},
          {"poisoned memory", test_poison}, {"memory is shared", test_memory})
