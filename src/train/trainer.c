/* Sets a run up to just before its first step, in the order data set -> model -> plan -> memory -> parameters. Everything
 * that can be wrong with the input is found here, by one rank, and known to all before anything is written. */
#include "train.h"

#include <math.h>
#include <string.h>

/* Rank 0 opens; the others get plain bytes. */
static Status open_set(const World *world, const Config *config, const char *path, DataSet *set)
{
    Status st = world->rank == 0 ? data_set_open(set, config, path) : OK;
    if (world->rank == 0 && st == OK) st = data_set_check_labels(set);
    TRY(status_agree(world, st));
    world_bcast(world, set, sizeof *set, 0);
    return OK;
}

/* The test set must hold what a model of the training set takes and is compared with. */
static Status check_test_set(const DataSet *test, const DataSet *train)
{
    char ta[64], tb[64];
    Shape a = data_set_shape(train, 1), b = data_set_shape(test, 1);
    if (!shape_equal(a, b))
        return fail(ERR_DATA, "%s: samples are %s, but those of %s are %s", test->path,
                    shape_text(b, tb), train->path, shape_text(a, ta));
    if (test->target_width != train->target_width)
        return fail(ERR_DATA, "%s: %lld target numbers a sample, but %s has %lld (0: class labels)",
                    test->path, (long long)test->target_width, train->path,
                    (long long)train->target_width);
    return OK;
}

/* Test samples are scaled and normalised as the training samples are, never by statistics of their own. */
static void test_like_train(DataSet *test, const DataSet *train)
{
    test->has_stats = train->has_stats;
    test->stats_count = train->stats_count;
    memcpy(test->mean, train->mean, sizeof test->mean);
    memcpy(test->std, train->std, sizeof test->std);
}

static Status open_data(Trainer *t)
{
    const Config *c = t->config;
    if (!c->data.train)
        return config_fail_key(c, "data.train", "no training data: set data.train to an HDF5 file");
    TRY(open_set(t->world, c, c->data.train, &t->train_set));
    if (!c->data.test) return OK;
    TRY(open_set(t->world, c, c->data.test, &t->test_set));
    test_like_train(&t->test_set, &t->train_set);
    return check_test_set(&t->test_set, &t->train_set);
}

/* The micro-batch is part of the numbers, so it must not depend on the grid: the largest divisor of the batch up to 32. */
static int64_t default_micro_batch(int64_t batch)
{
    int64_t best = 1;
    for (int64_t d = 1; d <= 32; ++d)
        if (batch % d == 0) best = d;
    return best;
}

static Status cut_batch(Trainer *t)
{
    const Config *c = t->config;
    int64_t dp = t->world->size;
    if (c->grid.dp != 0 && c->grid.dp != dp)
        return config_fail_key(
            c, "grid.dp",
            "grid.dp is %lld, but %lld ranks were started: start %lld, or leave grid.dp out",
            (long long)c->grid.dp, (long long)dp, (long long)c->grid.dp);
    t->batch = c->train.batch;
    t->micro_batch = c->train.micro_batch ? c->train.micro_batch : default_micro_batch(t->batch);
    t->micros = (int)(t->batch / t->micro_batch);
    if (t->micros % dp == 0) {
        t->micros_local = t->micros / (int)dp;
        return OK;
    }
    int64_t fit = t->micro_batch;
    while (fit > 1 && (t->batch % fit != 0 || t->batch / fit % dp != 0)) --fit;
    if (t->batch / fit % dp != 0)
        return config_fail_key(c, "train.batch",
                               "a batch of %lld samples cannot be shared by %lld replicas evenly: "
                               "the nearest that can is %lld",
                               (long long)t->batch, (long long)dp,
                               (long long)((t->batch + dp - 1) / dp * dp));
    return config_fail_key(c, c->train.micro_batch ? "train.micro_batch" : "train.batch",
                           "%d micro-batches of %lld samples cannot be shared by %lld replicas "
                           "evenly: train.micro_batch=%lld would do",
                           t->micros, (long long)t->micro_batch, (long long)dp, (long long)fit);
}

static Status open_backend(Trainer *t)
{
    const Config *c = t->config;
    BackendOptions options = {.threads = (int)c->train.threads, .device = t->world->node_rank};
    if (options.threads == 0) options.threads = threads_share(t->world->node_size);
    threads_bind(t->world->node_rank, t->world->node_size, options.threads);
    const BackendTable *table = c->train.device == DEVICE_CUDA ? &backend_cuda : &backend_cpu;
    return backend_open(&t->backend, table, options);
}

