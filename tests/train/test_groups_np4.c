/* Tests groups of parameters with different rules, some of which need entire tensors (Muon).
 * Parameters, optimizer state, losses, norms and evaluation have the same bits on every grid, over
 * every transport and at every ZeRO stage. Checkpoints are the same files and can be resumed on any
 * other grid. Memory is as planned. Expected values: the run on one rank, or for grids with tensor
 * parallelism the run with the same grid.tp and nothing else. */
#include "grids.h"

enum { STEPS = 4, STOP = 2 };

/* has convolutions, one of them depthwise, a matrix that is taller than wide, running statistics,
 * and three rules with their own rates */
static const GridModel models[] = {
    {"muon on layers",
     "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, conv2d: {channels: 8, "
     "kernel: 3, groups: 8}, conv2d: {channels: 20, kernel: 1}, relu, flatten, dense: {width: 24}, "
     "gelu, dense: {width: 40}, relu, dense: {width: 7}]}\n"
     "optim: {name: muon, lr: 0.02, weight_decay: 0.1, clip: 0.5, lr_schedule: cosine, groups: [\n"
     "  {roles: [bias, norm], name: adamw, lr: 0.003},\n"
     "  {roles: head, name: lion, lr: 0.001, weight_decay: 0.3}]}\n",
     false},
    /* the embedding is also the head's matrix, which one stage holds or two; lamb needs norms of
     * entire tensors */
    {"muon on gpt2",
     "model: {name: gpt2, layers: 3, width: 48, heads: 3, context: 8, vocab: 200, dropout: 0.1}\n"
     "optim: {name: adamw, lr: 0.003, weight_decay: 0.1, clip: 0.5, groups: [\n"
     "  {match: ['h.*.attn.c_attn.weight', 'h.1.*'], roles: weight, name: muon, lr_scale: 0.5,\n"
     "   lr_adjust: match_rms},\n"
     "  {match: h.2.mlp.c_fc.*, name: lamb}, {match: '*.bias', lr_scale: 2}]}\n",
     true},
    /* two stages hold a tensor that a rule needs as a whole; ftrl produces zeros */
    {"lion on gpt2",
     "model: {name: gpt2, layers: 2, width: 48, heads: 6, context: 8, dropout: 0.1}\n"
     "optim: {name: lion, lr: 0.0003, weight_decay: 0.1, groups: [\n"
     "  {roles: weight, name: muon, lr: 0.01}, {roles: norm, name: ftrl, lr: 0.05, l1: 0.1},\n"
     "  {match: 'h.*.bias', name: adagrad, lr: 0.003}]}\n",
     true},
};
enum { LAYERS, GPT, LION };

static const Place places[] = {
    {"grid.dp=2", 2},
    {"grid.zero=1 grid.dp=2 grid.transport=shm grid.bucket_mb=0.01", 2},
    {"grid.zero=1 grid.dp=4 grid.transport=mpi", 4},
    {"grid.zero=2 grid.dp=4 grid.transport=shm grid.bucket_mb=0.01", 4},
    {"grid.zero=2 grid.dp=3 grid.transport=mpi grid.bucket_mb=0.05", 3},
    {"grid.zero=3 grid.dp=2 grid.transport=mpi grid.bucket_mb=0.01", 2},
    {"grid.zero=3 grid.dp=4 grid.transport=mpi grid.bucket_mb=0.05 grid.recompute=block", 4},
    {"grid.pp=2 grid.pipeline_schedule=zero-bubble", 2},
    {"grid.zero=1 grid.dp=2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2", 4},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi grid.bucket_mb=0.02", 4},
};
enum { PLACES = sizeof places / sizeof places[0] };

static char *path_of(const char *name)
{
    return mem_format("%s/%s.h5", tiny_folder, name);
}

/* Checks that two runs that end at the same step have the same outcome and the same checkpoints.
 * Checkpoints also tell whether tensors are equal that ranks hold as different slices. */
static void check_same(const char *what, Outcome *got, const Outcome *want, const char *got_path,
                       const char *want_path)
{
    bool same = outcome_same(got, want);
    if (same && tiny_rank == 0) same = grid_same_files(got_path, want_path);
    CU_ASSERT(same);
    if (!same) outcome_explain(what, got, want);
}

