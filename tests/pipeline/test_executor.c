/* The plan and its executor against a plain interpreter that gives every tensor memory of its own: the same bits, on the
 * CPU backend and on the one that poisons memory before it is written. Whatever liveness, aliases and in-place
 * operations do, they must not be seen. */
#include "harness.h"
#include "pipeline.h"

#include <math.h>

static const char *const models[] = {
    "model: {name: resnet18, stem: small}\n",
    "model: {name: resnet50, stem: imagenet}\n",
    "model: {name: mobilenet_v2, stem: imagenet}\n",
    "model: {name: lenet}\n",
    "model: {name: mlp, hidden: [20, 30]}\n",
    "model: {layers: [conv2d: {channels: 20, kernel: 3, pad: 1}, gelu: {name: a}, conv2d: "
    "{channels: 20, kernel: 1}, "
    "silu: {name: b}, add: {input: [a, b]}, relu6: {name: c}, avg_pool: {kernel: 2, name: d}, "
    "max_pool: {kernel: 2, name: c2, input: [c]}, "
    "concat: {name: e, input: [d, c2]}, global_pool, flatten, layer_norm, dropout: {p: 0.4}, "
    "dense: {width: 9}]}\n",
    "model: {layers: [relu: {name: a}, flatten: {name: f}, dense: {width: 12, name: h}, add: "
    "{name: s, input: [h, h]}, "
    "dense: {width: 9}]}\n",
};

typedef struct Fixture {
    Config *config;
    Backend *backend;
    Graph *graph;
    Plan *plan;
    Comm *comm;
    World world;
    Executor *executor;
    Batch batch;
    int64_t samples[8];
    int32_t labels[8];
} Fixture;

enum { MICRO = 4, SIDE = 16, CLASSES = 9 };

