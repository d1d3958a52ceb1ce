/* graph_plan: reorders in front of operations that prefer other layouts (on a made-up backend),
 * offsets of the parameters, and parameters through the CPU backend's stored orders. */
#include "arena.h"
#include "fixture.h"
#include "tensor/op_list.h"

static Desc blocked(Desc d, int block)
{
    d.block = block;
    return d;
}

/* A backend that computes nothing: convolutions read and write blocks of 16, pooling reads plain
 * images, other operations accept any layout. */
static int ops_alive;

static Status mock_keep(Op *op, Desc preferred[SPEC_INPUTS])
{
    (void)preferred;
    ++ops_alive;
    if (op->spec.y.shape.ndim == 4) op->spec.y.block = op->spec.x[0].block;
    for (int i = 0; i < op->spec.w_count; ++i) op->w_elements[i] = shape_count(op->spec.w[i]) + i;
    return OK;
}

static Status mock_conv(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(mock_keep(op, preferred));
    preferred[0] = blocked(op->spec.x[0], 16);
    op->spec.y.block = 16;
    return OK;
}

static Status mock_pool(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(mock_keep(op, preferred));
    preferred[0] = blocked(op->spec.x[0], 1);
    op->spec.y.block = 1;
    return OK;
}

static Status mock_add(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(mock_keep(op, preferred));
    preferred[1] = op->spec.x[0];
    return OK;
}

static Status mock_reorder(Op *op, Desc preferred[SPEC_INPUTS])
{
    (void)preferred;
    ++ops_alive;
    CU_ASSERT_FALSE(desc_equal(op->spec.x[0], op->spec.y));
    return OK;
}

static Status mock_fickle(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(mock_keep(op, preferred));
    preferred[0] = blocked(op->spec.x[0], op->spec.x[0].block + 1);
    return OK;
}

static Status mock_fails(Op *op, Desc preferred[SPEC_INPUTS])
{
    TRY(mock_keep(op, preferred));
    return fail(ERR_CONFIG, "no kernel for this");
}

static void mock_run(Op *op, const OpRun *run)
{
    (void)op;
    (void)run;
}
static void mock_free(Op *op)
{
    (void)op;
    --ops_alive;
}

#define MOCK_OP(how)                                                                               \
    {                                                                                              \
        .name = #how, .plan = how, .forward = mock_run, .free = mock_free                          \
    }
static const OpTable op_keep = MOCK_OP(mock_keep), op_conv = MOCK_OP(mock_conv),
                     op_pool = MOCK_OP(mock_pool), op_add = MOCK_OP(mock_add),
                     op_reorder_mock = MOCK_OP(mock_reorder), op_fickle = MOCK_OP(mock_fickle),
                     op_fails = MOCK_OP(mock_fails);

static BackendTable mock_table(void)
{
    BackendTable t = {.name = "mock", .host_memory = true};
    for (int i = 0; i < OP_KINDS; ++i) t.op[i] = &op_keep;
    t.op[OP_CONV2D] = &op_conv;
    t.op[OP_POOL] = &op_pool;
    t.op[OP_ADD] = &op_add;
    t.op[OP_REORDER] = &op_reorder_mock;
    return t;
}

static const char *const branches =
    "model:\n"
    "  layers:\n"
    "    - conv2d: {channels: 16, kernel: 1, input: data, name: a}\n"
    "    - conv2d: {channels: 16, kernel: 1, input: data, name: b}\n"
    "    - max_pool: {kernel: 1, input: a, name: pa}\n"
    "    - global_pool: {input: a, name: ga}\n"
    "    - add: {input: [b, pa], name: s}\n"
    "    - global_pool: {name: gs}\n"
    "    - add: {input: [ga, gs], name: both}\n"
    "    - flatten\n"
    "    - dense: {width: 3, name: fc}\n";

/* Checks that every node's input is exactly its producer's output, and comes before it. */
static void check_planned(const Graph *g)
{
    for (int i = 0; i < g->node_count; ++i) {
        const Node *node = &g->node[i];
        CU_ASSERT_PTR_NOT_NULL(node->op);
        for (int k = 0; k < node->spec.x_count; ++k) {
            CU_ASSERT(node->in[k] < i);
            Desc x = node->in[k] == NODE_INPUT ? g->input : g->node[node->in[k]].spec.y;
            CU_ASSERT(desc_equal(node->spec.x[k], x));
        }
    }
    CU_ASSERT_EQUAL(g->loss_node, g->node_count - 1);
    CU_ASSERT_EQUAL(g->node[g->loss_node].in[0], g->logits_node);
    int64_t end = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        CU_ASSERT(p->offset % 16 == 0 && p->offset >= end && p->offset < end + 16);
        CU_ASSERT(p->elements >= shape_count(p->shape));
        CU_ASSERT_EQUAL(p->elements, g->node[p->node].op->w_elements[p->slot]);
        end = p->offset + p->elements;
    }
    CU_ASSERT(g->arena_elements >= end && g->arena_elements < end + 16);
}

