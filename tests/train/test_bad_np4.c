/* Tests runs with bad data: samples that overflow, and a loss far above the others. Tests what a
 * run does, what it reports, and that it does the same on every grid. */
#include "bad_runs.h"

/* ---- a sample that overflows ---- */

typedef struct Shape4 {
    const char *name;
    int ranks;
    const char *more;
} Shape4;
static const Shape4 shapes[] = {
    {"one", 1, ""},
    {"dp2", 2, "grid.dp=2"},
    {"pp2", 2, "grid.pp=2"},
    {"tp2", 2, "grid.tp=2"},
    {"dp2pp2", 4, "grid.pp=2 grid.pipeline_schedule=zero-bubble"},
    {"zero1", 4, "grid.zero=1"},
    {"zero2", 4, "grid.zero=2 grid.transport=mpi"},
    {"zero3", 4, "grid.zero=3 grid.transport=mpi"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static Outcome run_bad(const Shape4 *s, const char *kind, const char *more)
{
    char *name = mem_format("%s-%s", kind, s->name), *all = mem_format("%s %s", s->more, more);
    Outcome out = run((Case){name, bad_path, s->ranks, all, NULL});
    mem_free(&name);
    mem_free(&all);
    return out;
}

static void test_stop(void)
{
    char want[2048] = "";
    for (int i = 0; i < SHAPES; ++i) {
        Outcome out = run_bad(&shapes[i], "stop", "checkpoint.every_steps=1");
        CU_ASSERT_EQUAL(out.status, ERR_DATA);
        if (i == 0) snprintf(want, sizeof want, "%s", out.message);
        if (strcmp(shapes[i].name, "tp2") != 0) CU_ASSERT_STRING_EQUAL(out.message, want);
        says(out.message, ": the loss is ");
        says(out.message, "for sample 17");
        says(out.message, "output of layer ");
        CU_ASSERT(out.step > 0 && out.step <= 3);
        char *name = mem_format("stop-%s", shapes[i].name);
        CU_ASSERT_EQUAL(saved(name, (int)out.step), false);
        CU_ASSERT(out.step == 1 || saved(name, (int)out.step - 1));
        mem_free(&name);
    }
}

/* Statistics over all replicas spread a bad value to good samples. The message must still name the
 * bad sample, and the layer before the statistics. */
static void test_synced(void)
{
    static const char *const more =
        "train.sync_batch_norm=true;model.layers=[flatten, dense: {width: 64}, batch_norm, relu, "
        "dense: {width: 4}];grid.zero=%d;grid.pp=%d";
    static const struct {
        int ranks, zero, pp;
    } all[] = {{2, 0, 1}, {4, 2, 1}, {4, 0, 2}};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        char *with = mem_format(more, all[i].zero, all[i].pp);
        char *name = mem_format("synced%zu", i);
        Outcome out = run((Case){name, bad_path, all[i].ranks, with, NULL});
        CU_ASSERT_EQUAL(out.status, ERR_DATA);
        says(out.message, "output of layer dense1 is not finite, in micro-batch ");
        says(out.message, "for sample 17");
        mem_free(&name);
        mem_free(&with);
    }
}

/* There are four epochs of three steps; one step of each epoch has the bad sample. */
static void test_skip(void)
{
    Outcome first = run_bad(&shapes[0], "skip", "train.on_bad=skip");
    CU_ASSERT_EQUAL(first.status, OK);
    CU_ASSERT(first.skipped == 4 && first.hash != 0);
    says(first.said, "skipped (4 so far)");
    for (int i = 1; i < SHAPES; ++i) {
        Outcome out = run_bad(&shapes[i], "skip", "train.on_bad=skip");
        bool rounds = strcmp(shapes[i].name, "tp2") == 0;
        CU_ASSERT(out.status == OK && out.skipped == 4 && out.step == first.step);
        CU_ASSERT(rounds || out.hash == first.hash);
    }
}

/* Skipped steps are part of the state: a run that stops and resumes ends with the same bits. */
static void test_skip_resumes(void)
{
    const char *more = "train.on_bad=skip";
    Outcome whole = run((Case){"skip-whole", bad_path, 1, more, NULL});
    Outcome part =
        run((Case){"skip-parts", bad_path, 2,
                   "train.on_bad=skip checkpoint.every_steps=7 checkpoint.keep=0", NULL});
    CU_ASSERT(part.status == OK && part.hash == whole.hash);
    if (tiny_rank == 0) {
        char *path = mem_format("%s/skip-parts/checkpoints/step-00000012.h5", tiny_folder);
        CU_ASSERT_EQUAL(unlink(path), 0);
        mem_free(&path);
    }
    tiny_barrier();
    part = run((Case){"skip-parts", bad_path, 1, more, NULL});
    CU_ASSERT(part.status == OK && part.hash == whole.hash && part.skipped == 4);
}

static void test_skip_ends(void)
{
    Outcome out = run((Case){"skip-all", bad_path, 2,
                             "train.on_bad=skip train.batch=24 train.micro_batch=3", NULL});
    CU_ASSERT(out.status == ERR_DATA && out.step == 11 && out.skipped == 11);
    says(out.message, "the 10 steps before it were bad and skipped, too");
    says(out.message, "for sample 17");
}

/* The same bad value again means that the machine is not at fault. */
static void test_rollback_same(void)
{
    for (int i = 0; i < SHAPES; ++i) {
        Outcome out =
            run_bad(&shapes[i], "again", "train.on_bad=rollback checkpoint.every_steps=1");
        CU_ASSERT_EQUAL(out.status, ERR_DATA);
        says(out.said, "going back to step ");
        says(out.message, "with the same bits: it is the data or the model");
        says(out.message, "for sample 17");
    }
}

/* ---- a spike ---- */

static void test_spike(void)
{
    const char *base = "train.batch=1 train.micro_batch=1 train.steps=290 optim.lr=0.002";
    char *sample = mem_format("is that of sample %d", late_sample());
    char *more = mem_format("%s train.on_bad=stop", base);
    Outcome out = run((Case){"spike", far_path, 1, more, NULL});
    CU_ASSERT(out.status == ERR_DATA && out.step == 251);
    says(out.message, "a spike: 8 deviations above the last 200 losses");
    says(out.message, sample);
    mem_free(&more);
    more = mem_format("%s train.spike=0", base);
    out = run((Case){"no-spike", far_path, 1, more, NULL});
    CU_ASSERT(out.status == OK && out.skipped == 0);
    mem_free(&more);
    more = mem_format("%s train.on_bad=skip checkpoint.every_steps=240", base);
    Outcome whole = run((Case){"spike-skip", far_path, 1, more, NULL});
    CU_ASSERT(whole.status == OK && whole.skipped == 1);
    Outcome two = run((Case){"spike-skip2", far_path, 2, more, NULL});
    CU_ASSERT(two.status == OK && two.hash == whole.hash);
    if (tiny_rank == 0) {
        char *path = mem_format("%s/spike-skip2/checkpoints/step-00000290.h5", tiny_folder);
        CU_ASSERT_EQUAL(unlink(path), 0);
        mem_free(&path);
    }
    tiny_barrier();
    two = run((Case){"spike-skip2", far_path, 1, more, NULL});
    CU_ASSERT(two.status == OK && two.hash == whole.hash && two.skipped == 1);
    mem_free(&more);
    mem_free(&sample);
}

TINY_MAIN("bad numbers", prepare, {"stop", test_stop}, {"synced", test_synced}, {"skip", test_skip},
          {"a skip and a resume", test_skip_resumes}, {"only bad steps", test_skip_ends},
          {"the same bits again", test_rollback_same}, {"a spike", test_spike})
