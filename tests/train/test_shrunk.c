/* Tests pruning. A model without some channels computes the same as the complete model with these
 * channels set to zero: their kernels and biases of convolutions, and their scales and shifts of
 * norms. Tested for every layer that passes channels on. */
#include "one_rank.h"

#include "model/units.h"
#include "tensor/op_list.h"
#include "train.h"

#include <math.h>

enum { SAMPLES = 4, CLASSES = 10, VOCAB = 17, TOKENS = 6, SEED = 5 };
/* Largest difference of logits, relative to the largest logit. In single precision sums differ
 * because columns are missing, which changes their order. Ten times the largest measured error,
 * 5e-7 with the avx2 kernels (docs/pruning.md). */
static const double TOLERANCE = 5e-6;

static Desc tokens(void)
{
    return desc_plain(shape_of(2, SAMPLES, TOKENS, 1, 1), DTYPE_I32);
}

static Desc images(int64_t channels, int64_t size)
{
    return desc_plain(shape_of(4, SAMPLES, channels, size, size), DTYPE_F32);
}

/* Returns a parameter's initial values in plain order. Noise is added to vectors, which would
 * otherwise be all 0 or all 1; variances stay above 0. Owned by the caller. */
static float *values_of(const Graph *g, int param)
{
    const Param *p = &g->param[param];
    int64_t n = shape_count(p->shape);
    float *plain = mem_new((size_t)n * sizeof *plain);
    RngKey key = rng_key(SEED, RNG_TEST, (uint64_t)param, 0);
    param_init(g, param, SEED, plain);
    for (int64_t i = 0; i < n && p->shape.ndim == 1; ++i)
        plain[i] += 0.4f * (rng_uniform(key, (uint64_t)i) - 0.5f);
    return plain;
}

static Status get_values(void *user, int param, float *plain)
{
    const Graph *g = user;
    float *value = values_of(g, param);
    memcpy(plain, value, (size_t)shape_count(g->param[param].shape) * sizeof *plain);
    mem_free(&value);
    return OK;
}

/* Sets the rows of a parameter to 0 that units_param_gather would leave out. removed: for each
 * unit. */
static void mask(const Units *u, int param, const bool *removed, float *plain)
{
    const Param *p = &u->graph->param[param];
    LayerChannels how = u->graph->node[p->node].kind->channels;
    int64_t rows = p->shape.dim[0], each = shape_count(p->shape) / rows;
    if (p->info.is_statistic || (how != CHANNELS_NEW && how != CHANNELS_KEEP)) return;
    for (int64_t r = 0; r < rows; ++r)
        if (removed[units_of_channels(u, p->node)[r]])
            memset(plain + r * each, 0, (size_t)each * sizeof *plain);
}

/* Sets the parameters of a model. whole, true: the complete model, with zeros for removed channels;
 * false: the shrunk model. */
static void fill(OneRank *r, const Units *u, const bool *removed, bool whole)
{
    for (int i = 0; i < r->graph->param_count; ++i) {
        const Param *p = &r->graph->param[i];
        if (p->tied_param >= 0) continue;
        float *plain = values_of(u->graph, i);
        float *stored = mem_new((size_t)p->elements * sizeof *stored);
        if (whole)
            mask(u, i, removed, plain);
        else
            units_param_gather(u, i, removed, plain, plain);
        op_pack(r->graph->node[p->node].op, p->slot, plain, stored);
        executor_set_param(r->executor, i, stored);
        mem_free(&plain);
        mem_free(&stored);
    }
    executor_params_changed(r->executor);
}

/* Sets the parameters as `fill` does, and computes the logits of one batch, logits[count]. */
static void evaluate(OneRank *r, const Units *u, const bool *removed, bool whole, double *logits,
                     int64_t count)
{
    int64_t n = shape_count(r->graph->input.shape), lines = count / r->graph->classes;
    float *x = mem_new((size_t)n * sizeof *x);
    int32_t *token = mem_new((size_t)n * sizeof *token),
            *label = mem_new((size_t)lines * sizeof *label);
    int64_t sample[SAMPLES] = {0, 1, 2, 3};
    bool text = r->graph->input.dtype == DTYPE_I32;
    RngKey key = rng_key(SEED, RNG_TEST, 0, 1);
    for (int64_t i = 0; i < n; ++i) {
        x[i] = rng_normal(key, (uint64_t)i);
        token[i] = (int32_t)(rng_u32(key, (uint64_t)i) % VOCAB);
    }
    MicroBatch batch = {.x = text ? NULL : x,
                        .tokens = text ? token : NULL,
                        .labels = label,
                        .sample = sample,
                        .rows = SAMPLES};
    BatchSource source = {.user = &batch, .next = one_rank_batch, .release = one_rank_release};
    fill(r, u, removed, whole);
    CHECK_OK(executor_evaluate(r->executor, &source, NULL, NULL));
    const float *got = executor_logits(r->executor, 0);
    for (int64_t i = 0; i < count; ++i) logits[i] = (double)got[i];
    mem_free(&x);
    mem_free(&token);
    mem_free(&label);
}

