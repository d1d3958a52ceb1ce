/* Models from fields to fields of the same size. unet (Ronneberger et al. 2015) goes down and up
 * through levels. On the way down each level after the first halves the size. On the way up each
 * level doubles it, and also reads the output that the level of the same size had on the way down.
 * fieldresnet consists of residual blocks (He et al. 2015) at full size. Both models end with a 1x1
 * convolution to the targets. Functions of a sample's scalars can scale and shift the channels of
 * blocks (Perez et al. 2018; model.film). */
#include "build.h"
#include "data/fields.h"

#include <string.h>

enum {
    NAME_CHARS = 48,
    LEVELS_MOST = 12,
    /* channels of a group of group norm */
    GROUP_CHANNELS = 8,
    /* default number of blocks of a level of unet */
    LEVEL_BLOCKS = 1,
    /* default number of blocks of fieldresnet */
    RESNET_BLOCKS = 8
};

typedef struct Net {
    /* borrowed */
    Graph *graph;
    /* borrowed */
    const Config *config;
    /* unet: number of blocks of each level, down and up; fieldresnet: number of all blocks */
    int64_t blocks;
    /* last node of the perceptron that reads the scalars; NODE_INPUT: there is none */
    int film;
} Net;

static Net net_of(Graph *graph, const Config *config, int64_t default_blocks)
{
    const int64_t blocks = config->model.depth;
    return (Net){graph, config, blocks > 0 ? blocks : default_blocks, NODE_INPUT};
}

static const char *name_of(const char *prefix, const char *part, char out[2 * NAME_CHARS])
{
    snprintf(out, 2 * NAME_CHARS, "%s.%s", prefix, part);
    return out;
}

/* Returns the number of groups of a group norm: the largest divisor of `channels` that is at most
 * channels / GROUP_CHANNELS, but at least 1. */
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

/* Adds a convolution that keeps the size. bias: true if it has a bias. */
static int add_conv(const Net *n, int x, const char *name, int64_t channels, int kernel, bool bias)
{
    char width[ZOO_NUMBER], size[ZOO_NUMBER];
    return graph_add(n->graph, "conv2d", name, &x, 1, "channels", zoo_number(channels, width),
                     "kernel", zoo_number(kernel, size), "pad", "same", "pad_mode",
                     kernel > 1 ? n->config->model.pad_mode : "zero", "bias",
                     bias ? "true" : "false", NULL);
}

static int add_act(const Net *n, int x, const char *name)
{
    return graph_add(n->graph, activation_layer(n->config), name, &x, 1, NULL);
}

/* ---- scalars ---- */

/* Adds nodes that compute the scalars of each sample, (N,S), from the last S channels of the data,
 * which are constant over space. */
static int add_scalars(const Net *n)
{
    const int count = field_constants(n->config);
    const int64_t channels = graph_channels(n->graph, NODE_INPUT);
    if (count == 0 || count > channels) {
        fail(ERR_CONFIG, "model.film needs channels that are constant over space: give "
                         "data.variables scalars, or hour or year under extra");
        return GRAPH_FAILED;
    }
    ChannelSum *sum = mem_new((size_t)count * sizeof *sum);
    for (int i = 0; i < count; ++i)
        sum[i] = (ChannelSum){.terms = 1,
                              .term = {{.channel = (int16_t)(channels - count + i), .factor = 1}}};
    int x = graph_add_sums(n->graph, "film.scalars", sum, count, (const int[]){NODE_INPUT}, 1);
    mem_free(&sum);
    x = graph_add(n->graph, "global_pool", "film.mean", &x, 1, NULL);
    return graph_add(n->graph, "flatten", "film.flat", &x, 1, NULL);
}

/* Adds the perceptron of the scalars, whose output, (N,model.film), all blocks read. */
static int add_film_mlp(const Net *n)
{
    char width[ZOO_NUMBER];
    int x = add_scalars(n);
    zoo_number(n->config->model.film, width);
    x = graph_add(n->graph, "dense", "film.fc1", &x, 1, "width", width, NULL);
    x = add_act(n, x, "film.act1");
    x = graph_add(n->graph, "dense", "film.fc2", &x, 1, "width", width, NULL);
    return add_act(n, x, "film.act2");
}

/* Adds a film layer that scales and shifts the channels of a block. Its initial weights leave the
 * block's output unchanged. */
static int add_film(const Net *n, int x, const char *prefix, int64_t channels)
{
    char width[ZOO_NUMBER], name[2 * NAME_CHARS];
    if (n->film == NODE_INPUT) return x;
    const int by = graph_add(n->graph, "dense", name_of(prefix, "scales", name), &n->film, 1,
                             "width", zoo_number(2 * channels, width), "init", "zero", NULL);
    return graph_add(n->graph, "film", name_of(prefix, "film", name), (int[]){x, by}, 2, NULL);
}

/* ---- blocks ---- */

/* Adds the convolution with this number in a block, its norm and, if `act` is true, its activation.
 * With model.film the first norm of a block is followed by a film layer. */
