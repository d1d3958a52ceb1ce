/* Tests of steps that are captured and replayed, and of steps in which the host does not wait:
 * every parameter has the same bits as after plain steps. On an emulated GPU the host's calls and
 * waits are counted, too. */
#ifndef WEFT_TEST_CUDA_GRAPH_CASES_H
#define WEFT_TEST_CUDA_GRAPH_CASES_H

#include "flat_cases.h"
#include "model_cases.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        Status must_st_ = (call);                                                                  \
        if (must_st_ != OK) printf("  %s:%d: %s\n", __FILE__, __LINE__, fail_message());           \
        CU_ASSERT_EQUAL_FATAL(must_st_, OK);                                                       \
    } while (0)

typedef struct GraphCase {
    /* text: configuration keys of model and optim */
    const char *name, *text;
    int batch, micro_batch;
    /* side of the images in pixels; 0: the data are tokens */
    int side;
    const char *precision;
    /* expected number of waits of the host in a step that is not logged */
    int expected_waits;
    /* further keys of train, "ema: 0.9, "; NULL: none */
    const char *train;
} GraphCase;

enum { GRAPH_STEPS = 12 };

/* Result of a run. */
typedef struct Outcome {
    /* all parameters, then their averages, [count]; owned */
    float *value;
    int64_t count;
    double loss;
    /* number of calls and of waits of the host in a step near the end that is not logged */
    long calls, waits;
} Outcome;

static Trainer *graph_trainer(const GraphCase *c, const char *dir, const char *keys,
                              Config **config)
{
    Trainer *t = NULL;
    char *text = mem_format("run: {name: graphs, dir: %s, seed: 3}\n"
                            "data: {train: %s/train.h5}\n%s"
                            "train: {steps: 1000, batch: %d, micro_batch: %d, device: cuda, "
                            "threads: 1, precision: %s, %s%s}\n",
                            dir, dir, c->text, c->batch, c->micro_batch, c->precision,
                            c->train ? c->train : "", keys);
    MUST(config_parse(config, "test", text, 0, NULL));
    MUST(trainer_new(&t, *config, &alone));
    mem_free(&text);
    return t;
}

static void graph_steps(Trainer *t, int64_t to, StepResult *last)
{
    while (t->step < to) MUST(next_step(t, last));
}

static void count(long *calls, long *waits)
{
    *calls = *waits = 0;
    if (emulate_counts) emulate_counts(calls, waits);
}

static void take(Trainer *t, Outcome *left, const float *from, int64_t n)
{
    const BackendTable *table = t->backend->table;
    Stream *s = table->stream(t->backend);
    left->value = mem_resize(left->value, (size_t)(left->count + n) * sizeof(float));
    table->copy(s, left->value + left->count, from, (size_t)n * sizeof(float));
    table->sync(s);
    left->count += n;
}

static void take_values(Trainer *t, Outcome *left)
{
    for (int i = 0; i < t->graph->param_count; ++i)
        take(t, left, executor_param(t->executor, i), t->graph->param[i].elements);
    for (int i = 0; t->optim->average && i < t->optim->averaged_count; ++i)
        take(t, left, t->optim->average + t->optim->piece[i].average_offset,
             t->optim->piece[i].elements);
}

/* Trains to the end and returns the result. Calls and waits are counted in the second to last
 * step. */
static Outcome run_to_end(Trainer *t, Config *config)
{
    Outcome left = {0};
    StepResult result;
    long calls, waits;
    graph_steps(t, GRAPH_STEPS - 2, &result);
    count(&calls, &waits);
    graph_steps(t, GRAPH_STEPS - 1, &result);
    count(&left.calls, &left.waits);
    left.calls -= calls;
    left.waits -= waits;
    graph_steps(t, GRAPH_STEPS, &result);
    train_step_stats(t, &result);
    left.loss = result.loss;
    take_values(t, &left);
    trainer_free(&t);
    config_free(&config);
    return left;
}

static Outcome run_straight(const GraphCase *c, const char *dir, const char *keys)
{
    Config *config = NULL;
    Trainer *t = graph_trainer(c, dir, keys, &config);
    int copies = 0;
    for (int i = 0; i < t->optim->range_count; ++i) copies += t->optim->piece[i].copy != NULL;
    CU_ASSERT_EQUAL(copies > 0, strcmp(c->precision, "fp32") != 0);
    return run_to_end(t, config);
}

/* Saves after step 5, makes two more steps, loads the checkpoint and continues. same: true:
 * continues in the same trainer, which is replaying; false: in a new trainer. */
static Outcome run_resumed(const GraphCase *c, const char *dir, const char *keys, bool same)
{
    Config *config = NULL;
    StepResult result;
    char *path = mem_format("%s/checkpoint-%d", dir, same);
    Trainer *t = graph_trainer(c, dir, keys, &config);
    graph_steps(t, 5, &result);
    MUST(train_save(t, path));
    graph_steps(t, 7, &result);
    if (!same) {
        trainer_free(&t);
        config_free(&config);
        t = graph_trainer(c, dir, keys, &config);
    }
    MUST(train_load(t, path, LOAD_RUN));
    char *remove = mem_format("rm -r %s", path);
    CU_ASSERT_EQUAL(system(remove), 0);
    mem_free(&remove);
    mem_free(&path);
    return run_to_end(t, config);
}

