/* Detectors: first values of their parameters, losses of several outputs, a silu that is fused into
 * a batch norm. */
#include "fixture.h"

#include <math.h>

/* First values of a detector: those of convolutions are fp16 numbers; the biases of its head are
 * uniform around constants by channel. */
static void first_values(void)
{
    enum { CLASSES = 80, EACH = 5 + CLASSES };
    static const double objects[] = {-6.6846, -5.2983, -3.9120}, class_start = -4.8803;
    static const int channels[] = {64, 128, 256};
    Graph *g = graph_of("model: {name: yolov5n}\ntrain: {loss: yolo}", images(1, 3, 64), CLASSES);
    for (int l = 0; l < 3; ++l) {
        char name[32];
        snprintf(name, sizeof name, "model.24.m.%d.bias", l);
        const Param *p = param_named(g, name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        float value[3 * EACH];
        const double reach = 1 / sqrt(channels[l]) + 4e-3;
        double sum = 0;
        CU_ASSERT_EQUAL_FATAL(shape_count(p->shape), 3 * EACH);
        param_init(g, (int)(p - g->param), 1, value);
        for (int i = 0; i < 3 * EACH; ++i) {
            const int channel = i % EACH;
            const double start = channel < 4 ? 0 : channel == 4 ? objects[l] : class_start;
            CU_ASSERT(fabs((double)value[i] - start) <= reach);
            CU_ASSERT_EQUAL(value[i], f16_value(f16_of(value[i])));
            sum += (double)value[i] - start;
        }
        CU_ASSERT(fabs(sum / (3 * EACH)) < 0.15 * reach);
    }
    const Param *p = param_named(g, "model.6.m.1.cv2.conv.weight");
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    float *value = mem_new((size_t)shape_count(p->shape) * sizeof *value);
    param_init(g, (int)(p - g->param), 1, value);
    double most = 0;
    for (int64_t i = 0; i < shape_count(p->shape); ++i) {
        CU_ASSERT(value[i] == f16_value(f16_of(value[i])));
        most = fmax(most, fabs((double)value[i]));
    }
    /* 1 / sqrt(64 channels of 3 x 3) */
    CU_ASSERT(most > 0.041 && most < 0.0418);
    const Node *norm = node_named(g, "model.6.m.1.cv2.bn");
    CU_ASSERT(norm && norm->spec.eps == 1e-3f && norm->spec.momentum == 0.03f);
    mem_free(&value);
    graph_free(&g);
}

/* A loss of several outputs: named in a list, refused where they do not fit. */
static void outputs(void)
{
#define TWO                                                                                        \
    "model: {outputs: [a, b], anchors: [8, 8, 20, 20, 16, 30, 30, 16], layers: [conv2d: "          \
    "{channels: 8, kernel: 3, stride: 2, pad: 1, name: c}, detect: {channels: 14, classes: 2, "    \
    "cell: 2, name: a}, conv2d: {channels: 4, kernel: 3, stride: 2, pad: 1, input: c}, detect: "   \
    "{channels: 14, classes: 2, cell: 4, name: b}]}\n"
    Graph *g = graph_of(TWO "train: {loss: yolo}", images(2, 3, 32), 2);
    const Node *loss = &g->node[g->loss_node];
    CU_ASSERT(loss->spec.x_count == 2 && loss->spec.image[0] == 32 && loss->spec.image[1] == 32);
    CU_ASSERT_STRING_EQUAL(g->node[loss->in[0]].name, "a");
    CU_ASSERT_STRING_EQUAL(g->node[loss->in[1]].name, "b");
    CU_ASSERT(loss->spec.anchors.count == 4 && loss->spec.anchors.side[3][1] == 16);
    graph_free(&g);
    expect_error(TWO, images(2, 3, 32), 2, "softmax reads one output, and the model has 2");
    expect_error(TWO "train: {loss: yolo}", images(2, 3, 32), 3,
                 "layer a gives 2x14x16x16, train.loss yolo needs a grid (N,16,H,W)");
    expect_error("model: {name: yolov5n}\ntrain: {loss: yolo}", images(2, 3, 80), 2,
                 "multiples of 32");
    expect_error("model: {name: yolov5n, anchors: [1, 2, 3, 4]}\ntrain: {loss: yolo}",
                 images(2, 3, 64), 2, "model.anchors: 4 numbers");
    expect_error("model: {name: lenet}\ntrain: {loss: yolo}", images(2, 1, 28), 10,
                 "reads the outputs of several layers");
    expect_error("model: {name: lenet, anchors: [1, 2]}", images(2, 1, 28), 10,
                 "lenet does not use it; it is for yolov5n, ");
    expect_error("model: {outputs: [a, x], layers: [flatten: {name: a}]}", images(2, 1, 28), 2,
                 "model.outputs: no layer is named 'x'");
#undef TWO
}

/* A backend that can applies silu in batch norm, unless it adds a sum or has fixed statistics. */
static void fuse_silu(void)
{
    static const char text[] =
        "model: {freeze: [q], layers: [conv2d: {channels: 8, kernel: 1, name: c}, batch_norm: "
        "{name: n}, silu: {name: s}, batch_norm: {name: m}, add: {input: [m, c], name: a}, silu: "
        "{name: t}, batch_norm: {name: q}, silu: {name: u}, flatten, dense: {width: 3}]}";
    BackendTable table = backend_cpu;
    for (int fuses = 0; fuses < 2; ++fuses) {
        Graph *g = graph_of(text, images(2, 3, 4), 3);
        table.batch_norm_silu = fuses ? SUPPORTED : UNSUPPORTED;
        CHECK_OK(graph_fuse(g, &table));
        const Node *n = node_named(g, "n"), *m = node_named(g, "m"), *q = node_named(g, "q");
        CU_ASSERT_PTR_NOT_NULL_FATAL(n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(m);
        CU_ASSERT_PTR_NOT_NULL_FATAL(q);
        CU_ASSERT(n->spec.act == (fuses ? ACT_SILU : ACT_NONE));
        CU_ASSERT(m->spec.act == ACT_NONE && m->spec.residual);
        CU_ASSERT(q->spec.act == ACT_NONE && q->spec.fixed_stats);
        CU_ASSERT_EQUAL(node_named(g, "s") == NULL, fuses);
        CU_ASSERT(node_named(g, "t") && node_named(g, "u"));
        graph_free(&g);
    }
}

TEST_MAIN("detector", {"first values", first_values}, {"outputs", outputs},
          {"fuse silu", fuse_silu})
