/* Channels that belong together, and models after pruning: parameters and multiply-adds compared
 * with a table made by other code, scores computed by hand, groups of every kind of layer. */
#include "fixture.h"
#include "model/units.h"
#include "tensor/op_list.h"

#include <math.h>

/* A model, its pruned channels, and the model that is left. */
typedef struct Case {
    Config *config;
    Graph *graph, *after;
    Units *units;
    bool *removed;
} Case;

static Case case_of(const char *text, Desc input, int64_t classes, const char *keep)
{
    Case c = {.config = config_of(text)};
    CHECK_OK(graph_build(&c.graph, c.config, input, classes));
    CHECK_OK(units_new(&c.units, c.graph, &keep, keep != NULL));
    c.removed = mem_new((size_t)c.units->unit_count * sizeof *c.removed);
    return c;
}

static void case_free(Case *c)
{
    units_free(&c->units);
    graph_free(&c->graph);
    graph_free(&c->after);
    config_free(&c->config);
    mem_free(&c->removed);
}

/* Returns no weights: the first rows are pruned. */
static Status get_nothing(void *user, int param, float *plain)
{
    (void)user;
    (void)param;
    (void)plain;
    return OK;
}

static void score_by_row(const float *w, int64_t rows, int64_t columns, double *out)
{
    (void)w;
    (void)columns;
    for (int64_t r = 0; r < rows; ++r) out[r] = (double)r;
}

static void shrink(Case *c, double sparsity, int64_t round)
{
    static const PruneMethod method = {"rows", score_by_row};
    const PruneOptions options = {
        .method = &method, .sparsity = sparsity, .round_to = round, .get = get_nothing};
    CHECK_OK(prune_choose(c->units, &options, c->removed));
    prune_set_widths(c->units, c->removed, c->config);
    CHECK_OK(graph_build(&c->after, c->config, c->graph->input, c->graph->classes));
    for (int p = 0; c->after && p < c->graph->param_count; ++p)
        CU_ASSERT(
            shape_equal(c->after->param[p].shape, units_param_shape(c->units, p, c->removed)));
}

static int layer_of(const Graph *graph, const char *name)
{
    int layer = index_of(graph, name);
    CU_ASSERT_TRUE_FATAL(layer >= 0);
    return layer;
}

static const UnitGroup *group_of(const Case *c, const char *name)
{
    return &c->units->group[c->units->group_of[units_of_channels(c->units,
                                                                 layer_of(c->graph, name))[0]]];
}

static int64_t left_of(const Case *c, const char *name)
{
    return units_channels_left(c->units, layer_of(c->graph, name), c->removed);
}

typedef struct Row {
    const char *config;
    int64_t channels, image, classes;
    double sparsity;
    int64_t params;
    double macs;
} Row;

static const Row rows[] = {
    {"model: {name: resnet18}", 3, 224, 1000, .2, 7588716, 1195491972},
    {"model: {name: resnet18}", 3, 224, 1000, .5, 3055880, 483149824},
    {"model: {name: resnet50}", 3, 224, 1000, .2, 16730093, 2656625894},
    {"model: {name: resnet50}", 3, 224, 1000, .5, 6917640, 1052311552},
    {"model: {name: resnet50}", 3, 224, 102, .2, 15257373, 2655154072},
    {"model: {name: resnet50}", 3, 224, 102, .5, 5997190, 1051392000},
    {"model: {name: mobilenet_v2}", 3, 224, 1000, .2, 2467954, 200441113},
    {"model: {name: mobilenet_v2}", 3, 224, 1000, .5, 1221768, 83402176},
    {"model: {name: resnet18, stem: small}", 3, 32, 10, .2, 7175586, 360362820},
    {"model: {name: resnet18, stem: small}", 3, 32, 10, .5, 2797610, 139299328},
    {"model: {name: resnet50, stem: small}", 3, 32, 10, .2, 15100253, 837078758},
    {"model: {name: resnet50, stem: small}", 3, 32, 10, .5, 5899050, 324904960},
};

