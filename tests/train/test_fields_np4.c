/* Tests forecasts of fields. An evaluation's metrics are those that the test computes from the
 * predictions by the definitions, and have the same bits on every grid and with any number of
 * threads. A rollout gives the same fields as single steps, each from a set that holds the fields
 * predicted before. And a written file of predictions can be read as a set. */
#include "data/field_output.h"
#include "data/fields/netcdf_write.h"
#include "tiny_main.h"
#include "train/rollout.h"

#include <math.h>

enum { FRAMES = 14, ROWS = 6, COLUMNS = 8, PIXELS = ROWS * COLUMNS, LEVELS = 2, STEPS = 4 };

static char set_path[64], fed_path[64];
static float h_of[FRAMES][PIXELS], u_of[FRAMES][LEVELS][PIXELS];
/* a mask without a time, and one with a time */
static float mask_of[PIXELS], masks_of[FRAMES][PIXELS];

/* Writes a set of h, whose missing values are NaN, of u on two levels, of the masks, and of calm,
 * which is 0. */
static Status write_set(const char *path)
{
    static const NetcdfDim dim[] = {
        {"time", FRAMES}, {"lev", LEVELS}, {"lat", ROWS}, {"lon", COLUMNS}};
    static const NetcdfAttr hours[] = {{.name = "units", .text = "hours since 2001-01-01"}};
    static const NetcdfAttr north[] = {{.name = "units", .text = "degrees_north"}};
    static const NetcdfAttr metres[] = {{.name = "units", .text = "m"}};
    static const double missing = NAN;
    const NetcdfVar var[] = {
        {.name = "time", .type = ELEM_F64, .ndim = 1, .dim = {0}, .attr = hours, .attrs = 1},
        {.name = "lev", .type = ELEM_F64, .ndim = 1, .dim = {1}},
        {.name = "lat", .type = ELEM_F64, .ndim = 1, .dim = {2}, .attr = north, .attrs = 1},
        {.name = "h",
         .type = ELEM_F32,
         .ndim = 3,
         .dim = {0, 2, 3},
         .attr = metres,
         .attrs = 1,
         .fill = &missing},
        {.name = "u", .type = ELEM_F32, .ndim = 4, .dim = {0, 1, 2, 3}},
        {.name = "mask", .type = ELEM_F32, .ndim = 2, .dim = {2, 3}, .fill = &missing},
        {.name = "masks", .type = ELEM_F32, .ndim = 3, .dim = {0, 2, 3}, .fill = &missing},
        {.name = "calm", .type = ELEM_F32, .ndim = 3, .dim = {0, 2, 3}}};
    const NetcdfFile file = {.dim = dim, .dims = 4, .var = var, .vars = 8};
    static const float zero[FRAMES][PIXELS];
    const double lev[] = {500, 850}, lat[] = {-75, -45, -15, 15, 45, 75};
    double time[FRAMES];
    NetcdfWriter *w;
    for (int i = 0; i < FRAMES; ++i) time[i] = 6 * i;
    TRY(netcdf_writer_new(&w, path, true, &file));
    TRY(netcdf_write(w, 0, 0, FRAMES, time));
    TRY(netcdf_write(w, 1, 0, LEVELS, lev));
    TRY(netcdf_write(w, 2, 0, ROWS, lat));
    TRY(netcdf_write(w, 3, 0, FRAMES, h_of));
    TRY(netcdf_write(w, 4, 0, FRAMES, u_of));
    TRY(netcdf_write(w, 5, 0, ROWS, mask_of));
    TRY(netcdf_write(w, 6, 0, FRAMES, masks_of));
    TRY(netcdf_write(w, 7, 0, FRAMES, zero));
    return netcdf_finish(&w);
}