/* How many outputs the model has: one a class, or one a target number. */
static Status count_outputs(const Trainer *t, int64_t *outputs)
{
    const Config *c = t->config;
    const DataSet *set = &t->train_set;
    bool mse = c->train.loss == LOSS_MSE;
    int64_t own = mse ? set->target_width : set->classes;
    if (own == 0)
        return fail(ERR_DATA, "%s: %s", set->path,
                    mse ? "holds class labels, but train.loss is mse, which needs numbers"
                        : "has no class labels (its targets are numbers): set train.loss to mse");
    *outputs = c->model.classes ? c->model.classes : own;
    if (mse && *outputs != own)
        return config_fail_key(c, "model.classes", "%s has %lld target numbers a sample, not %lld",
                               set->path, (long long)own, (long long)*outputs);
    if (own > *outputs)
        return config_fail_key(c, "model.classes", "%s has %lld classes, the model only %lld",
                               set->path, (long long)own, (long long)*outputs);
    if (t->test_set.classes > *outputs)
        return fail(ERR_DATA, "%s: has %lld classes, but %s only %lld: set model.classes to %lld",
                    t->test_set.path, (long long)t->test_set.classes, set->path, (long long)own,
                    (long long)t->test_set.classes);
    return OK;
}

static Status build_graph(Trainer *t)
{
    const Config *c = t->config;
    const DataSet *set = &t->train_set;
    if (set->kind == DATA_TOKENS)
        return fail(ERR_DATA,
                    "%s: token data sets are for transformers, which this version does not have",
                    set->path);
    int64_t outputs = 0;
    TRY(count_outputs(t, &outputs));
    Desc input = desc_plain(data_set_shape(set, t->micro_batch), DTYPE_F32);
    TRY(graph_build(&t->graph, c, input, outputs));
    TRY(graph_fuse(t->graph));
    return graph_plan(t->graph, t->backend);
}

static Status make_optimizer(Trainer *t)
{
    const Graph *g = t->graph;
    OptimRange *range = mem_new((size_t)(g->param_count + 1) * sizeof *range);
    int count = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (p->info.buffer) continue;
        range[count++] = (OptimRange){.offset = p->offset,
                                      .elements = p->elements,
                                      .decay = p->info.decay || t->config->optim.decay_all};
    }
    Status st = optim_new(&t->optim, t->config, t->backend, range, count, g->arena_elements);
    mem_free(&range);
    return st;
}

static void init_params(Trainer *t)
{
    size_t bytes = t->plan->param_bytes;
    float *host = mem_pages_new(bytes);
    graph_init_params(t->graph, (uint64_t)t->config->run.seed, host);
    Stream *stream = t->backend->table->stream(t->backend);
    t->backend->table->copy(stream, executor_params(t->executor), host, bytes);
    t->backend->table->sync(stream);
    mem_pages_free(host, bytes);
    executor_refresh(t->executor);
}

static void count_steps(Trainer *t)
{
    t->steps_per_epoch = data_steps_per_epoch(t->train_set.samples, t->batch);
    t->steps = t->config->train.steps ? t->config->train.steps
                                      : t->config->train.epochs * t->steps_per_epoch;
}

static Status make(Trainer *t)
{
    const Config *c = t->config;
    TRY(cut_batch(t));
    TRY(open_data(t));
    TRY(open_backend(t));
    TRY(build_graph(t));
    TRY(plan_new(&t->plan, t->graph, t->micros_local, (size_t)(c->grid.bucket_mb * 1e6)));
    count_steps(t);
    return OK;
}

/* What every rank does alone is agreed on before the next collective call. */
static Status setup(Trainer *t)
{
    const Config *c = t->config;
    TRY(status_agree(t->world, make(t)));
    TRY(comm_new(&t->comm, t->world, t->backend, c->grid.transport,
                 t->graph->arena_elements + METRIC_PAD));
    ExecutorOptions options = {.micros = t->micros_local, .seed = (uint64_t)c->run.seed};
    Status st = executor_new(&t->executor, t->plan, t->backend, t->comm, options);
    if (st == OK) st = make_optimizer(t);
    TRY(status_agree(t->world, st));
    init_params(t);
    return OK;
}

Status trainer_new(Trainer **out, const Config *config, const World *world)
{
    Trainer *t = mem_new(sizeof *t);
    t->config = config;
    t->world = world;
    t->best_metric = NAN;
    Status st = setup(t);
    if (st != OK) trainer_free(&t);
    *out = t;
    return st;
}

void trainer_free(Trainer **trainer)
{
    Trainer *t = *trainer;
    if (!t) return;
    loader_free(&t->loader);
    optim_free(&t->optim);
    executor_free(&t->executor);
    comm_free(&t->comm);
    plan_free(&t->plan);
    graph_free(&t->graph);
    if (t->backend) backend_close(&t->backend);
    mem_free(trainer);
}
