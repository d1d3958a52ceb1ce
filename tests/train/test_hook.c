/* Tests hooks: which answers are accepted, and how their processes run. Tests also early stopping
 * and the choice of the metric that it uses. */
#include "harness.h"

#include "train/run/hook.h"
#include "train/eval/best.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static void answers(void)
{
    static const struct {
        const char *text;
        HookRequest request;
    } good[] = {{"", {0}},
                {" \r\n", {0}},
                {"{}", {0}},
                {"{\"stop\":true}\n", {.stop = 1}},
                {" { \"save\" : true , \"stop\" : false } ", {.save = 1}},
                {"{\"lr\": 1e-3, \"save\": true}", {.save = 1, .lr = 1e-3}},
                {"{\"lr\":2}", {.lr = 2}}};
    static const char *const bad[] = {"done",
                                      "{",
                                      "}",
                                      "[]",
                                      "{\"stop\"}",
                                      "{\"stop\":1}",
                                      "{\"stop\":true,}",
                                      "{,\"stop\":true}",
                                      "{\"stop\":true}{}",
                                      "{\"stop\":true \"save\":true}",
                                      "{\"stop\":true,\"stop\":true}",
                                      "{\"stopp\":true}",
                                      "{\"lr\":true}",
                                      "{\"lr\":0}",
                                      "{\"lr\":-1}",
                                      "{\"lr\":1e999}",
                                      "{\"lr\":nan}",
                                      "{\"lr\":0x1}",
                                      "{\"lr\":1.2.3}",
                                      "{\"lr\":\"0.1\"}",
                                      "{\"lr\":"};
    HookRequest request;
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        CHECK_OK(hook_request_parse(&request, good[i].text));
        CU_ASSERT(request.stop == good[i].request.stop && request.save == good[i].request.save);
        CU_ASSERT_EQUAL(request.lr, good[i].request.lr);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        CU_ASSERT_EQUAL(hook_request_parse(&request, bad[i]), ERR_DATA);
        CU_ASSERT_FALSE(hook_request_is_set(&request));
    }
}

/* Tests that a message about an error has the complete answer in one line. */
static void reasons(void)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"{\"lr\": -1}\n", "it printed '{\"lr\": -1}': \"lr\", the learning rate, must be above 0"},
        {"{\"lr\": null}\n", "it printed '{\"lr\": null}': \"lr\" must be a number"},
        {"{\"stop\": 1}\n", "it printed '{\"stop\": 1}': \"stop\" must be true or false"},
        {"{\n\t\"Stop\": true\n}\n",
         "it printed '{  \"Stop\": true }': unknown key \"Stop\"; the keys are stop, save and lr"},
        {"{\"save\":true,\"save\":true}",
         "it printed '{\"save\":true,\"save\":true}': \"save\" occurs twice"},
        {" epoch\x1b 3\n",
         "it printed 'epoch? 3': not a JSON object such as {\"stop\": true}, {\"save\": true} or "
         "{\"lr\": 0.01}"},
        {"[1]", "it printed '[1]': not a JSON object"}};
    HookRequest request;
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i)
        CHECK_FAILS(hook_request_parse(&request, row[i].text), ERR_DATA, row[i].why);
}

/* Tests that later requests are added to earlier ones, and that the newest learning rate counts. */
static void additions(void)
{
    HookRequest all = {.lr = 0.5};
    CU_ASSERT_TRUE(hook_request_is_set(&all));
    hook_request_merge(&all, &(HookRequest){.save = 1});
    hook_request_merge(&all, &(HookRequest){.lr = 0.25});
    CU_ASSERT(!all.stop && all.save && all.lr == 0.25);
}

/* Tests that one hook runs at a time, that of each event only the newest call waits, and that
 * waiting calls run in order of arrival. */
