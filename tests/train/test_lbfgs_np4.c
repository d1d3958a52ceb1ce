/* Tests L-BFGS, which updates all parameters together. The bits are the same with any number of
 * replicas and threads, also after resuming from a checkpoint whose history is not full. Grids and
 * batches that L-BFGS cannot use are refused. */
#include "grids.h"

enum { STEPS = 7, STOP = 3 };

static const GridModel model = {
    "lbfgs",
    "model: {layers: [conv2d: {channels: 6, kernel: 3}, group_norm: {groups: 2}, silu, flatten, "
    "dense: {width: 10}, tanh, dense: {width: 7}]}\n"
    "optim: {name: lbfgs, lr: 0.5, history: 4, weight_decay: 1e-3}\n",
    false};
static const GridModel grouped = {"groups",
                                  "model: {layers: [flatten, dense: {width: 7}]}\n"
                                  "optim: {name: lbfgs, groups: [{roles: bias, name: lbfgs}]}\n",
                                  false};
#define WHOLE "train.batch=52 train.micro_batch=4 "

static void same_bits(void)
{
    static const Place alone = {WHOLE, 1}, places[] = {{WHOLE "train.threads=3", 1},
                                                       {WHOLE "grid.dp=2", 2},
                                                       {WHOLE "grid.dp=3 grid.transport=mpi", 3},
                                                       {WHOLE "grid.dp=4 grid.bucket_mb=0.01", 4}};
    char *want_path = mem_format("%s/want.h5", tiny_folder);
    char *got_path = mem_format("%s/got.h5", tiny_folder);
    char *stop_path = mem_format("%s/stop.h5", tiny_folder);
    Outcome want = place_train(&model, &alone, NULL, STEPS, want_path);
    CU_ASSERT(want.hash != 0 && want.loss[STEPS - 1] < 0.7 * want.loss[0]);
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        Outcome got = place_train(&model, &places[i], NULL, STEPS, got_path);
        const bool same =
            outcome_same(&got, &want) && (tiny_rank > 0 || grid_same_files(got_path, want_path));
        CU_ASSERT(same);
        if (!same) outcome_explain(places[i].grid, &got, &want);
    }
    place_train(&model, &places[1], NULL, STOP, stop_path);
    Outcome rest = place_train(&model, &places[3], stop_path, STEPS, got_path);
    CU_ASSERT(rest.steps == STEPS - STOP && rest.hash == want.hash);
    for (int i = 0; i < rest.steps; ++i) CU_ASSERT(rest.loss[i] == want.loss[STOP + i]);
    mem_free(&want_path);
    mem_free(&got_path);
    mem_free(&stop_path);
}

static void refused(void)
{
    static const struct {
        const char *more, *message;
        int ranks;
    } row[] = {{WHOLE "grid.pp=2", "grid.pp=2: optim.name lbfgs updates all", 2},
               {WHOLE "grid.tp=2", "grid.tp=2: optim.name lbfgs updates all", 2},
               {WHOLE "grid.dp=2 grid.zero=1", "grid.zero=1: optim.name lbfgs updates all", 2},
               {"train.batch=26", "set it to 52", 1},
               {WHOLE "data.refresh=epoch", "files that appear change it", 1},
               {WHOLE "optim.name=sgd", "remove the groups", 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        World sub;
        if (tiny_world(&sub, row[i].ranks)) {
            Trainer *t = NULL;
            Config *config = grid_config(&(GridPart){
                .model = strstr(row[i].more, "sgd") ? &grouped : &model, .more = row[i].more});
            CU_ASSERT_EQUAL(trainer_new(&t, config, &sub), ERR_CONFIG);
            CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), row[i].message));
            if (!strstr(fail_message(), row[i].message)) printf("  '%s'\n", fail_message());
            trainer_free(&t);
            config_free(&config);
        }
        tiny_world_fini(&sub);
    }
}

TINY_MAIN("lbfgs", grid_data, {"same bits", same_bits}, {"refused", refused})
