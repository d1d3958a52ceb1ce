/* Bags and their sparse tables: number and names, tables after nodes have moved, freezing,
 * printing, refusals. */
#include "fixture.h"
#include "tensor/op_list.h"

enum { BATCH = 4, FIELDS = 5 };

static Status build(Graph **graph, const char *text, GraphIds ids)
{
    Config *config = config_of(text);
    Desc input = desc_plain(shape_of(2, BATCH, 3, 1, 1), DTYPE_F32);
    *graph = NULL;
    Status st = config ? graph_build_ids(graph, config, input, ids, 2) : ERR_CONFIG;
    config_free(&config);
    return st;
}

/* Layers that are fused stand before the second bag, so that it moves. */
static const char two_bags[] =
    "model: {layers: [bag: {name: wide, width: 1, vocab: 100, hashed: true, together: true},"
    " dense: {name: up, width: 4, input: data}, relu,"
    " bag: {name: deep, width: 4, tables: each, fields: 2, first_field: 3, init: uniform, "
    "init_std: 0.25},"
    " concat: {input: [relu1, deep, wide]}, dense: {width: 2}]}\n";

static void check_two_bags(const Graph *g)
{
    CU_ASSERT_EQUAL(g->bag_count, 2);
    CU_ASSERT_EQUAL_FATAL(g->table_count, 3);
    const SparseTable *t = g->table;
    CU_ASSERT_STRING_EQUAL(t[0].name, "wide");
    CU_ASSERT_STRING_EQUAL(t[1].name, "deep.0");
    CU_ASSERT_STRING_EQUAL(t[2].name, "deep.1");
    CU_ASSERT(t[0].field == -1 && t[1].field == 0 && t[2].field == 1);
    CU_ASSERT(t[0].rows == 100 && t[0].hashed && t[0].width == 1);
    CU_ASSERT(t[2].rows == 0 && !t[2].hashed && t[2].width == 4);
    CU_ASSERT(t[0].init == INIT_UNIFORM && t[0].scale == 0.01f && t[2].init == INIT_UNIFORM &&
              t[2].scale == 0.25f);
    const Node *wide = &g->node[t[0].node], *deep = &g->node[t[1].node];
    CU_ASSERT_EQUAL(t[1].node, t[2].node);
    CU_ASSERT_STRING_EQUAL(wide->name, "wide");
    CU_ASSERT_STRING_EQUAL(deep->name, "deep");
    CU_ASSERT(wide->spec.bag == 0 && deep->spec.bag == 1);
    CU_ASSERT(wide->spec.bag_fields == FIELDS && deep->spec.bag_fields == 2);
    CU_ASSERT(wide->spec.y.shape.dim[1] == 1 && deep->spec.y.shape.dim[1] == 8);
    CU_ASSERT(wide->in[0] == NODE_INPUT && deep->in[0] == NODE_INPUT);
}

static void test_tables(void)
{
    Graph *g;
    Backend *backend;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    CHECK_OK(build(&g, two_bags, (GraphIds){.fields = FIELDS}));
    check_two_bags(g);
    int64_t params = (3 * 4 + 4) + (13 * 2 + 2);
    CU_ASSERT_EQUAL(graph_param_elements(g), params);
    CU_ASSERT_EQUAL(graph_table_value_count(g, false), 100);
    int nodes = g->node_count;
    CHECK_OK(graph_fuse(g, &backend_cpu));
    CU_ASSERT(g->node_count < nodes);
    check_two_bags(g);
    CHECK_OK(graph_plan(g, backend));
    check_two_bags(g);
    graph_free(&g);
    backend_close(&backend);
}

static const Node *node_of(const Graph *g, int table)
{
    return &g->node[g->table[table].node];
}

/* A bag trains although it has no parameter, and the layers behind it need the same gradients as
 * usual. */
