/* Models from fields to fields of the same size. unet (Ronneberger et al. 2015): levels that halve
 * the size, and back, with connections from each level to its mirror image. fieldresnet: residual
 * blocks (He et al. 2015) at full size. Both end with a 1x1 convolution to the targets. */
#include "build.h"

#include <string.h>

enum { NAME_CHARS = 48, LEVELS_MOST = 12, GROUP_CHANNELS = 8, LEVEL_BLOCKS = 1, RESNET_BLOCKS = 8 };

typedef struct Net {
    Graph *graph;
    const Config *config;
    /* blocks of a level, or of the whole net */
    int64_t blocks;
} Net;

static Net net_of(Graph *graph, const Config *config, int64_t default_blocks)
{
    const int64_t blocks = config->model.depth;
    return (Net){graph, config, blocks > 0 ? blocks : default_blocks};
}

static const char *name_of(const char *prefix, const char *part, char out[2 * NAME_CHARS])
{
    snprintf(out, 2 * NAME_CHARS, "%s.%s", prefix, part);
    return out;
}

/* Returns the number of groups of a group norm: channels / 8, or the largest divisor below. */
static int64_t norm_groups(int64_t channels)
{
    int64_t groups = channels / GROUP_CHANNELS;
    while (groups > 1 && channels % groups != 0) --groups;
    return groups > 1 ? groups : 1;
}

static int add_norm(const Net *n, int x, const char *name, int64_t channels)
{
    char groups[ZOO_NUMBER];
    switch ((FieldNorm)n->config->model.norm) {
    case FIELD_NORM_BATCH:
        return graph_add(n->graph, "batch_norm", name, &x, 1, NULL);
    case FIELD_NORM_GROUP:
        return graph_add(n->graph, "group_norm", name, &x, 1, "groups",
                         zoo_number(norm_groups(channels), groups), NULL);
    case FIELD_NORM_INSTANCE:
        return graph_add(n->graph, "instance_norm", name, &x, 1, "affine", "true", NULL);
    default:
        return x;
    }
}

/* Adds a convolution that keeps the size. It has a bias unless a norm follows. */
static int add_conv(const Net *n, int x, const char *name, int64_t channels, int kernel, bool bias)
{
    char width[ZOO_NUMBER], size[ZOO_NUMBER];
    return graph_add(n->graph, "conv2d", name, &x, 1, "channels", zoo_number(channels, width),
                     "kernel", zoo_number(kernel, size), "pad", "same", "pad_mode",
                     kernel > 1 ? n->config->model.pad_mode : "zero", "bias",
                     bias ? "true" : "false", NULL);
}

/* Adds convolution `number` of a block, with its norm, and its activation where `act`. */
static int conv_norm(const Net *n, int x, const char *prefix, int number, int64_t channels,
                     bool act)
{
    char part[NAME_CHARS], name[2 * NAME_CHARS];
    const bool bias = n->config->model.norm == FIELD_NORM_NONE;
    snprintf(part, sizeof part, "conv%d", number);
    x = add_conv(n, x, name_of(prefix, part, name), channels, 3, bias);
    snprintf(part, sizeof part, "norm%d", number);
    x = add_norm(n, x, name_of(prefix, part, name), channels);
    snprintf(part, sizeof part, "act%d", number);
    if (!act) return x;
    return graph_add(n->graph, activation_layer(n->config), name_of(prefix, part, name), &x, 1,
                     NULL);
}

/* Adds a block of two convolutions. residual: its input is added before the last activation,
 * through a 1x1 convolution if the number of channels changes. */
static int add_block(const Net *n, int x, const char *prefix, int64_t channels, bool residual)
{
    char name[2 * NAME_CHARS];
    if (x == GRAPH_FAILED) return GRAPH_FAILED;
    int y = conv_norm(n, x, prefix, 1, channels, true);
    y = conv_norm(n, y, prefix, 2, channels, !residual);
    if (!residual || y == GRAPH_FAILED) return y;
    if (graph_channels(n->graph, x) != channels)
        x = add_conv(n, x, name_of(prefix, "skip", name), channels, 1, true);
    y = graph_add(n->graph, "add", name_of(prefix, "add", name), (int[]){y, x}, 2, NULL);
    return graph_add(n->graph, activation_layer(n->config), name_of(prefix, "act2", name), &y, 1,
                     NULL);
}

