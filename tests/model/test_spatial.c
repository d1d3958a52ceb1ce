/* Layers that change the height and width of images, in lists of layers: shapes, attributes and
 * their refusals, and padding that conv2d hands to a layer before it. */
#include "model/build.h"
#include "model/fixture.h"

#define LIST(text) "model: {layers: [" text ", flatten, dense: {width: 3}]}"

/* Checks the shape of a node's output. */
static void expect_shape(const char *text, Desc input, const char *name, Shape want)
{
    char a[64], b[64];
    Graph *g = graph_of(text, input, 3);
    const Node *node = node_named(g, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    CU_ASSERT(shape_equal(node->spec.y.shape, want));
    if (!shape_equal(node->spec.y.shape, want))
        printf("  %s: got %s, want %s\n", name, shape_text(node->spec.y.shape, a),
               shape_text(want, b));
    graph_free(&g);
}

static void pads(void)
{
    const Desc x = images(2, 4, 6);
    expect_shape(LIST("pad: {name: p}"), x, "p", shape_of(4, 2, 4, 6, 6));
    expect_shape(LIST("pad: {name: p, pad: 2}"), x, "p", shape_of(4, 2, 4, 10, 10));
    expect_shape(LIST("pad: {name: p, pad: [1, 3]}"), x, "p", shape_of(4, 2, 4, 8, 12));
    expect_shape(LIST("pad: {name: p, pad: [1, 2, -3, 5]}"), x, "p", shape_of(4, 2, 4, 9, 8));
    expect_shape(LIST("pad: {name: p, pad: [5, 0, 6, 6], mode: [reflect, circular]}"), x, "p",
                 shape_of(4, 2, 4, 11, 18));
    expect_error(LIST("pad: {pad: [1, 2, 3]}"), x, 3, "no list [above, below, left, right]");
    expect_error(LIST("pad: {pad: [1, 2, 3, 4, 5]}"), x, 3, "no list [above");
    expect_error(LIST("pad: {pad: same}"), x, 3, "pad: 'same' is no whole number");
    expect_error(LIST("pad: {pad: 2000}"), x, 3, "out of range -1024..1024");
    expect_error(LIST("pad: {mode: wrap}"), x, 3,
                 "mode: 'wrap' is none of zero, replicate, reflect, circular");
    expect_error(LIST("pad: {mode: [zero, wrap]}"), x, 3, "mode: 'wrap' is none of");
    expect_error(LIST("pad: {mode: [zero, zero, zero]}"), x, 3, "mode: 'zero,zero' is none of");
    expect_error(LIST("pad: {pad: [0, 6, 0, 0], mode: reflect}"), x, 3,
                 "mode reflect with 6 below needs a height of at least 7, got 6");
    expect_error(LIST("pad: {pad: [0, 0, 7, 0], mode: circular}"), x, 3,
                 "mode circular with 7 left needs a width of at least 7, got 6");
    expect_error(LIST("pad: {pad: [-1, 0], mode: replicate}"), x, 3,
                 "-1 above cuts off, which needs mode: zero");
    expect_error(LIST("pad: {pad: [0, -3]}"), x, 3,
                 "-3 left and -3 right leave nothing of a width of 6");
    expect_error("model: {layers: [flatten, pad, dense: {width: 3}]}", x, 3,
                 "pad got 2x144, needs images");
}

static void upsamples(void)
{
    const Desc x = images(2, 4, 6);
    expect_shape(LIST("upsample: {name: u, scale: 3, mode: bilinear, align_corners: true}"), x, "u",
                 shape_of(4, 2, 4, 18, 18));
    expect_error(LIST("upsample: {mode: bicubic}"), x, 3,
                 "mode: 'bicubic' is none of nearest, bilinear");
    expect_error(LIST("upsample: {align_corners: true}"), x, 3,
                 "align_corners needs mode: bilinear");
    expect_error(LIST("upsample: {scale: 65}"), x, 3, "out of range 1..64");
}

static void transposed_convolutions(void)
{
    const Desc x = images(2, 4, 6);
    Graph *g = graph_of(LIST("conv_transpose2d: {name: t, channels: 10, kernel: [3, 2], stride: "
                             "[2, 3], pad: [1, 0], output_pad: [1, 2], groups: 2}"),
                        x, 3);
    const Node *node = node_named(g, "t");
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    CU_ASSERT(shape_equal(node->spec.y.shape, shape_of(4, 2, 10, 12, 19)));
    CU_ASSERT(shape_equal(node->spec.w[0], shape_of(4, 4, 5, 3, 2)));
    CU_ASSERT(shape_equal(node->spec.w[1], shape_of(1, 10, 1, 1, 1)));
    /* PyTorch's bound, from the channels out and the kernel */
    const LayerParam *info = &g->param[node->param[1]].info;
    CU_ASSERT(info->init == INIT_UNIFORM && info->scale == 5 * 3 * 2);
    CU_ASSERT_EQUAL(node_macs(node), 2.0 * 4 * 6 * 6 * 5 * 3 * 2);
    graph_free(&g);
    expect_error(LIST("conv_transpose2d: {kernel: 2}"), x, 3, "conv_transpose2d needs channels");
    expect_error(LIST("conv_transpose2d: {channels: 3}"), x, 3, "conv_transpose2d needs kernel");
    expect_error(LIST("conv_transpose2d: {channels: 3, kernel: 2, groups: 2}"), x, 3,
                 "groups 2 must divide the channels in (4) and out (3)");
    expect_error(LIST("conv_transpose2d: {channels: 3, kernel: 2, stride: 2, output_pad: 2}"), x, 3,
                 "output_pad 2 must be smaller than stride 2");
    expect_error(LIST("conv_transpose2d: {channels: 3, kernel: 2, pad: 9}"), x, 3,
                 "a kernel of 2 and pad 9 leave nothing of a height of 6");
    expect_error(LIST("conv_transpose2d: {channels: 3, kernel: 3, pad: same}"), x, 3,
                 "pad: 'same' is neither a whole number nor a pair");
}

static void shuffles(void)
{
    const Desc x = images(2, 18, 6);
    expect_shape(LIST("pixel_shuffle: {name: s, scale: 3}"), x, "s", shape_of(4, 2, 2, 18, 18));
    expect_error(LIST("pixel_shuffle"), x, 3,
                 "pixel_shuffle got 2x18x6x6, needs a multiple of 4 channels");
}

static void crops(void)
{
    const Desc x = images(2, 4, 7);
    const char *list = LIST("conv2d: {name: a, channels: 5, kernel: [4, 3]}, "
                            "crop: {name: c, input: [data, a]}, concat: {input: [a, c]}");
    Graph *g = graph_of(list, x, 3);
    const Node *crop = node_named(g, "c");
    CU_ASSERT_PTR_NOT_NULL_FATAL(crop);
    CU_ASSERT(shape_equal(crop->spec.y.shape, shape_of(4, 2, 4, 4, 5)));
    CU_ASSERT_EQUAL(crop->spec.x_count, 1);
    CU_ASSERT_EQUAL(crop->in[0], NODE_INPUT);
    const int edge[4] = {-1, -2, -1, -1};
    CU_ASSERT_EQUAL(memcmp(crop->spec.padding.edge, edge, sizeof edge), 0);
    graph_free(&g);
    expect_error(LIST("conv2d: {name: a, channels: 5, kernel: 3}, crop: {input: [a, data]}"), x, 3,
                 "crop got 2x5x5x5 and 2x4x7x7, needs a first input of at least the size");
    expect_error(LIST("conv2d: {name: a, channels: 5, kernel: 3}, concat: {input: [a, data]}"), x,
                 3, "crop");
    expect_error(LIST("crop"), x, 3, "crop needs 2 inputs, got 1");
}

/* A checkpoint of other attributes is refused with these texts. */
static void differences(void)
{
    const Desc x = images(2, 4, 6);
    Graph *a = graph_of(LIST("pad: {name: p, pad: [1, 2, -3, 5]}, upsample: {name: u}"), x, 3);
    Graph *b = graph_of(LIST("pad: {name: p, pad: [1, 2], mode: [reflect, zero]}, "
                             "upsample: {name: u, mode: bilinear}"),
                        x, 3);
    AttrDifference d;
    const Node *p[2] = {node_named(a, "p"), node_named(b, "p")};
    const Node *u[2] = {node_named(a, "u"), node_named(b, "u")};
    CU_ASSERT(layer_find_difference(p[0]->kind, (const OpSpec *const[]){&p[0]->spec, &p[1]->spec},
                                    (const LayerSize *const[]){&p[0]->size, &p[1]->size}, &d));
    CU_ASSERT_STRING_EQUAL(d.name, "pad");
    CU_ASSERT_STRING_EQUAL(d.value[0], "[1, 2, -3, 5]");
    CU_ASSERT_STRING_EQUAL(d.value[1], "[1, 1, 2, 2]");
    Node same = *p[1];
    same.spec.padding = p[0]->spec.padding;
    same.spec.padding.mode[0] = PAD_REFLECT;
    CU_ASSERT(layer_find_difference(same.kind, (const OpSpec *const[]){&p[0]->spec, &same.spec},
                                    (const LayerSize *const[]){&p[0]->size, &same.size}, &d));
    CU_ASSERT_STRING_EQUAL(d.value[0], "[zero, zero]");
    CU_ASSERT_STRING_EQUAL(d.value[1], "[reflect, zero]");
    CU_ASSERT(layer_find_difference(u[0]->kind, (const OpSpec *const[]){&u[0]->spec, &u[1]->spec},
                                    (const LayerSize *const[]){&u[0]->size, &u[1]->size}, &d));
    CU_ASSERT_STRING_EQUAL(d.name, "mode");
    CU_ASSERT_STRING_EQUAL(d.value[1], "bilinear");
    graph_free(&a);
    graph_free(&b);
}

/* conv2d with pad_mode becomes a pad and a conv2d without padding in this direction. */
static void padded_convolutions(void)
{
    const Desc x = images(2, 4, 6);
    Graph *g = graph_of(LIST("relu, conv2d: {name: c, channels: 5, kernel: [3, 5], pad: same, "
                             "pad_mode: [zero, circular]}"),
                        x, 3);
    const Node *pad = node_named(g, "c.pad"), *conv = node_named(g, "c");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pad);
    CU_ASSERT_PTR_NOT_NULL_FATAL(conv);
    CU_ASSERT(shape_equal(pad->spec.y.shape, shape_of(4, 2, 4, 6, 10)));
    CU_ASSERT(shape_equal(conv->spec.y.shape, shape_of(4, 2, 5, 6, 6)));
    CU_ASSERT_EQUAL(pad->in[0], 0);
    CU_ASSERT_PTR_EQUAL(&g->node[conv->in[0]], pad);
    CU_ASSERT(conv->spec.pad[0] == 1 && conv->spec.pad[1] == 0);
    graph_free(&g);
    g = graph_of(LIST("conv2d: {name: c, channels: 5, kernel: 2, pad: [1, 0], "
                      "pad_mode: replicate}, relu: {name: r}"),
                 x, 3);
    CU_ASSERT(shape_equal(node_named(g, "c")->spec.y.shape, shape_of(4, 2, 5, 7, 5)));
    CU_ASSERT_PTR_NOT_NULL(node_named(g, "c.pad"));
    graph_free(&g);
    g = graph_of(LIST("conv2d: {name: c, channels: 5, kernel: 1, pad: same, pad_mode: reflect}"), x,
                 3);
    CU_ASSERT_PTR_NULL(node_named(g, "c.pad"));
    graph_free(&g);
    expect_error(LIST("conv2d: {channels: 5, kernel: 4, pad: same, pad_mode: reflect}"), x, 3,
                 "pad: same needs an odd kernel, got 4");
    expect_error(LIST("conv2d: {channels: 5, kernel: 15, pad: same, pad_mode: circular}"), x, 3,
                 "pad: mode circular with 7 above needs a height of at least 7, got 6");
    expect_error(LIST("relu: {name: c.pad}, conv2d: {name: c, channels: 5, kernel: 3, pad: 1, "
                      "pad_mode: reflect}"),
                 x, 3, "two layers have the name 'c.pad'");
    /* the unread layer is named although the graph has more nodes than the list */
    expect_error("model:\n  layers:\n    - conv2d: {channels: 5, kernel: 3, pad: 1, pad_mode: "
                 "reflect}\n    - relu\n    - flatten: {input: conv2d1}\n    - dense: {width: 3}\n",
                 x, 3, "test.yaml:4:7: no layer reads the output of relu1");
}

TEST_MAIN("spatial layers", {"pads", pads}, {"upsamples", upsamples},
          {"transposed convolutions", transposed_convolutions}, {"shuffles", shuffles},
          {"crops", crops}, {"differences", differences},
          {"padded convolutions", padded_convolutions})