static void test_frozen(void)
{
    Graph *g;
    char text[1024];
    CHECK_OK(build(&g, two_bags, (GraphIds){.fields = FIELDS}));
    CU_ASSERT(!node_of(g, 0)->spec.frozen && !node_of(g, 1)->spec.frozen);
    CU_ASSERT(!node_of(g, 0)->spec.need_dx[0]);
    const Node *concat = &g->node[g->logits_node - 1];
    CU_ASSERT(concat->spec.need_dx[0] && concat->spec.need_dx[1] && concat->spec.need_dx[2]);
    graph_free(&g);
    static const struct {
        const char *freeze;
        bool frozen[3];
    } row[] = {{"wide", {true, false, false}},
               {"deep.1", {false, false, true}},
               {"deep", {false, true, true}},
               {"up', '*e*", {true, true, true}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        const bool *frozen = row[i].frozen;
        snprintf(text, sizeof text, "%.*s, freeze: ['%s']}\n", (int)strlen(two_bags) - 2, two_bags,
                 row[i].freeze);
        CHECK_OK(build(&g, text, (GraphIds){.fields = FIELDS}));
        for (int t = 0; t < 3; ++t) CU_ASSERT_EQUAL(g->table[t].frozen, frozen[t]);
        CU_ASSERT_EQUAL(node_of(g, 0)->spec.frozen, frozen[0]);
        CU_ASSERT_EQUAL(node_of(g, 1)->spec.frozen, frozen[1] && frozen[2]);
        CU_ASSERT_EQUAL(g->node[g->logits_node - 1].spec.need_dx[2], !frozen[0]);
        graph_free(&g);
    }
    snprintf(text, sizeof text, "%.*s, freeze: [deep.2]}\n", (int)strlen(two_bags) - 2, two_bags);
    CHECK_FAILS(build(&g, text, (GraphIds){.fields = FIELDS}), ERR_CONFIG, "'deep.2' matches no");
}

static void printed(const char *text, const char *what, const char *more)
{
    Graph *g;
    char page[8192] = "";
    FILE *out = fmemopen(page, sizeof page, "w");
    CHECK_OK(build(&g, text, (GraphIds){.fields = FIELDS}));
    graph_print(g, out);
    fclose(out);
    CU_ASSERT(strstr(page, what) && strstr(page, more));
    if (!strstr(page, what) || !strstr(page, more)) printf("%s", page);
    graph_free(&g);
}

static void test_print(void)
{
    printed(two_bags,
            "144 trained parameters, 100 of them in tables, and a table row for each new id;",
            "table wide: 100 rows x 1, ids hashed, fields 0 to 4 of the data\n"
            "tables deep.0 to .1: one row per id x 4, fields 3 to 4 of the data, a table each\n");
    printed(
        "model: {freeze: [bag1], layers: [bag: {width: 2, vocab: 1000001}, dense: {width: 2}]}\n",
        "22 trained parameters, frozen: 2,000,002; ", " 2,000,002 frozen ");
}

/* Published counts: of all parameters, and of those outside tables. */
static void test_models(void)
{
    static const struct {
        const char *model;
        int64_t all, dense;
    } row[] = {
        {"name: wide_deep, vocab: 1000001", 10430825, 430815},
        {"name: wide_deep, vocab: 1000001, width: 9, hidden: [512, 256, 128, 32]", 9295384, 295375},
        {"name: deepfm, vocab: 1000001", 10462142, 462132},
        {"name: dlrm", 475985, 475985}};
    const Desc x = desc_plain(shape_of(2, BATCH, 13, 1, 1), DTYPE_F32);
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        char text[256];
        Graph *g = NULL;
        snprintf(text, sizeof text, "model: {%s}\ntrain: {loss: sigmoid}\n", row[i].model);
        Config *config = config_of(text);
        CHECK_OK(graph_build_ids(&g, config, x, (GraphIds){.fields = 26}, 1));
        CU_ASSERT_EQUAL(graph_param_elements(g), row[i].dense);
        CU_ASSERT_EQUAL(graph_param_elements(g) + graph_table_value_count(g, false), row[i].all);
        for (int t = 0; t < g->table_count; ++t) CU_ASSERT_EQUAL(g->table[t].hashed, i < 3);
        graph_free(&g);
        CHECK_FAILS(graph_build(&g, config, x, 1), ERR_CONFIG, "bag needs data with ids");
        config_free(&config);
    }
}

/* The size is model.vocab, else that of the data, else unknown; ids are hashed only if they may
 * exceed it. */
static void test_vocab(void)
{
    static const struct {
        const char *model;
        uint64_t ids, rows;
        bool hashed;
    } row[] = {{"name: wide_deep", 0, 0, false},
               {"name: wide_deep", 500, 500, false},
               {"name: wide_deep", UINT64_MAX, 0, false},
               {"name: wide_deep, vocab: 400", 500, 400, true},
               {"name: wide_deep, vocab: 600", 500, 600, false},
               {"name: wide_deep, vocab: 600", 0, 600, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        char text[128];
        Graph *g;
        snprintf(text, sizeof text, "model: {%s}\n", row[i].model);
        CHECK_OK(build(&g, text, (GraphIds){.fields = FIELDS, .id_limit = row[i].ids}));
        CU_ASSERT_EQUAL(g->table[0].rows, row[i].rows);
        CU_ASSERT_EQUAL(g->table[0].hashed, row[i].hashed);
        graph_free(&g);
    }
}

static void test_refused(void)
{
    Graph *g;
    Backend *backend;
    BackendTable lacking = backend_cpu;
    const GraphIds ids = {.fields = FIELDS};
    CHECK_FAILS(build(&g, "model: {layers: [bag: {width: 2}, dense: {width: 2}]}\n", (GraphIds){0}),
                ERR_CONFIG, "test.yaml:1:18: bag needs data with ids");
    CHECK_FAILS(build(&g,
                      "model: {layers: [dense: {width: 2}, bag: {width: 2, input: dense1}, "
                      "dense: {width: 2}]}\n",
                      ids),
                ERR_CONFIG, "bag reads the ids of the data: its input is data");
    CHECK_OK(build(&g, two_bags, ids));
    Config *config = config_of(two_bags);
    CHECK_FAILS(graph_split(&g, config, 0, 2, 8), ERR_CONFIG, "layer wide has sparse tables");
    config_free(&config);
    lacking.op[OP_BAG] = NULL;
    CHECK_OK(backend_open(&backend, &lacking, (BackendOptions){.threads = 1}));
    CHECK_FAILS(graph_plan(g, backend), ERR_CONFIG,
                "layer wide: the cpu backend has no operation 'bag'");
    graph_free(&g);
    backend_close(&backend);
}

TEST_MAIN("tables", {"tables", test_tables}, {"frozen", test_frozen}, {"print", test_print},
          {"models", test_models}, {"vocab", test_vocab}, {"refused", test_refused})
