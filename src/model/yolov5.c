/* yolov5n, yolov5s (Jocher et al. 2022, v6.0 to v7.0): a backbone with cross-stage blocks (C3); a
 * pyramid of features that is passed through from top to bottom and then from bottom to top; and
 * heads on three grids with cells of 8, 16 and 32 pixels. Names, constants of batch norms and
 * initial values are those of the authors' program. */
#include "build.h"

#include <math.h>

enum { NAME_CHARS = 64, CHANNEL_STEP = 8, LEVELS = 3, LARGEST_CELL = 32 };

typedef struct Net {
    Graph *graph;
    /* model.depth_multiple */
    double depth;
    /* model.width_multiple */
    double width;
    /* number N of the module that is being added, in names "model.N" */
    int module;
} Net;

/* Writes the name of a part of the module that is being added, "model.2.m.0.cv1", to `out`, and
 * returns `out`. */
static char *part(const Net *n, const char *suffix, char out[NAME_CHARS])
{
    snprintf(out, NAME_CHARS, "model.%d%s", n->module, suffix);
    return out;
}

/* Returns channels times the width multiple, rounded up to a multiple of CHANNEL_STEP. */
static int64_t scaled(const Net *n, int64_t channels)
{
    return (int64_t)ceil((double)channels * n->width / CHANNEL_STEP) * CHANNEL_STEP;
}

typedef struct ConvSpec {
    int64_t channels;
    int kernel, stride, pad;
} ConvSpec;

/* Adds a convolution, a batch norm and a silu: NAME.conv, NAME.bn, NAME.act, where NAME is the name
 * of the module and the suffix. */
static int conv(const Net *n, int x, const char *suffix, ConvSpec c)
{
    char name[NAME_CHARS], full[NAME_CHARS + 8], channels[ZOO_NUMBER], kernel[ZOO_NUMBER],
        stride[ZOO_NUMBER], pad[ZOO_NUMBER];
    part(n, suffix, name);
    snprintf(full, sizeof full, "%s.conv", name);
    x = graph_add(n->graph, "conv2d", full, &x, 1, "channels", zoo_number(c.channels, channels),
                  "kernel", zoo_number(c.kernel, kernel), "stride", zoo_number(c.stride, stride),
                  "pad", zoo_number(c.pad, pad), "bias", "false", "init", "uniform_fp16", NULL);
    snprintf(full, sizeof full, "%s.bn", name);
    x = graph_add(n->graph, "batch_norm", full, &x, 1, "eps", "1e-3", "momentum", "0.03", NULL);
    snprintf(full, sizeof full, "%s.act", name);
    return graph_add(n->graph, "silu", full, &x, 1, NULL);
}

static int conv_module(Net *n, int x, int64_t channels, int kernel, int stride, int pad)
{
    x = conv(n, x, "", (ConvSpec){scaled(n, channels), kernel, stride, pad});
    ++n->module;
    return x;
}

/* Adds a C3 module: two branches, each with half of the channels, which are concatenated and read
 * by a 1x1 convolution. The first branch has `count` times the depth multiple of bottlenecks,
 * rounded to the nearest whole number (halves to even), but at least one. shortcut: true if a
 * bottleneck's input is added to its output. */
static int c3(Net *n, int x, int64_t channels, int count, bool shortcut)
{
    char suffix[NAME_CHARS / 2], name[NAME_CHARS];
    const int64_t out = scaled(n, channels), half = out / 2;
    const int rounded = (int)rint(count * n->depth), bottlenecks = rounded > 1 ? rounded : 1;
    int a = conv(n, x, ".cv1", (ConvSpec){half, 1, 1, 0});
    for (int i = 0; i < bottlenecks; ++i) {
        snprintf(suffix, sizeof suffix, ".m.%d.cv1", i);
        int y = conv(n, a, suffix, (ConvSpec){half, 1, 1, 0});
        snprintf(suffix, sizeof suffix, ".m.%d.cv2", i);
        y = conv(n, y, suffix, (ConvSpec){half, 3, 1, 1});
        snprintf(suffix, sizeof suffix, ".m.%d.add", i);
        a = shortcut ? graph_add(n->graph, "add", part(n, suffix, name), (int[]){a, y}, 2, NULL)
                     : y;
    }
    const int b = conv(n, x, ".cv2", (ConvSpec){half, 1, 1, 0});
    x = graph_add(n->graph, "concat", part(n, ".concat", name), (int[]){a, b}, 2, NULL);
    x = conv(n, x, ".cv3", (ConvSpec){out, 1, 1, 0});
    ++n->module;
    return x;
}

/* Adds an SPPF module: a 1x1 convolution, then three 5x5 max pools one after the other. The outputs
 * of the four layers are concatenated and read by another 1x1 convolution. */
