/* graph_partition: compared with all possible cuts on small graphs; balance on real models, cuts
 * given by hand, refusals, speed. */
#include "fixture.h"

#include <float.h>
#include <time.h>

static Backend *backend;

typedef struct Fixture {
    Config *config;
    Graph *graph;
} Fixture;

static Fixture fixture(const char *text, Desc input, int64_t classes)
{
    Fixture f = {0};
    if (!backend) CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    f.config = config_of(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.config);
    CHECK_OK(graph_build(&f.graph, f.config, input, classes));
    CU_ASSERT_PTR_NOT_NULL_FATAL(f.graph);
    CHECK_OK(graph_fuse(f.graph, &backend_cpu));
    CHECK_OK(graph_plan(f.graph, backend));
    return f;
}

static void fixture_fini(Fixture *f)
{
    graph_free(&f->graph);
    config_free(&f->config);
}

static Desc vectors(int64_t n)
{
    return desc_plain(shape_of(2, 4, n, 1, 1), DTYPE_F32);
}

/* Makes a chain of dense layers, whose costs depend on their widths; names d0, d1, ... */
static char *chain(int count, uint64_t seed)
{
    RngKey key = rng_key(seed, RNG_TEST, 0, 0);
    char *text = mem_text("model:\n  layers:\n");
    for (int i = 0; i < count; ++i) {
        int width = i + 1 < count ? 16 + (int)(rng_u32(key, (uint64_t)i) % 800) : 10;
        char *more = mem_format("%s    - dense: {width: %d, name: d%d}\n", text, width, i);
        mem_free(&text);
        text = more;
    }
    return text;
}

static double chunk_cost(const Graph *g, int from, int to)
{
    double cost = 0;
    for (int i = from; i < to; ++i) cost += node_cost(&g->node[i]);
    return cost;
}

static double costliest(const Graph *g, int parts, const int *first)
{
    double most = 0;
    for (int k = 0; k < parts; ++k) {
        double cost = chunk_cost(g, first[k], first[k + 1]);
        if (cost > most) most = cost;
    }
    return most;
}

/* Bytes that cross all boundaries. */
static int64_t crossing_bytes(const Graph *g, int parts, const int *first)
{
    int64_t bytes = 0;
    for (int k = 1; k < parts; ++k)
        for (int i = 0; i < first[k]; ++i) {
            bool read = false;
            for (int r = first[k]; r < g->node_count; ++r)
                for (int x = 0; x < g->node[r].spec.x_count; ++x)
                    read = read || g->node[r].in[x] == i;
            if (read) bytes += (int64_t)desc_bytes(g->node[i].spec.y);
        }
    return bytes;
}

/* Checks a cut: every node once, in order, no chunk empty, the loss in the chunk of its logits. */
static void check_cut(const Graph *g, int parts, const int *first)
{
    CU_ASSERT_EQUAL(first[0], 0);
    CU_ASSERT_EQUAL(first[parts], g->node_count);
    for (int k = 0; k < parts; ++k) CU_ASSERT(first[k] < first[k + 1]);
    CU_ASSERT(first[parts - 1] <= g->logits_node);
}

/* search through all cuts, one after the other */
typedef struct Search {
    const Graph *graph;
    int parts, first[16];
    double best;
    /* fewest bytes among the best cuts */
    int64_t bytes;
} Search;

static void search(Search *s, int part)
{
    if (part == s->parts) {
        double cost = costliest(s->graph, s->parts, s->first);
        int64_t bytes = crossing_bytes(s->graph, s->parts, s->first);
        bool equal = cost <= s->best * (1 + 1e-12) && cost >= s->best * (1 - 1e-12);
        if (equal ? bytes < s->bytes : cost < s->best) s->bytes = bytes;
        if (!equal && cost < s->best) s->best = cost;
        return;
    }
    for (int at = s->first[part - 1] + 1; at <= s->graph->logits_node; ++at) {
        s->first[part] = at;
        search(s, part + 1);
    }
}

static void against_all(Fixture *f, int most)
{
    for (int parts = 1; parts <= most; ++parts) {
        int first[16];
        Search s = {.graph = f->graph, .parts = parts, .best = DBL_MAX, .bytes = INT64_MAX};
        s.first[parts] = f->graph->node_count;
        search(&s, 1);
        CHECK_OK(graph_partition(f->graph, f->config, parts, first));
        check_cut(f->graph, parts, first);
        double cost = costliest(f->graph, parts, first);
        CU_ASSERT(cost <= s.best * (1 + 1e-12));
        CU_ASSERT_EQUAL(crossing_bytes(f->graph, parts, first), s.bytes);
    }
}

