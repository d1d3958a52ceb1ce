/* Tests ZeRO. Sharding over replicas changes no bit of parameters, running statistics, optimizer
 * state, losses, norms or evaluation, on any grid and over any transport. Checkpoints are the same
 * files and can be resumed with any other setting. Expected values: the run on one rank. The
 * models' tensors are longer than a chunk, so that the bounds of shards lie within tensors. */
#include "grids.h"

enum { STEPS = 4, STOP = 2, LAYERS = 3, GPT = 2, RANKS_MOST = 4 };

static const char *const gpt_wide = "model.width=96 model.vocab=200";

/* Results of a run other than its checkpoint, which is compared as a file. */
typedef struct Run {
    bool good;
    int steps;
    double loss[MOST_STEPS], norm[MOST_STEPS];
    EvalLine eval;
    /* bytes on that rank of the first stage which has most, and (plan_) the planned bytes */
    size_t state_bytes, plan_state_bytes, gradient_bytes, plan_gradient_bytes, param_bytes,
        plan_param_bytes;
} Run;

/* Returns the largest `mine` of the replicas of the first stage. Collective. */
static size_t most_of(const Trainer *t, size_t mine)
{
    size_t all[RANKS_MOST], most = 0;
    world_allgather(t->world, &mine, sizeof mine, all);
    for (int r = 0; r < t->shape.dp; ++r) most = all[r] > most ? all[r] : most;
    return most;
}

static size_t state_of(const Trainer *t)
{
    bool scratch = t->plan->zero && t->optim->table->scratch == SCRATCH_MEASURE;
    return optim_state_bytes(t->optim) +
           (scratch ? (size_t)t->optim->scratch_elements * sizeof(float) : 0);
}

/* Returns the bytes of the arenas of gradient sums: the communicator's arena, further arenas of
 * that size, and partial sums. */
static size_t gradients_of(const Trainer *t)
{
    const Plan *plan = t->plan;
    size_t levels = (plan->sum_levels - 1) * (size_t)plan->gradient_elements;
    size_t partial = plan->push_levels * (size_t)plan_push_elements(plan, t->grid.dp_rank);
    return ((size_t)t->comm->arena_elements + levels + partial) * sizeof(float);
}

/* Returns the bytes of parameters, if grid.transport is mpi: all of them, or a shard and the ring
 * in which layers are gathered. */
static size_t params_of(const Trainer *t)
{
    int64_t local = plan_local_elements(t->plan, t->grid.dp_rank);
    int64_t ring = t->plan->gathers ? t->comm->param_elements : 0;
    return (size_t)(local + ring) * sizeof(float);
}

static Status run_part(Trainer *t, const GridPart *part, Run *run)
{
    if (part->from) TRY(train_load(t, part->from, LOAD_RUN));
    while (t->step < part->to) {
        StepResult r;
        TRY(next_step(t, &r));
        run->loss[run->steps] = r.loss;
        run->norm[run->steps++] = r.grad_norm;
        if (t->step == 2) TRY(train_evaluate(t, &t->test_set, &run->eval, NULL));
    }
    run->eval.seconds = 0;
    run->state_bytes = most_of(t, state_of(t));
    run->plan_state_bytes = t->plan->state_bytes;
    run->gradient_bytes = most_of(t, gradients_of(t));
    run->plan_gradient_bytes = t->plan->gradient_part_bytes;
    run->param_bytes = most_of(t, params_of(t));
    run->plan_param_bytes = t->plan->param_part_bytes;
    return train_save(t, part->save);
}

