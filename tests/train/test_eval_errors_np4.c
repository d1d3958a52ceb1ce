/* Tests an evaluation in which one rank, or all, cannot read the data: at the first sample, in the
 * middle, or at the last one. Every rank returns the same Status and message, on every grid, and
 * the trainer can be used afterwards. */
#include "grids.h"

enum { MOST_RANKS = 4, BAD_TOKEN = 200, BAD_LABEL = 9, LIMIT_S = 800 };
static const int places[] = {SAMPLES / 2, 0, SAMPLES - 1};
/* with sanitizers, which take five times as long, only the middle is tested */
#ifdef __SANITIZE_ADDRESS__
enum { PLACES = 1 };
#else
enum { PLACES = sizeof places / sizeof places[0] };
#endif

static char *bad_tokens[PLACES], *bad_labels[PLACES], *missing;

/* Copies a file and sets element `place` of its array `name` to `number`. */
static char *spoil(const char *from, const char *what, int at, const char *name, int place,
                   int number)
{
    char *path = mem_format("%s/%s-%d.h5", tiny_folder, what, place);
    char *command = mem_format("cp '%s' '%s'", from, path);
    if (tiny_rank == 0) {
        CU_ASSERT_EQUAL(system(command), 0);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT), all = H5Dget_space(set);
        hsize_t first = (hsize_t)at, one = 1;
        hid_t here = H5Screate_simple(1, &one, NULL);
        H5Sselect_hyperslab(all, H5S_SELECT_SET, &first, NULL, &one, NULL);
        CU_ASSERT(H5Dwrite(set, H5T_NATIVE_INT, here, all, H5P_DEFAULT, &number) >= 0);
        H5Sclose(here);
        H5Sclose(all);
        H5Dclose(set);
        H5Fclose(file);
    }
    mem_free(&command);
    return path;
}

static void test_files(void)
{
    for (int i = 0; i < PLACES; ++i) {
        int at = places[i];
        bad_tokens[i] =
            spoil(tokens_path, "tokens", at * CONTEXT + CONTEXT / 2, "/tokens", at, BAD_TOKEN);
        bad_labels[i] = spoil(images_path, "labels", at, "/y", at, BAD_LABEL);
    }
    missing = mem_format("%s/missing.h5", tiny_folder);
    tiny_barrier();
    /* ends a rank that waits for ever, before the time limit of the test suite does */
    alarm(LIMIT_S);
}

/* Returns the data set that this rank evaluates. Rank `bad` gets the file `path`; if `bad` is the
 * number of ranks, all ranks do. */
static DataSet set_here(const Trainer *t, const char *path, int bad)
{
    DataSet set = t->test_set;
    if (bad == t->world->rank || bad == t->world->size)
        snprintf(set.path, sizeof set.path, "%s", path);
    return set;
}

/* Returns whether a rank that has the bad file reads its bad place. */
static bool is_met(Trainer *t, int place, int bad, bool labels)
{
    int replica = (int)(place % t->batch / t->micro_batch / t->micro_batches_local);
    bool reads = t->plan->reads_labels || (!labels && t->plan->reads_data);
    bool mine =
        (bad == t->world->rank || bad == t->world->size) && reads && t->grid.dp_rank == replica;
    bool all[MOST_RANKS] = {0}, met = false;
    world_allgather(t->world, &mine, sizeof mine, all);
    for (int r = 0; r < t->world->size; ++r) met = met || all[r];
    return met;
}

/* Returns whether all ranks have the same value. */
static bool is_common(const World *world, uint64_t mine)
{
    uint64_t all[MOST_RANKS] = {0};
    bool same = true;
    world_allgather(world, &mine, sizeof mine, all);
    for (int r = 0; r < world->size; ++r) same = same && all[r] == all[0];
    return same;
}

static void fails(Trainer *t, const char *path, int bad, Status want, const char *says)
{
    DataSet set = set_here(t, path, bad);
    EvalLine line = {0};
    Status st = train_evaluate(t, &set, &line, NULL);
    CU_ASSERT_EQUAL(st, want);
    if (want == OK) return;
    if (!strstr(fail_message(), says)) printf("  %s: %s\n", says, fail_message());
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), says));
    CU_ASSERT(is_common(t->world, hash_text(fail_message())));
}

static bool same_line(EvalLine a, EvalLine b)
{
    return a.samples == b.samples && a.loss == b.loss && a.samples > 0;
}

/* Tries each bad place on each rank, and then on all ranks. After each try, the good file gives the
 * same results as before. */
static void try_all(Trainer *t, char *const *path, bool labels)
{
    EvalLine before = {0}, after = {0};
    StepResult result;
    CHECK_OK(train_evaluate(t, &t->test_set, &before, NULL));
    for (int bad = 0; bad <= t->world->size; ++bad) {
        fails(t, missing, bad, ERR_NOINPUT, "missing.h5");
        for (int i = 0; i < PLACES; ++i) {
            bool met = is_met(t, places[i], bad, labels);
            fails(t, path[i], bad, met ? ERR_DATA : OK, labels ? "is 9, but" : "is 200, but");
            CHECK_OK(train_evaluate(t, &t->test_set, &after, NULL));
            CU_ASSERT(same_line(before, after));
        }
    }
    CHECK_OK(next_step(t, &result));
    CHECK_OK(train_evaluate(t, &t->test_set, &after, NULL));
    CU_ASSERT(after.loss != before.loss);
}

static void on_grid(const GridModel *model, char *const *path, int ranks, const char *more)
{
    World sub;
    if (tiny_world(&sub, ranks)) {
        GridPart part = {.model = model, .ranks = ranks, .more = more};
        Trainer *t = NULL;
        Config *config = grid_config(&part);
        if (config) CHECK_OK(trainer_new(&t, config, &sub));
        if (t) try_all(t, path, !model->tokens);
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
}

static const struct {
    int ranks;
    const char *more;
} grids[] = {{1, ""},
             {2, "grid.tp=2"},
             {2, "grid.tp=2 grid.transport=mpi"},
             {3, "grid.tp=3 train.sum_slices=1 data.prefetch=2"},
             {2, "grid.pp=2"},
             {2, "grid.dp=2"},
             {2, "grid.dp=2 grid.zero=3 grid.transport=mpi grid.bucket_mb=0.01"},
             {4, "grid.pp=2 grid.tp=2"},
             {4, "grid.dp=2 grid.tp=2"},
             {4, "grid.dp=2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2"},
             {2, "grid.pp=2 grid.pipeline_schedule=zb-v"}};
enum { GRIDS = sizeof grids / sizeof grids[0] };

static void test_tokens(void)
{
    static const GridModel gpt = {
        "gpt2", "model: {name: gpt2, layers: 4, width: 24, heads: 3, context: 8}\n", true};
    for (int i = 0; i < GRIDS; ++i) on_grid(&gpt, bad_tokens, grids[i].ranks, grids[i].more);
}

static void test_labels(void)
{
    static const GridModel mlp = {"mlp", "model: {name: mlp, hidden: [24, 24, 24, 24]}\n", false};
    for (int i = 0; i < GRIDS; ++i) on_grid(&mlp, bad_labels, grids[i].ranks, grids[i].more);
}

TINY_MAIN("evaluation errors", grid_data, {"files", test_files}, {"tokens", test_tokens},
          {"labels", test_labels})
