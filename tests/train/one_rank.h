/* Runs a model on one rank by the executor, without trainer and loader. A step has one
 * micro-batch. */
#ifndef WEFT_TESTS_ONE_RANK_H
#define WEFT_TESTS_ONE_RANK_H

#include "pipeline.h"
#include "schedules.def"

#include "harness.h"

typedef struct OneRank {
    /* all fields are owned */
    Config *config;
    World world;
    Backend *backend;
    Grid grid;
    bool grid_ready;
    Graph *graph;
    Schedule *schedule;
    Plan *plan;
    Comm *comm;
    Executor *executor;
} OneRank;

static inline Status one_rank_plan(OneRank *r, int schedule)
{
    PlanOptions options = {.shape = {1, 1, 1},
                           .channel_depth = 2,
                           .chunk_begin = (const int[]){0, r->graph->node_count},
                           .bucket_bytes = 1 << 20};
    TRY(schedule_new(&r->schedule, schedule, NULL, (ScheduleShape){1, 1, 1}));
    options.schedule = r->schedule;
    return plan_new(&r->plan, r->graph, &options);
}

/* Initialises *r with a configuration, which *r owns. */
static inline void one_rank_init(OneRank *r, Config *config)
{
    *r = (OneRank){.config = config,
                   .world = {.size = 1,
                             .node_size = 1,
                             .one_node = true,
                             .comm = MPI_COMM_NULL,
                             .node = MPI_COMM_NULL}};
}

/* Plans the model r->graph, and makes its executor. table: backend. fuse: backend for which nodes
 * are fused; NULL: no fusion. schedule: a ScheduleKind. Release with one_rank_close, also after a
 * failure. */
static inline Status one_rank_start(OneRank *r, const BackendTable *table, const BackendTable *fuse,
                                    uint64_t seed, int schedule)
{
    TRY(backend_open(&r->backend, table, (BackendOptions){.threads = 1}));
    if (fuse) TRY(graph_fuse(r->graph, fuse));
    TRY(graph_plan(r->graph, r->backend));
    TRY(one_rank_plan(r, schedule));
    TRY(grid_init(&r->grid, &r->world, (GridShape){1, 1, 1}));
    r->grid_ready = true;
    TRY(comm_new(&r->comm, &r->grid.dp_world, r->backend, TRANSPORT_AUTO,
                 r->plan->micro_grad_elements));
    return executor_new(&r->executor, r->plan, &r->grid, r->backend, r->comm,
                        (ExecutorOptions){.seed = seed});
}

/* Builds the model of a configuration for data with ids, and starts it (one_rank_start). */
static inline Status one_rank_open_ids(OneRank *r, Config *config, Desc input, GraphIds ids,
                                       int64_t classes, const BackendTable *table,
                                       const BackendTable *fuse, uint64_t seed, int schedule)
{
    one_rank_init(r, config);
    TRY(graph_build_ids(&r->graph, r->config, input, ids, classes));
    return one_rank_start(r, table, fuse, seed, schedule);
}

/* Builds the model of a configuration for data without ids, and starts it (one_rank_start). */
static inline Status one_rank_open(OneRank *r, Config *config, Desc input, int64_t classes,
                                   const BackendTable *table, const BackendTable *fuse,
                                   uint64_t seed)
{
    return one_rank_open_ids(r, config, input, (GraphIds){0}, classes, table, fuse, seed,
                             SCHEDULE_1F1B);
}

static inline void one_rank_close(OneRank *r)
{
    executor_free(&r->executor);
    comm_free(&r->comm);
    plan_free(&r->plan);
    if (r->schedule) schedule_free(&r->schedule);
    if (r->grid_ready) grid_fini(&r->grid);
    graph_free(&r->graph);
    if (r->backend) backend_close(&r->backend);
    config_free(&r->config);
}

static inline Status one_rank_batch(void *user, const MicroBatch **batch, double *wait_s)
{
    (void)wait_s;
    *batch = user;
    return OK;
}

static inline void one_rank_release(void *user)
{
    (void)user;
}

/* Runs forward and backward of a batch, and updates the running statistics. The gradients are then
 * in the executor. Returns the metrics. */
static inline const float *one_rank_step(OneRank *r, MicroBatch *batch, StepBatch of)
{
    BatchSource source = {.user = batch, .next = one_rank_batch, .release = one_rank_release};
    double wait_s;
    CHECK_OK(executor_forward_backward(r->executor, &source, &of, &wait_s));
    executor_reduce(r->executor);
    executor_move_statistics(r->executor, &of);
    return executor_metrics(r->executor, 0);
}

#endif
