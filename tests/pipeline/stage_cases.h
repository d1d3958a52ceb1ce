/* Tests of models that are cut into stages at random places, with one rank per stage, over shared
 * memory and over MPI. They use every schedule, one to three chunks per stage, and lists that are
 * reordered at random. Chunks are assigned to the stages in turn, or in the shape of a V, or with
 * neighbouring chunks on one stage. Gradients, statistics and metrics of each stage must be those
 * of the plain interpreter, which runs all layers on every rank. STAGE_GRAPH=17 in the environment
 * runs only random graph number 17. */
#ifndef WEFT_TESTS_STAGE_CASES_H
#define WEFT_TESTS_STAGE_CASES_H

#include "draft.h"
#include "plain.h"

#include "parallel/mpi_main.h"

/* The ways in which a model is run. */
static const struct {
    /* schedule, list: as in Case; least, most: smallest and largest number of chunks per stage */
    int schedule, list, least, most;
    /* true: backward is split into halves */
    bool split;
} ways[] = {{SCHEDULE_GPIPE, 0, 1, 1, false},
            {SCHEDULE_1F1B, 0, 1, 1, false},
            {SCHEDULE_ZERO_BUBBLE, 0, 1, 1, true},
            {SCHEDULE_INTERLEAVED, 0, 1, 3, false},
            {SCHEDULE_FILE, SCHEDULE_INTERLEAVED, 1, 3, false},
            {SCHEDULE_FILE, SCHEDULE_INTERLEAVED, 1, 3, true},
            {SCHEDULE_ZB_V, 0, 2, 2, true},
            {SCHEDULE_DUALPIPE_V, 0, 2, 2, true},
            {SCHEDULE_FILE, SCHEDULE_DUALPIPE_V, 2, 2, true},
            {SCHEDULE_FILE, SCHEDULE_FILE, 2, 3, false}};
/* GRAPHS: number of random graphs: six for each way, but three with sanitizers, because the tests
 * then take five times as long. Three are enough for one, two and three chunks per stage. */
#ifdef __SANITIZE_ADDRESS__
enum { WAYS = sizeof ways / sizeof *ways, GRAPHS = 3 * WAYS };
#else
enum { WAYS = sizeof ways / sizeof *ways, GRAPHS = 6 * WAYS };
#endif

/* Returns the case of a way to run a model. draw: determines everything that is random. */
static Case case_of(const char *model, const BackendTable *table, int side, int way, int draw)
{
    static const int micro_batches[] = {4, 1, 6, 3, 8, 5};
    return (Case){
        .model = model,
        .table = table,
        .world = &test_world,
        .side = side,
        .shape = {.stages = test_world.size,
                  .chunks_per_stage =
                      ways[way].least + draw / WAYS % (ways[way].most - ways[way].least + 1),
                  .micro_batches = micro_batches[(draw + draw / WAYS) % 6]},
        .schedule = ways[way].schedule,
        .list = ways[way].list,
        .split = ways[way].split,
        .draw = (uint64_t)draw,
        .recompute = draw / 2 % 2,
        .transport = draw % 3 ? TRANSPORT_SHM : TRANSPORT_MPI};
}

/* Runs a case with its number of chunks per stage or, if the model has too few places for cuts,
 * with fewer, but at least `least`. Adds 1 to ran[n] if it ran with n chunks per stage. Returns
 * false if a result was wrong. */
static bool run_way(Case how, int least, int *ran)
{
    bool cut = false, good = true;
    for (; !cut && how.shape.chunks_per_stage >= least; --how.shape.chunks_per_stage) {
        good = check_case(&how, &cut);
        if (cut) ++ran[how.shape.chunks_per_stage];
    }
    return good || !cut;
}

static void run_graphs(const BackendTable *table)
{
    const char *only = getenv("STAGE_GRAPH");
    int ran[4] = {0};
    for (int number = 0; number < GRAPHS; ++number) {
        Draft d;
        if (only && atoi(only) != number) continue;
        draft(&d, number);
        int way = number % WAYS;
        if (!run_way(case_of(d.text, table, SIDE, way, number), ways[way].least, ran))
            printf("  rank %d, graph %d: %s", test_world.rank, number, d.text);
    }
    if (only) return;
    CU_ASSERT(ran[1] > GRAPHS / 3 && ran[2] > GRAPHS / 12);
    /* with three stages, graphs are too small for three chunks per stage */
    CU_ASSERT(ran[3] > GRAPHS / 12 || test_world.size > 2);
}

static void test_cpu(void)
{
    run_graphs(&backend_cpu);
}

static void test_poison(void)
{
    run_graphs(&backend_poison);
}

static void run_model(const char *model, int side, const BackendTable *table)
{
    int ran[4] = {0};
    for (int way = 0; way < WAYS; ++way)
        run_way(case_of(model, table, side, way, 2 * WAYS + 5 * way), ways[way].least, ran);
    CU_ASSERT(ran[1] > 0 && ran[1] + ran[2] + ran[3] == WAYS);
}

/* Models with skip connections across boundaries, batch norm with an added input, and inverted
 * residuals. */
static void test_models(void)
{
    run_model("model: {name: resnet18, width: 16, stem: small}\n", 8, &backend_poison);
    run_model("model: {name: mobilenet_v2, width: 8}\n", 8, &backend_cpu);
}

/* The loss reads three outputs of the model, some of which are computed on earlier stages. */
static void test_detector(void)
{
    static const char *const model =
        "model: {name: yolov5n, width_multiple: 0.02, anchors: [10, 13, 16, 8, 12, 20]}\n"
        "train: {loss: yolo}\n";
    run_model(model, 32, &backend_poison);
}

/* The head's weight is tied to that of the embedding, which is usually on another stage, and
 * sometimes in another chunk of the same stage. */
static void test_tied(void)
{
    static const char *const model =
        "model: {name: gpt2, layers: 3, width: 16, heads: 2, context: 8, dropout: 0.2}\n";
    run_model(model, 0, &backend_cpu);
    run_model(model, 0, &backend_poison);
}

#define STAGE_CASES                                                                                \
    {"random graphs, cut at random", test_cpu}, {"in poisoned memory", test_poison},               \
        {"networks", test_models}, {"a detector", test_detector},                                  \
    {                                                                                              \
        "tied parameters", test_tied                                                               \
    }

#endif