static void prepare(void)
{
    const RngKey key = rng_key(3, RNG_TEST, 0, 0);
    snprintf(set_path, sizeof set_path, "%s/set.nc", tiny_folder);
    snprintf(fed_path, sizeof fed_path, "%s/fed.nc", tiny_folder);
    for (int t = 0; t < FRAMES; ++t)
        for (int i = 0; i < PIXELS; ++i) {
            const double x = i % COLUMNS, y = i / COLUMNS;
            const float noise = rng_uniform(key, (uint64_t)(t * PIXELS + i));
            h_of[t][i] = (float)(5 + sin(0.7 * x - 0.4 * t) * cos(0.3 * y)) + 0.1f * noise;
            for (int l = 0; l < LEVELS; ++l)
                u_of[t][l][i] = (float)((l + 1) * cos(0.7 * x - 0.4 * t));
            const int draw = (i * 7 + t * 3) % 5;
            masks_of[t][i] = draw == 0 ? NAN : draw == 1 ? 0 : 0.25f * (float)draw;
        }
    memcpy(mask_of, masks_of[2], sizeof mask_of);
    if (tiny_rank == 0 && write_set(set_path) != OK) die("%s", fail_message());
}

static const char model_text[] =
    "model: {layers: [conv2d: {channels: 6, kernel: 3, pad: same}, relu, conv2d: {channels: 6, "
    "kernel: 3, pad: same}, relu, conv2d: {channels: 2, kernel: 3, pad: same}]}\n"
    "data: {variables: {inputs: [h, u], targets: [h, {name: u, levels: [850]}]}, window: "
    "{inputs: [-6h, 0h], targets: [6h]}}\n"
    "train: {loss: mse, batch: 8, micro_batch: 2, steps: 4}\noptim: {name: adam, lr: 1e-3}\n";

static Config *config_of(const char *test, const char *predict, const char *more)
{
    Config *config = NULL;
    char *all =
        mem_format("data.train=%s data.test=%s data.predict=%s %s", set_path, test, predict, more);
    char *rest = all, *words[20];
    int count = 0;
    for (char *word; count < 20 && (word = strsep(&rest, " "));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "fields.yaml", model_text, count, words));
    mem_free(&all);
    return config;
}

/* Trains four steps and evaluates twice. metrics: receives those of the second evaluation. */
static Status evaluate(const Config *config, const World *world, FieldMetrics *metrics)
{
    Trainer *t = NULL;
    EvalLine line;
    StepResult result;
    Status st = trainer_new(&t, config, world);
    for (int i = 0; st == OK && i < 4; ++i) st = next_step(t, &result);
    for (int i = 0; st == OK && i < 2; ++i) st = train_evaluate(t, &t->test_set, &line, NULL);
    if (st == OK) *metrics = *line.fields;
    trainer_free(&t);
    return st;
}

/* Returns the metrics of `evaluate` on a grid. Collective on MPI_COMM_WORLD; all ranks get the same
 * metrics. */