static void table(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const Row *row = &rows[i];
        Case c = case_of(row->config, images(1, row->channels, row->image), row->classes, NULL);
        shrink(&c, row->sparsity, 1);
        CU_ASSERT_EQUAL(graph_param_elements(c.after), row->params);
        CU_ASSERT_EQUAL(graph_sample_macs(c.after), row->macs);
        if (graph_param_elements(c.after) != row->params)
            printf("  %s at %g: %lld parameters, %.0f MACs\n", row->config, row->sparsity,
                   (long long)graph_param_elements(c.after), graph_sample_macs(c.after));
        case_free(&c);
    }
}

/* Counts the groups whose channels can be pruned, and the layers in them. */
static void count(const Case *c, int *groups, int *layers)
{
    *groups = *layers = 0;
    for (int i = 0; i < c->units->group_count; ++i)
        if (!c->units->group[i].is_kept) {
            ++*groups;
            *layers += c->units->group[i].layer_count;
        }
}

static void groups(void)
{
    static const struct {
        const char *config;
        int groups, layers;
    } want[] = {{"model: {name: resnet18}", 12, 20},
                {"model: {name: resnet50}", 37, 53},
                {"model: {name: mobilenet_v2}", 25, 35},
                {"model: {name: mlp}", 2, 2},
                {"model: {name: lenet}", 3, 3}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; ++i) {
        int g, l;
        Case c = case_of(want[i].config, images(1, 3, 64), 10, NULL);
        count(&c, &g, &l);
        CU_ASSERT_EQUAL(g, want[i].groups);
        CU_ASSERT_EQUAL(l, want[i].layers);
        case_free(&c);
    }
}

/* The residual stream, attention and the tied head stay; c_fc, and gate and value of swiglu, can be
 * pruned. */
static void gpt(void)
{
    int g, l;
    Desc tokens = desc_plain(shape_of(2, 1, 8, 1, 1), DTYPE_I32);
    Case c = case_of("model: {name: gpt2, layers: 2, width: 12, heads: 3, context: 8}", tokens, 17,
                     NULL);
    count(&c, &g, &l);
    CU_ASSERT(g == 2 && l == 2);
    shrink(&c, .25, 1);
    CU_ASSERT_EQUAL(left_of(&c, "h.1.mlp.c_fc"), 36);
    CU_ASSERT_EQUAL(left_of(&c, "h.1.attn.c_attn"), 36);
    CU_ASSERT_STRING_EQUAL(c.graph->node[group_of(&c, "h.0.attn.c_attn")->kept_by].name,
                           "h.0.attn");
    case_free(&c);
    c = case_of("model: {name: llama, layers: 2, width: 12, heads: 3, context: 8, ffn: 20}", tokens,
                17, NULL);
    count(&c, &g, &l);
    CU_ASSERT(g == 2 && l == 2);
    shrink(&c, .5, 1);
    int wide = 0;
    for (int i = 0; i < c.after->node_count; ++i)
        wide += c.after->node[i].spec.y.shape.dim[2] == 20 &&
                c.graph->node[i].spec.y.shape.dim[2] == 40;
    CU_ASSERT_EQUAL(wide, 2);
    case_free(&c);
}

static const char grouped[] =
    "model: {layers: [conv2d: {name: a, channels: 8, kernel: 3, pad: 1},"
    " conv2d: {name: b, channels: 12, kernel: 3, pad: 1, groups: 4},"
    " conv2d: {name: c, channels: 6, kernel: 1}, flatten, dense: {name: d, width: 10}]}";

/* A grouped convolution keeps the same number of channels in each part of its input and of its
 * output. */
static void parts(void)
{
    Case c = case_of(grouped, images(1, 3, 4), 10, NULL);
    CU_ASSERT(group_of(&c, "a")->parts == 4 && group_of(&c, "b")->parts == 4);
    CU_ASSERT_EQUAL(group_of(&c, "c")->parts, 1);
    shrink(&c, .5, 1);
    CU_ASSERT(left_of(&c, "a") == 4 && left_of(&c, "b") == 8 && left_of(&c, "c") == 3);
    for (int p = 0; p < 4; ++p) {
        int removed = 0;
        for (int k = 0; k < 3; ++k) removed += c.removed[group_of(&c, "b")->first + 3 * p + k];
        CU_ASSERT_EQUAL(removed, 1);
    }
    /* rows 1, 2 of each part of b remain, with column 1 of the part's two */
    int param = c.graph->node[layer_of(c.graph, "b")].param[0];
    float plain[12 * 2 * 9], out[8 * 9];
    for (int i = 0; i < 12 * 2 * 9; ++i) plain[i] = (float)i;
    units_param_gather(c.units, param, c.removed, plain, out);
    for (int r = 0; r < 8; ++r)
        for (int k = 0; k < 9; ++k) {
            int row = r / 2 * 3 + 1 + r % 2;
            CU_ASSERT_EQUAL(out[r * 9 + k], (float)((row * 2 + 1) * 9 + k));
        }
    case_free(&c);
}

