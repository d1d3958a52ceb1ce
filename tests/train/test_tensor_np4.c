/* Tests tensor parallelism. Losses, norms, parameters and evaluation have the bits of one rank, for
 * equal and unequal slices, on every grid, with every schedule, transport and ZeRO stage, and with
 * recomputation. With train.reproducible same_grid they agree with one rank up to the rounding of
 * sums in another order. Checkpoints hold whole tensors and can be resumed with any other
 * grid.tp. */
#include "grids.h"

enum { STEPS = 4, STOP = 2 };
/* With AddressSanitizer, which is slow and looks for wrong accesses only, each call of same_bits
 * tests one grid of its list, call after call another position. */
#ifdef __SANITIZE_ADDRESS__
enum { ONE_GRID = true };
#else
enum { ONE_GRID = false };
#endif
/* Relative tolerances of losses; norms may differ 20 times as much. In bf16 each rank's part of a
 * sum is rounded. */
static const double TOLERANCE = 2e-5, TOLERANCE_BF16 = 4e-3;

static const GridModel models[] = {
    {"gpt2",
     "model: {name: gpt2, layers: 2, width: 48, heads: 6, context: 8, dropout: 0.1}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.1, clip: 0.5}\n",
     true},
    {"rotary",
     "model: {name: gpt2, layers: 2, width: 40, heads: 5, context: 8, positions: rotary}\n"
     "optim: {name: adamw, lr: 1e-3, weight_decay: 0.1}\n",
     true},
    {"dense",
     "model: {layers: [flatten, dense: {width: 30}, gelu, dropout: {p: 0.2}, dense: {width: 22}, "
     "relu, dense: {width: 20}, silu, dense: {width: 17}, dropout: {p: 0.1}, dense: {width: 7}]}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9, clip: 0.5}\n",
     false},
    {"convolutions",
     "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, flatten, dense: {width: "
     "24}, gelu, dense: {width: 7}, relu, dense: {width: 7}]}\n"
     "optim: {name: sgd, lr: 0.01, momentum: 0.9}\n",
     false},
    {"one dense layer", "model: {layers: [flatten, dense: {width: 7}]}\n", false},
    /* With three ranks, if only the slices of the first one counted, one block would not be
 * recomputed. */
    {"narrow",
     "model: {name: mlp, hidden: [7, 9], dropout: 0.2}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9}\n",
     false},
    /* with three ranks, the first one has two heads of keys, each of which two heads of queries
 * share */
    {"llama",
     "model: {name: llama, layers: 2, width: 48, heads: 8, kv_heads: 4, ffn: 50, context: 8, "
     "dropout: 0.1}\n"
     "optim: {name: adamw, lr: 1e-3, weight_decay: 0.1, clip: 0.5}\n",
     true},
    {"group_norm",
     "model: {layers: [conv2d: {channels: 8, kernel: 3}, group_norm: {groups: 2}, relu, flatten, "
     "dense: {width: 24}, swiglu, dropout: {p: 0.1}, dense: {width: 7}]}\n"
     "optim: {name: sgd, lr: 0.01, momentum: 0.9}\n",
     false},
    {"muon",
     "model: {name: gpt2, layers: 1, width: 32, heads: 4, context: 8}\n"
     "optim: {name: muon, lr: 0.01, clip: 0.5, groups: [\n"
     "  {roles: [embedding, head, bias, norm], name: adamw, lr: 1e-3}]}\n",
     true},
    /* two or four ranks share the only head of keys */
    {"multi-query",
     "model: {name: llama, layers: 2, width: 48, heads: 8, kv_heads: 1, ffn: 50, context: 8, "
     "window: 5, qkv_bias: true}\n"
     "optim: {name: adamw, lr: 1e-3, weight_decay: 0.1, clip: 0.5}\n",
     true},
};
enum { MODELS = 4, HEAD_ONLY = MODELS, NARROW, LLAMA, GROUP_NORM, MUON, MULTI_QUERY };

static bool close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* Checks that two outcomes agree up to rounding. Parameters are not compared directly, but by the
 * evaluation of all samples. */