static int conv_norm(const Net *n, int x, const char *prefix, int number, int64_t channels,
                     bool act)
{
    char part[NAME_CHARS], name[2 * NAME_CHARS];
    const bool bias = n->config->model.norm == FIELD_NORM_NONE;
    snprintf(part, sizeof part, "conv%d", number);
    x = add_conv(n, x, name_of(prefix, part, name), channels, 3, bias);
    snprintf(part, sizeof part, "norm%d", number);
    x = add_norm(n, x, name_of(prefix, part, name), channels);
    if (number == 1) x = add_film(n, x, prefix, channels);
    snprintf(part, sizeof part, "act%d", number);
    return act ? add_act(n, x, name_of(prefix, part, name)) : x;
}

/* Adds a block of two convolutions. residual: true if the block's input is added to its output
 * before the last activation; the input first passes through a 1x1 convolution if the number of
 * channels changes. */
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
    return add_act(n, y, name_of(prefix, "act2", name));
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

/* Adds a layer that doubles the size. A transposed convolution has `channels` output channels; the
 * other layers keep the channels of x. */
static int add_up(const Net *n, int x, const char *name, int64_t channels)
{
    static const char *const mode[] = {[UP_NEAREST] = "nearest", [UP_BILINEAR] = "bilinear"};
    char width[ZOO_NUMBER];
    if (n->config->model.up == UP_TRANSPOSE)
        return graph_add(n->graph, "conv_transpose2d", name, &x, 1, "channels",
                         zoo_number(channels, width), "kernel", "2", "stride", "2", NULL);
    return graph_add(n->graph, "upsample", name, &x, 1, "mode", mode[n->config->model.up], NULL);
}

/* Adds self-attention over all pixels (Ho et al. 2020, appendix B): it reads x after a norm, and
 * its result is added to x. */
static int add_attention(const Net *n, int x)
{
    char heads[ZOO_NUMBER];
    const int64_t channels = graph_channels(n->graph, x);
    int y = add_norm(n, x, "bottom.norm", channels);
    y = add_conv(n, y, "bottom.qkv", 3 * channels, 1, true);
    y = graph_add(n->graph, "pixels_to_tokens", "bottom.tokens", &y, 1, NULL);
    y = graph_add(n->graph, "attention", "bottom.attention", &y, 1, "heads",
                  zoo_number(n->config->model.attention, heads), "full", "true", NULL);
    y = graph_add(n->graph, "tokens_to_pixels", "bottom.pixels", (int[]){y, x}, 2, NULL);
    y = add_conv(n, y, "bottom.proj", channels, 1, true);
    return graph_add(n->graph, "add", "bottom.add", (int[]){y, x}, 2, NULL);
}

static int last_conv(const Net *n, int x)
{
    return add_conv(n, x, "head", n->graph->classes, 1, true);
}

/* Fails if there are too many levels, or if the size cannot be halved once for each level after the
 * first. */
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

/* Checks the norm, and adds the perceptron of the scalars, which all blocks read. */
static Status start(Net *n)
{
    if (n->config->model.norm == FIELD_NORM_LAYER)
        return fail(ERR_CONFIG,
                    "%s: model.norm: layer is for columns: set group, batch, instance "
                    "or none",
                    n->config->model.name);
    if (n->config->model.film > 0) n->film = add_film_mlp(n);
    return n->film == GRAPH_FAILED ? ERR_CONFIG : OK;
}

static int build_unet(Graph *graph, const Config *config)
{
    Net n = net_of(graph, config, LEVEL_BLOCKS);
    const int levels = config->model.channels.count;
    char name[NAME_CHARS];
    int x = NODE_INPUT, level[LEVELS_MOST];
    if (check_levels(&n, levels) != OK || start(&n) != OK) return GRAPH_FAILED;
    for (int i = 0; i < levels; ++i) {
        snprintf(name, sizeof name, "down%d.pool", i);
        if (i > 0)
            x = graph_add(graph, config->model.down == DOWN_MAX ? "max_pool" : "avg_pool", name, &x,
                          1, "kernel", "2", "stride", "2", NULL);
        snprintf(name, sizeof name, "down%d", i);
        level[i] = x = add_blocks(&n, x, name, (int64_t)config->model.channels.value[i]);
    }
    if (config->model.attention > 0 && x != GRAPH_FAILED) x = add_attention(&n, x);
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
    Net n = net_of(graph, config, RESNET_BLOCKS);
    const int64_t width = config->model.width;
    char name[NAME_CHARS];
    int x = conv_norm(&n, NODE_INPUT, "stem", 1, width, true);
    if (start(&n) != OK) return GRAPH_FAILED;
    for (int64_t i = 0; i < n.blocks; ++i) {
        snprintf(name, sizeof name, "block%lld", (long long)i);
        x = add_block(&n, x, name, width, true);
    }
    x = zoo_dropout(graph, config, "dropout", x, 0);
    return last_conv(&n, x);
}

/* Models of this file, listed in MODELS (zoo.c). */
const ZooEntry zoo_unet = {
    .name = "unet",
    .help = "fields to fields: levels that halve the size, and back",
    .uses = "channels blocks norm activation pad_mode residual up down attention film",
    .defaults = "channels=[32,64,128,256]",
    .maps = MAPS_FIELDS,
    .build = build_unet,
};
const ZooEntry zoo_fieldresnet = {
    .name = "fieldresnet",
    .help = "fields to fields: residual blocks at full size",
    .uses = "width blocks norm activation pad_mode film",
    .defaults = "width=64",
    .maps = MAPS_FIELDS,
    .build = build_resnet,
};
