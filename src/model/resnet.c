/* resnet18/34/50/101 (He et al. 2015, v1.5: the stride of a bottleneck is in its 3x3 convolution).
 * With model.stem imagenet the first layers are a 7x7 convolution and a 3x3 max-pool, both with
 * stride 2; with small, one 3x3 convolution. Names and initialisers are torchvision's. A stage here
 * is a sequence of blocks of one size, layer1 to layer4. */
#include "build.h"

enum { STAGES = 4, NAME_CHARS = 64, WIDTH = 64 };

typedef struct ResNet {
    /* number of blocks of each stage */
    int blocks[STAGES];
    /* output channels of a block divided by its width: 1 for blocks of two 3x3 convolutions, 4 for
     * bottleneck blocks of a 1x1, a 3x3 and a 1x1 convolution */
    int expansion;
} ResNet;

typedef struct ConvSpec {
    int channels, kernel, stride;
} ConvSpec;

/* Adds a convolution called `conv`, a batch norm called `bn` and, unless relu is NULL, a relu
 * called `relu`. */
static int conv_norm(Graph *g, int x, ConvSpec c, const char *conv, const char *bn,
                     const char *relu)
{
    char channels[16], kernel[16], stride[16];
    snprintf(channels, sizeof channels, "%d", c.channels);
    snprintf(kernel, sizeof kernel, "%d", c.kernel);
    snprintf(stride, sizeof stride, "%d", c.stride);
    x = graph_add(g, "conv2d", conv, &x, 1, "channels", channels, "kernel", kernel, "stride",
                  stride, "pad", "same", "bias", "false", "init", "he", NULL);
    x = graph_add(g, "batch_norm", bn, &x, 1, NULL);
    return relu ? graph_add(g, "relu", relu, &x, 1, NULL) : x;
}

/* Adds the convolution with this number in a block, its batch norm and, if `relu` is true, a relu:
 * PREFIX.convN, PREFIX.bnN, PREFIX.reluN. */
static int block_conv(Graph *g, int x, const char *prefix, int number, ConvSpec c, bool relu)
{
    char conv[NAME_CHARS], bn[NAME_CHARS], act[NAME_CHARS];
    snprintf(conv, sizeof conv, "%s.conv%d", prefix, number);
    snprintf(bn, sizeof bn, "%s.bn%d", prefix, number);
    snprintf(act, sizeof act, "%s.relu%d", prefix, number);
    return conv_norm(g, x, c, conv, bn, relu ? act : NULL);
}

/* Adds the 1x1 projection of a block's input that is added to the block's output, if the block
 * changes the shape. Otherwise returns x, the input itself. */
static int shortcut(Graph *g, int x, const char *prefix, int channels, int stride)
{
    char conv[NAME_CHARS], bn[NAME_CHARS];
    if (x == GRAPH_FAILED) return GRAPH_FAILED;
    if (stride == 1 && graph_output(g, x).shape.dim[1] == channels) return x;
    snprintf(conv, sizeof conv, "%s.downsample.0", prefix);
    snprintf(bn, sizeof bn, "%s.downsample.1", prefix);
    return conv_norm(g, x, (ConvSpec){channels, 1, stride}, conv, bn, NULL);
}

static int block(Graph *g, int x, const char *prefix, int expansion, int width, int stride)
{
    char name[NAME_CHARS];
    int y = x;
    if (expansion == 1) {
        y = block_conv(g, y, prefix, 1, (ConvSpec){width, 3, stride}, true);
        y = block_conv(g, y, prefix, 2, (ConvSpec){width, 3, 1}, false);
    } else {
        y = block_conv(g, y, prefix, 1, (ConvSpec){width, 1, 1}, true);
        y = block_conv(g, y, prefix, 2, (ConvSpec){width, 3, stride}, true);
        y = block_conv(g, y, prefix, 3, (ConvSpec){width * expansion, 1, 1}, false);
    }
    x = shortcut(g, x, prefix, width * expansion, stride);
    snprintf(name, sizeof name, "%s.add", prefix);
    y = graph_add(g, "add", name, (int[]){y, x}, 2, NULL);
    snprintf(name, sizeof name, "%s.relu", prefix);
    return graph_add(g, "relu", name, &y, 1, NULL);
}

static int stem(Graph *g, bool small, int width)
{
    if (small) return conv_norm(g, NODE_INPUT, (ConvSpec){width, 3, 1}, "conv1", "bn1", "relu");
    int x = conv_norm(g, NODE_INPUT, (ConvSpec){width, 7, 2}, "conv1", "bn1", "relu");
    return graph_add(g, "max_pool", "maxpool", &x, 1, "kernel", "3", "stride", "2", "pad", "1",
                     NULL);
}

static int build(Graph *g, const Config *config, ResNet net)
{
    char prefix[NAME_CHARS / 2], classes[32];
    const int width = config->model.width > 0 ? (int)config->model.width : WIDTH;
    int x = stem(g, config->model.stem == STEM_SMALL, width);
    for (int s = 0; s < STAGES; ++s)
        for (int b = 0; b < net.blocks[s]; ++b) {
            snprintf(prefix, sizeof prefix, "layer%d.%d", s + 1, b);
            x = block(g, x, prefix, net.expansion, width << s, b == 0 && s > 0 ? 2 : 1);
        }
    x = graph_add(g, "global_pool", "avgpool", &x, 1, NULL);
    x = graph_add(g, "flatten", "flatten", &x, 1, NULL);
    x = zoo_dropout(g, config, "dropout", x, 0);
    snprintf(classes, sizeof classes, "%lld", (long long)g->classes);
    return graph_add(g, "dense", "fc", &x, 1, "width", classes, NULL);
}

static int build18(Graph *g, const Config *config)
{
    return build(g, config, (ResNet){{2, 2, 2, 2}, 1});
}
static int build34(Graph *g, const Config *config)
{
    return build(g, config, (ResNet){{3, 4, 6, 3}, 1});
}
static int build50(Graph *g, const Config *config)
{
    return build(g, config, (ResNet){{3, 4, 6, 3}, 4});
}
static int build101(Graph *g, const Config *config)
{
    return build(g, config, (ResNet){{3, 4, 23, 3}, 4});
}

/* Models of this file, listed in MODELS (zoo.c). */
const ZooEntry zoo_resnet18 = {
    .name = "resnet18",
    .help = "He et al. 2015; model.stem: imagenet or small",
    .uses = "width",
    .maps = MAPS_TO_NUMBERS,
    .build = build18,
};
const ZooEntry zoo_resnet34 = {
    .name = "resnet34",
    .help = "He et al. 2015; model.stem: imagenet or small",
    .uses = "width",
    .maps = MAPS_TO_NUMBERS,
    .build = build34,
};
const ZooEntry zoo_resnet50 = {
    .name = "resnet50",
    .help = "bottleneck blocks, v1.5; model.stem: imagenet or small",
    .uses = "width",
    .maps = MAPS_TO_NUMBERS,
    .build = build50,
};
const ZooEntry zoo_resnet101 = {
    .name = "resnet101",
    .help = "bottleneck blocks, v1.5; model.stem: imagenet or small",
    .uses = "width",
    .maps = MAPS_TO_NUMBERS,
    .build = build101,
};