/* Group norms: a channel that is a group by itself can be pruned; with larger groups the same
 * number is pruned in each. If that number is 0 and nothing else can be pruned, the message says
 * so. */
static void normed(void)
{
    static const char *const text =
        "model: {layers: [conv2d: {name: a, channels: 8, kernel: 1}, group_norm: {name: n, groups: "
        "%d}, relu, global_pool, flatten, dense: {width: 10}]}";
    static const struct {
        int groups, parts, left;
        double sparsity;
        const char *why;
    } want[] = {{8, 1, 7, .2, NULL},
                {8, 1, 4, .5, NULL},
                {8, 1, 1, .99, NULL},
                {1, 1, 7, .2, NULL},
                {4, 4, 4, .5, NULL},
                {2, 2, 6, .25, NULL},
                {4, 4, 8, .4, "from each of 4 groups (n), and --sparsity 0.4 of 8 channels is"},
                {8, 1, 8, .1, "of the 8 channels of a, the widest layer, is"}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; ++i) {
        char config[256];
        snprintf(config, sizeof config, text, want[i].groups);
        Case c = case_of(config, images(1, 3, 4), 10, NULL);
        CU_ASSERT_EQUAL(group_of(&c, "a")->parts, want[i].parts);
        if (want[i].why) {
            const PruneOptions options = {.method = &prune_methods[PRUNE_L1],
                                          .sparsity = want[i].sparsity,
                                          .round_to = 1,
                                          .get = get_nothing};
            CHECK_FAILS(prune_choose(c.units, &options, c.removed), ERR_CONFIG, want[i].why);
        } else {
            shrink(&c, want[i].sparsity, 1);
            CU_ASSERT_EQUAL(left_of(&c, "a"), want[i].left);
            int norm = layer_of(c.after, "n");
            int groups = want[i].groups == 8 ? want[i].left : want[i].groups;
            CU_ASSERT_EQUAL(c.after->node[norm].spec.groups, groups);
        }
        case_free(&c);
    }
    Case c = case_of("model: {layers: [conv2d: {name: a, channels: 4, kernel: 1}, conv2d: {name: b,"
                     " channels: 8, kernel: 1, groups: 4}, conv2d: {name: c, channels: 8, kernel: "
                     "1, groups: 8}, flatten, dense: {width: 10}]}",
                     images(1, 3, 1), 10, "b");
    const PruneOptions options = {
        .method = &prune_methods[PRUNE_L1], .sparsity = .5, .round_to = 1, .get = get_nothing};
    CHECK_FAILS(prune_choose(c.units, &options, c.removed), ERR_CONFIG,
                "a has 4 in 4 groups (b), and each group must keep one");
    case_free(&c);
}

/* Concatenated, added to another layer, flattened. */
static void concatenated(void)
{
    Case c = case_of(
        "model: {layers: [conv2d: {name: a, channels: 3, kernel: 1},"
        " conv2d: {name: b, channels: 5, kernel: 1, input: data}, concat: {input: [a, b]},"
        " conv2d: {name: c, channels: 8, kernel: 1, input: data}, add: {name: s, input: [c, "
        "concat1]}, flatten, dense: {name: d, width: 10}]}",
        images(1, 1, 2), 10, NULL);
    const UnitGroup *group = group_of(&c, "a");
    CU_ASSERT(group == group_of(&c, "b") && group == group_of(&c, "c"));
    CU_ASSERT(group->count == 8 && group->layer_count == 3);
    /* scores are sums of rows: 0, 2, 4 for a; 3, 5, 7, 9, 11 for b */
    shrink(&c, .4, 1);
    CU_ASSERT(left_of(&c, "a") == 1 && left_of(&c, "b") == 4 && left_of(&c, "c") == 5);
    CU_ASSERT(!c.removed[group->first + 2] && left_of(&c, "flatten1") == 20);
    case_free(&c);
    c = case_of("model: {layers: [conv2d: {name: a, channels: 3, kernel: 1},"
                " conv2d: {name: b, channels: 5, kernel: 1, input: data}, concat: {input: [a, b]},"
                " conv2d: {name: c, channels: 8, kernel: 1, input: data}, add: {input: [c, "
                "concat1]}, flatten, dense: {name: d, width: 10}]}",
                images(1, 1, 2), 10, NULL);
    /* the last channel of a is kept, although its score is too low */
    shrink(&c, .5, 1);
    CU_ASSERT(left_of(&c, "a") == 1 && left_of(&c, "b") == 4 && left_of(&c, "c") == 5);
    case_free(&c);
}

