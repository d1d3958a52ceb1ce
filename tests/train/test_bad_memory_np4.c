/* Tests runs with faults in memory: the test changes parameters, state and replicas from outside.
 * Tests what a run does, what it reports, and that it does the same on every grid. */
#include "bad_runs.h"

static int hurt_step, hurt_rank, hurt_times;

enum { ANYBODY = -1 };

/* Returns whether this rank gets a fault now. */
static bool is_hurt_now(const Trainer *t)
{
    if (t->step != hurt_step || hurt_times == 0) return false;
    --hurt_times;
    return hurt_rank == ANYBODY || t->world->rank == hurt_rank;
}

/* Sets the first value of the first bias, on the ranks that have it. */
static void set_value(Run *r, float value)
{
    Trainer *t = r->trainer;
    int64_t first, count;
    if (!is_hurt_now(t) || t->plan->param_offset[1] < 0) return;
    plan_shard(t->plan, 1, t->grid.dp_rank, &first, &count);
    if (count > 0) *executor_param(t->executor, 1) = value;
}

/* Makes a NaN in the momentum of the first bias, which reaches the bias at the end of the next
 * step, and the loss one step later. */
static void hide_nan(Run *r)
{
    Trainer *t = r->trainer;
    if (is_hurt_now(t)) t->optim->state[0][t->optim->piece[1].state[0]] = NAN;
}

static void loud_nan(Run *r)
{
    set_value(r, INFINITY);
}

static void flip_bit(Run *r)
{
    Trainer *t = r->trainer;
    if (!is_hurt_now(t)) return;
    uint32_t bits;
    float *value = executor_param(t->executor, 2) + 5;
    memcpy(&bits, value, sizeof bits);
    bits ^= 1u << 31;
    memcpy(value, &bits, sizeof bits);
}

static void hurt(int step, int rank, int times)
{
    hurt_step = step;
    hurt_rank = rank;
    hurt_times = times;
}

static void test_hidden(void)
{
    hurt(4, 0, 1);
    Outcome out = run((Case){"hidden", good_path, 1, "train.check_every=5", hide_nan});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    CU_ASSERT_EQUAL(out.step, 5);
    says(out.message, "after step 5 /params/dense1.bias holds nan on rank 0, ");
    hurt(5, 0, 1);
    out = run((Case){"hidden0", good_path, 1, "train.check_every=0 train.steps=8", hide_nan});
    /* step 6 is the end of an epoch */
    CU_ASSERT(out.status == ERR_DATA && out.step == 6);
    CU_ASSERT_EQUAL(saved("hidden0", 6), false);
}