/* Trains a part of a run. Collective on MPI_COMM_WORLD; the result is the same on every rank. */
static Run run_of(const GridPart *part)
{
    World sub;
    Run run;
    memset(&run, 0, sizeof run);
    if (tiny_world(&sub, part->ranks)) {
        Trainer *t = NULL;
        Config *config = grid_config(part);
        Status st = config ? trainer_new(&t, config, &sub) : ERR_CONFIG;
        if (st == OK) st = run_part(t, part, &run);
        if (st != OK && sub.rank == 0) printf("  %s: %s\n", part->more, fail_message());
        run.good = st == OK;
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(&run, sizeof run);
    return run;
}

static bool same_runs(const Run *a, const Run *b)
{
    bool same = a->good && b->good && a->steps == b->steps;
    for (int i = 0; i < a->steps; ++i)
        same = same && a->loss[i] == b->loss[i] && a->norm[i] == b->norm[i] && a->norm[i] > 0;
    return same && a->eval.loss == b->eval.loss && a->eval.samples == b->eval.samples;
}

typedef struct Case {
    int model;
    /* overrides for all grids and for the run on one rank */
    const char *more;
} Case;

static char *path_of(const char *name)
{
    return mem_format("%s/%s.h5", tiny_folder, name);
}

/* Compares one grid with the run on one rank. path: that run's checkpoint. */
static void compare(const Case *c, const char *grid, int ranks, const Run *want, const char *path)
{
    char *more = mem_format("%s %s", c->more, grid), *got_path = path_of("got");
    const GridPart part = {.model = &grid_models[c->model],
                           .ranks = ranks,
                           .more = more,
                           .to = STEPS,
                           .save = got_path};
    Run got = run_of(&part);
    bool same = same_runs(want, &got);
    if (tiny_rank == 0 && same) same = grid_same_files(path, got_path);
    if (!same && tiny_rank == 0) printf("  %s: %s differs\n", part.model->name, more);
    CU_ASSERT(same);
    if (strstr(grid, "pp=1")) {
        CU_ASSERT_EQUAL(got.state_bytes, got.plan_state_bytes);
        CU_ASSERT_EQUAL(got.gradient_bytes, got.plan_gradient_bytes);
    }
    mem_free(&more);
    mem_free(&got_path);
}

static Run reference(const Case *c, const char *path)
{
    return run_of(&(GridPart){
        .model = &grid_models[c->model], .ranks = 1, .more = c->more, .to = STEPS, .save = path});
}

static const Place places[] = {
    {"grid.zero=1 grid.dp=2 grid.pp=1 grid.transport=shm", 2},
    {"grid.zero=2 grid.dp=2 grid.pp=1 grid.transport=mpi grid.bucket_mb=0.05", 2},
    {"grid.zero=2 grid.dp=4 grid.pp=1 grid.transport=shm grid.bucket_mb=0.01", 4},
    {"grid.zero=1 grid.dp=4 grid.pp=1 grid.transport=mpi", 4},
    {"grid.zero=1 grid.dp=2 grid.pp=2 grid.transport=shm", 4},
    {"grid.zero=2 grid.dp=2 grid.pp=2 grid.transport=mpi grid.pipeline_schedule=zero-bubble "
     "grid.bucket_mb=0.05",
     4},
    {"grid.zero=2 grid.dp=2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2 "
     "grid.bucket_mb=0.01",
     4},
    {"grid.zero=2 grid.dp=1 grid.pp=2", 2},
    {"grid.zero=1 grid.dp=2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2", 4},
    {"grid.zero=2 grid.dp=2 grid.pp=2 grid.pipeline_schedule=gpipe grid.recompute=block", 4},
    {"grid.zero=2 grid.dp=2 grid.pp=2 grid.pipeline_schedule=zb-v grid.bucket_mb=0.02", 4},
};
/* three replicas with four micro-batches each */
static const Place three[] = {
    {"grid.zero=1 grid.dp=3 grid.pp=1 grid.transport=mpi grid.bucket_mb=0.05", 3},
    {"grid.zero=2 grid.dp=3 grid.pp=1 grid.transport=shm grid.bucket_mb=0.01", 3},
    {"grid.zero=3 grid.dp=3 grid.pp=1 grid.transport=mpi", 3},
};
/* grids on which parameters are sharded as well */
static const Place fetched[] = {
    {"grid.zero=3 grid.dp=2 grid.pp=1 grid.transport=mpi grid.bucket_mb=0.01", 2},
    {"grid.zero=3 grid.dp=4 grid.pp=1 grid.transport=shm grid.bucket_mb=0.05", 4},
    {"grid.zero=3 grid.dp=4 grid.pp=1 grid.transport=mpi grid.recompute=block "
     "grid.bucket_mb=0.01",
     4},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi grid.pipeline_schedule=zero-bubble "
     "grid.bucket_mb=0.02",
     4},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi grid.pipeline_schedule=interleaved "
     "grid.chunks=2 "
     "grid.bucket_mb=0.01",
     4},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi grid.pipeline_schedule=dualpipe-v "
     "grid.bucket_mb=0.01",
     4},
};
/* three replicas with eight micro-batches in all: one replica has two and a padding */
static const Place padded[] = {
    {"grid.zero=2 grid.dp=3 grid.pp=1 grid.transport=shm grid.bucket_mb=0.01", 3},
    {"grid.zero=3 grid.dp=3 grid.pp=1 grid.transport=mpi grid.bucket_mb=0.01", 3},
};
/* Twelve micro-batches, three for each of four replicas or six for each of two: no power of two.
 * Sharded gradients are added one by one; others in subtrees, such as two and one. */