static FieldMetrics metrics_on(const char *predict, const char *grid, int ranks)
{
    static FieldMetrics metrics;
    World sub;
    memset(&metrics, 0, sizeof metrics);
    if (tiny_world(&sub, ranks)) {
        Config *config = config_of(set_path, predict, grid);
        CHECK_OK(evaluate(config, &sub, &metrics));
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(&metrics, sizeof metrics);
    return metrics;
}

static void same_bits(void)
{
    static const struct {
        const char *grid;
        int ranks;
    } place[] = {{"train.threads=3", 1},
                 {"train.threads=1 grid.dp=2", 2},
                 {"train.threads=1 grid.pp=2", 2},
                 {"train.threads=1 grid.dp=2 grid.pp=2", 4},
                 {"train.threads=1 grid.dp=4", 4}};
    /* values of data.predict, some followed by other key=value words */
    const char *const predict[] = {"value", "change train.latitude_weights=true data.mask=mask",
                                   "value data.mask=masks"};
    for (int k = 0; k < 3; ++k) {
        const FieldMetrics want = metrics_on(predict[k], "train.threads=1", 1);
        CU_ASSERT_EQUAL(want.targets, 2);
        CU_ASSERT(isfinite(want.skill) && isfinite(want.normalized_rmse));
        for (size_t i = 0; i < sizeof place / sizeof *place; ++i) {
            const FieldMetrics got = metrics_on(predict[k], place[i].grid, place[i].ranks);
            const bool same = memcmp(&got, &want, sizeof want) == 0;
            CU_ASSERT_TRUE(same);
            if (!same && tiny_rank == 0)
                printf("  %s, %s: skill %.17g, not %.17g\n", predict[k], place[i].grid, got.skill,
                       want.skill);
        }
    }
}

/* ---- metrics by their definitions ---- */

typedef struct Forecasts {
    int samples;
    float predicted[FRAMES][2][PIXELS], truth[FRAMES][2][PIXELS], last[FRAMES][2][PIXELS];
} Forecasts;

static Status forecast(const Config *config, const World *world, Forecasts *all,
                       FieldMetrics *metrics)
{
    Trainer *t = NULL;
    Rollout *r = NULL;
    EvalLine line;
    Status st = trainer_new(&t, config, world);
    if (st == OK) st = train_evaluate(t, &t->test_set, &line, NULL);
    if (st == OK) *metrics = *line.fields;
    if (st == OK) st = rollout_new(&r, t, &t->test_set, 1);
    if (st == OK) all->samples = (int)t->test_set.samples;
    for (int64_t s = 0; st == OK && s < all->samples; ++s) {
        st = rollout_run(r, &s, 1, &all->predicted[s][0][0]);
        if (st == OK) st = rollout_truth(r, s, &all->truth[s][0][0], &all->last[s][0][0]);
    }
    rollout_free(&r);
    trainer_free(&t);
    return st;
}

static double mean_of(const Forecasts *all, int target, int pixel)
{
    double sum = 0;
    for (int s = 0; s < all->samples; ++s) sum += (double)all->truth[s][target][pixel];
    return sum / all->samples;
}

/* Returns the weight of a pixel in a sample's target. mask: value of data.mask, "" for none. */
static double weight_of(const char *mask, int sample, int pixel)
{
    static const double lat[] = {-75, -45, -15, 15, 45, 75};
    const float *of = !*mask ? NULL : !strcmp(mask, "mask") ? mask_of : masks_of[sample + 2];
    const double row = cos(lat[pixel / COLUMNS] * acos(-1) / 180);
    return !of ? row : isnan(of[pixel]) ? 0 : row * (double)of[pixel];
}

/* Computes the metrics of a target that has no missing values by their definitions, in two passes
 * over all forecasts. */
static void naive(const Forecasts *all, const char *mask, int target, double metric[FIELD_METRICS])
{
    double weight = 0, error = 0, absolute = 0, square = 0, p_mean = 0, t_mean = 0, persistence = 0;
    double pp = 0, tt = 0, pt = 0, aa = 0, bb = 0, ab = 0;
    for (int pass = 0; pass < 2; ++pass) {
        for (int s = 0; s < all->samples; ++s)
            for (int i = 0; i < PIXELS; ++i) {
                const double w = weight_of(mask, s, i);
                const double p = (double)all->predicted[s][target][i];
                const double t = (double)all->truth[s][target][i];
                const double q = (double)all->last[s][target][i], c = mean_of(all, target, i);
                if (pass == 0) {
                    weight += w, error += w * (p - t), absolute += w * fabs(p - t);
                    square += w * (p - t) * (p - t), p_mean += w * p, t_mean += w * t;
                    persistence += w * (q - t) * (q - t);
                } else {
                    pp += w * (p - p_mean) * (p - p_mean), tt += w * (t - t_mean) * (t - t_mean);
                    pt += w * (p - p_mean) * (t - t_mean), aa += w * (p - c) * (p - c);
                    bb += w * (t - c) * (t - c), ab += w * (p - c) * (t - c);
                }
            }
        if (pass == 0) p_mean /= weight, t_mean /= weight;
    }
    metric[FIELD_RMSE] = sqrt(square / weight);
    metric[FIELD_MAE] = absolute / weight;
    metric[FIELD_BIAS] = error / weight;
    metric[FIELD_CORRELATION] = pt / sqrt(pp * tt);
    metric[FIELD_ANOMALY_CORRELATION] = ab / sqrt(aa * bb);
    metric[FIELD_SKILL_PERSISTENCE] = 1 - sqrt(square / persistence);
    metric[FIELD_SKILL_CLIMATOLOGY] = 1 - sqrt(square / bb);
}

/* Returns the number of values of one target whose weight is above 0. */
static int64_t values_of(const char *mask, int samples)
{
    int64_t count = 0;
    for (int s = 0; s < samples; ++s)
        for (int i = 0; i < PIXELS; ++i) count += weight_of(mask, s, i) > 0;
    return count;
}

static void definitions(void)
{
    static const struct {
        const char *predict, *mask;
    } run[] = {{"value", ""}, {"change", ""}, {"value", "masks"}, {"change", "mask"}};
    if (tiny_rank > 0) return;
    for (int k = 0; k < 4; ++k) {
        char *more = mem_format("train.batch=1 train.micro_batch=1 train.threads=1%s%s",
                                *run[k].mask ? " data.mask=" : "", run[k].mask);
        Config *config = config_of(set_path, run[k].predict, more);
        mem_free(&more);
        const World alone = world_alone();
        Forecasts *all = mem_new(sizeof *all);
        FieldMetrics *got = mem_new(sizeof *got);
        CHECK_OK(forecast(config, &alone, all, got));
        CU_ASSERT(all->samples == FRAMES - 2 && got->latitude);
        for (int i = 0; i < 2; ++i) {
            double want[FIELD_METRICS];
            naive(all, run[k].mask, i, want);
            CU_ASSERT_EQUAL(got->target[i].values, values_of(run[k].mask, all->samples));
            for (int m = 0; m < FIELD_METRICS; ++m) {
                CU_ASSERT_DOUBLE_EQUAL(got->target[i].metric[m], want[m], 1e-6);
                if (!(fabs(got->target[i].metric[m] - want[m]) <= 1e-6))
                    printf("  %s, target %d: %s is %.9g, not %.9g\n", run[k].predict, i,
                           field_metric_name((FieldMetric)m), got->target[i].metric[m], want[m]);
            }
        }
        CU_ASSERT_STRING_EQUAL(got->target[0].label.name, "h_6h");
        CU_ASSERT_STRING_EQUAL(got->target[1].label.name, "u_850_6h");
        mem_free(&got);
        mem_free(&all);
        config_free(&config);
    }
}

/* ---- rollouts ---- */

/* Forecasts `steps` steps from a sample of the set `path` by an untrained model, which has the same
 * parameters in every call. */
static void roll(const char *path, int64_t sample, int steps, float *predicted)
{
    const World alone = world_alone();
    Config *config = config_of(path, "change", "train.batch=1 train.micro_batch=1 train.threads=1");
    Trainer *t = NULL;
    Rollout *r = NULL;
    CHECK_OK(trainer_new(&t, config, &alone));
    CHECK_OK(rollout_new(&r, t, &t->test_set, steps));
    CHECK_OK(rollout_run(r, &sample, 1, predicted));
    CU_ASSERT_EQUAL(rollout_limit(r, 0), steps);
    rollout_free(&r);
    trainer_free(&t);
    config_free(&config);
}

static void rollouts(void)
{
    static float whole[STEPS][2][PIXELS], one[2][PIXELS];
    if (tiny_rank > 0) return;
    roll(set_path, 0, STEPS, &whole[0][0][0]);
    /* sample 0 has inputs of frames 0 and 1 */
    for (int s = 0; s < STEPS; ++s) {
        memcpy(h_of[2 + s], whole[s][0], sizeof h_of[0]);
        memcpy(u_of[2 + s][1], whole[s][1], sizeof h_of[0]);
    }
    CHECK_OK(write_set(fed_path));
    for (int s = 0; s < STEPS; ++s) {
        roll(fed_path, s, 1, &one[0][0]);
        CU_ASSERT_EQUAL(memcmp(one, whole[s], sizeof one), 0);
    }
}

/* ---- files ---- */

/* Writes random fields as predictions of three samples, and reads them back as a set. */
static void files(void)
{
    static float field[3][2][PIXELS];
    static double read[LEVELS * PIXELS];
    const RngKey key = rng_key(4, RNG_TEST, 0, 0);
    const int64_t lead = 1;
    if (tiny_rank > 0) return;
    Config *config = config_of(set_path, "value", ""), *other = NULL;
    char *path = mem_format("%s/out.nc", tiny_folder), text[FIELD_TIME_TEXT];
    char *words[] = {"data.variables={inputs: [h, u], targets: [h_truth]}"};
    DataSet *set = mem_new(sizeof *set), *back = mem_new(sizeof *back);
    FieldOutput *output = NULL;
    FieldReader *reader = NULL;
    for (int i = 0; i < 3 * 2 * PIXELS; ++i) (&field[0][0][0])[i] = rng_uniform(key, (uint64_t)i);
    CHECK_OK(data_set_open(set, config, set_path));
    const FieldOutputPlan plan = {.set = set,
                                  .path = path,
                                  .writes_truth = true,
                                  .samples = 3,
                                  .leads = 1,
                                  .channels = 2,
                                  .lead = &lead,
                                  .title = "test",
                                  .source = "test"};
    CHECK_OK(field_output_new(&output, &plan));
    for (int i = 0; i < 3; ++i)
        CHECK_OK(field_output_put(output, 3 + i, &field[i][0][0], &field[2 - i][0][0]));
    CHECK_OK(field_output_finish(&output));
    CHECK_OK(config_load(&other, NULL, 1, words));
    CHECK_OK(data_set_open(back, other, path));
    CU_ASSERT(back->samples == 3 && back->field_set.step_s == 6 * 3600 &&
              field_rows_have_latitudes(&back->field_set));
    CU_ASSERT_STRING_EQUAL(back->field_set.variable[0].units, "m");
    CU_ASSERT_EQUAL(back->field_set.variable[1].level_value[0], 850);
    CU_ASSERT_STRING_EQUAL(
        field_time_text(&back->field_set, field_frame_time(&back->field_set, 0), text),
        "2001-01-02 06:00:00");
    CHECK_OK(field_reader_new(&reader, back));
    for (int i = 0; i < 3; ++i)
        for (int v = 0; v < 3; ++v) {
            CHECK_OK(field_read_variable(reader, v, i, read));
            for (int k = 0; k < PIXELS; ++k)
                CU_ASSERT_EQUAL(read[k], (double)(v < 2 ? field[i][v][k] : field[2 - i][0][k]));
        }
    field_reader_free(&reader);
    config_free(&other);
    config_free(&config);
    data_set_fini(back);
    data_set_fini(set);
    mem_free(&back);
    mem_free(&set);
    mem_free(&path);
}

/* A target that does not vary has no skill; the means are those of the other targets. */
static void constant_target(void)
{
    static FieldMetrics m;
    World sub;
    if (tiny_world(&sub, 1)) {
        Config *config = NULL;
        char *words[] = {mem_format("data.train=%s", set_path),
                         mem_format("data.test=%s", set_path),
                         mem_text("data.variables={inputs: [h, calm], targets: [h, calm]}"),
                         mem_text("train.threads=1")};
        CHECK_OK(config_parse(&config, "fields.yaml", model_text, 4, words));
        CHECK_OK(evaluate(config, &sub, &m));
        CU_ASSERT(isfinite(m.skill) && isfinite(m.normalized_rmse));
        CU_ASSERT_EQUAL(m.skill, m.target[0].metric[FIELD_SKILL_PERSISTENCE]);
        CU_ASSERT(isnan(m.target[1].metric[FIELD_SKILL_PERSISTENCE]) != 0);
        CU_ASSERT(m.target[1].metric[FIELD_RMSE] > 0);
        for (int i = 0; i < 4; ++i) mem_free(&words[i]);
        config_free(&config);
    }
    tiny_world_fini(&sub);
}

TINY_MAIN("fields", prepare, {"definitions", definitions}, {"same_bits", same_bits},
          {"rollouts", rollouts}, {"files", files},
          {"a target that does not vary", constant_target})