static void optimal(void)
{
    for (uint64_t seed = 0; seed < 12; ++seed) {
        char *text = chain(9, seed);
        Fixture f = fixture(text, vectors(32), 10);
        against_all(&f, 9);
        fixture_fini(&f);
        mem_free(&text);
    }
}

/* Skip connections: of cuts with equal cost the one with the fewest bytes wins. Layers without
 * flops cost by their bytes. */
static void optimal_with_skips(void)
{
    Fixture f = fixture("model:\n"
                        "  layers:\n"
                        "    - dense: {width: 512, name: a}\n"
                        "    - dense: {width: 512, name: b}\n"
                        "    - gelu: {name: g}\n"
                        "    - add: {input: [a, g], name: s}\n"
                        "    - dense: {width: 64, name: c}\n"
                        "    - layer_norm: {name: n}\n"
                        "    - dense: {width: 512, name: d}\n"
                        "    - add: {input: [d, s], name: t}\n"
                        "    - dense: {width: 10, name: e}\n",
                        vectors(512), 10);
    against_all(&f, 9);
    fixture_fini(&f);
}

static void balance(void)
{
    static const struct {
        const char *config;
        int64_t classes;
        int parts;
        /* cost of the costliest chunk divided by the mean */
        double most;
    } row[] = {
        {"model: {name: resnet18}", 1000, 2, 1.05},
        {"model: {name: resnet18}", 1000, 4, 1.2},
        {"model: {name: gpt2, layers: 8, width: 256, heads: 4}", 512, 2, 1.05},
        {"model: {name: gpt2, layers: 8, width: 256, heads: 4}", 512, 4, 1.1},
        {"model: {name: gpt2, layers: 8, width: 256, heads: 4}", 512, 8, 1.2},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        int first[16], again[16], parts = row[i].parts;
        bool gpt = row[i].classes == 512;
        Desc input = gpt ? desc_plain(shape_of(2, 2, 256, 1, 1), DTYPE_I32) : images(2, 3, 64);
        Fixture f = fixture(row[i].config, input, row[i].classes);
        CHECK_OK(graph_partition(f.graph, f.config, parts, first));
        CHECK_OK(graph_partition(f.graph, f.config, parts, again));
        check_cut(f.graph, parts, first);
        CU_ASSERT_EQUAL(memcmp(first, again, (size_t)(parts + 1) * sizeof *first), 0);
        double mean = chunk_cost(f.graph, 0, f.graph->node_count) / parts;
        double most = costliest(f.graph, parts, first);
        if (most > row[i].most * mean)
            printf("  %s in %d: %.3f of the mean\n", row[i].config, parts, most / mean);
        CU_ASSERT(most <= row[i].most * mean);
        fixture_fini(&f);
    }
}

/* The second input of the concat has a blocked layout only if the backend prefers one; the input of
 * flatten is plain. */
static const char *const concat = "model:\n"
                                  "  layers:\n"
                                  "    - conv2d: {channels: 20, kernel: 3, name: a}\n"
                                  "    - conv2d: {channels: 24, kernel: 3, input: data, name: b}\n"
                                  "    - concat: {input: [a, b]}\n"
                                  "    - conv2d: {channels: 64, kernel: 3}\n"
                                  "    - flatten\n"
                                  "    - dense: {width: 10}\n";

/* Every node has a cost, reorders too, except views. */
static void costs(void)
{
    Fixture f = fixture(concat, images(2, 3, 16), 10);
    int reorders = 0;
    for (int i = 0; i < f.graph->node_count; ++i) {
        const Node *node = &f.graph->node[i];
        double cost = node_cost(node);
        reorders += !node->kind;
        CU_ASSERT(node->op->y_is_x ? cost == 0 : cost > 0);
    }
    if (!reorders) printf("  there is no reorder here: their cost is not tested\n");
    fixture_fini(&f);
}

static void by_hand(const char *grid, const char *const *names, int parts)
{
    char *text = mem_format("model: {name: lenet}\ngrid: {%s}\n", grid);
    Fixture f = fixture(text, images(2, 1, 28), 10);
    int first[8];
    CHECK_OK(graph_partition(f.graph, f.config, parts, first));
    check_cut(f.graph, parts, first);
    for (int k = 1; k < parts; ++k)
        CU_ASSERT_STRING_EQUAL(f.graph->node[first[k]].name, names[k - 1]);
    fixture_fini(&f);
    mem_free(&text);
}