static void queue(void)
{
    HookRequest request;
    char go[] = "/tmp/weft-hook-XXXXXX", command[512];
    int file = mkstemp(go);
    CU_ASSERT_FATAL(file >= 0);
    close(file);
    /* the first call runs until the file is removed */
    snprintf(command, sizeof command,
             "read -r n; while [ $n = 1 ] && [ -e %s ]; do sleep 0.01; done; [ $n != 7 ] || echo "
             "'{\"stop\": true}'; "
             "[ $n != 6 ] || echo '{\"lr\": 6}'; [ $n != 5 ] || echo '{\"lr\": 5}'; "
             "[ $n != 3 ] || echo '{\"save\": true}'",
             go);
    Hook *hook = hook_new(command, 60);
    hook_notify(hook, HOOK_EPOCH, 1, "1\n");
    hook_notify(hook, HOOK_EPOCH, 3, "3\n");
    hook_notify(hook, HOOK_EVALUATION, 6, "6\n");
    hook_notify(hook, HOOK_EPOCH, 5, "5\n");
    CU_ASSERT_TRUE(hook_busy(hook));
    unlink(go);
    hook_wait(hook);
    CU_ASSERT_FALSE(hook_busy(hook));
    CU_ASSERT_TRUE(hook_has_request(hook));
    CU_ASSERT_TRUE(hook_take_request(hook, &request));
    CU_ASSERT(!request.stop && !request.save && request.lr == 5);
    CU_ASSERT_FALSE(hook_take_request(hook, &request));
    hook_notify(hook, HOOK_END, 7, "7\n");
    hook_wait(hook);
    CU_ASSERT_TRUE(hook_take_request(hook, &request));
    CU_ASSERT(request.stop && request.lr == 0);
    hook_free(&hook);
    CU_ASSERT_PTR_NULL(hook);
}

/* Tests that a hook that hangs is killed and that waiting calls are dropped; hook_free, too, kills
 * a running hook. */
static void hanging(void)
{
    HookRequest request;
    double begin_s = clock_s();
    Hook *hook = hook_new("echo '{\"stop\": true}'; sleep 1000", 0.05);
    hook_notify(hook, HOOK_EPOCH, 1, "");
    hook_notify(hook, HOOK_EVALUATION, 1, "");
    hook_wait(hook);
    CU_ASSERT_FALSE(hook_busy(hook));
    CU_ASSERT_FALSE(hook_take_request(hook, &request));
    hook_notify(hook, HOOK_END, 1, "");
    CU_ASSERT_TRUE(hook_busy(hook));
    hook_free(&hook);
    CU_ASSERT(clock_s() - begin_s < 500);
}

static Config *config_of(const char *text)
{
    Config *config = NULL;
    train_use_words();
    CHECK_OK(config_parse(&config, "test", text, 0, NULL));
    return config;
}