static Config *config_of(const char *model)
{
    Config *config = NULL;
    train_use_words();
    CHECK_OK(config_parse(&config, "test", model, 0, NULL));
    return config;
}

static double largest(const double *a, const double *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) worst = fmax(worst, fabs(a[i] - (b ? b[i] : 0)));
    return worst;
}

static void compare(const char *model, const Graph *g, const Units *u, const bool *removed)
{
    OneRank whole, less;
    Config *config = config_of(model);
    Shape y = g->node[g->logits_node].spec.y.shape;
    int64_t n = shape_count(y);
    double *a = mem_new((size_t)n * sizeof *a), *b = mem_new((size_t)n * sizeof *b);
    prune_set_widths(u, removed, config);
    CHECK_OK(one_rank_open(&less, config, g->input, g->classes, &backend_cpu, &backend_cpu, SEED));
    CHECK_OK(one_rank_open(&whole, config_of(model), g->input, g->classes, &backend_cpu,
                           &backend_cpu, SEED));
    CU_ASSERT(graph_param_elements(less.graph) < graph_param_elements(whole.graph));
    evaluate(&less, u, removed, false, a, n);
    evaluate(&whole, u, removed, true, b, n);
    double off = largest(a, b, n) / largest(b, NULL, n);
    CU_ASSERT(off < TOLERANCE);
    if (getenv("WEFT_TEST_VERBOSE") || !(off < TOLERANCE)) printf("  %s: off by %g\n", model, off);
    one_rank_close(&whole);
    one_rank_close(&less);
    mem_free(&a);
    mem_free(&b);
}

static void check(const char *model, Desc input, int64_t classes, int method)
{
    Graph *g = NULL;
    Units *u = NULL;
    Config *config = config_of(model);
    CHECK_OK(graph_build(&g, config, input, classes));
    CHECK_OK(units_new(&u, g, NULL, 0));
    bool *removed = mem_new((size_t)u->unit_count * sizeof *removed);
    const PruneOptions options = {.method = &prune_methods[method],
                                  .sparsity = .4,
                                  .round_to = 1,
                                  .get = get_values,
                                  .user = g};
    CHECK_OK(prune_choose(u, &options, removed));
    compare(model, g, u, removed);
    mem_free(&removed);
    units_free(&u);
    graph_free(&g);
    config_free(&config);
}

static void resnets(void)
{
    check("model: {name: resnet18, stem: small, width: 8}", images(3, 16), CLASSES, PRUNE_L1);
    check("model: {name: resnet18, stem: small, width: 8}", images(3, 16), CLASSES, PRUNE_SLIM);
    check("model: {name: resnet50, width: 8}", images(3, 40), CLASSES, PRUNE_L2);
}

static void depthwise(void)
{
    check("model: {name: mobilenet_v2, width: 8}", images(3, 48), CLASSES, PRUNE_FPGM);
}

static void lists(void)
{
    check("model: {layers: [conv2d: {name: a, channels: 6, kernel: 3, pad: same}, batch_norm: "
          "{name: an}, relu: {name: ar}, conv2d: {name: b, channels: 5, kernel: 1, input: data}, "
          "concat: {name: ab, input: [ar, b]}, conv2d: {name: c, channels: 11, kernel: 3, pad: "
          "same}, add: {name: s, input: [c, ab]}, max_pool: {kernel: 2}, conv2d: {name: d, "
          "channels: 7, kernel: 3}, batch_norm, relu, concat: {input: [d, relu2]}, avg_pool: "
          "{kernel: 2}, flatten, dense: {width: 10}]}",
          images(2, 12), CLASSES, PRUNE_L1);
    check("model: {layers: [conv2d: {channels: 8, kernel: 3}, relu, conv2d: {channels: 12, kernel: "
          "3, groups: 4}, batch_norm, relu, conv2d: {channels: 9, kernel: 1, groups: 3}, "
          "global_pool, flatten, dense: {width: 10}]}",
          images(3, 10), CLASSES, PRUNE_FPGM);
    check("model: {layers: [conv2d: {channels: 8, kernel: 3}, group_norm: {groups: 8}, relu, "
          "conv2d: {channels: 12, kernel: 3, groups: 4}, batch_norm, conv2d: {channels: 9, kernel: "
          "1}, group_norm: {groups: 9}, relu, conv2d: {channels: 6, kernel: 1}, global_pool, "
          "flatten, dense: {width: 10}]}",
          images(3, 10), CLASSES, PRUNE_L1);
    check("model: {name: lenet}", images(1, 12), CLASSES, PRUNE_L2);
    check("model: {name: mlp, hidden: [20, 10]}", images(1, 6), CLASSES, PRUNE_L1);
}

static void text(void)
{
    check("model: {name: gpt2, layers: 2, width: 16, heads: 2, context: 8}", tokens(), VOCAB,
          PRUNE_L1);
    check("model: {name: llama, layers: 2, width: 16, heads: 2, context: 8, ffn: 24}", tokens(),
          VOCAB, PRUNE_L2);
}

TEST_MAIN("shrunk", {"resnets", resnets}, {"mobilenet_v2", depthwise},
          {"lists of layers, lenet, mlp", lists}, {"gpt2 and llama", text})
