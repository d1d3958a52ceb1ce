/* Tensor parallelism: losses, norms, parameters and evaluation equal those of one rank up to the
 * rounding of sums in another order, for equal and unequal slices. With the same grid.tp they are
 * the same bits on every dp x pp grid, schedule, transport and ZeRO stage, and with recomputation.
 * Checkpoints hold whole tensors and can be resumed with any other grid.tp. */
#include "grids.h"

enum { STEPS = 4, STOP = 2 };
/* Relative tolerances; in bf16, where each rank's part of a sum is rounded, of losses. */
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
    /* with three ranks, the first one's slices alone would leave one block without recomputation */
    {"narrow",
     "model: {name: mlp, hidden: [7, 9], dropout: 0.2}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9}\n",
     false},
    /* with three ranks, the first one has two heads of keys, each shared by two of queries */
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
};
enum { MODELS = 4, HEAD_ONLY = MODELS, NARROW, LLAMA, GROUP_NORM };

static bool close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* Compares two outcomes up to rounding. Parameters are compared through the evaluation of all
 * samples. */
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

static void against_one_rank(int model, const char *also, double tolerance)
{
    static const char *const transport[] = {"auto", "auto", "shm", "mpi"};
    Outcome want = train(model, 1, also);
    for (int tp = 2; tp <= 4; ++tp) {
        char *more = mem_format("%s grid.tp=%d grid.transport=%s", also, tp, transport[tp - 1]);
        Outcome got = train(model, tp, more);
        check_close(more, &got, &want, tolerance);
        mem_free(&more);
    }
}

static void test_like_one_rank(void)
{
    for (int m = 0; m < MODELS; ++m) against_one_rank(m, "", TOLERANCE);
    against_one_rank(LLAMA, "", TOLERANCE);
    against_one_rank(LLAMA, "model.tied=true model.kv_heads=8 grid.recompute=block", TOLERANCE);
    against_one_rank(GROUP_NORM, "", TOLERANCE);
    against_one_rank(0, "train.label_smoothing=0.1", TOLERANCE);
    against_one_rank(0, "grid.recompute=block", TOLERANCE);
    against_one_rank(NARROW, "grid.recompute=block", TOLERANCE);
    against_one_rank(0, "optim.name=lamb optim.lr=0.01", TOLERANCE);
    against_one_rank(2, "optim.name=lars optim.lr=1", TOLERANCE);
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
    against_one_rank(0, "train.precision=bf16", TOLERANCE_BF16);
    against_one_rank(LLAMA, "train.precision=bf16", TOLERANCE_BF16);
}

static Outcome train_and_save(int model, int ranks, const char *more, const char *path)
{
    Outcome out = grid_train(&(GridPart){
        .model = &models[model], .ranks = ranks, .more = more, .to = STEPS, .save = path});
    CU_ASSERT(out.hash != 0);
    /* checkpoints are compared instead */
    out.hash = 0;
    return out;
}

/* Checks that with the same grid.tp everything is the same to the bit. */
static void same_bits(int model, const char *reference, const char *const *more, int count)
{
    char *path[2] = {mem_format("%s/want.h5", tiny_folder), mem_format("%s/got.h5", tiny_folder)};
    Outcome want = train_and_save(model, 2, reference, path[0]);
    for (int i = 0; i < count; ++i) {
        Outcome got = train_and_save(model, 4, more[i], path[1]);
        bool same = memcmp(&got, &want, sizeof got) == 0;
        if (tiny_rank == 0) same = same && grid_same_files(path[0], path[1]);
        CU_ASSERT(same);
        if (!same) outcome_explain(more[i], &got, &want);
        tiny_barrier();
    }
    for (int k = 0; k < 2; ++k) mem_free(&path[k]);
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
    static const char *const even[] = {
        "grid.tp=2 grid.dp=2 grid.zero=1 model.vocab=30 optim.name=lamb",
        "grid.tp=2 grid.dp=2 grid.zero=3 grid.transport=mpi model.vocab=30 optim.name=lamb "
        "grid.bucket_mb=0.01"};
    static const char *const uneven[] = {
        "grid.tp=2 grid.dp=2 grid.zero=1 model.heads=3 model.width=120 grid.bucket_mb=0.02",
        "grid.tp=2 grid.dp=2 grid.zero=2 grid.transport=mpi model.heads=3 model.width=120",
        "grid.tp=2 grid.dp=2 grid.zero=3 grid.transport=mpi model.heads=3 model.width=120 "
        "grid.bucket_mb=0.02"};
    same_bits(0, "grid.tp=2 model.vocab=30 optim.name=lamb", even, 2);
    same_bits(0, "grid.tp=2 model.heads=3 model.width=120", uneven, 3);
    same_bits(0, "grid.tp=2 grid.recompute=block", two, 4);
    same_bits(1, "grid.tp=2", two + 1, 3);
    same_bits(2, "grid.tp=2", two, 6);
    same_bits(LLAMA, "grid.tp=2", two, 6);
    same_bits(GROUP_NORM, "grid.tp=2", two, 2);
}

/* A checkpoint holds whole tensors: one of grid.tp=3 is resumed with 1, 2 and 4, and the
 * reverse. */
static void resume(int model)
{
    const struct {
        int ranks;
        const char *more;
    } layout[] = {{3, "grid.tp=3"},
                  {1, "grid.tp=1"},
                  {4, "grid.tp=2 grid.pp=2"},
                  {4, "grid.tp=2 grid.dp=2"},
                  {4, "grid.tp=4"}};
    enum { LAYOUTS = sizeof layout / sizeof layout[0] };
    char *half = mem_format("%s/half.h5", tiny_folder);
    Outcome whole = train(model, 1, "");
    for (int i = 0; i < LAYOUTS; ++i) {
        int next = (i + 1) % LAYOUTS;
        GridPart part = {.model = &models[model],
                         .ranks = layout[i].ranks,
                         .more = layout[i].more,
                         .to = STOP,
                         .save = half};
        Outcome first = grid_train(&part), want = whole;
        CU_ASSERT(first.hash != 0);
        part = (GridPart){.model = &models[model],
                          .ranks = layout[next].ranks,
                          .more = layout[next].more,
                          .from = half,
                          .to = STEPS};
        Outcome got = grid_train(&part);
        want.steps = STEPS - STOP;
        for (int s = 0; s < want.steps; ++s) {
            want.loss[s] = whole.loss[STOP + s];
            want.norm[s] = whole.norm[STOP + s];
        }
        check_close(part.more, &got, &want, TOLERANCE);
    }
    mem_free(&half);
}

static void test_resume(void)
{
    resume(0);
    resume(LLAMA);
}

/* Before the first step, when nothing has been rounded, the file of a divided run is the same byte
 * for byte. */
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
}

/* Sizes that cannot be divided are refused; the message says what would fit. */
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
    refused(LLAMA, 2, "grid.tp=2 model.kv_heads=1", "has 1 kv_heads: set grid.tp to at most 1");
    refused(HEAD_ONLY, 2, "grid.tp=2", "nothing to divide");
}

TINY_MAIN("tensor parallel", grid_data, {"like one rank", test_like_one_rank}, {"bf16", test_bf16},
          {"same bits", test_same_bits}, {"resume", test_resume},
          {"first values", test_first_values}, {"refused", test_refused})