static void check_close(const char *what, const Outcome *got, const Outcome *want, double tolerance)
{
    bool good = got->hash != 0 && want->hash != 0 && got->steps == want->steps && got->steps > 0;
    for (int i = 0; i < want->steps; ++i)
        good = good && close_to(got->loss[i], want->loss[i], tolerance) &&
               close_to(got->norm[i], want->norm[i], 20 * tolerance);
    good = good && close_to(got->eval_loss, want->eval_loss, tolerance) &&
           got->eval_samples == want->eval_samples;
    CU_ASSERT(good);
    if (!good) outcome_explain(what, got, want);
}

static Outcome train(int model, int ranks, const char *more)
{
    return grid_train(
        &(GridPart){.model = &models[model], .ranks = ranks, .more = more, .to = STEPS});
}

/* Compares two and three ranks with one rank, up to rounding: with same_grid each rank computes one
 * slice of a sum. also: overrides. */
static void close_to_one_rank(int model, const char *also, double tolerance)
{
    static const char *const transport[] = {"auto", "auto", "shm"};
    char *one = mem_format("%s train.reproducible=same_grid", also);
    Outcome want = train(model, 1, one);
    for (int tp = 2; tp <= 3; ++tp) {
        char *more = mem_format("%s grid.tp=%d grid.transport=%s", one, tp, transport[tp - 1]);
        Outcome got = train(model, tp, more);
        check_close(more, &got, &want, tolerance);
        mem_free(&more);
    }
    mem_free(&one);
}

static void test_close_to_one_rank(void)
{
    close_to_one_rank(0, "optim.name=lamb optim.lr=0.01", TOLERANCE);
    close_to_one_rank(2, "", TOLERANCE);
    close_to_one_rank(3, "", TOLERANCE);
    close_to_one_rank(LLAMA, "grid.recompute=block", TOLERANCE);
    close_to_one_rank(MULTI_QUERY, "", TOLERANCE);
    close_to_one_rank(NARROW, "grid.recompute=block", TOLERANCE);
}

static Outcome train_and_save(int model, int ranks, const char *more, const char *path)
{
    Outcome out = grid_train(&(GridPart){
        .model = &models[model], .ranks = ranks, .more = more, .to = STEPS, .save = path});
    CU_ASSERT(out.hash != 0);
    /* the checkpoints are compared instead of hashes */
    out.hash = 0;
    return out;
}

/* Checks that everything is the same to the bit on one rank and on each of `count` grids. */
static void same_bits(int model, const char *also, const char *const *grid, int count)
{
    char *path[2] = {mem_format("%s/want.h5", tiny_folder), mem_format("%s/got.h5", tiny_folder)};
    static int lists;
    const int only = lists++ % count;
    Outcome want = train_and_save(model, 1, also, path[0]);
    for (int i = 0; i < count; ++i) {
        if (ONE_GRID && i != only) continue;
        char *more = mem_format("%s %s", also, grid[i]);
        const int ranks = strcmp(grid[i], "grid.tp=2") == 0 ? 2 : 4;
        Outcome got = train_and_save(model, ranks, more, path[1]);
        bool same = memcmp(&got, &want, sizeof got) == 0;
        if (tiny_rank == 0) same = same && grid_same_files(path[0], path[1]);
        CU_ASSERT(same);
        if (!same) outcome_explain(more, &got, &want);
        tiny_barrier();
        mem_free(&more);
    }
    for (int k = 0; k < 2; ++k) mem_free(&path[k]);
}

