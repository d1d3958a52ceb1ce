/* Tests model.freeze. Frozen parameters keep their initial values. Trained parameters have the bits
 * of the run on one rank: on every grid, with every schedule, at every ZeRO stage, with
 * recomputation and with tensor parallelism. Frozen parameters have no gradient and no optimizer
 * state, and no messages are sent for them; tensors that backward does not need are not kept. */
#include "grids.h"

enum { STEPS = 4, STOP = 2 };

static const GridModel models[] = {
    /* only the classifier is trained: with two stages, the first one runs no backward */
    {"resnet18's classifier",
     "model: {name: resnet18, stem: small, width: 8, freeze: ['[!f]*']}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5e-4, clip: 1.0}\n",
     false},
    /* freezes some layers above and below trained ones, norms whose statistics move, and one
     * parameter of a layer */
    {"layers",
     "model: {layers: [conv2d: {name: a, channels: 8, kernel: 3}, batch_norm: {name: an}, relu,"
     " conv2d: {name: b, channels: 8, kernel: 3, stride: 2}, batch_norm: {name: bn}, relu,"
     " conv2d: {name: c, channels: 8, kernel: 3}, batch_norm: {name: cn}, relu, flatten,"
     " dense: {name: d, width: 24}, gelu, dropout: {p: 0.2}, dense: {name: e, width: 7}],\n"
     " freeze: [a, an, c, cn, d.weight, e.bias], freeze_norm: affine}\n"
     "optim: {name: lamb, lr: 0.01, weight_decay: 1e-2, lr_schedule: cosine, layer_decay: 0.8}\n"
     "data: {augment: [flip, crop]}\n",
     false},
    /* the frozen embedding is also the head's matrix: with two stages, both store it */
    {"gpt2",
     "model: {name: gpt2, layers: 3, width: 24, heads: 3, context: 8, dropout: 0.1, freeze: [wte,\n"
     " wpe, 'h.0.*', h.2.mlp.c_fc.weight, 'h.1.ln_1']}\n"
     "optim: {name: adamw, lr: 3e-3, weight_decay: 0.1, clip: 0.5, layer_decay: 0.75, groups: [\n"
     "  {match: 'h.1.*', roles: weight, name: muon, lr: 0.02}]}\n",
     true},
    {"nothing",
     "model: {name: resnet18, stem: small, width: 8, freeze: ['*']}\n"
     "optim: {name: adamw, lr: 0.05, weight_decay: 0.1}\n",
     false},
};
enum { CLASSIFIER, LAYERS, GPT, NOTHING, MODELS };

static const Place one = {"", 1};
static const Place places[] = {
    {"grid.dp=4", 4},
    {"grid.pp=2", 2},
    {"grid.pp=2 grid.pipeline_schedule=zero-bubble grid.recompute=block", 2},
    {"grid.pp=2 grid.dp=2 grid.transport=mpi grid.bucket_mb=0.01 grid.zero=1", 4},
    {"grid.pp=2 grid.pipeline_schedule=zb-v grid.dp=2 grid.zero=2", 4},
    {"grid.zero=2 grid.dp=4 grid.transport=mpi grid.bucket_mb=0.01", 4},
    {"grid.zero=3 grid.dp=4 grid.transport=mpi grid.bucket_mb=0.01 grid.recompute=block", 4},
    {"grid.zero=3 grid.dp=2 grid.pp=2 grid.transport=mpi grid.bucket_mb=0.02", 4},
};
enum { PLACES = sizeof places / sizeof places[0] };

static void check_same(const Place *place, const Outcome *got, const Outcome *want)
{
    /* outcome_same would fail: without trained parameters there is no norm */
    bool same = want->hash != 0 && want->steps > 0 && memcmp(got, want, sizeof *got) == 0;
    for (int i = 0; i < got->steps; ++i) same = same && isfinite(got->loss[i]);
    CU_ASSERT(same);
    if (!same) outcome_explain(place->grid, got, want);
}

static void test_grids(void)
{
    for (int m = 0; m < MODELS; ++m) {
        Outcome want = place_train(&models[m], &one, NULL, STEPS, NULL);
        for (int i = 0; i < PLACES; i += m == NOTHING ? 3 : 1) {
            Outcome got = place_train(&models[m], &places[i], NULL, STEPS, NULL);
            check_same(&places[i], &got, &want);
        }
    }
}

/* Checks that all grids with grid.tp=2 give the same bits. */
static void test_tensor(void)
{
    static const Place two = {"grid.tp=2", 2};
    static const Place of_two[] = {{"grid.tp=2 grid.dp=2 grid.zero=1", 4},
                                   {"grid.tp=2 grid.pp=2", 4}};
    Outcome want = place_train(&models[GPT], &two, NULL, STEPS, NULL);
    Outcome whole = place_train(&models[GPT], &one, NULL, STEPS, NULL);
    for (int i = 0; i < STEPS; ++i)
        CU_ASSERT(fabs(want.loss[i] - whole.loss[i]) < 2e-3 * whole.loss[i]);
    for (int i = 0; i < 2; ++i) {
        Outcome got = place_train(&models[GPT], &of_two[i], NULL, STEPS, NULL);
        check_same(&of_two[i], &got, &want);
    }
}

