/* Compares ten training steps of small gpt2 and llama models, from given weights on given tokens,
 * with PyTorch's losses (tests/golden/gpt.txt). Tested together: embedding, both kinds of
 * positions, attention, shared heads of keys, both norms, gelu, swiglu, the tied head,
 * micro-batches, clipping and AdamW, with tokens from a data set. Every step uses all samples, so
 * their order does not matter. */
#include "golden.h"

#include "data/import.h"

static World world;
static char folder[] = "/tmp/weft-golden-XXXXXX";

/* Writes `count` tokens of 16 bits, as a tokenizer does, and imports them into `set`. */
static void write_tokens(const char *set, int64_t count, int vocab)
{
    char *raw = mem_format("%s.raw", set);
    FILE *out = fopen(raw, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    for (int64_t i = 0; i < count; ++i) {
        int32_t token = golden_draw('t', i, vocab);
        putc(token & 255, out);
        putc(token >> 8, out);
    }
    CU_ASSERT_EQUAL(fclose(out), 0);
    CHECK_OK(data_import_tokens(raw, 16, vocab, set, NULL, 0, true));
    unlink(raw);
    mem_free(&raw);
}

static void check_steps(const Golden *g, Trainer *t)
{
    golden_params(t->graph, t->plan, executor_params(t->executor));
    executor_params_changed(t->executor);
    for (int s = 0; s < GOLDEN_STEPS; ++s) {
        StepResult result;
        CHECK_OK(next_step(t, &result));
        CU_ASSERT_EQUAL(result.rows, t->batch * t->train_set.context);
        golden_check(g, s, result.loss, GOLDEN_FLOOR_SMOOTH);
    }
}

static void check_model(const char *name)
{
    Golden golden;
    Trainer *trainer = NULL;
    /* number of samples; size of the vocabulary */
    int number[2];
    if (!golden_read("tests/golden/gpt.txt", "gpt", name, 2, number, &golden)) return;
    char *set = mem_format("%s/%s.h5", folder, name);
    char *text = mem_format("model: {name: gpt2}\ndata: {train: %s}\noptim: {name: adamw}\n"
                            "train: {batch: %d, steps: %d, threads: 1}\n",
                            set, number[0], GOLDEN_STEPS);
    Config *config = golden_config(&golden, text);
    if (config) {
        write_tokens(set, number[0] * config->model.context + 1, number[1]);
        CHECK_OK(trainer_new(&trainer, config, &world));
        CU_ASSERT_EQUAL(trainer ? trainer->micro_batches : 0, 2);
        if (trainer) check_steps(&golden, trainer);
    }
    trainer_free(&trainer);
    config_free(&config);
    unlink(set);
    mem_free(&text);
    mem_free(&set);
}

static void learned(void)
{
    check_model("learned");
}

static void rotary(void)
{
    check_model("rotary");
}

/* Tests inputs of at least 256 rows, for which dense layers keep their weights in plain order. */
static void many_rows(void)
{
    check_model("long");
}

static void llama(void)
{
    check_model("llama");
}

/* Tests one head of keys, more tokens than a tile of attention has, angles and eps other than the
 * defaults, and an embedding that is also the head's matrix. */
static void llama_tied(void)
{
    check_model("llama_tied");
}

int main(int argc, char **argv)
{
    static const HarnessTest tests[] = {{"learned positions", learned},
                                        {"rotary positions", rotary},
                                        {"many rows", many_rows},
                                        {"llama", llama},
                                        {"llama, tied", llama_tied}};
    if (world_init(&world, &argc, &argv) != OK || !mkdtemp(folder)) return 2;
    int bad = harness_run("golden gpt", tests, sizeof tests / sizeof tests[0], 0, NULL);
    rmdir(folder);
    world_fini(&world);
    return bad;
}
