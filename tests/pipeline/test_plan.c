/* Tests random graphs on one stage: plan and executor give the results of the plain interpreter
 * (plain.h), with all schedules and one to eight micro-batches. PLAN_GRAPH=17 in the environment
 * runs only graph number 17. */
#include "draft.h"
#include "plain.h"

#include <math.h>
#include <time.h>

/* GRAPHS: number of random graphs. DEEP_LAYERS: number of layers of the smaller deep model. Both
 * are smaller with sanitizers, with which the tests take five times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { GRAPHS = 50, DEEP_LAYERS = 125 };
#else
enum { GRAPHS = 200, DEEP_LAYERS = 1250 };
#endif

static const int schedules[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_ZERO_BUBBLE};
static const int micro_batches[] = {1, 2, 3, 4, 6, 8};

static void run_graphs(const BackendTable *table)
{
    const char *only = getenv("PLAN_GRAPH");
    for (int number = 0; number < GRAPHS; ++number) {
        Draft d;
        if (only && atoi(only) != number) continue;
        draft(&d, number);
        if (!check_model(d.text, table, SIDE, schedules[number % 3], micro_batches[number / 3 % 6]))
            printf("  graph %d: %s", number, d.text);
    }
}

/* Graphs that random draws seldom produce, each with the case that it tests. */
static const char *const special[] = {
    /* two flattened images of different shapes, both in a layout with blocks of channels */
    "model: {layers: [conv2d: {name: a, channels: 16, kernel: 3, pad: 1}, flatten: {name: fa}, "
    "max_pool: {name: p, kernel: 2, input: a}, conv2d: {channels: 64, kernel: 3, pad: 1}, "
    "flatten: {name: fb}, add: {input: [fa, fb]}, dense: {width: 9}]}\n",
    /* relu must not overwrite the flattened data, because dense reads the data later */
    "model: {layers: [flatten: {name: f}, relu: {name: r}, flatten: {name: g, input: data}, "
    "concat: {input: [r, g]}, dense: {width: 9}]}\n",
    /* logits that are an alias of a pool's output */
    "model: {layers: [conv2d: {channels: 9, kernel: 3}, relu, global_pool, flatten]}\n",
    /* a sum whose gradient is in the memory of another sum's gradient: sums of one node twice, of
     * sums, and of in-place operations */
    "model: {layers: [flatten: {name: f}, dense: {name: a, width: 16}, dense: {name: b, width: 16, "
    "input: f}, add: {name: twice, input: [b, b]}, add: {input: [a, twice]}, dense: {width: 9}]}\n",
    "model: {layers: [flatten: {name: f}, dense: {name: a, width: 16}, dense: {name: b, width: 16, "
    "input: f}, dense: {name: c, width: 16, input: f}, dense: {name: d, width: 16, input: f}, "
    "layer_norm: {name: nb, input: b}, layer_norm: {name: nc, input: c}, layer_norm: {name: nd, "
    "input: d}, add: {name: s, input: [nb, a]}, add: {name: t, input: [s, nc]}, add: {input: [t, "
    "nd]}, dense: {width: 9}]}\n",
    /* before the second input of the add there is no trained layer */
    "model: {layers: [flatten: {name: f}, dense: {width: 108, name: d}, add: {input: [d, f]}, "
    "relu, dropout: {p: 0.5}, dense: {width: 9}]}\n",
};

static void test_special(void)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; ++i)
        for (int s = 0; s < 3; ++s)
            if (!check_model(special[i], &backend_cpu, SIDE, schedules[s], 4) ||
                !check_model(special[i], &backend_poison, SIDE, schedules[s], 4))
                printf("  special graph %zu\n", i);
}

/* Runs graphs with several chunks on one stage, so that there are no messages between chunks. */
static void run_chunks(const BackendTable *table)
{
    int ran = 0;
    for (int number = 0; number < GRAPHS; ++number) {
        Draft d;
        bool cut;
        draft(&d, number);
        Case how = {.model = d.text,
                    .table = table,
                    .side = SIDE,
                    .shape = {.stages = 1,
                              .chunks_per_stage = 2 + number % 3,
                              .micro_batches = micro_batches[number % 6]},
                    .schedule = number % 2 ? SCHEDULE_FILE : SCHEDULE_INTERLEAVED,
                    .list = SCHEDULE_INTERLEAVED,
                    .split = number / 2 % 3,
                    .draw = (uint64_t)number,
                    .recompute = number / 4 % 2};
        if (!check_case(&how, &cut) && cut) printf("  graph %d: %s", number, d.text);
        ran += cut;
    }
    CU_ASSERT(ran > GRAPHS / 2);
}

static void test_chunks(void)
{
    run_chunks(&backend_cpu);
    run_chunks(&backend_poison);
}

/* The second chunk of a stage reads its inputs in the memory to which the first chunk has written
 * them. */
