/* Tests of training that continues on the other device from a checkpoint: every tensor has the same
 * bits, and losses agree as well as those of runs on one device. Also tests that a model that does
 * not fit into the GPU's memory is refused before any memory is allocated. */
#ifndef WEFT_TEST_CUDA_RESUME_CASES_H
#define WEFT_TEST_CUDA_RESUME_CASES_H

#include "model_cases.h"

static void check_same_tensors(const char *a, const char *b)
{
    bool equal = false;
    FILE *out = tmpfile();
    char line[256];
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    CHECK_OK(checkpoint_diff(a, b, out, &equal));
    CU_ASSERT_TRUE(equal);
    rewind(out);
    while (!equal && fgets(line, sizeof line, out)) printf("  %s", line);
    fclose(out);
}

/* Number of steps on one device before the checkpoint, and on both after it. */
enum { HALF = 2 };
static void check_resume(const Model *m, const char *from, const char *to)
{
    char *dir = folder_new(m), *saved = mem_format("%s/saved.h5", dir),
         *again = mem_format("%s/again.h5", dir);
    double loss[STEPS] = {0}, stayed[STEPS] = {0}, went[STEPS] = {0};
    Run before = run_open(m, dir, from), after = run_open(m, dir, to);
    CU_ASSERT_FATAL(before.trainer && after.trainer);
    run_steps(&before, HALF, loss);
    CHECK_OK(train_save(before.trainer, saved));
    CHECK_OK(train_load(after.trainer, saved, LOAD_RUN));
    CHECK_OK(train_save(after.trainer, again));
    check_same_tensors(saved, again);
    run_steps(&before, HALF, stayed);
    run_steps(&after, HALF, went);
    double off = largest_difference(stayed, went, HALF);
    CU_ASSERT(off <= *m->tolerance);
    printf("  %-21s %s  from %s to %s: the same tensors, losses at most %.1e apart\n", m->name,
           m->precision, from, to, off);
    run_close(&before);
    run_close(&after);
    folder_remove(&dir);
    mem_free(&saved);
    mem_free(&again);
}

static void test_resume(void)
{
    static const char *const one_a_family[] = {"mlp", "lenet", "list of layers", "gpt2"};
    for (size_t k = 0; k < sizeof one_a_family / sizeof *one_a_family; ++k)
        for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
            if (strcmp(models[i].name, one_a_family[k]) != 0) continue;
            bool scaled =
                /* A CPU cannot continue a run in fp16. */
                strcmp(models[i].precision, "fp16") == 0;
            if (scaled || (models[i].only_full && !full)) continue;
            check_resume(&models[i], "cpu", "cuda");
            check_resume(&models[i], "cuda", "cpu");
        }
}

#define FIVE(text) text text text text text
#define GELUS      FIVE(FIVE("gelu, "))
/* a micro-batch that needs some 200 GB, although each tensor has less than 2^31 elements */
enum { TOO_MANY = 32767 };

/* Plans a model with a micro-batch of `micro` samples, without allocating. */
static Status design(const char *set, long long micro)
{
    Config *config = NULL;
    Trainer *trainer = NULL;
    char *text = mem_format("data: {train: %s/train.h5}\n"
                            "model: {layers: [flatten, dense: {width: 65536}, " GELUS
                            "dense: {width: 10}]}\n"
                            "train: {steps: 1, batch: %lld, micro_batch: %lld, device: cuda}\n"
                            "optim: {name: sgd, lr: 0.1}\n",
                            set, micro, micro);
    Status st = config_parse(&config, "test", text, 0, NULL);
    if (st == OK) st = trainer_dry_run(&trainer, config, &alone, &(DryRun){.ranks = 1});
    trainer_free(&trainer);
    config_free(&config);
    mem_free(&text);
    return st;
}

/* The error message gives about the largest micro-batch that fits: slightly less is accepted, twice
 * as much is refused. */
static void test_memory(void)
{
    static const char at_most[] = "train.micro_batch of at most about ";
    char *dir = folder_new(&models[0]);
    CHECK_FAILS(design(dir, TOO_MANY), ERR_CONFIG, "a GPU that no other process uses");
    const char *number = strstr(fail_message(), at_most);
    CU_ASSERT_PTR_NOT_NULL(number);
    long long most = number ? atoll(number + strlen(at_most)) : 1;
    CU_ASSERT(most > 1);
    printf("  %s\n", fail_message());
    /* 2 % less, because the message says "about" */
    CHECK_OK(design(dir, most - most / 50));
    CHECK_FAILS(design(dir, 2 * most), ERR_CONFIG, at_most);
    folder_remove(&dir);
}

#endif
