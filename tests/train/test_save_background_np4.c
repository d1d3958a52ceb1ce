/* Tests saving in the background, on grids of every kind. A checkpoint that is written while
 * training continues equals a checkpoint for which training waits. Rank 0's writing is held up for
 * some steps, so that these are made during the save on any machine; all ranks learn that a save is
 * in progress. A save that fails leaves no file, and training continues. */
#include "grids.h"
#include "train/state/save_copy.h"

#include <sys/stat.h>

enum { LAYERS = 3, GPT = 2, STEPS_BEFORE = 2, STEPS_DURING_SAVE = 3, STEPS_BETWEEN = 2 };

static Status step(Trainer *t, const TrainSave *save, StepResult *result)
{
    executor_request(t->executor, METRIC_SAVING, save && train_save_busy(save));
    TRY(next_step(t, result));
    train_step_stats(t, result);
    return OK;
}

/* Makes steps between the rounds in which tensors are gathered; the file must not contain their
 * results. Returns before the file is begun. */
static Status steps_between(Trainer *t, TrainSave *save)
{
    bool done;
    StepResult result;
    int parts = save_copy_rounds(t->copy, 0), slices = save_copy_rounds(t->copy, 1);
    CU_ASSERT(save_copy_local_bytes(t->copy) <= save_copy_bytes(t, t->plan));
    CU_ASSERT(t->plan->zero ? parts > 1 : parts == 0);
    CU_ASSERT(t->shape.tp > 1 ? slices > 1 : slices == 0);
    for (int i = 0; i < parts + slices; ++i) {
        CU_ASSERT(train_save_collects(save) || (t->shape.tp > 1 && i == parts));
        if (i < STEPS_BETWEEN) TRY(step(t, save, &result));
        TRY(train_save_next(save, &done));
    }
    CU_ASSERT(!train_save_collects(save));
    return OK;
}

/* Makes steps during a save that cannot end on rank 0, as this thread holds the lock of HDF5. */
static Status steps_during_save(Trainer *t, TrainSave *save)
{
    bool done;
    StepResult result;
    TRY(steps_between(t, save));
    hdf5_lock();
    TRY(train_save_next(save, &done));
    for (int i = 0; i < STEPS_DURING_SAVE; ++i) {
        TRY(step(t, save, &result));
        CU_ASSERT(result.was_saving && t->stats_step == t->step);
    }
    CU_ASSERT(t->world->rank > 0 || train_save_busy(save));
    hdf5_unlock();
    return OK;
}

static Status save_both(Trainer *t, const char *waiting, const char *in_background)
{
    StepResult result;
    for (int i = 0; i < STEPS_BEFORE; ++i) TRY(step(t, NULL, &result));
    CU_ASSERT(t->saves_in_background && !result.was_saving);
    TRY(train_save(t, waiting));
    TrainSave *save = train_save_begin(t, &(TrainSaveTo){.path = in_background});
    Status st = steps_during_save(t, save);
    for (bool done = false; !done && st == OK;) st = train_save_next(save, &done);
    train_save_free(&save);
    TRY(st);
    TRY(step(t, NULL, &result));
    CU_ASSERT(!result.was_saving);
    return OK;
}

static Status save_nowhere(Trainer *t, const char *path)
{
    StepResult result;
    TRY(step(t, NULL, &result));
    TrainSave *save = train_save_begin(t, &(TrainSaveTo){.path = path});
    Status st = OK;
    for (bool done = false; !done;) {
        TRY(step(t, save, &result));
        st = train_save_next(save, &done);
    }
    train_save_free(&save);
    CU_ASSERT_EQUAL(st, ERR_IO);
    return step(t, NULL, &result);
}

static Status on_grid(Trainer *t)
{
    char *waiting = mem_format("%s/waiting.h5", tiny_folder);
    char *in_background = mem_format("%s/background.h5", tiny_folder);
    char *nowhere = mem_format("%s/nowhere/a.h5", tiny_folder);
    Status st = save_both(t, waiting, in_background);
    if (st == OK && tiny_rank == 0) {
        bool equal = false;
        FILE *out = tmpfile();
        CHECK_OK(checkpoint_diff(waiting, in_background, out, &equal));
        CU_ASSERT(equal);
        fclose(out);
    }
    if (st == OK) st = save_nowhere(t, nowhere);
    mem_free(&nowhere);
    mem_free(&in_background);
    mem_free(&waiting);
    return st;
}

static void run(int model, const char *more)
{
    World sub;
    GridPart part = {.model = &grid_models[model], .ranks = 4, .more = more};
    CU_ASSERT_FATAL(tiny_world(&sub, part.ranks));
    Trainer *t = NULL;
    Config *config = grid_config(&part);
    Status st = config ? trainer_new(&t, config, &sub) : ERR_CONFIG;
    if (st == OK) st = on_grid(t);
    CU_ASSERT_EQUAL(st, OK);
    if (st != OK && sub.rank == 0) printf("  %s: %s\n", more, fail_message());
    trainer_free(&t);
    config_free(&config);
    tiny_world_fini(&sub);
}

static void replicas(void)
{
    run(LAYERS, "grid.dp=4");
    run(GPT, "grid.dp=4 grid.transport=mpi");
}
static void stages(void)
{
    run(GPT, "grid.dp=2 grid.pp=2");
    run(LAYERS, "grid.dp=1 grid.pp=4");
}
static void shares(void)
{
    run(GPT, "grid.dp=4 grid.zero=1");
    run(LAYERS, "grid.dp=4 grid.zero=3");
}
static void slices(void)
{
    run(GPT, "grid.dp=2 grid.tp=2 model.heads=4");
    run(GPT, "grid.dp=2 grid.tp=2 grid.zero=2 model.heads=4");
}

TINY_MAIN("save_background", grid_data, {"replicas", replicas}, {"stages", stages},
          {"shares", shares}, {"slices", slices})