static int pools(Net *n, int x, int64_t channels)
{
    char suffix[16], name[NAME_CHARS];
    const int64_t out = scaled(n, channels);
    int y[4] = {conv(n, x, ".cv1", (ConvSpec){out / 2, 1, 1, 0})};
    for (int i = 0; i < 3; ++i) {
        snprintf(suffix, sizeof suffix, ".m.%d", i);
        y[i + 1] = graph_add(n->graph, "max_pool", part(n, suffix, name), &y[i], 1, "kernel", "5",
                             "stride", "1", "pad", "2", NULL);
    }
    x = graph_add(n->graph, "concat", part(n, ".concat", name), y, 4, NULL);
    x = conv(n, x, ".cv2", (ConvSpec){out, 1, 1, 0});
    ++n->module;
    return x;
}

static int upsample(Net *n, int x)
{
    char name[NAME_CHARS];
    x = graph_add(n->graph, "upsample", part(n, "", name), &x, 1, NULL);
    ++n->module;
    return x;
}

/* Adds a module that concatenates the outputs of two nodes. */
static int join(Net *n, int a, int b)
{
    char name[NAME_CHARS];
    a = graph_add(n->graph, "concat", part(n, "", name), (int[]){a, b}, 2, NULL);
    ++n->module;
    return a;
}

/* Adds the heads of the three levels. Returns the last head. */
static int detect(Net *n, const int level[LEVELS], int anchors)
{
    char suffix[16], name[NAME_CHARS], channels[ZOO_NUMBER], classes[ZOO_NUMBER], cell[ZOO_NUMBER];
    const int64_t k = n->graph->classes;
    int y = GRAPH_FAILED;
    for (int l = 0; l < LEVELS; ++l) {
        snprintf(suffix, sizeof suffix, ".m.%d", l);
        y = graph_add(n->graph, "detect", part(n, suffix, name), &level[l], 1, "channels",
                      zoo_number(anchors * (BOX_CHANNELS + k), channels), "classes",
                      zoo_number(k, classes), "cell", zoo_number(8 << l, cell), NULL);
        if (y == GRAPH_FAILED) return y;
    }
    return y;
}

static Status check(const Graph *graph, const Config *config)
{
    char text[64];
    const Shape x = graph->input.shape;
    if (x.ndim != 4 || x.dim[2] % LARGEST_CELL || x.dim[3] % LARGEST_CELL)
        return fail(ERR_CONFIG, "%s needs pictures whose sides are multiples of %d, got %s",
                    config->model.name, LARGEST_CELL, shape_text(x, text));
    if (config->model.dropout > 0)
        return config_fail_key(config, "model.dropout", "%s has no dropout", config->model.name);
    return OK;
}

static int build(Graph *graph, const Config *config)
{
    const int numbers = config->model.anchors.count;
    Net n = {.graph = graph,
             .depth = config->model.depth_multiple,
             .width = config->model.width_multiple};
    if (check(graph, config) != OK) return GRAPH_FAILED;
    int x = conv_module(&n, NODE_INPUT, 64, 6, 2, 2);
    x = conv_module(&n, x, 128, 3, 2, 1);
    x = c3(&n, x, 128, 3, true);
    x = conv_module(&n, x, 256, 3, 2, 1);
    const int stage3 = x = c3(&n, x, 256, 6, true);
    x = conv_module(&n, x, 512, 3, 2, 1);
    const int stage4 = x = c3(&n, x, 512, 9, true);
    x = conv_module(&n, x, 1024, 3, 2, 1);
    x = c3(&n, x, 1024, 3, true);
    x = pools(&n, x, 1024);
    const int top5 = x = conv_module(&n, x, 512, 1, 1, 0);
    x = join(&n, upsample(&n, x), stage4);
    x = c3(&n, x, 512, 3, false);
    const int top4 = x = conv_module(&n, x, 256, 1, 1, 0);
    x = join(&n, upsample(&n, x), stage3);
    int level[LEVELS];
    level[0] = x = c3(&n, x, 256, 3, false);
    x = join(&n, conv_module(&n, x, 256, 3, 2, 1), top4);
    level[1] = x = c3(&n, x, 512, 3, false);
    x = join(&n, conv_module(&n, x, 512, 3, 2, 1), top5);
    level[2] = c3(&n, x, 1024, 3, false);
    /* check_outputs (build.c) refuses a number of anchors that does not fit */
    return detect(&n, level, numbers >= 2 * LEVELS ? numbers / (2 * LEVELS) : 3);
}

#define USES    "depth_multiple width_multiple anchors"
#define OUTPUTS "model.24.m.0,model.24.m.1,model.24.m.2"

/* Models of this file, listed in MODELS (zoo.c). */
const ZooEntry zoo_yolov5n = {
    .name = "yolov5n",
    .help = "Jocher et al. 2022: a detector of boxes, for train.loss: yolo",
    .uses = USES,
    .defaults = "depth_multiple=0.33 width_multiple=0.25",
    .outputs = OUTPUTS,
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
const ZooEntry zoo_yolov5s = {
    .name = "yolov5s",
    .help = "the same with twice the channels",
    .uses = USES,
    .defaults = "depth_multiple=0.33 width_multiple=0.5",
    .outputs = OUTPUTS,
    .maps = MAPS_TO_NUMBERS,
    .build = build,
};