static void test_like_one_rank(void)
{
    static const char *const two_and_four[] = {"grid.tp=2", "grid.tp=4 grid.transport=mpi"};
    static const char *const four[] = {"grid.tp=4"};
    for (int m = 0; m < MODELS; ++m) same_bits(m, "", two_and_four, 2);
    same_bits(LLAMA, "", two_and_four, 2);
    same_bits(LLAMA, "model.kv_heads=2 model.window=5 optim.name=lamb", two_and_four, 2);
    same_bits(MULTI_QUERY, "grid.recompute=block", two_and_four, 2);
    same_bits(LLAMA, "model.tied=true model.kv_heads=8 grid.recompute=block", four, 1);
    same_bits(GROUP_NORM, "", four, 1);
    same_bits(NARROW, "grid.recompute=block", four, 1);
    same_bits(0, "train.label_smoothing=0.1 train.sum_slices=4", four, 1);
    same_bits(0, "optim.name=lamb optim.lr=0.01", four, 1);
    same_bits(2, "optim.name=lars optim.lr=1", two_and_four, 1);
    same_bits(MUON, "", four, 1);
}

static void test_bf16(void)
{
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    Backend *backend = NULL;
    if (backend_open(&backend, &backend_cpu, options) != OK) {
        if (tiny_rank == 0) printf("  skipped: %s\n", fail_message());
        return;
    }
    backend_close(&backend);
    static const char *const grid[] = {"grid.tp=2", "grid.tp=4 grid.transport=mpi",
                                       "grid.tp=2 grid.pp=2 grid.recompute=block",
                                       "grid.tp=2 grid.dp=2 grid.zero=2 grid.transport=mpi"};
    for (int m = 0; m < MODELS; ++m) same_bits(m, "train.precision=bf16", grid, m == 0 ? 4 : 2);
    same_bits(LLAMA, "train.precision=bf16", grid, 4);
    same_bits(GROUP_NORM, "train.precision=bf16", grid + 1, 1);
    same_bits(NARROW, "train.precision=bf16 grid.recompute=block", grid + 1, 1);
    same_bits(MUON, "train.precision=bf16", grid, 1);
    close_to_one_rank(0, "train.precision=bf16", TOLERANCE_BF16);
    close_to_one_rank(LLAMA, "train.precision=bf16", TOLERANCE_BF16);
}

static void test_same_bits(void)
{
    static const char *const two[] = {
        "grid.tp=2 grid.dp=2",
        "grid.tp=2 grid.pp=2 grid.transport=mpi",
        "grid.tp=2 grid.pp=2 grid.pipeline_schedule=zero-bubble grid.recompute=block",
        "grid.tp=2 grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2",
        "grid.tp=2 grid.pp=2 grid.pipeline_schedule=zb-v",
        "grid.tp=2 grid.pp=2 grid.pipeline_schedule=dualpipe-v grid.transport=mpi",
        "grid.tp=2 grid.dp=2 grid.zero=1 grid.transport=shm",
        "grid.tp=2 grid.dp=2 grid.zero=2 grid.transport=mpi grid.bucket_mb=0.01",
    };
    static const char *const shards[] = {
        "grid.tp=2 grid.dp=2 grid.zero=1 grid.bucket_mb=0.02",
        "grid.tp=2 grid.dp=2 grid.zero=2 grid.transport=mpi",
        "grid.tp=2 grid.dp=2 grid.zero=3 grid.transport=mpi grid.bucket_mb=0.01"};
    same_bits(0, "optim.name=lamb", shards, 3);
    same_bits(0, "model.heads=3 model.width=120", shards, 3);
    same_bits(0, "", two, 4);
    same_bits(1, "", two + 1, 3);
    same_bits(2, "", two, 6);
    same_bits(LLAMA, "", two, 6);
    same_bits(MULTI_QUERY, "", two + 1, 3);
    same_bits(MULTI_QUERY, "", shards, 3);
    same_bits(GROUP_NORM, "", two, 2);
}

/* Resumes the checkpoint of each grid on the next one, and checks that it ends with the bits of a
 * run on one rank. Checkpoints hold whole tensors. */
