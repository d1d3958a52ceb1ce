/* Tests train.ema on grids. The averages of parameters and running statistics have the same bits on
 * every grid, with shards of any kind, and so have evaluations, which use the averages. An
 * evaluation changes no bit of any value. A run that resumes in the middle of an epoch, with
 * evaluations before and after, ends with the same bits as a run that was never stopped. Memory is
 * as planned. */
#include "grids.h"

#include "train/average.h"

enum { STEPS = 7, STOP = 5, EVALUATED = 3 };

/* key=value words of all models: train.ema with a ramp, and warm-ups of the rates and of the
 * momentum */
static const char *const keys =
    "train.ema=0.95 train.ema_ramp=4 optim.warmup_steps=5 optim.warmup_bias_lr=0.1 "
    "optim.warmup_momentum=0.5";

enum { GPT = 2, LAYERS = 3, FROZEN = 6 };

static const Place places[] = {
    {"grid.dp=2", 2},
    {"grid.zero=1 grid.dp=2 grid.transport=shm grid.bucket_mb=0.01", 2},
    {"grid.zero=2 grid.dp=4 grid.transport=mpi grid.bucket_mb=0.05", 4},
    {"grid.zero=3 grid.dp=2 grid.transport=mpi grid.bucket_mb=0.01", 2},
    {"grid.pp=2 grid.pipeline_schedule=zero-bubble", 2},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi", 4},
    {"grid.tp=2 grid.dp=2 grid.zero=2", 4},
    {"grid.zero=3 grid.dp=4 grid.transport=shm", 4},
};
enum { PLACES = sizeof places / sizeof places[0] };

typedef struct Result {
    uint64_t hash;
    /* losses of the evaluations after step EVALUATED and at the end */
    double loss[2];
    /* disturbed: an evaluation has changed a value; unused: the parameters themselves gave the same
 * loss */
    bool disturbed, unused;
    size_t planned, taken;
} Result;

/* Returns the largest number of bytes over the replicas of the first stage. Collective. */
static size_t most_of(const Trainer *t, size_t mine)
{
    enum { RANKS_MOST = 4 };
    size_t all[RANKS_MOST], most = 0;
    world_allgather(t->world, &mine, sizeof mine, all);
    for (int r = 0; r < t->shape.dp; ++r) most = all[r] > most ? all[r] : most;
    return most;
}

/* Evaluates. Compares the loss with that of the parameters themselves, and all values with those
 * before the evaluation. */
static Status evaluate(Trainer *t, double *loss, Result *result)
{
    EvalLine line, of_params;
    const uint64_t before = tiny_hash(t);
    TRY(train_evaluate(t, &t->test_set, &line, NULL));
    *loss = line.loss;
    result->disturbed = result->disturbed || tiny_hash(t) != before;
    average_swap(t);
    TRY(train_evaluate(t, &t->test_set, &of_params, NULL));
    average_swap(t);
    result->disturbed = result->disturbed || tiny_hash(t) != before;
    result->unused = result->unused || of_params.loss == line.loss;
    return OK;
}

static Status steps(Trainer *t, const GridPart *part, Result *result)
{
    if (part->from) TRY(train_load(t, part->from, LOAD_RUN));
    while (t->step < part->to) {
        StepResult r;
        TRY(next_step(t, &r));
        if (t->step == EVALUATED) TRY(evaluate(t, &result->loss[0], result));
    }
    if (part->save) TRY(train_save(t, part->save));
    TRY(evaluate(t, &result->loss[1], result));
    result->hash = tiny_hash(t);
    result->planned = t->plan->average_bytes;
    result->taken = most_of(t, (size_t)t->optim->average_elements * sizeof(float));
    return OK;
}

static Result result_of(const GridPart *part)
{
    World sub;
    Result result;
    memset(&result, 0, sizeof result);
    if (tiny_world(&sub, part->ranks)) {
        Trainer *t = NULL;
        Config *config = grid_config(part);
        Status st = config ? trainer_new(&t, config, &sub) : ERR_CONFIG;
        if (st == OK) st = steps(t, part, &result);
        if (st != OK && sub.rank == 0) printf("  %s: %s\n", part->more, fail_message());
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(&result, sizeof result);
    return result;
}

/* Trains a part of a run on a grid. from, to, save: as in GridPart. */
static Result train(int model, const Place *place, const char *from, int to, const char *save)
{
    char *more = mem_format("%s %s", keys, place->grid);
    Result result = result_of(&(GridPart){.model = &grid_models[model],
                                          .ranks = place->ranks,
                                          .more = more,
                                          .from = from,
                                          .to = to,
                                          .save = save});
    CU_ASSERT(result.hash != 0 && !result.disturbed && !result.unused);
    const bool replicas_only = !strstr(place->grid, "pp=") && !strstr(place->grid, "tp=");
    CU_ASSERT(!replicas_only || result.taken == result.planned);
    mem_free(&more);
    return result;
}

static const Place alone = {"grid.dp=1", 1};

static char *path_of(const char *name)
{
    return mem_format("%s/%s.h5", tiny_folder, name);
}

static void check_same(const char *what, const Result *got, const Result *want, const char *a,
                       const char *b)
{
    /* with tensor parallelism the hash is of slices, so it differs */
    bool same = got->loss[1] == want->loss[1] && (strstr(what, "tp=") || got->hash == want->hash);
    if (same && tiny_rank == 0) same = grid_same_files(a, b);
    CU_ASSERT(same);
    if (!same && tiny_rank == 0) printf("  %s: not the same\n", what);
}

static void on_places(int model, int first, int count)
{
    char *want_path = path_of("want"), *got_path = path_of("got");
    Result want = train(model, &alone, NULL, STEPS, want_path);
    for (int i = first; i < first + count; ++i) {
        Result got = train(model, &places[i], NULL, STEPS, got_path);
        check_same(places[i].grid, &got, &want, got_path, want_path);
        CU_ASSERT_EQUAL(got.loss[0], want.loss[0]);
    }
    mem_free(&want_path);
    mem_free(&got_path);
}

/* A model with running statistics; and lamb, whose update does not compute the average itself and
 * needs norms of complete tensors. */
static void test_layers(void)
{
    on_places(LAYERS, 0, PLACES);
}

/* The weights of embedding and head are tied, on one stage and on two. */
static void test_tied(void)
{
    on_places(GPT, 2, 5);
}

/* Frozen parameters and frozen statistics have no averages. */
static void test_frozen(void)
{
    on_places(FROZEN, 3, 1);
}

/* There are 52 samples in batches of 16, so step 5 is in the second epoch. */
static void test_resume(void)
{
    static const Place before[] = {{"grid.zero=3 grid.dp=2 grid.transport=mpi", 2},
                                   {"grid.dp=1", 1}};
    static const Place after[] = {{"grid.dp=1", 1}, {"grid.zero=1 grid.dp=2 grid.pp=2", 4}};
    char *want_path = path_of("want"), *half = path_of("half"), *end = path_of("end");
    Result want = train(LAYERS, &alone, NULL, STEPS, want_path);
    for (int i = 0; i < 2; ++i) {
        train(LAYERS, &before[i], NULL, STOP, half);
        Result got = train(LAYERS, &after[i], half, STEPS, end);
        check_same(after[i].grid, &got, &want, end, want_path);
    }
    mem_free(&want_path);
    mem_free(&half);
    mem_free(&end);
}

TINY_MAIN("average", grid_data, {"layers", test_layers}, {"tied embedding", test_tied},
          {"frozen", test_frozen}, {"resume", test_resume})