static void check_left(const GraphCase *c, const char *what, Outcome *got, const Outcome *plain)
{
    bool same = got->count == plain->count && got->loss == plain->loss && isfinite(got->loss) &&
                memcmp(got->value, plain->value, (size_t)plain->count * sizeof(float)) == 0;
    if (!same)
        printf("  %s, %s: loss %.9g, and %.9g plain\n", c->name, what, got->loss, plain->loss);
    CU_ASSERT_TRUE(same);
    mem_free(&got->value);
}

static void check_graphs(const GraphCase *c)
{
    char *dir = folder_new(&(Model){.side = c->side});
    Outcome plain = run_straight(c, dir, "cuda_graphs: off, log_every: 1");
    Outcome late = run_straight(c, dir, "cuda_graphs: off");
    Outcome graphs = run_straight(c, dir, "cuda_graphs: auto");
    Outcome resumed = run_resumed(c, dir, "cuda_graphs: auto", false);
    Outcome back = run_resumed(c, dir, "cuda_graphs: auto", true);
    if (emulate_counts) {
        printf("  %s: %ld calls of the host a step, %ld with graphs\n", c->name, late.calls,
               graphs.calls);
        CU_ASSERT_EQUAL(late.waits, c->expected_waits);
        CU_ASSERT_EQUAL(graphs.waits, c->expected_waits);
        CU_ASSERT_TRUE(graphs.calls < late.calls);
    }
    check_left(c, "not waited for", &late, &plain);
    check_left(c, "replayed", &graphs, &plain);
    check_left(c, "resumed", &resumed, &plain);
    check_left(c, "set back", &back, &plain);
    mem_free(&plain.value);
    folder_remove(&dir);
}

/* Averages and a warm-up of momentum, whose numbers change in each replayed update. */
static void test_graph_averages(void)
{
    static const char average[] = "ema: 0.9, ema_ramp: 5, ";
    static const char layers[] =
        "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, global_pool, "
        "flatten, "
        "dense: {width: 10}]}\n"
        "optim: {lr: 0.05, momentum: 0.9, warmup_steps: 9, warmup_momentum: 0.5, warmup_bias_lr: "
        "0.2}\n";
    static const char adam[] =
        "model: {layers: [batch_norm, flatten, dense: {width: 10}]}\n"
        "optim: {name: adamw, lr: 0.01, clip: 0.3, warmup_steps: 9, warmup_momentum: 0.5}\n";
    check_graphs(&(GraphCase){"layers, averages", layers, 16, 8, 8, "fp32", 0, average});
    check_graphs(&(GraphCase){"adamw, averages", adam, 16, 16, 8, "fp32", 0, average});
    check_graphs(&(GraphCase){"layers in bf16, averages", layers, 16, 8, 8, "bf16", 0, average});
}

static void test_graphs(void)
{
    static const char lenet[] =
        "model: {name: lenet}\n"
        "optim: {name: sgd, lr: 0.05, momentum: 0.9, lr_schedule: cosine, warmup_steps: 4}\n";
    static const char layers[] =
        "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu6, max_pool: {kernel: "
        "2}, dropout: {p: 0.2}, global_pool, flatten, dense: {width: 10}]}\n"
        "optim: {name: sgd, lr: 0.01, clip: 0.3}\n";
    static const char mlp[] = "model: {name: mlp, hidden: [24]}\noptim: {name: lamb, lr: 0.01}\n";
    static const char gpt[] =
        "model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 24, dropout: 0.1}\n"
        "optim: {name: adamw, lr: 0.003, weight_decay: 0.1, clip: 0.5, lr_schedule: linear}\n";
    static const char plain_gpt[] =
        "model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 24, dropout: 0.1}\n"
        "optim: {name: adamw, lr: 0.003}\n";
    static const char recomputed_gpt[] =
        "model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 24}\n"
        "optim: {name: adamw, lr: 0.003}\ngrid: {recompute: block}\n";
    /* There are 125 images: the last batch of an epoch is short. */
    check_graphs(&(GraphCase){"lenet", lenet, 16, 16, 8, "fp32", 0, NULL});
    check_graphs(&(GraphCase){"lenet, 4 micro-batches", lenet, 16, 4, 8, "fp32", 0, NULL});
    check_graphs(&(GraphCase){"layers, 3 micro-batches", layers, 15, 5, 8, "fp32", 0, NULL});
    check_graphs(&(GraphCase){"gpt2", gpt, 6, 2, 0, "fp32", 0, NULL});
    check_graphs(&(GraphCase){"gpt2 in bf16", gpt, 4, 4, 0, "bf16", 0, NULL});
    check_graphs(
        &(GraphCase){"gpt2 in bf16, recomputed", recomputed_gpt, 4, 4, 0, "bf16", 0, NULL});
    check_graphs(&(GraphCase){"gpt2 in fp16", plain_gpt, 4, 2, 0, "fp16", 0, NULL});
    check_graphs(&(GraphCase){"mlp, lamb", mlp, 16, 8, 8, "fp32", 4, NULL});
}

#endif