/* Resumes a checkpoint of one grid on another. */
static void test_resume(void)
{
    char *half = mem_format("%s/half.h5", tiny_folder);
    for (int m = LAYERS; m <= GPT; ++m) {
        Outcome want = place_train(&models[m], &one, NULL, STEPS, NULL);
        place_train(&models[m], &places[PLACES - 1], NULL, STOP, half);
        Outcome got = place_train(&models[m], &places[3], half, STEPS, NULL);
        CU_ASSERT_EQUAL(got.hash, want.hash);
    }
    mem_free(&half);
}

/* Trains on one rank and checks that a parameter's values change exactly if it is not frozen. more:
 * overrides. */
static void check_values(int model, const char *more)
{
    World sub;
    if (tiny_world(&sub, 1)) {
        Trainer *t = NULL;
        StepResult result = {0};
        Config *config =
            grid_config(&(GridPart){.model = &models[model], .ranks = 1, .more = more});
        CHECK_OK(trainer_new(&t, config, &sub));
        int count = t->graph->param_count, kept = 0;
        uint64_t *before = mem_new((size_t)count * sizeof *before);
        for (int i = 0; i < count; ++i) before[i] = tiny_hash_tensor(t, i, -1);
        for (int i = 0; i < 3; ++i) CHECK_OK(next_step(t, &result));
        for (int i = 0; i < count; ++i) {
            const Param *p = &t->graph->param[i];
            bool same = tiny_hash_tensor(t, i, -1) == before[i];
            kept += same;
            CU_ASSERT_EQUAL(same, p->frozen);
            if (same != p->frozen) printf("  %s %s\n", p->name, same ? "stayed" : "has changed");
        }
        CU_ASSERT(kept > 0);
        CU_ASSERT(isfinite(result.loss));
        mem_free(&before);
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
}

static void test_values(void)
{
    for (int m = 0; m < MODELS; ++m) check_values(m, "");
    check_values(LAYERS, "model.freeze_norm=all");
    check_values(LAYERS, "model.freeze_norm=none");
    check_values(LAYERS, "grid.recompute=block");
}

/* ---- memory and messages ---- */

static Trainer *dry(int model, const char *more, Config **config, const World *world, int ranks)
{
    Trainer *t = NULL;
    *config = grid_config(&(GridPart){.model = &models[model], .ranks = ranks, .more = more});
    CHECK_OK(trainer_dry_run(&t, *config, world, &(DryRun){.ranks = ranks}));
    return t;
}

static void test_memory(void)
{
    World alone;
    if (!tiny_world(&alone, 1)) return;
    Config *config[2];
    Trainer *some = dry(CLASSIFIER, "", &config[0], &alone, 1),
            *all = dry(CLASSIFIER, "model.freeze=[]", &config[1], &alone, 1);
    const Plan *p = some->plan, *q = all->plan;
    int64_t trained = 0;
    for (int i = 0; i < some->graph->param_count; ++i)
        if (strncmp(some->graph->param[i].name, "fc.", 3) == 0)
            trained += (some->graph->param[i].elements + 15) / 16 * 16;
    CU_ASSERT(trained >= 64 * 7 + 7 && trained < 2000);
    CU_ASSERT_EQUAL(p->trained_elements, trained);
    CU_ASSERT_EQUAL(p->param_elements, q->param_elements);
    CU_ASSERT_EQUAL(p->gradient_elements, trained + METRIC_PAD);
    CU_ASSERT_EQUAL(p->state_bytes, (size_t)trained * sizeof(float));
    CU_ASSERT(4 * p->activation_bytes < q->activation_bytes);
    CU_ASSERT_EQUAL(p->chunk[0].buckets.count, 1);
    trainer_free(&some);
    trainer_free(&all);
    config_free(&config[0]);
    some = dry(CLASSIFIER, "grid.pp=2 grid.cuts=[layer3.0.conv1]", &config[0], &alone, 2);
    CU_ASSERT_EQUAL(some->plan->chunk[0].gradients_in.bytes, 0);
    CU_ASSERT(some->plan->chunk[0].activations_out.bytes > 0);
    /* no gradients, only the metrics */
    CU_ASSERT_EQUAL(some->plan->gradient_elements, METRIC_PAD);
    for (int i = 0; i < some->plan->chunk[0].pass[PASS_BACKWARD].count; ++i) {
        ActionKind kind = some->plan->chunk[0].pass[PASS_BACKWARD].action[i].kind;
        CU_ASSERT(kind == ACTION_WAIT_FOR_BUCKET || kind == ACTION_BUCKET);
    }
    trainer_free(&some);
    config_free(&config[0]);
    /* the head's matrix is the frozen embedding, and has no gradient either */
    some = dry(GPT, "", &config[0], &alone, 1);
    for (int i = 0; i < some->graph->param_count; ++i)
        CU_ASSERT(!some->graph->param[i].frozen || some->plan->gradient_offset[i] < 0);
    CU_ASSERT_EQUAL(some->plan->gradient_elements, some->plan->trained_elements + METRIC_PAD);
    trainer_free(&some);
    config_free(&config[0]);
    config_free(&config[1]);
    tiny_world_fini(&alone);
}

TINY_MAIN("freeze", grid_data, {"grids", test_grids}, {"tensor parallel", test_tensor},
          {"resume", test_resume}, {"values", test_values}, {"memory", test_memory})