static void test_no_copy(void)
{
    Fixture f;
    Case how = {.model = "model: {name: gpt2, layers: 2, width: 16, heads: 2, context: 8}\n",
                .table = &backend_cpu,
                .shape = {.stages = 1, .chunks_per_stage = 2, .micro_batches = 3},
                .schedule = SCHEDULE_ZB_V};
    bool open = fixture_open(&f, &how);
    CU_ASSERT_TRUE(open);
    if (open) {
        const ChunkPlan *first = &f.plan->chunk[0], *second = &f.plan->chunk[1];
        CU_ASSERT(second->activations_in.count > 0);
        for (int i = 0; i < second->activations_in.count; ++i) {
            int64_t place = first->activations_out.tensor[i].offset;
            CU_ASSERT(place >= 0 && place < (int64_t)first->kept_bytes);
            CU_ASSERT_EQUAL(second->activations_in.tensor[i].offset, OFFSET_BEFORE + place);
        }
    }
    fixture_close(&f);
}

static void test_cpu(void)
{
    run_graphs(&backend_cpu);
}

static void test_poison(void)
{
    run_graphs(&backend_poison);
}

/* Returns the text of a model: a dense layer, and then n layers of one kind. kind: name of a layer
 * kind, or "sum" for dense layers, each followed by an add of its input and its output. The caller
 * frees the text with free(). */
static char *deep_model(const char *kind, int n)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "model: {layers: [flatten, dense: {width: 8, name: s0}");
    for (int i = 1; i <= n; ++i) {
        if (strcmp(kind, "sum") != 0)
            fprintf(out, ", %s", kind);
        else if (i % 2)
            fprintf(out, ", dense: {width: 8, name: d%d}", i);
        else
            fprintf(out, ", add: {input: [d%d, s%d], name: s%d}", i - 1, i - 2, i);
    }
    fprintf(out, ", dense: {width: %d}]}\n", CLASSES);
    fclose(out);
    return text;
}

/* Makes the plans of two stages from the model's text. */
static void plan_deep(Fixture *f)
{
    int first[3];
    ScheduleReport report;
    CHECK_OK(open_graph(f));
    CHECK_OK(make_schedule(f));
    CHECK_OK(schedule_simulate(f->schedule, NULL, &report));
    CHECK_OK(graph_partition(f->graph, f->config, 2, first));
    int *block = f->how.recompute ? graph_blocks(f->graph, first, 2) : NULL;
    for (int stage = 0; stage < 2; ++stage) {
        PlanOptions options = {.shape = {2, 2, 1},
                               .stage = stage,
                               .schedule = f->schedule,
                               .channel_depth = report.channel_depth,
                               .chunk_begin = first,
                               .bucket_bytes = 256,
                               .state_slots = 1,
                               .zero = ZERO_STATE,
                               .block = block};
        CHECK_OK(plan_new(&f->plan, f->graph, &options));
        plan_free(&f->plan);
    }
    mem_free(&block);
    schedule_report_fini(&report);
}

/* Returns the seconds of CPU time in which a deep model is planned: the least of several tries. */
static double planning_s(const char *kind, int n, bool recompute)
{
    enum { TRIES = 3 };
    double least = INFINITY;
    char *text = deep_model(kind, n);
    for (int i = 0; i < TRIES; ++i) {
        Fixture f = {.how = {.model = text,
                             .table = &backend_cpu,
                             .side = SIDE,
                             .shape = {.stages = 2, .chunks_per_stage = 1, .micro_batches = 4},
                             .schedule = SCHEDULE_1F1B,
                             .recompute = recompute}};
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        plan_deep(&f);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double s = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        least = s < least ? s : least;
        f.how.shape.micro_batches = 0;
        fixture_close(&f);
    }
    free(text);
    return least;
}

/* Planning eight times as many layers takes about eight times as long, and up to twenty times where
 * the larger plan does not fit into a cache that other processes use, too. If there were a loop
 * over all layers for each layer, it would take up to 64 times as long. The least times of several
 * rounds count, because other processes sometimes slow this one. */
static void test_deep(void)
{
    enum { TIMES = 8, MOST = 28, ROUNDS = 6 };
    static const char *const kinds[] = {"relu", "dense: {width: 8}", "sum"};
    for (int i = 0; i < 6; ++i) {
        double few = INFINITY, many = INFINITY;
        for (int r = 0; r < ROUNDS && !(many < MOST * few); ++r) {
            few = fmin(few, planning_s(kinds[i / 2], DEEP_LAYERS, i % 2));
            many = fmin(many, planning_s(kinds[i / 2], TIMES * DEEP_LAYERS, i % 2));
        }
        CU_ASSERT(many < MOST * few);
        if (many >= MOST * few || getenv("WEFT_TEST_VERBOSE"))
            printf("  %s: %d layers take %.4f s, %d of them %.4f s\n", kinds[i / 2], DEEP_LAYERS,
                   few, TIMES * DEEP_LAYERS, many);
    }
}

TEST_MAIN("plan", {"special graphs", test_special},
          {"random graphs, same bits as a plain interpreter", test_cpu},
          {"random graphs in poisoned memory", test_poison},
          {"several chunks on one stage", test_chunks},
          {"their inputs are not copied", test_no_copy}, {"time to plan deep models", test_deep})