static void on_places(int model, const Place *alone, const Place *place, int count)
{
    char *want_path = path_of("want"), *got_path = path_of("got");
    Outcome want = place_train(&models[model], alone, NULL, STEPS, want_path);
    CU_ASSERT(want.hash != 0);
    for (int i = 0; i < count; ++i) {
        Outcome got = place_train(&models[model], &place[i], NULL, STEPS, got_path);
        check_same(place[i].grid, &got, &want, got_path, want_path);
    }
    mem_free(&want_path);
    mem_free(&got_path);
}

static const Place one = {"", 1};

static void test_layers(void)
{
    on_places(LAYERS, &one, places, PLACES);
}

static void test_gpt(void)
{
    on_places(GPT, &one, places, PLACES);
}

static void test_lion(void)
{
    on_places(LION, &one, places + 3, PLACES - 3);
}

/* Tests that the slices of a tensor-parallel group are gathered for rules that need the entire
 * tensor. */
static void test_tensor(void)
{
    static const Place two = {"grid.tp=2", 2};
    static const Place of_two[] = {
        {"grid.tp=2 grid.dp=2 grid.zero=1", 4},
        {"grid.tp=2 grid.dp=2 grid.zero=2 grid.bucket_mb=0.02", 4},
        {"grid.tp=2 grid.dp=2 grid.zero=3 grid.transport=mpi grid.bucket_mb=0.05", 4},
        {"grid.tp=2 grid.pp=2", 4},
    };
    for (int m = LAYERS; m <= LION; ++m)
        on_places(m, &two, of_two, (int)(sizeof of_two / sizeof of_two[0]));
}

/* Compares with one rank up to rounding: with train.sum_slices 1, tensor parallelism changes the
 * order of sums inside layers and nothing else. Three ranks have unequal parts. */
static void test_tensor_close(void)
{
    static const char *const more[] = {"grid.tp=2 train.sum_slices=1",
                                       "grid.tp=3 train.sum_slices=1"};
    for (int m = GPT; m <= LION; ++m)
        for (int i = 0; i < 2; ++i) {
            Outcome want = place_train(&models[m], &one, NULL, STEPS, NULL);
            Outcome got = place_train(&models[m], &(Place){more[i], 2 + i}, NULL, STEPS, NULL);
            bool close = got.hash && want.hash;
            for (int s = 0; s < STEPS; ++s)
                close = close && fabs(got.loss[s] - want.loss[s]) < 2e-3 * want.loss[s];
            CU_ASSERT(close);
            if (!close) outcome_explain(more[i], &got, &want);
        }
}

/* Resumes a checkpoint of each grid on the next one, and checks that it ends with the file of the
 * run on one rank. */
