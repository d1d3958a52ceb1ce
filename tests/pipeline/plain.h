/* A model on one rank, run by plan and executor, and the same by a plain interpreter that gives every tensor memory of its
 * own. Both must come to the same bits: whatever liveness, aliases and in-place operations do, they must not be seen. */
#ifndef WEFT_TESTS_PLAIN_H
#define WEFT_TESTS_PLAIN_H

#include "harness.h"
#include "pipeline.h"

#include <math.h>

enum { MICRO = 4, CLASSES = 9 };

typedef struct Fixture {
    Config *config;
    Backend *backend;
    Graph *graph;
    Plan *plan;
    Comm *comm;
    World world;
    Executor *executor;
    Batch batch;
    size_t data_bytes;
    int64_t samples[MICRO];
    int32_t labels[MICRO];
} Fixture;

static inline void fixture_data(Fixture *f, Shape shape)
{
    int64_t count = shape_count(shape);
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    f->data_bytes = (size_t)count * sizeof(float);
    f->batch = (Batch){
        .x = mem_new(f->data_bytes), .rows = MICRO - 1, .sample = f->samples, .labels = f->labels};
    for (int64_t i = 0; i < count / MICRO * f->batch.rows; ++i)
        f->batch.x[i] = rng_normal(key, (uint64_t)i);
    for (int i = 0; i < MICRO; ++i) {
        f->samples[i] = 100 + 7 * i;
        f->labels[i] = i * 2 % CLASSES;
    }
}

/* model: a config's text; images of 3 x side x side. Release with fixture_close, after a failure, too. */
static inline bool fixture_open(Fixture *f, const char *model, const BackendTable *table, int side)
{
    memset(f, 0, sizeof *f);
    f->world = (World){
        .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    Desc input = desc_plain(shape_of(4, MICRO, 3, side, side), DTYPE_F32);
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
    fixture_data(f, input.shape);
    return true;
}

static inline void fixture_close(Fixture *f)
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
    float *grads, *data; /* data: a copy from before the executor ran */
} Plain;

static inline void *bytes_new(size_t n)
{
    return mem_pages_new(n + 64);
}

static inline void bytes_free(void *p, size_t n)
{
    if (p) mem_pages_free(p, n + 64);
}

static inline void plain_init(Plain *p, Fixture *f)
{
    Graph *g = f->graph;
    size_t n = (size_t)g->node_count;
    *p = (Plain){.f = f,
                 .run = mem_new(n * sizeof *p->run),
                 .dy = mem_new(n * sizeof *p->dy),
                 .has_dy = mem_new(n),
                 .grads = bytes_new((size_t)g->arena_elements * sizeof(float)),
                 .data = mem_new(f->data_bytes)};
    memcpy(p->data, f->batch.x, f->data_bytes);
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        OpRun *r = &p->run[i];
        if (!op->y_alias) r->y = bytes_new(desc_bytes(op->spec.y));
        r->saved = bytes_new(op->saved_bytes);
        r->cache = bytes_new(op->cache_bytes);
        r->workspace = bytes_new(op->workspace_bytes);
        p->dy[i] = bytes_new(desc_bytes(op->spec.y));
    }
}

static inline void plain_fini(Plain *p)
{
    Graph *g = p->f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        OpRun *r = &p->run[i];
        if (!op->y_alias) bytes_free(r->y, desc_bytes(op->spec.y));
        bytes_free(r->saved, op->saved_bytes);
        bytes_free(r->cache, op->cache_bytes);
        bytes_free(r->workspace, op->workspace_bytes);
        bytes_free(p->dy[i], desc_bytes(op->spec.y));
        for (int k = 0; k < OP_INPUTS; ++k) bytes_free(r->dx[k], desc_bytes(op->spec.x[k]));
    }
    bytes_free(p->grads, (size_t)g->arena_elements * sizeof(float));
    mem_free(&p->run);
    mem_free(&p->dy);
    mem_free(&p->has_dy);
    mem_free(&p->data);
}

static inline void plain_forward(Plain *p, bool training)
{
    Graph *g = p->f->graph;
    for (int i = 0; i < g->node_count; ++i) {
        Node *node = &g->node[i];
        OpRun *r = &p->run[i];
        for (int k = 0; k < node->spec.x_count; ++k)
            r->x[k] = node->in[k] < 0 ? (void *)p->data : p->run[node->in[k]].y;
        if (node->op->y_alias) r->y = (void *)(uintptr_t)r->x[0];
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
        r->training = training;
        if (training) op_refresh(node->op, r);
        op_forward(node->op, r);
    }
}

static inline void plain_backward(Plain *p)
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

/* True if the loss's rows are the plain interpreter's. */
static inline bool same_columns(const Plain *p, const float *columns)
{
    size_t bytes = (size_t)p->f->batch.rows * LOSS_COLUMNS * sizeof *columns;
    return memcmp(columns, p->run[p->f->graph->loss].y, bytes) == 0;
}

/* How many parameters' gradients differ or are not finite; *moved: one is not zero. */
static inline int count_wrong_gradients(const Plain *p, bool *moved)
{
    const Graph *g = p->f->graph;
    int wrong = 0;
    *moved = false;
    for (int i = 0; i < g->param_count; ++i) {
        size_t count = (size_t)shape_count(g->param[i].shape);
        float *a = mem_new(count * sizeof *a), *b = mem_new(count * sizeof *b);
        param_get(g, i, executor_grads(p->f->executor), a);
        param_get(g, i, p->grads, b);
        bool good = memcmp(a, b, count * sizeof *a) == 0;
        for (size_t k = 0; k < count; ++k) {
            good &= isfinite(a[k]) != 0;
            *moved |= a[k] != 0;
        }
        if (!good) printf("  %s: the gradient is wrong\n", g->param[i].name);
        wrong += !good;
        mem_free(&a);
        mem_free(&b);
    }
    return wrong;
}

/* One training micro-batch, then one of evaluation. False, and a failed assertion, where anything differs. */
static inline bool check_model(const char *model, const BackendTable *table, int side)
{
    Fixture f;
    Plain p;
    if (!fixture_open(&f, model, table, side)) {
        fixture_close(&f);
        return false;
    }
    plain_init(&p, &f);
    executor_train(f.executor, &f.batch, 0, 5, 0.25f);
    const float *metrics = executor_finish(f.executor);
    bool good = metrics[METRIC_ROWS] == MICRO - 1 && isfinite(metrics[METRIC_LOSS]) &&
                metrics[METRIC_LOSS] > 0;
    plain_forward(&p, true);
    double loss = 0;
    for (int r = 0; r < f.batch.rows; ++r)
        loss += (double)((const float *)p.run[f.graph->loss].y)[r * LOSS_COLUMNS];
    good &= metrics[METRIC_LOSS] == (float)loss;
    plain_backward(&p);
    bool moved;
    good &= count_wrong_gradients(&p, &moved) == 0;
    good &= moved;
    good &= memcmp(p.data, f.batch.x, f.data_bytes) == 0;
    plain_forward(&p, false);
    good &= same_columns(&p, executor_eval(f.executor, &f.batch));
    CU_ASSERT(good);
    plain_fini(&p);
    fixture_close(&f);
    return good;
}

#endif