static const Place odd[] = {
    {"grid.zero=2 grid.dp=4 grid.pp=1 grid.transport=shm", 4},
    {"grid.zero=1 grid.dp=4 grid.pp=1 grid.transport=shm grid.bucket_mb=0.01", 4},
    {"grid.zero=1 grid.dp=4 grid.pp=1 grid.transport=mpi grid.sums=halving", 4},
    {"grid.zero=0 grid.dp=4 grid.pp=1 grid.transport=mpi grid.bucket_mb=0.01", 4},
    {"grid.zero=0 grid.dp=2 grid.pp=2 grid.transport=shm grid.pipeline_schedule=zb-v", 4},
    {"grid.zero=2 grid.dp=2 grid.pp=2 grid.transport=mpi grid.bucket_mb=0.01", 4},
};

static void on_places(const Case *c, const Place *place, int count)
{
    char *path = path_of("want");
    Run want = reference(c, path);
    CU_ASSERT_TRUE(want.good);
    for (int i = 0; i < count; ++i) compare(c, place[i].grid, place[i].ranks, &want, path);
    mem_free(&path);
}

static void on_all_places(int model, const char *more)
{
    char *of_three = mem_format("%s train.batch=24", more);
    char *of_odd = mem_format("%s train.batch=12 train.micro_batch=1", more);
    on_places(&(Case){model, more}, places, (int)(sizeof places / sizeof places[0]));
    on_places(&(Case){model, more}, padded, (int)(sizeof padded / sizeof padded[0]));
    on_places(&(Case){model, of_three}, three, (int)(sizeof three / sizeof three[0]));
    on_places(&(Case){model, of_odd}, odd, (int)(sizeof odd / sizeof odd[0]));
    mem_free(&of_three);
    mem_free(&of_odd);
}

static void test_sgd(void)
{
    const Case c = {LAYERS, "optim.name=sgd optim.lr=0.05 optim.momentum=0.9 optim.clip=0.5"};
    on_places(&c, places, 4);
    on_places(&c, padded, 1);
}
static void test_adamw(void)
{
    on_places(&(Case){LAYERS, "optim.name=adamw optim.lr=0.003 optim.clip=0.5"}, places + 5, 2);
}
static void test_lamb(void)
{
    on_places(&(Case){LAYERS, "optim.name=lamb optim.clip=0.5"}, places + 2, 4);
}
static void test_lars(void)
{
    on_places(&(Case){LAYERS, "optim.name=lars optim.lr=0.1 optim.momentum=0.9"}, places + 1, 2);
}
/* Tests an embedding that is also the head's matrix, which one stage holds or two. */
static void test_tied(void)
{
    on_all_places(GPT, gpt_wide);
}

/* Tests sharded parameters, with running statistics and with a matrix that two stages hold. */
static void test_gathered(void)
{
    int count = (int)(sizeof fetched / sizeof fetched[0]);
    on_places(&(Case){LAYERS, "optim.name=lamb optim.clip=0.5"}, fetched, count);
    on_places(&(Case){GPT, gpt_wide}, fetched, count);
}

/* Trains on the grid `before`, resumes on the grid `after`, and compares with a run on one rank.
 * want_path: that run's checkpoint. */