static void reorders(void)
{
    BackendTable table = mock_table();
    Backend mock = {.table = &table};
    Graph *g = graph_of(branches, images(2, 3, 4), 3);
    CHECK_OK(graph_plan(g, &mock));
    check_planned(g);
    int count = 0;
    for (int i = 0; i < g->node_count; ++i) count += g->node[i].kind == NULL;
    /* data for a and b (shared); a for pa and ga (shared); pa for the add; the sum for gs */
    CU_ASSERT_EQUAL(count, 4);
    const Node *data = node_named(g, "data.reorder16"), *a = node_named(g, "a.reorder1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_EQUAL(data->in[0], NODE_INPUT);
    CU_ASSERT_FALSE(data->spec.need_dx[0]);
    CU_ASSERT_TRUE(a->spec.need_dx[0]);
    CU_ASSERT_EQUAL(node_named(g, "a")->in[0], node_named(g, "b")->in[0]);
    CU_ASSERT_EQUAL(node_named(g, "pa")->in[0], node_named(g, "ga")->in[0]);
    CU_ASSERT_EQUAL(g->param[2].node, (int)(node_named(g, "b") - g->node));
    CHECK_FAILS(graph_plan(g, &mock), ERR_BUG, "twice");
    CHECK_FAILS(graph_fuse(g, &backend_cpu), ERR_BUG, "before graph_plan");
    graph_free(&g);
    CU_ASSERT_EQUAL(ops_alive, 0);
}

static void plan_errors(void)
{
    BackendTable table = mock_table();
    Backend mock = {.table = &table};
    Graph *g = graph_of(branches, images(2, 3, 4), 3);
    table.op[OP_FLATTEN] = NULL;
    CHECK_FAILS(graph_plan(g, &mock), ERR_CONFIG,
                "layer flatten1: the mock backend has no operation");
    graph_free(&g);
    table.op[OP_FLATTEN] = &op_fails;
    g = graph_of(branches, images(2, 3, 4), 3);
    CHECK_FAILS(graph_plan(g, &mock), ERR_CONFIG, "layer flatten1: no kernel for this");
    graph_free(&g);
    table.op[OP_FLATTEN] = &op_fickle;
    g = graph_of(branches, images(2, 3, 4), 3);
    CHECK_FAILS(graph_plan(g, &mock), ERR_BUG, "accepts no layout");
    graph_free(&g);
    table = mock_table();
    table.op[OP_REORDER] = NULL;
    g = graph_of(branches, images(2, 3, 4), 3);
    CHECK_FAILS(graph_plan(g, &mock), ERR_CONFIG, "layer data.reorder16: ");
    graph_free(&g);
    CU_ASSERT_EQUAL(ops_alive, 0);
}

/* Checks that initial values survive the way into the stored orders and back, fused or not. */
static void check_params(const char *text, Desc input, bool fuse)
{
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    Graph *g = graph_of(text, input, 10);
    if (fuse) CHECK_OK(graph_fuse(g, &backend_cpu));
    CHECK_OK(graph_plan(g, backend));
    check_planned(g);
    size_t bytes = (size_t)g->arena_elements * sizeof(float);
    float *arena = mem_new(bytes), *again = mem_new(bytes);
    arena_init(g, 7, arena);
    int bad = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        size_t n = (size_t)shape_count(p->shape);
        float *plain = mem_new(n * sizeof *plain), *want = mem_new(n * sizeof *want);
        param_get(g, i, arena, plain);
        layer_param_init(&p->info, &g->node[p->node].spec, p->slot, p->name, 7, want);
        bad += memcmp(plain, want, n * sizeof *want) != 0;
        param_set(g, i, plain, again);
        mem_free(&plain);
        mem_free(&want);
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_EQUAL(memcmp(arena, again, bytes), 0);
    mem_free(&arena);
    mem_free(&again);
    graph_free(&g);
    backend_close(&backend);
}

static void params(void)
{
    check_params("model: {name: lenet}", images(4, 1, 28), false);
    check_params("model: {name: lenet}", images(4, 1, 28), true);
    check_params("model: {name: resnet18, stem: small}", images(2, 1, 28), true);
    check_params("model: {name: mobilenet_v2}", images(2, 3, 32), true);
}

TEST_MAIN("plan", {"reorders", reorders}, {"errors", plan_errors}, {"parameters", params})