static void test_resume(void)
{
    static const Place ring[] = {{"", 1},
                                 {"grid.zero=1 grid.dp=4 grid.transport=mpi", 4},
                                 {"grid.pp=2 grid.dp=2", 4},
                                 {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi", 4},
                                 {"grid.zero=2 grid.dp=3", 3}};
    enum { RING = sizeof ring / sizeof ring[0] };
    char *want_path = path_of("want"), *half = path_of("half"), *end = path_of("end");
    for (int m = LAYERS; m <= GPT; ++m) {
        place_train(&models[m], &one, NULL, STEPS, want_path);
        for (int i = 0; i < RING; ++i) {
            place_train(&models[m], &ring[i], NULL, STOP, half);
            Outcome tail = place_train(&models[m], &ring[(i + 1) % RING], half, STEPS, end);
            CU_ASSERT(tail.hash != 0);
            if (tiny_rank == 0) CU_ASSERT(grid_same_files(want_path, end));
        }
    }
    mem_free(&want_path);
    mem_free(&half);
    mem_free(&end);
}

/* Checks that loading the checkpoint `path` with other keys of optim fails. says: part of the
 * message. */
static void refuse(const char *path, const char *optim, const char *says)
{
    World sub;
    bool good = true;
    if (tiny_world(&sub, 1)) {
        char *text = mem_format("model: {name: gpt2, layers: 2, width: 48, heads: 6, context: 8, "
                                "dropout: 0.1}\n%s\n",
                                optim);
        const GridModel model = {"other", text, true};
        Trainer *t = NULL;
        Config *config = grid_config(&(GridPart){.model = &model, .ranks = 1, .more = ""});
        Status st = trainer_new(&t, config, &sub);
        CU_ASSERT_EQUAL(st, OK);
        if (st == OK) st = train_load(t, path, LOAD_RUN);
        good = st == ERR_DATA && strstr(fail_message(), says);
        if (!good) printf("  %s: %s\n", optim, st == OK ? "was taken" : fail_message());
        trainer_free(&t);
        config_free(&config);
        mem_free(&text);
    }
    tiny_world_fini(&sub);
    CU_ASSERT(good);
}

/* Tests that the state of one rule is not accepted as the state of another. */
static void test_other_rules(void)
{
    char *path = path_of("lion");
    place_train(&models[LION], &one, NULL, STOP, path);
    refuse(path, "optim: {name: lion, lr: 0.0003}", "/optim/lion_momentum/h.0.ln_1.weight");
    refuse(path, "optim: {name: adamw, lr: 0.0003}", "/optim/m/");
    refuse(path, "optim: {name: sgd, lr: 0.0003, momentum: 0.9}", "/optim/momentum/");
    mem_free(&path);
}

/* Checks that the optimizer's memory is as planned, on that rank of the first stage which has
 * most. */
static void check_memory(int model, const char *grid)
{
    World sub;
    size_t all[4] = {0}, most = 0, planned = 0;
    if (tiny_world(&sub, 4)) {
        Trainer *t = NULL;
        Config *config =
            grid_config(&(GridPart){.model = &models[model], .ranks = 4, .more = grid});
        CHECK_OK(trainer_new(&t, config, &sub));
        size_t mine = optim_bytes(t->optim) + t->slices_bytes;
        world_allgather(&sub, &mine, sizeof mine, all);
        for (int r = t->grid.tp_rank; r < t->shape.dp * t->shape.tp; r += t->shape.tp)
            most = all[r] > most ? all[r] : most;
        planned = t->plan->state_bytes;
        if (t->grid.pp_rank > 0) planned = most;
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    CU_ASSERT_EQUAL(most, planned);
    if (most != planned) printf("  %s: %zu, planned %zu\n", grid, most, planned);
}

static void test_memory(void)
{
    for (int m = LAYERS; m <= LION; ++m) {
        check_memory(m, "grid.dp=4");
        check_memory(m, "grid.dp=4 grid.zero=1");
        check_memory(m, "grid.dp=4 grid.zero=3 grid.transport=mpi grid.bucket_mb=0.01");
        check_memory(m, "grid.dp=2 grid.zero=2 grid.pp=2");
        check_memory(m, "grid.dp=2 grid.zero=1 grid.tp=2");
        check_memory(m, "grid.dp=4 grid.zero=1 optim.name=lamb");
        check_memory(m, "grid.dp=2 grid.tp=2 optim.name=lamb");
    }
}

/* Tests that entire tensors are distributed evenly: replicas' states differ by no more than one of
 * the largest matrices. */
static void test_even(void)
{
    World sub;
    size_t all[4], least, most;
    bool even = true;
    if (tiny_world(&sub, 4)) {
        Trainer *t = NULL;
        Config *config = grid_config(
            &(GridPart){.model = &models[LION],
                        .ranks = 4,
                        .more = "grid.dp=4 grid.zero=2 grid.bucket_mb=0.02 model.layers=8"});
        CHECK_OK(trainer_new(&t, config, &sub));
        size_t mine = optim_state_bytes(t->optim);
        world_allgather(&sub, &mine, sizeof mine, all);
        least = most = mine;
        for (int r = 0; r < 4; ++r) {
            least = all[r] < least ? all[r] : least;
            most = all[r] > most ? all[r] : most;
        }
        even = most - least <= (size_t)4 * 48 * 48 * sizeof(float);
        if (!even) printf("  from %zu to %zu bytes\n", least, most);
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    CU_ASSERT(even);
}

TINY_MAIN("groups", grid_data, {"layers", test_layers}, {"gpt2", test_gpt}, {"lion", test_lion},
          {"tensor parallel", test_tensor}, {"tensor parallel is close", test_tensor_close},
          {"resume", test_resume}, {"other rules", test_other_rules}, {"memory", test_memory},
          {"even", test_even})