static void go_on(const Case *c, const Place *before, const Place *after, const Run *want,
                  const char *want_path)
{
    char *half = path_of("half"), *end = path_of("end");
    char *first = mem_format("%s %s", c->more, before->grid);
    char *second = mem_format("%s %s", c->more, after->grid);
    GridPart part = {.model = &grid_models[c->model],
                     .ranks = before->ranks,
                     .more = first,
                     .to = STOP,
                     .save = half};
    Run head = run_of(&part);
    part = (GridPart){.model = part.model,
                      .ranks = after->ranks,
                      .more = second,
                      .from = half,
                      .to = STEPS,
                      .save = end};
    Run tail = run_of(&part);
    bool same = head.good && tail.good && tail.loss[STEPS - STOP - 1] == want->loss[STEPS - 1];
    if (tiny_rank == 0 && same) same = grid_same_files(want_path, end);
    if (!same && tiny_rank == 0) printf("  %s, then %s: differs\n", before->grid, after->grid);
    CU_ASSERT(same);
    mem_free(&first);
    mem_free(&second);
    mem_free(&half);
    mem_free(&end);
}

static void test_resume(void)
{
    static const Place shared[] = {{"grid.zero=2 grid.dp=2 grid.pp=2", 4},
                                   {"grid.zero=3 grid.dp=4 grid.transport=mpi", 4},
                                   {"grid.zero=1 grid.dp=2 grid.transport=mpi", 2}};
    static const Place whole[] = {{"grid.dp=2", 2}, {"grid.dp=1 grid.pp=2", 2}, {"grid.dp=4", 4}};
    const Case cases[] = {{LAYERS, "optim.name=lamb optim.clip=0.5"}, {GPT, gpt_wide}};
    char *path = path_of("want");
    for (int k = 0; k < 2; ++k) {
        Run want = reference(&cases[k], path);
        for (int i = 0; i < (k == 0 ? 3 : 1); ++i) {
            go_on(&cases[k], &shared[i], &whole[i], &want, path);
            go_on(&cases[k], &whole[i], &shared[(i + 1) % 3], &want, path);
            go_on(&cases[k], &shared[i], &shared[(i + 1) % 3], &want, path);
        }
    }
    mem_free(&path);
}

/* Tests that optimizer state and gradient sums of each rank are near their even share and as
 * planned. Four replicas have eight micro-batches: unsharded gradients need two arenas of sums;
 * sharded gradients need one arena of a shard, and a ring. The model is so large that rounding up
 * the sizes of shards matters little, whatever layout the processor uses for weights. */
static void test_memory_is_shared(void)
{
    char *path = path_of("state");
    Run run[4];
    for (int zero = 0; zero < 4; ++zero) {
        char *more = mem_format("model.width=192 model.layers=6 model.vocab=200 grid.dp=4 "
                                "grid.bucket_mb=0.6 grid.transport=mpi grid.zero=%d",
                                zero);
        run[zero] = run_of(&(GridPart){
            .model = &grid_models[GPT], .ranks = 4, .more = more, .to = 1, .save = path});
        mem_free(&more);
        CU_ASSERT(run[zero].good);
        CU_ASSERT_EQUAL(run[zero].state_bytes, run[zero].plan_state_bytes);
        CU_ASSERT_EQUAL(run[zero].gradient_bytes, run[zero].plan_gradient_bytes);
        CU_ASSERT_EQUAL(run[zero].param_bytes, run[zero].plan_param_bytes);
    }
    size_t sums = run[0].gradient_bytes / 2, ring = run[2].gradient_bytes - sums / 4;
    CU_ASSERT(run[1].state_bytes < run[0].state_bytes / 4 * 105 / 100);
    CU_ASSERT_EQUAL(run[2].state_bytes, run[1].state_bytes);
    CU_ASSERT_EQUAL(run[1].gradient_bytes, run[0].gradient_bytes);
    CU_ASSERT(ring < sums * 2 / 3);
    CU_ASSERT_EQUAL(run[2].param_bytes, run[0].param_bytes);
    CU_ASSERT_EQUAL(run[3].gradient_bytes, run[2].gradient_bytes);
    CU_ASSERT(run[3].param_bytes < run[0].param_bytes);
    mem_free(&path);
}

TINY_MAIN("zero", grid_data, {"sgd", test_sgd}, {"adamw", test_adamw}, {"lamb", test_lamb},
          {"lars", test_lars}, {"tied embedding", test_tied}, {"fetched", test_gathered},
          {"go on", test_resume}, {"memory is shared", test_memory_is_shared})