static void test_replicas(void)
{
    static const char more[] = "train.check_every=3 train.log_every=50 checkpoint.every_steps=5";
    hurt(7, 2, 1);
    Outcome out = run((Case){"flip4", good_path, 4, more, flip_bit});
    CU_ASSERT(out.status == ERR_DATA && out.step == 9);
    says(out.message, "after step 9 replicas differ in /params/dense2.weight: rank 2 on ");
    says(out.message, "differs from most");
    CU_ASSERT(saved("flip4", 5) && !saved("flip4", 10));
    hurt(7, 1, 1);
    out = run((Case){"flip2", good_path, 2, more, flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "rank 0 on ");
    says(out.message, "rank 1 on ");
    says(out.message, "of one of them");
    hurt(7, 3, 1);
    out = run((Case){"flip-pp", good_path, 4,
                     "grid.pp=2 train.check_every=3 checkpoint.every_steps=5", flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "rank 3 on ");
}

/* Changes one value on rank 1 of three, and checks the message of train_check. what: text of the
 * message; "": no fault is found. */
static void check_state(const char *more, void (*change)(Trainer *t), const char *what)
{
    World sub;
    char text[512] = "";
    if (tiny_world(&sub, 3)) {
        Trainer *t = NULL;
        StepResult result;
        Config *config = config_of(&(Case){"state", good_path, 3, more, NULL});
        CHECK_OK(trainer_new(&t, config, &sub));
        CHECK_OK(next_step(t, &result));
        CHECK_OK(train_check(t));
        if (sub.rank == 1) change(t);
        if (train_check(t) != OK) snprintf(text, sizeof text, "%s", fail_message());
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(text, sizeof text);
    if (*what)
        says(text, what);
    else
        CU_ASSERT_STRING_EQUAL(text, "");
}

static void change_state(Trainer *t)
{
    t->optim->state[0][t->optim->piece[1].state[0]] += 1;
}

static void spoil_state(Trainer *t)
{
    for (int i = 0; i < t->optim->range_count; ++i)
        if (t->optim->piece[i].elements > 0)
            t->optim->state[0][t->optim->piece[i].state[0]] = INFINITY;
}

static void change_value(Trainer *t)
{
    *executor_param(t->executor, 0) += 1;
}

/* Values that are sharded over replicas are only checked for NaN and infinity. Values in memory
 * that replicas share are not compared. */
static void test_state(void)
{
    check_state("", change_state, "replicas differ in /optim/momentum/dense1.bias: rank 1 on ");
    check_state("", spoil_state, "holds inf on rank 1, ");
    check_state("grid.zero=1", spoil_state, "/optim/momentum/dense");
    check_state("grid.zero=1", change_state, "");
    check_state("grid.zero=1", change_value, "");
    check_state("grid.zero=1 grid.transport=mpi", change_value, "replicas differ in /params/");
    check_state("grid.zero=3 grid.transport=mpi", spoil_state, "/optim/momentum/dense");
}

/* Checks that a run that rolls back ends with the same bits as one without faults. */
static void goes_back(const char *name, int ranks, const char *grid, void (*how)(Run *run),
                      const char *said)
{
    char *more =
        mem_format("%s train.on_bad=rollback train.check_every=3 checkpoint.every_steps=5", grid);
    Outcome quiet =
        run((Case){"quiet", good_path, ranks, "checkpoint.resume=auto run.fresh=true", NULL});
    Outcome out = run((Case){name, good_path, ranks, more, how});
    if (out.status != OK && tiny_rank == 0) printf("  %s: %s\n", name, out.message);
    CU_ASSERT_EQUAL(out.status, OK);
    CU_ASSERT(out.hash == quiet.hash && out.hash != 0);
    says(out.said, said);
    says(out.said, "is good this time");
    mem_free(&more);
}

static void test_rollback_other(void)
{
    hurt(7, 1, 1);
    goes_back("back-flip", 4, "", flip_bit, "going back to step 5, ");
    hurt(7, 1, 1);
    goes_back("back-loud", 2, "", loud_nan, "repetition gave other bits on rank 1 on ");
    hurt(2, 0, 1);
    goes_back("back-begin", 2, "", loud_nan, "going back to step 0, and");
    hurt(8, 0, 1);
    goes_back("back-hidden", 1, "", hide_nan, "holds nan on rank 0");
    hurt(7, ANYBODY, 1);
    goes_back("back-zero", 4, "grid.zero=3 grid.transport=mpi", loud_nan, "going back to step 5");
    hurt(6, 0, 1);
    goes_back("back-pp", 2, "grid.pp=2", loud_nan, "repetition gave other bits on rank 0 on ");
}

/* A memory fault that occurs again ends the run. */
static void test_rollback_twice(void)
{
    hurt(7, 1, 2);
    Outcome out =
        run((Case){"twice", good_path, 2,
                   "train.on_bad=rollback train.check_every=3 checkpoint.every_steps=5", flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "replicas differ in ");
}

/* Makes two faults; a save is due while the steps before the first one are repeated. */
static void loud_twice(Run *r)
{
    bool repeats = run_repeats(r);
    r->saved_s = repeats && r->trainer->step == 2 ? -1e6 : clock_s();
    if (hurt_times == 1) hurt_step = 8;
    if (!repeats) loud_nan(r);
}

/* A run knows the results of all steps since the newest checkpoint, also if steps have been
 * repeated since then. So a repeated step is not taken for one with other bits. */
static void test_rollback_later(void)
{
    hurt(5, 0, 2);
    Outcome out = run((Case){"later", good_path, 2,
                             "train.on_bad=rollback train.check_every=0 train.eval_every=0 "
                             "checkpoint.every_s=1000 checkpoint.keep=0",
                             loud_twice});
    CU_ASSERT_EQUAL(out.status, OK);
    says(out.said, "going back to step 0, and");
    says(out.said, "step 6 is good this time");
    CU_ASSERT(saved("later", 3) || saved("later", 4));
    says(out.said, saved("later", 3) ? "going back to step 3, " : "going back to step 4, ");
    says(out.said, "step 9: its repetition gave other bits on rank 0 on ");
    says(out.said, "step 9 is good this time");
}

/* The check before a checkpoint is made even if its step is skipped. */
static void test_skipped_sync_point(void)
{
    Outcome out = run((Case){"skips", bad_path, 4, "train.on_bad=skip", NULL});
    const char *at = strstr(out.said, "step ");
    int step = at ? atoi(at + 5) : 0;
    CU_ASSERT(step > 0 && step <= 3);
    char *more =
        mem_format("train.on_bad=skip train.check_every=0 checkpoint.every_steps=%d", step);
    hurt(step - 1, 2, 1);
    out = run((Case){"skipped", bad_path, 4, more, flip_bit});
    CU_ASSERT(out.status == ERR_DATA && out.step == step && !saved("skipped", step));
    says(out.message, "replicas differ in /params/dense2.weight: rank 2 on ");
    mem_free(&more);
}

static void hide_nan_and_save(Run *r)
{
    hide_nan(r);
    if (r->world->rank == 0 && !r->hook) r->hook = hook_new("echo '{\"save\": true}'", 60);
}

/* A hook that the run waits for may request a save at the end of any epoch. */
static void test_requested_sync_point(void)
{
    hurt(2, 0, 1);
    Outcome out = run((Case){"requested", good_path, 2,
                             "train.check_every=0 train.eval_every=0 run.hook=true "
                             "run.hook_wait=true run.hook_on=[epoch]",
                             hide_nan_and_save});
    CU_ASSERT(out.status == ERR_DATA && out.step == 3 && !saved("requested", 3));
    says(out.message, "after step 3 /params/dense1.bias holds nan on rank 0, ");
}

/* Makes a request at the end of the step in which the NaN is found. */
static void hide_nan_and_ask(Run *r)
{
    hide_nan(r);
    if (r->trainer->step != 8 || r->hook) return;
    r->hook = hook_new("echo '{\"lr\": 0.025}'", 60);
    hook_notify(r->hook, HOOK_EPOCH, 8, "{}\n");
    hook_wait(r->hook);
}

/* The request is carried out after the steps have been repeated. They are repeated with the
 * learning rate that they had before. */
static void test_rollback_request(void)
{
    hurt(8, 0, 1);
    Outcome out = run((Case){"request", good_path, 1,
                             "train.on_bad=rollback train.check_every=3 checkpoint.every_steps=5",
                             hide_nan_and_ask});
    CU_ASSERT_EQUAL(out.status, OK);
    says(out.said, "step 9 is good this time");
    says(out.said, "step 9: run.hook requests optim.lr 0.025");
    CU_ASSERT(saved("request", 9) && !saved("request", 6));
}

TINY_MAIN("bad memory", prepare, {"hidden in the momentum", test_hidden},
          {"replicas that differ", test_replicas}, {"a state", test_state},
          {"other bits", test_rollback_other}, {"twice", test_rollback_twice},
          {"a request during a rollback", test_rollback_request},
          {"once more, from a later checkpoint", test_rollback_later},
          {"a sync point of a skipped step", test_skipped_sync_point},
          {"a sync point where a save may be requested", test_requested_sync_point})