static void resume(int model)
{
    const struct {
        int ranks;
        const char *more;
    } layout[] = {{4, "grid.tp=4"},
                  {1, "grid.tp=1"},
                  {4, "grid.tp=2 grid.pp=2"},
                  {3, "grid.dp=3"},
                  {4, "grid.tp=2 grid.dp=2"}};
    enum { LAYOUTS = sizeof layout / sizeof layout[0] };
    char *path[] = {mem_format("%s/whole.h5", tiny_folder), mem_format("%s/half.h5", tiny_folder),
                    mem_format("%s/end.h5", tiny_folder)};
    Outcome whole = train_and_save(model, 1, "", path[0]);
    for (int i = 0; i < LAYOUTS; ++i) {
        int next = (i + 1) % LAYOUTS;
        GridPart part = {.model = &models[model],
                         .ranks = layout[i].ranks,
                         .more = layout[i].more,
                         .to = STOP,
                         .save = path[1]};
        CU_ASSERT(grid_train(&part).hash != 0);
        part = (GridPart){.model = &models[model],
                          .ranks = layout[next].ranks,
                          .more = layout[next].more,
                          .from = path[1],
                          .to = STEPS,
                          .save = path[2]};
        Outcome got = grid_train(&part);
        bool same = got.steps == STEPS - STOP && got.eval_loss == whole.eval_loss;
        for (int s = 0; s < STEPS - STOP; ++s)
            same =
                same && got.loss[s] == whole.loss[STOP + s] && got.norm[s] == whole.norm[STOP + s];
        if (tiny_rank == 0) same = same && grid_same_files(path[0], path[2]);
        CU_ASSERT(same);
        if (!same && tiny_rank == 0) printf("  %s after %s\n", part.more, layout[i].more);
        tiny_barrier();
    }
    for (int k = 0; k < 3; ++k) mem_free(&path[k]);
}

static void test_resume(void)
{
    if (!ONE_GRID) resume(0);
    resume(MULTI_QUERY);
}

/* Checks that before the first step the checkpoint of a run with grid.tp 4 is the same as that of
 * one rank. */
static void first_values(int model)
{
    char *path[2] = {mem_format("%s/one.h5", tiny_folder), mem_format("%s/four.h5", tiny_folder)};
    for (int k = 0; k < 2; ++k) {
        GridPart part = {.model = &models[model],
                         .ranks = k ? 4 : 1,
                         .more = k ? "grid.tp=4" : "grid.tp=1",
                         .to = 0,
                         .save = path[k]};
        CU_ASSERT(grid_train(&part).hash != 0);
    }
    if (tiny_rank == 0) CU_ASSERT(grid_same_files(path[0], path[1]));
    tiny_barrier();
    for (int k = 0; k < 2; ++k) mem_free(&path[k]);
}

static void test_first_values(void)
{
    first_values(0);
    first_values(LLAMA);
    first_values(MULTI_QUERY);
}

/* Checks that sizes that cannot be divided are refused. says: part of the message, which tells what
 * would fit. */
static void refused(int model, int ranks, const char *more, const char *says)
{
    World sub;
    int good = 1;
    if (tiny_world(&sub, ranks)) {
        GridPart part = {.model = &models[model], .ranks = ranks, .more = more};
        Trainer *t = NULL;
        Config *config = grid_config(&part);
        Status st = trainer_new(&t, config, &sub);
        good = st == ERR_CONFIG && strstr(fail_message(), says) != NULL;
        if (!good) printf("  %s: %s\n", more, st == OK ? "was taken" : fail_message());
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    CU_ASSERT(good);
}

static void test_refused(void)
{
    refused(1, 2, "grid.tp=2 model.heads=1", "has 1 heads: set grid.tp to at most 1");
    refused(LLAMA, 4, "grid.tp=4 model.heads=6 model.kv_heads=3",
            "has 3 kv_heads: set grid.tp to at most 3");
    refused(HEAD_ONLY, 2, "grid.tp=2", "nothing to divide");
    refused(0, 3, "grid.tp=3", "no power of two");
    refused(0, 4, "grid.tp=4 train.sum_slices=2", "train.sum_slices to 4");
}

TINY_MAIN("tensor parallel", grid_data, {"like one rank", test_like_one_rank}, {"bf16", test_bf16},
          {"same grid", test_close_to_one_rank}, {"same bits", test_same_bits},
          {"resume", test_resume}, {"first values", test_first_values}, {"refused", test_refused})