static void stopping(void)
{
    Config *config = config_of("train: {early_stop: 2, early_stop_delta: 0.25}\n");
    EarlyStop stop = early_stop();
    static const struct {
        double value;
        int64_t bad;
    } row[] = {{NAN, 1}, {0.5, 0}, {0.75, 1}, {0.8125, 0}, {NAN, 1}, {0.5, 2}, {2, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        early_stop_count(config, &stop, row[i].value, true);
        CU_ASSERT_EQUAL(stop.bad_evaluations, row[i].bad);
        CU_ASSERT_EQUAL(early_stop_over(config, &stop), row[i].bad == 2);
    }
    stop = early_stop();
    early_stop_count(config, &stop, 1, false);
    early_stop_count(config, &stop, 0.5, false);
    CU_ASSERT(stop.bad_evaluations == 0 && stop.best == 0.5);
    early_stop_count(config, &stop, 0.5, false);
    CU_ASSERT_EQUAL(stop.bad_evaluations, 1);
    config_free(&config);
}

static void metrics(void)
{
    static const FieldMetrics fields = {.skill = 0.6875, .normalized_rmse = 0.3125};
    static const LabelMetrics labels = {.iou = 0.4375, .dice = 0.5625};
    const EvalLine line = {.loss = 0.5,
                           .fields = &fields,
                           .labels = &labels,
                           .top1 = 0.75,
                           .top5 = 0.875,
                           .auc_kind = "exact",
                           .auc = 0.625,
                           .has_boxes = true,
                           .coco = {[COCO_AP] = 0.25, [COCO_AP50] = 0.375}};
    /* the value of each metric in `line` */
    static const struct {
        const char *word;
        double value;
    } want[] = {{"eval_loss", 0.5}, {"top1", 0.75},  {"top5", 0.875},   {"auc", 0.625},
                {"ap", 0.25},       {"ap50", 0.375}, {"skill", 0.6875}, {"rmse", 0.3125},
                {"iou", 0.4375},    {"dice", 0.5625}};
    Config *config = config_of("{}\n");
    const char *word;
    for (int i = 1; (word = best_metric_word(i).word); ++i) {
        bool found = false;
        config->checkpoint.best_metric = i;
        for (size_t k = 0; k < sizeof want / sizeof *want; ++k) {
            if (strcmp(want[k].word, word) != 0) continue;
            CU_ASSERT_DOUBLE_EQUAL(best_metric(config, false)->value(&line), want[k].value, 1e-12);
            found = true;
        }
        CU_ASSERT_TRUE(found);
        if (!found) printf("  no case of %s\n", word);
    }
    config->checkpoint.best_metric = 0;
    CU_ASSERT_EQUAL(best_metric(config, false)->value(&line), 0.75);
    CU_ASSERT_EQUAL(best_metric(config, true)->value(&line), 0.5);
    CU_ASSERT_EQUAL(best_metric(config, true)->better, BETTER_SMALL);
    config_free(&config);
    config = config_of("checkpoint: {best_metric: top5}\n");
    CU_ASSERT_EQUAL(best_metric(config, true)->value(&line), 0.875);
    CHECK_OK(best_check(config, false, false));
    config_free(&config);
    config = config_of("{checkpoint: {best_metric: top1}, train: {loss: mse}}\n");
    CHECK_FAILS(best_check(config, false, true), ERR_CONFIG, "needs class labels");
    config_free(&config);
    config = config_of("{checkpoint: {best_metric: top5}, train: {loss: sigmoid}}\n");
    CHECK_FAILS(best_check(config, false, true), ERR_CONFIG, "top5 needs class labels");
    config_free(&config);
    config = config_of("{checkpoint: {best_metric: top1}, train: {loss: sigmoid}}\n");
    CHECK_OK(best_check(config, false, true));
    config_free(&config);
    config = config_of("train: {loss: sigmoid}\n");
    CU_ASSERT_EQUAL(best_metric(config, false)->value(&line), 0.625);
    CU_ASSERT_EQUAL(best_metric(config, false)->better, BETTER_LARGE);
    CHECK_OK(best_check(config, false, true));
    config_free(&config);
    config = config_of("checkpoint: {best_metric: auc}\n");
    CHECK_FAILS(best_check(config, false, true), ERR_CONFIG, "auc needs a logit");
    config_free(&config);
    config = config_of("data: {variables: {inputs: [h], targets: [{name: mask, classes: 2}]}}\n");
    CU_ASSERT_EQUAL(best_metric(config, false)->value(&line), 0.4375);
    CHECK_OK(best_check(config, false, true));
    config_free(&config);
    config = config_of("checkpoint: {best_metric: iou}\n");
    CHECK_FAILS(best_check(config, false, true), ERR_CONFIG, "iou needs a target with labels");
    config_free(&config);
    config = config_of("train: {early_stop: 1}\n");
    CHECK_OK(best_check(config, false, true));
    CHECK_FAILS(best_check(config, false, false), ERR_CONFIG, "set data.test");
    config_free(&config);
}

TEST_MAIN("hook", {"answers", answers}, {"reasons", reasons}, {"additions", additions},
          {"queue", queue}, {"hanging", hanging}, {"stopping", stopping}, {"metrics", metrics})
