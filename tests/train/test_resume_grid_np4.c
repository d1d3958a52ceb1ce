/* Tests a run that is stopped on one grid in the middle of an epoch and resumes on another. Its
 * parameters, optimizer state, losses and evaluation have the bits of a run that was never stopped.
 * By default some pairs of layouts are tested; with WEFT_MATRIX set (make matrix), every ordered
 * pair. */
#include "grids.h"

enum { STOP = 5, END = 8, LAYOUTS = 10 };

static const struct {
    int ranks;
    const char *more;
} layouts[LAYOUTS] = {
    {1, "grid.pp=1"},
    {2, "grid.dp=2 grid.transport=mpi"},
    {2, "grid.pp=2 grid.pipeline_schedule=gpipe"},
    {4, "grid.dp=2 grid.pp=2 grid.pipeline_schedule=1f1b grid.transport=mpi"},
    {4, "grid.dp=4"},
    {4, "grid.pp=4 grid.pipeline_schedule=zero-bubble"},
    {2, "grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=2"},
    {4, "grid.dp=2 grid.pp=2 grid.pipeline_schedule=zero-bubble grid.transport=shm"},
    {3, "grid.dp=3"},
    {4, "grid.dp=2 grid.pp=2 grid.pipeline_schedule=zb-v"},
};

static GridPart part_of(const GridModel *model, int layout, const char *from, int to,
                        const char *save)
{
    return (GridPart){.model = model,
                      .ranks = layouts[layout].ranks,
                      .more = layouts[layout].more,
                      .from = from,
                      .to = to,
                      .save = save};
}

static void check_pair(const GridModel *model, int before, int after, const char *path,
                       const Outcome *want)
{
    GridPart part = part_of(model, after, path, END, NULL);
    Outcome got = grid_train(&part);
    bool same = outcome_same(&got, want);
    CU_ASSERT(same);
    if (same) return;
    char *what = mem_format("%s, %s, then %s", model->name, layouts[before].more, part.more);
    outcome_explain(what, &got, want);
    mem_free(&what);
}

/* Trains without a stop and returns the outcome, with only the steps after STOP. */
static Outcome whole_run(const GridModel *model)
{
    GridPart part = part_of(model, 0, NULL, END, NULL);
    Outcome all = grid_train(&part), want = all;
    want.steps = END - STOP;
    for (int i = 0; i < MOST_STEPS; ++i) {
        bool there = i < want.steps;
        want.loss[i] = there ? all.loss[STOP + i] : 0;
        want.top1[i] = there ? all.top1[STOP + i] : 0;
        for (int c = 0; c < 2; ++c) want.column[i][c] = there ? all.column[STOP + i][c] : 0;
        want.norm[i] = there ? all.norm[STOP + i] : 0;
    }
    return want;
}

/* Checks pairs of layouts with a model. shift: by default, layout i is followed by layout i +
 * shift. */
static void check_model(const GridModel *model, int shift)
{
    char *path = mem_format("%s/stop.h5", tiny_folder);
    Outcome want = whole_run(model);
    for (int before = 0; before < LAYOUTS; ++before) {
        GridPart part = part_of(model, before, NULL, STOP, path);
        CU_ASSERT(grid_train(&part).hash != 0);
        for (int after = 0; after < LAYOUTS; ++after)
            if (grid_whole_matrix(model->name) || after == (before + shift) % LAYOUTS)
                check_pair(model, before, after, path, &want);
    }
    mem_free(&path);
}

/* Tests tied parameters, which a checkpoint holds once. */
static void test_gpt(void)
{
    check_model(&grid_models[2], 4);
}

static void test_layers(void)
{
    check_model(&grid_models[3], 5);
}

TINY_MAIN("resume on grids", grid_data, {"gpt2", test_gpt}, {"layers", test_layers})
