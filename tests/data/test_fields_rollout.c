/* Rollouts of sets of fields: the channels and targets that train.rollout adds to a sample, where
 * each step reads its inputs, and windows that cannot be rolled out. */
#include "fixture.h"
#include "../../src/data/fields/fields_private.h"

enum { FRAMES = 9, PIXELS = 6 };
/* variables of the file */
enum { H, U, F, S, VARIABLES };
static const char *const names[] = {"h", "u", "f", "s"};

static float value_of(int variable, int64_t frame, int64_t pixel)
{
    return (float)(100 * variable + frame * frame * (variable + 1)) + 0.125F * (float)pixel;
}

/* Writes h, u and f (frames, 2, 3) and s (2, 3). */
static const char *make_file(void)
{
    static float value[FRAMES * PIXELS];
    const char *path = in_scratch("rollout.h5");
    const hid_t file = h5_new(path);
    for (int v = 0; v < VARIABLES; ++v) {
        const hsize_t whole[] = {FRAMES, 2, 3};
        const int64_t frames = v == S ? 1 : FRAMES;
        for (int64_t i = 0; i < frames * PIXELS; ++i)
            value[i] = value_of(v, i / PIXELS, i % PIXELS);
        H5Array a = {.name = names[v],
                     .stored = H5T_NATIVE_FLOAT,
                     .memory = H5T_NATIVE_FLOAT,
                     .data = value,
                     .ndim = v == S ? 2 : 3};
        memcpy(a.dim, whole + (v == S), (size_t)a.ndim * sizeof *whole);
        h5_put(file, a);
    }
    H5Fclose(file);
    return path;
}

static Status set_open(DataSet *set, const char *variables, const char *window, const char *predict,
                       int steps)
{
    Config *config = NULL;
    char *word[] = {mem_format("data.train=%s", make_file()),
                    mem_format("data.variables=%s", variables),
                    mem_format("data.window=%s", window), mem_format("data.predict=%s", predict),
                    mem_format("train.rollout=%d", steps)};
    config_use_words(data_words, DATA_WORDS);
    Status st = config_load(&config, NULL, sizeof word / sizeof *word, word);
    if (st == OK) st = data_set_open(set, config, config->data.train);
    for (size_t i = 0; i < sizeof word / sizeof *word; ++i) mem_free(&word[i]);
    config_free(&config);
    return st;
}

static bool is_plane(const float *plane, int variable, int64_t frame, int64_t minus)
{
    for (int64_t i = 0; i < PIXELS; ++i) {
        const float less = minus >= 0 ? value_of(variable, minus, i) : 0;
        if (plane[i] != value_of(variable, frame, i) - less) return false;
    }
    return true;
}

/* Three steps of h (its change) and u (as changes, too), with a forcing and a static field. */
static void samples(void)
{
    static const int variable[] = {H, U, F, H, U, F, S, F, F};
    static const int offset[] = {-1, -1, -1, 0, 0, 0, 0, 1, 2};
    enum { STEPS = 3, INPUTS = 9, TARGETS = 2 };
    DataSet *set = mem_new(sizeof *set);
    float x[INPUTS * PIXELS], y[STEPS * TARGETS * PIXELS];
    FieldReader *reader = NULL;
    CHECK_OK(set_open(set, "{inputs: [h, u, f], static: [s], targets: [h, u]}",
                      "{inputs: [-1, 0], targets: [1]}", "change", STEPS));
    const FieldSet *f = &set->field_set;
    CU_ASSERT_EQUAL_FATAL(f->inputs, INPUTS);
    CU_ASSERT_EQUAL_FATAL(f->targets, STEPS * TARGETS);
    CU_ASSERT_EQUAL(f->step_inputs, 7);
    CU_ASSERT_EQUAL(f->step_targets, TARGETS);
    CU_ASSERT_EQUAL(set->samples, FRAMES - 1 - STEPS);
    CHECK_OK(field_reader_new(&reader, set));
    for (int64_t i = 0; i < set->samples; ++i) {
        const int64_t at = field_sample_frame(f, i);
        CHECK_OK(field_read(reader, i, false, x, NULL));
        CHECK_OK(field_read(reader, i, true, NULL, y));
        for (int c = 0; c < INPUTS; ++c)
            CU_ASSERT(
                is_plane(x + c * PIXELS, variable[c], variable[c] == S ? 0 : at + offset[c], -1));
        for (int c = 0; c < STEPS * TARGETS; ++c)
            CU_ASSERT(is_plane(y + c * PIXELS, c % TARGETS, at + 1 + c / TARGETS, at));
    }
    field_reader_free(&reader);
    CHECK_OK(data_fields_measure(set, 1));
    CU_ASSERT_EQUAL(set->stats_count, 7);
    for (int c = 7; c < INPUTS; ++c) CU_ASSERT(set->mean[c] == set->mean[2] && set->std[c] > 0);
    for (int c = TARGETS; c < STEPS * TARGETS; ++c)
        CU_ASSERT(f->target_std[c] == f->target_std[c % TARGETS]);
    data_set_fini(set);
    mem_free(&set);
}

/* With inputs two steps apart, a step reads data of the past, and outputs of several steps. */
static void sources(void)
{
    /* h at -2, h at 0; by step: channel, or step of the output */
    static const FieldSource want[][2] = {{{0, 0, -1}, {1, 0, -1}},
                                          {{2, 0, -1}, {-1, 1, 0}},
                                          {{1, 0, -1}, {-1, 2, 0}},
                                          {{-1, 1, 0}, {-1, 3, 0}}};
    DataSet *set = mem_new(sizeof *set);
    CHECK_OK(set_open(set, "{inputs: [h], targets: [h]}", "{inputs: [-2, 0], targets: [1]}",
                      "value", 4));
    CU_ASSERT_EQUAL(set->field_set.inputs, 3);
    for (int step = 1; step <= 4; ++step)
        for (int c = 0; c < 2; ++c) {
            const FieldSource from = field_source(&set->field_set, step, c);
            const FieldSource *w = &want[step - 1][c];
            CU_ASSERT(from.channel == w->channel && from.target == w->target);
            CU_ASSERT(from.target < 0 || from.step == w->step);
        }
    data_set_fini(set);
    mem_free(&set);
}

static void refused(void)
{
    static const struct Row {
        const char *variables, *window, *message;
    } row[] = {
        {"{inputs: [h], targets: [h]}", "{inputs: [0], targets: [1, 2]}",
         "train.rollout makes the targets of all steps itself"},
        {"{inputs: [h], targets: [u]}", "{inputs: [0, 1], targets: [1]}", "after the last of the"},
        {"{inputs: [h, f], targets: [u]}", "{inputs: [0], targets: [1]}", "no target is an input"},
        {"{inputs: [h], targets: [h]}", "{inputs: [-1, 0], targets: [2]}",
         "step 2 reads h at a time between two outputs"},
        {"{inputs: [h], targets: [h]}", "{inputs: [0], targets: [3]}", "no sample has all of its"},
    };
    DataSet *set = mem_new(sizeof *set);
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        const Status st = set_open(set, row[i].variables, row[i].window, "value", 3);
        CU_ASSERT(st != OK && strstr(fail_message(), row[i].message));
        if (st == OK || !strstr(fail_message(), row[i].message))
            printf("  %s: '%s'\n", row[i].window, st == OK ? "OK" : fail_message());
    }
    data_set_fini(set);
    mem_free(&set);
}

TEST_MAIN("rollouts of fields", {"samples", samples}, {"sources", sources}, {"refused", refused})