static bool fixture_open(Fixture *f, const char *model, const BackendTable *table)
{
    memset(f, 0, sizeof *f);
    f->world = (World){
        .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    Desc input = desc_plain(shape_of(4, MICRO, 3, SIDE, SIDE), DTYPE_F32);
    Status st = config_parse(&f->config, "test", model, 0, NULL);
    if (st == OK) st = backend_open(&f->backend, table, (BackendOptions){.threads = 1});
    if (st == OK) st = graph_build(&f->graph, f->config, input, CLASSES);
    if (st == OK) st = graph_fuse(f->graph);
    if (st == OK) st = graph_plan(f->graph, f->backend);
    if (st == OK) st = plan_new(&f->plan, f->graph, 1, 1 << 20);
    if (st == OK)
        st = comm_new(&f->comm, &f->world, f->backend, TRANSPORT_AUTO,
                      f->graph->arena_elements + METRIC_PAD);
    if (st == OK)
        st = executor_new(&f->executor, f->plan, f->backend, f->comm,
                          (ExecutorOptions){.micros = 1, .seed = 11});
    CHECK_OK(st);
    if (st != OK) return false;
    graph_init_params(f->graph, 3, executor_params(f->executor));
    executor_refresh(f->executor);
    int64_t count = shape_count(input.shape);
    f->batch = (Batch){.x = mem_new((size_t)count * sizeof(float)),
                       .rows = MICRO - 1,
                       .sample = f->samples,
                       .labels = f->labels};
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    for (int64_t i = 0; i < count / MICRO * f->batch.rows; ++i)
        f->batch.x[i] = rng_normal(key, (uint64_t)i);
    for (int i = 0; i < MICRO; ++i) {
        f->samples[i] = 100 + 7 * i;
        f->labels[i] = i * 2 % CLASSES;
    }
    return true;
}

static void fixture_close(Fixture *f)
{
    executor_free(&f->executor);
    comm_free(&f->comm);
    plan_free(&f->plan);
    graph_free(&f->graph);
    backend_close(&f->backend);
    config_free(&f->config);
    mem_free(&f->batch.x);
}

/* ---- the plain interpreter ---- */
typedef struct Plain {
    Fixture *f;
    OpRun *run;
    float **dy; /* accumulated gradient of each node */
    bool *has_dy;
    float *grads;
} Plain;

static void *bytes_new(size_t n)
{
    return mem_pages_new(n + 64);
}

static void plain_forward(Plain *p)
{
    Graph *g = p->f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        Node *node = &g->node[i];
        OpRun *r = &p->run[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            r->x[k] = node->in[k] < 0 ? (void *)p->f->batch.x : p->run[node->in[k]].y;
        if (node->op->y_alias)
            r->y = (void *)(uintptr_t)r->x[0];
        else
            r->y = bytes_new(desc_bytes(node->op->spec.y));
        r->saved = bytes_new(node->op->saved_bytes);
        r->cache = bytes_new(node->op->cache_bytes);
        r->workspace = bytes_new(node->op->workspace_bytes);
        for (int k = 0; k < node->spec.w_count; ++k) {
            const Param *param = &g->param[node->param[k]];
            r->w[k] = executor_params(p->f->executor) + param->offset;
            r->dw[k] = p->grads + param->offset;
        }
        r->labels = p->f->labels;
        r->sample = p->f->samples;
        r->seed = 11;
        r->step = 5;
        r->rows = p->f->batch.rows;
        r->loss_scale = 0.25f;
        r->training = true;
        op_refresh(node->op, r);
        op_forward(node->op, r);
        p->dy[i] = bytes_new(desc_bytes(node->op->spec.y));
    }
}

static void plain_backward(Plain *p)
{
    Graph *g = p->f->graph;
    for (int i = g->node_count - 1; i >= 0; --i) {
        Node *node = &g->node[i];
        OpRun *r = &p->run[i];
        if (i != g->loss && !p->has_dy[i]) continue;
        r->dy = i == g->loss ? NULL : p->dy[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            if (node->in[k] >= 0 && node->op->spec.need_dx[k] && !node->op->dx_alias[k])
                r->dx[k] = bytes_new(desc_bytes(node->op->spec.x[k]));
        op_backward_begin(node->op, r);
        op_backward_weight(node->op, r);
        op_backward_data(node->op, r);
        for (int k = 0; k < node->spec.x_count; ++k) {
            int v = node->in[k];
            if (v < 0 || !node->op->spec.need_dx[k]) continue;
            const float *from = node->op->dx_alias[k] ? p->dy[i] : r->dx[k];
            int64_t n = desc_elements(node->op->spec.x[k]);
            for (int64_t e = 0; e < n; ++e)
                p->dy[v][e] = p->has_dy[v] ? p->dy[v][e] + from[e] : from[e];
            p->has_dy[v] = true;
        }
    }
}

static void check_model(const char *model, const BackendTable *table)
{
    Fixture f;
    if (!fixture_open(&f, model, table)) return;
    Graph *g = f.graph;
    size_t n = (size_t)g->node_count;
    Plain p = {.f = &f,
               .run = mem_new(n * sizeof *p.run),
               .dy = mem_new(n * sizeof *p.dy),
               .has_dy = mem_new(n)};
    p.grads = bytes_new((size_t)g->arena_elements * sizeof(float));
    executor_train(f.executor, &f.batch, 0, 5, 0.25f);
    const float *metrics = executor_finish(f.executor);
    CU_ASSERT_EQUAL(metrics[METRIC_ROWS], MICRO - 1);
    CU_ASSERT(isfinite(metrics[METRIC_LOSS]) && metrics[METRIC_LOSS] > 0);
    plain_forward(&p);
    plain_backward(&p);
    bool moved = false;
    for (int i = 0; i < g->param_count; ++i) {
        size_t bytes = (size_t)shape_count(g->param[i].shape) * sizeof(float);
        float *a = mem_new(bytes), *b = mem_new(bytes);
        param_get(g, i, executor_grads(f.executor), a);
        param_get(g, i, p.grads, b);
        if (memcmp(a, b, bytes) != 0) printf("  %s: %s differs\n", table->name, g->param[i].name);
        CU_ASSERT_EQUAL(memcmp(a, b, bytes), 0);
        bool finite = true;
        for (size_t k = 0; k < bytes / sizeof *a; ++k) {
            finite &= isfinite(a[k]) != 0;
            moved |= a[k] != 0;
        }
        CU_ASSERT(finite);
        mem_free(&a);
        mem_free(&b);
    }
    CU_ASSERT(moved);
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        if (!op->y_alias) mem_pages_free(p.run[i].y, desc_bytes(op->spec.y) + 64);
        mem_pages_free(p.run[i].saved, op->saved_bytes + 64);
        mem_pages_free(p.run[i].cache, op->cache_bytes + 64);
        mem_pages_free(p.run[i].workspace, op->workspace_bytes + 64);
        mem_pages_free(p.dy[i], desc_bytes(op->spec.y) + 64);
        for (int k = 0; k < OP_INPUTS; ++k)
            if (p.run[i].dx[k]) mem_pages_free(p.run[i].dx[k], desc_bytes(op->spec.x[k]) + 64);
    }
    mem_pages_free(p.grads, (size_t)g->arena_elements * sizeof(float) + 64);
    mem_free(&p.run);
    mem_free(&p.dy);
    mem_free(&p.has_dy);
    fixture_close(&f);
}

static void test_cpu(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        check_model(models[i], &backend_cpu);
}

static void test_poison(void)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        check_model(models[i], &backend_poison);
}

/* Liveness must pay: far less than the sum of all tensors. */
static void test_memory(void)
{
    Fixture f;
    if (!fixture_open(&f, models[0], &backend_cpu)) return;
    size_t all = 0;
    for (int i = 0; i < f.graph->node_count; ++i)
        all += 2 * desc_bytes(f.graph->node[i].op->spec.y);
    CU_ASSERT(f.plan->activation_bytes < all * 7 / 10);
    fixture_close(&f);
}

TEST_MAIN("executor", {"same bits as a plain interpreter", test_cpu},
          {"poisoned memory", test_poison}, {"memory is shared", test_memory})