/* Adds all blocks of a level: PREFIX.0, PREFIX.1, ... */
static int add_blocks(const Net *n, int x, const char *prefix, int64_t channels)
{
    char name[2 * NAME_CHARS], number[ZOO_NUMBER];
    for (int64_t i = 0; i < n->blocks; ++i)
        x = add_block(n, x, name_of(prefix, zoo_number(i, number), name), channels,
                      n->config->model.residual);
    return x;
}

/* Doubles the size. A transposed convolution also changes the channels. */
static int add_up(const Net *n, int x, const char *name, int64_t channels)
{
    static const char *const mode[] = {[UP_NEAREST] = "nearest", [UP_BILINEAR] = "bilinear"};
    char width[ZOO_NUMBER];
    if (n->config->model.up == UP_TRANSPOSE)
        return graph_add(n->graph, "conv_transpose2d", name, &x, 1, "channels",
                         zoo_number(channels, width), "kernel", "2", "stride", "2", NULL);
    return graph_add(n->graph, "upsample", name, &x, 1, "mode", mode[n->config->model.up], NULL);
}

static int last_conv(const Net *n, int x)
{
    return add_conv(n, x, "head", n->graph->classes, 1, true);
}

/* Fails if there are too many levels, or the size cannot be halved for each further one. */
static Status check_levels(const Net *n, int levels)
{
    const Shape x = n->graph->input.shape;
    if (levels > LEVELS_MOST)
        return fail(ERR_CONFIG, "unet: %d levels, at most %d are possible", levels, LEVELS_MOST);
    const int64_t step = (int64_t)1 << (levels - 1);
    if (x.ndim == 4 && x.dim[2] % step == 0 && x.dim[3] % step == 0) return OK;
    return fail(
        ERR_CONFIG,
        "unet: %d levels halve the size %d times, so the rows and columns of (N,C,H,W) must "
        "be multiples of %lld: use fewer model.channels, or other fields",
        levels, levels - 1, (long long)step);
}

static int build_unet(Graph *graph, const Config *config)
{
    const Net n = net_of(graph, config, LEVEL_BLOCKS);
    const int levels = config->model.channels.count;
    char name[NAME_CHARS];
    int x = NODE_INPUT, level[LEVELS_MOST];
    if (check_levels(&n, levels) != OK) return GRAPH_FAILED;
    for (int i = 0; i < levels; ++i) {
        snprintf(name, sizeof name, "down%d.pool", i);
        if (i > 0)
            x = graph_add(graph, config->model.down == DOWN_MAX ? "max_pool" : "avg_pool", name, &x,
                          1, "kernel", "2", "stride", "2", NULL);
        snprintf(name, sizeof name, "down%d", i);
        level[i] = x = add_blocks(&n, x, name, (int64_t)config->model.channels.value[i]);
    }
    for (int i = levels - 2; i >= 0; --i) {
        const int64_t channels = (int64_t)config->model.channels.value[i];
        snprintf(name, sizeof name, "up%d.up", i);
        x = add_up(&n, x, name, channels);
        snprintf(name, sizeof name, "up%d.concat", i);
        x = graph_add(graph, "concat", name, (int[]){level[i], x}, 2, NULL);
        snprintf(name, sizeof name, "up%d", i);
        x = add_blocks(&n, x, name, channels);
    }
    x = zoo_dropout(graph, config, "dropout", x, 0);
    return last_conv(&n, x);
}

static int build_resnet(Graph *graph, const Config *config)
{
    const Net n = net_of(graph, config, RESNET_BLOCKS);
    const int64_t width = config->model.width;
    char name[NAME_CHARS];
    int x = conv_norm(&n, NODE_INPUT, "stem", 1, width, true);
    for (int64_t i = 0; i < n.blocks; ++i) {
        snprintf(name, sizeof name, "block%lld", (long long)i);
        x = add_block(&n, x, name, width, true);
    }
    x = zoo_dropout(graph, config, "dropout", x, 0);
    return last_conv(&n, x);
}

const ZooEntry zoo_unet = {
    .name = "unet",
    .help = "fields to fields: levels that halve the size, and back",
    .uses = "channels blocks norm activation pad_mode residual up down",
    .defaults = "channels=[32,64,128,256]",
    .fields = true,
    .build = build_unet,
};
const ZooEntry zoo_fieldresnet = {
    .name = "fieldresnet",
    .help = "fields to fields: residual blocks at full size",
    .uses = "width blocks norm activation pad_mode",
    .defaults = "width=64",
    .fields = true,
    .build = build_resnet,
};