/* Layers that need the channels of several layers in equal parts. */
static void parts_of_concat(void)
{
    static const char text[] =
        "model: {layers: [conv2d: {name: a, channels: 8, kernel: 1}, conv2d: {name: b, channels: 8,"
        " kernel: 1, input: data}, concat: {name: ab, input: [a, b]}, %s, flatten, dense: {width: "
        "10}]}";
    static const char *const layer[] = {"group_norm: {name: n, groups: 2}",
                                        "conv2d: {name: n, channels: 4, kernel: 1, groups: 2}"};
    static const char *const keep[] = {NULL, "a", "b", "ab"};
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 4; ++k) {
            char config[300];
            snprintf(config, sizeof config, text, layer[i]);
            Case c = case_of(config, images(1, 1, 1), 10, keep[k]);
            CU_ASSERT(group_of(&c, "a")->is_kept && group_of(&c, "b")->is_kept);
            CU_ASSERT_EQUAL(group_of(&c, "b")->kept_by, k < 2 ? layer_of(c.graph, "n") : -1);
            case_free(&c);
        }
}

/* A layer that would lose all its channels keeps one, and each other part of the group keeps one
 * more. */
static void parts_with_small_layer(void)
{
    Case c = case_of(
        "model: {layers: [conv2d: {name: a, channels: 2, kernel: 1}, conv2d: {name: b, channels: 6,"
        " kernel: 1, input: data}, concat: {input: [a, b]}, conv2d: {name: c, channels: 8, kernel: "
        "1, input: data}, add: {name: s, input: [c, concat1]}, group_norm: {groups: 2}, flatten, "
        "dense: {width: 10}]}",
        images(1, 1, 1), 10, NULL);
    const UnitGroup *group = group_of(&c, "a");
    CU_ASSERT(group->parts == 2 && !group->is_kept);
    /* scores are sums of rows: 0, 2 for a; 2, 4, 6, 8, 10, 12 for b */
    shrink(&c, .75, 1);
    CU_ASSERT(left_of(&c, "a") == 1 && left_of(&c, "b") == 3 && left_of(&c, "s") == 4);
    CU_ASSERT(!c.removed[group->first + 1] && !c.removed[group->first + 6]);
    case_free(&c);
}

/* A channel that a layer keeps because it would lose all of them is followed by others, so that the
 * group's channels remain a multiple of --round. */
static void rounded_with_small_layer(void)
{
    Case c = case_of(
        "model: {layers: [conv2d: {name: a, channels: 2, kernel: 1}, conv2d: {name: b, channels: 6,"
        " kernel: 1, input: data}, concat: {input: [a, b]}, conv2d: {name: c, channels: 8, kernel: "
        "1, input: data}, add: {name: s, input: [c, concat1]}, flatten, dense: {width: 10}]}",
        images(1, 1, 1), 10, NULL);
    CU_ASSERT_EQUAL(group_of(&c, "a")->parts, 1);
    shrink(&c, .75, 2);
    CU_ASSERT(left_of(&c, "a") == 1 && left_of(&c, "b") == 3 && left_of(&c, "s") == 4);
    case_free(&c);
}

static void kept(void)
{
    Units *units = NULL;
    const char *none = "conv9*";
    Case c = case_of("model: {name: resnet18}", images(1, 3, 64), 10, "layer1.*");
    CU_ASSERT(group_of(&c, "conv1")->is_kept && !group_of(&c, "layer2.0.conv1")->is_kept);
    CU_ASSERT_EQUAL(group_of(&c, "conv1")->kept_by, -1);
    CHECK_FAILS(units_new(&units, c.graph, &none, 1), ERR_USAGE, "conv9*: matches no layer");
    CU_ASSERT_PTR_NULL(units);
    shrink(&c, .3, 8);
    CU_ASSERT(left_of(&c, "conv1") == 64 && left_of(&c, "layer2.0.conv1") == 96);
    CU_ASSERT_EQUAL(left_of(&c, "layer3.0.conv1"), 184);
    case_free(&c);
}

