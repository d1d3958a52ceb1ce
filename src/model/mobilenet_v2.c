/* mobilenet_v2 (Sandler et al. 2018): inverted residual blocks of a 1x1 expansion, a 3x3
 * depthwise convolution and a linear 1x1 projection. Names and initialisers are torchvision's. */
#include "build.h"

enum {
    NAME_CHARS = 64,
    /* default number of channels of the first layer */
    WIDTH = 32,
    /* numbers of channels are multiples of this number */
    CHANNEL_STEP = 8
};

typedef struct ConvSpec {
    int channels, kernel, stride, groups;
} ConvSpec;

/* Adds a convolution, a batch norm and, if `relu6` is true, a relu6. Their names are PREFIX.N, with
 * N = number, number + 1 and number + 2. */
static int conv_norm(Graph *g, int x, const char *prefix, int number, ConvSpec c, bool relu6)
{
    char name[NAME_CHARS], channels[16], kernel[16], stride[16], groups[16];
    snprintf(channels, sizeof channels, "%d", c.channels);
    snprintf(kernel, sizeof kernel, "%d", c.kernel);
    snprintf(stride, sizeof stride, "%d", c.stride);
    snprintf(groups, sizeof groups, "%d", c.groups);
    snprintf(name, sizeof name, "%s.%d", prefix, number);
    x = graph_add(g, "conv2d", name, &x, 1, "channels", channels, "kernel", kernel, "stride",
                  stride, "groups", groups, "pad", "same", "bias", "false", "init", "he", NULL);
    snprintf(name, sizeof name, "%s.%d", prefix, number + 1);
    x = graph_add(g, "batch_norm", name, &x, 1, NULL);
    if (!relu6) return x;
    snprintf(name, sizeof name, "%s.%d", prefix, number + 2);
    return graph_add(g, "relu6", name, &x, 1, NULL);
}

/* Adds one block from c_in to c channels; its depthwise convolution has c_in * expansion
 * channels. */
static int block(Graph *g, int x, int index, int expansion, int c_in, int c, int stride)
{
    char prefix[NAME_CHARS / 2], part[NAME_CHARS / 2 + 16];
    int y = x, hidden = c_in * expansion, conv = 0;
    snprintf(prefix, sizeof prefix, "features.%d.conv", index);
    if (expansion != 1) {
        snprintf(part, sizeof part, "%s.%d", prefix, conv++);
        y = conv_norm(g, y, part, 0, (ConvSpec){hidden, 1, 1, 1}, true);
    }
    snprintf(part, sizeof part, "%s.%d", prefix, conv++);
    y = conv_norm(g, y, part, 0, (ConvSpec){hidden, 3, stride, hidden}, true);
    y = conv_norm(g, y, prefix, conv, (ConvSpec){c, 1, 1, 1}, false);
    if (stride != 1 || c_in != c) return y;
    snprintf(part, sizeof part, "features.%d.add", index);
    return graph_add(g, "add", part, (int[]){y, x}, 2, NULL);
}

/* Returns the number of channels in a network of the given width, for a layer that has `channels`
 * in the network of width WIDTH. As in the authors' code, the exact number is rounded to a multiple
 * of CHANNEL_STEP that is at least 9/10 of the exact number. */
static int scaled(int channels, int width)
{
    const double exact = (double)channels * width / WIDTH;
    int rounded = (int)(exact + CHANNEL_STEP / 2.0) / CHANNEL_STEP * CHANNEL_STEP;
    if (rounded < CHANNEL_STEP) rounded = CHANNEL_STEP;
    return rounded < 0.9 * exact ? rounded + CHANNEL_STEP : rounded;
}

static int build(Graph *g, const Config *config)
{
    static const struct {
        /* blocks: number of blocks; stride: stride of the first block, the others have stride 1 */
        int expansion, channels, blocks, stride;
    } stage[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    enum { LAST_CHANNELS = 1280 };
    const int width = config->model.width > 0 ? (int)config->model.width : WIDTH;
    int index = 1, c_in = scaled(WIDTH, width);
    char classes[32];
    int x = conv_norm(g, NODE_INPUT, "features.0", 0, (ConvSpec){c_in, 3, 2, 1}, true);
    for (size_t s = 0; s < sizeof stage / sizeof stage[0]; ++s)
        for (int b = 0; b < stage[s].blocks; ++b) {
            const int c = scaled(stage[s].channels, width);
            x = block(g, x, index++, stage[s].expansion, c_in, c, b == 0 ? stage[s].stride : 1);
            c_in = c;
        }
    const int last = scaled(LAST_CHANNELS, width > WIDTH ? width : WIDTH);
    x = conv_norm(g, x, "features.18", 0, (ConvSpec){last, 1, 1, 1}, true);
    x = graph_add(g, "global_pool", "avgpool", &x, 1, NULL);
    x = graph_add(g, "flatten", "flatten", &x, 1, NULL);
    x = zoo_dropout(g, config, "classifier.0", x, 0.2);
    snprintf(classes, sizeof classes, "%lld", (long long)g->classes);
    return graph_add(g, "dense", "classifier.1", &x, 1, "width", classes, "init", "normal",
                     "init_std", "0.01", NULL);
}

/* listed in MODELS (zoo.c) */
const ZooEntry zoo_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .help = "Sandler et al. 2018: depthwise convolutions",
    .uses = "width",
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