static void cuts(void)
{
    by_hand("pp: 2, cuts: [fc1]", (const char *const[]){"fc1"}, 2);
    by_hand("pp: 3, cuts: [conv2, fc2]", (const char *const[]){"conv2", "fc2"}, 3);
}

static void refuse(const char *model, Desc input, const char *grid, int parts, const char *message)
{
    char *text = mem_format("model: {%s}\ngrid: {%s}\n", model, grid);
    Fixture f = fixture(text, input, 10);
    int first[32];
    CHECK_FAILS(graph_partition(f.graph, f.config, parts, first), ERR_CONFIG, message);
    fixture_fini(&f);
    mem_free(&text);
}

static void refusals(void)
{
    const char *lenet = "name: lenet";
    Desc x = images(2, 1, 28);
    refuse(lenet, x, "pp: 2, cuts: [conv3]", 2, "test.yaml:2:");
    refuse(lenet, x, "pp: 2, cuts: [conv3]", 2, "no layer is named 'conv3'; did you mean 'conv");
    refuse(lenet, x, "pp: 2, cuts: [relu3]", 2, "fused into another");
    refuse(lenet, x, "pp: 3, cuts: [fc1, conv2]", 3, "'conv2' does not come after 'fc1'");
    refuse(lenet, x, "pp: 2, cuts: [loss]", 2, "the loss stays with the last layer");
    refuse(lenet, x, "pp: 3, cuts: [fc1, fc2]", 2, "names 2 layers, but 2 chunks");
    refuse(lenet, x, "pp: 2, cuts: [fc1]", 3, "names 1 layer, but 3 chunks");
    refuse("name: mlp", x, "pp: 2, cuts: [fc1]", 2, "shares memory with the layer");
    refuse("name: mlp, hidden: [32]", x, "pp: 3", 3, "more than the 2 layers");
}

/* A view of the data (flatten) stays in the chunk of its reader, wherever the model is cut. */
static void data_stays(void)
{
    Fixture f = fixture("model: {name: mlp, hidden: [32]}", images(2, 1, 28), 10);
    int first[3];
    CHECK_OK(graph_partition(f.graph, f.config, 2, first));
    check_cut(f.graph, 2, first);
    CU_ASSERT_STRING_EQUAL(f.graph->node[first[1]].name, "fc2");
    fixture_fini(&f);
}

static void unplanned(void)
{
    Config *config = NULL;
    Graph *g = NULL;
    int first[3];
    CHECK_OK(config_parse(&config, "test.yaml", "model: {name: lenet}", 0, NULL));
    CHECK_OK(graph_build(&g, config, images(2, 1, 28), 10));
    CHECK_FAILS(graph_partition(g, config, 2, first), ERR_BUG, "after graph_plan");
    graph_free(&g);
    config_free(&config);
}

/* CPU time, the best of three, of cutting `layers` layers. lopsided: one layer is so costly that
 * all other cuts are equally good, which is the most work. */
static double cut_many(int layers, bool lopsided)
{
    enum { PARTS = 64 };
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "model:\n  layers:\n");
    for (int i = 0; i < layers; ++i) fprintf(out, "    - silu\n");
    fclose(out);
    Fixture f = fixture(text, vectors(10), 10);
    if (lopsided) f.graph->node[layers / 2].op->flops_forward = 1e15;
    int first[PARTS + 1];
    double best_s = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
        clock_t start = clock();
        CHECK_OK(graph_partition(f.graph, f.config, PARTS, first));
        double took_s = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took_s < best_s) best_s = took_s;
        check_cut(f.graph, PARTS, first);
    }
    fixture_fini(&f);
    free(text);
    return best_s;
}

/* Four times as many layers may take 16 times as long (64 would be a power more). */
static void large(void)
{
    for (int lopsided = 0; lopsided < 2; ++lopsided) {
        double few_s = cut_many(500, lopsided), many_s = cut_many(2000, lopsided);
        if (many_s >= 40 * few_s + 0.05) printf("  took %.3f s, %.3f s\n", few_s, many_s);
        CU_ASSERT(many_s < 40 * few_s + 0.05);
    }
}

static void done(void)
{
    backend_close(&backend);
    CU_ASSERT_PTR_NULL(backend);
}

TEST_MAIN("partition", {"optimal", optimal}, {"optimal with skips", optimal_with_skips},
          {"balance", balance}, {"costs", costs}, {"cuts by hand", cuts}, {"refusals", refusals},
          {"data stays", data_stays}, {"unplanned", unplanned}, {"large", large}, {"done", done})