static void scores(void)
{
    static const float w[] = {3, -4, 0, 0, 3, 0};
    static const double l1[] = {7, 0, 3}, l2[] = {5, 0, 3}, fpgm[] = {9, 8, 7};
    const double *want[] = {[PRUNE_L1] = l1, [PRUNE_L2] = l2, [PRUNE_FPGM] = fpgm};
    for (int m = PRUNE_L1; m <= PRUNE_FPGM; ++m) {
        double got[3] = {0};
        prune_methods[m].score(w, 3, 2, got);
        for (int r = 0; r < 3; ++r) CU_ASSERT_EQUAL(got[r], want[m][r]);
    }
}

static Status get_scales(void *user, int param, float *plain)
{
    const Graph *g = user;
    for (int64_t i = 0; i < g->param[param].shape.dim[0]; ++i)
        plain[i] = (g->param[param].name[0] == 'a' ? 1.0f : -10.0f) * (float)(i + 1);
    return OK;
}

/* Pruning by the scales of all batch norms together; each layer keeps a channel; refused without
 * batch norm. */
static void slim(void)
{
    Case c = case_of("model: {layers: [conv2d: {name: x, channels: 4, kernel: 1}, batch_norm: "
                     "{name: a}, conv2d: {name: y, channels: 4, kernel: 1}, batch_norm: {name: b},"
                     " conv2d: {name: z, channels: 4, kernel: 1}, flatten, dense: {width: 10}]}",
                     images(1, 1, 2), 10, NULL);
    PruneOptions options = {.method = &prune_methods[PRUNE_SLIM],
                            .sparsity = .625,
                            .round_to = 1,
                            .get = get_scales,
                            .user = c.graph};
    CHECK_OK(prune_choose(c.units, &options, c.removed));
    CU_ASSERT(left_of(&c, "x") == 1 && left_of(&c, "y") == 3 && left_of(&c, "z") == 4);
    CU_ASSERT(!c.removed[group_of(&c, "x")->first + 3]);
    case_free(&c);
    c = case_of("model: {name: lenet}", images(1, 1, 28), 10, NULL);
    options.user = c.graph;
    CHECK_FAILS(prune_choose(c.units, &options, c.removed), ERR_CONFIG, "this model has none");
    case_free(&c);
}

static void width_errors(void)
{
    static const struct {
        const char *config, *message;
    } bad[] = {
        {"model: {name: resnet18, widths: {conv2: 5}}", "there is no layer 'conv2'; did you mean"},
        {"model: {name: mobilenet_v2, widths: {features.2.conv.1.9: 5}}",
         "did you mean 'features.2.conv.0.0'?"},
        {"model: {name: resnet18, widths: {bn1: 5}}", "layer bn1 (batch_norm) has the channels"},
        {"model: {name: mobilenet_v2, widths: {features.2.conv.1.0: 5}}", "name the layers before"},
        {"model: {name: resnet18, widths: {layer1.0.conv2: 5}}", "layer layer1.0.add: add got"},
        {"model: {name: resnet18, widths: {fc: 5}}", "gives 5 outputs"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        Graph *graph = NULL;
        Config *config = config_of(bad[i].config);
        CHECK_FAILS(graph_build(&graph, config, images(1, 3, 64), 10), ERR_CONFIG, bad[i].message);
        CU_ASSERT_PTR_NULL(graph);
        config_free(&config);
    }
}

TEST_MAIN("units", {"parameters and multiply-adds of the table", table},
          {"groups of the zoo", groups}, {"gpt2 and llama", gpt}, {"grouped convolutions", parts},
          {"group norms", normed}, {"concat, sum, flatten", concatenated},
          {"parts of several layers", parts_of_concat},
          {"parts and a small layer", parts_with_small_layer},
          {"rounded, and a small layer", rounded_with_small_layer}, {"kept and rounded", kept},
          {"scores", scores}, {"slim", slim}, {"widths that cannot be", width_errors})
