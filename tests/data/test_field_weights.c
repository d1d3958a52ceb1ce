/* Weights of the targets of a set of fields in losses: of variables and levels, of rows by their
 * latitude, of pixels by a mask, the same at all steps of a rollout; and keys that are refused. */
#include "fixture.h"
#include "../../src/data/fields/fields_private.h"
#include "../../src/data/fields/netcdf_write.h"

#include <math.h>

enum {
    FRAMES = 6,
    LEVELS = 2,
    ROWS = 3,
    COLUMNS = 2,
    PIXELS = ROWS * COLUMNS,
    TARGETS = 3,
    FINE = 5
};
static const double lat[ROWS] = {-60, 0, 90}, fine[FINE] = {-70, -60, 0, 60, 80};
static float mask[PIXELS] = {0, 1, 0.5F, NAN, 1, 0.25F}, masks[FRAMES][PIXELS];

/* Writes h (time, lat, lon), u (time, lev, lat, lon), mask (lat, lon), masks (time, lat, lon), zero
 * and percent (lat, lon), wide (lat, lon + 1), fine (time, rows, lon) with latitudes of rows, and
 * plain (time, 5, lon). All values but those of the masks are numbers of their own. */
static const char *make_file(bool latitudes)
{
    const char *path = in_scratch(latitudes ? "weights.nc" : "rows.nc");
    static const NetcdfDim dim[] = {{"time", FRAMES}, {"lev", LEVELS}, {"lat", ROWS},
                                    {"lon", COLUMNS}, {"lon3", 3},     {"rows", FINE},
                                    {"five", FINE}};
    static const NetcdfAttr degrees[] = {{.name = "units", .text = "degrees_north"}};
    const NetcdfAttr north[] = {{.name = "units", .text = latitudes ? "degrees_north" : "m"}};
    static const NetcdfAttr hours[] = {{.name = "units", .text = "hours since 2001-01-01"}};
    static const double missing = NAN, level[LEVELS] = {500, 850};
    const NetcdfVar var[] = {
        {.name = "time", .type = ELEM_F64, .ndim = 1, .dim = {0}, .attr = hours, .attrs = 1},
        {.name = "lev", .type = ELEM_F64, .ndim = 1, .dim = {1}},
        {.name = "lat", .type = ELEM_F64, .ndim = 1, .dim = {2}, .attr = north, .attrs = 1},
        {.name = "h", .type = ELEM_F32, .ndim = 3, .dim = {0, 2, 3}},
        {.name = "u", .type = ELEM_F32, .ndim = 4, .dim = {0, 1, 2, 3}},
        {.name = "mask", .type = ELEM_F32, .ndim = 2, .dim = {2, 3}, .fill = &missing},
        {.name = "masks", .type = ELEM_F32, .ndim = 3, .dim = {0, 2, 3}, .fill = &missing},
        {.name = "zero", .type = ELEM_F32, .ndim = 2, .dim = {2, 3}},
        {.name = "percent", .type = ELEM_F32, .ndim = 2, .dim = {2, 3}},
        {.name = "wide", .type = ELEM_F32, .ndim = 2, .dim = {2, 4}},
        {.name = "rows", .type = ELEM_F64, .ndim = 1, .dim = {5}, .attr = degrees, .attrs = 1},
        {.name = "fine", .type = ELEM_F32, .ndim = 3, .dim = {0, 5, 3}},
        {.name = "plain", .type = ELEM_F32, .ndim = 3, .dim = {0, 6, 3}}};
    const NetcdfFile file = {.dim = dim, .dims = 7, .var = var, .vars = 13};
    float value[FRAMES * LEVELS * PIXELS], zero[PIXELS] = {0}, percent[PIXELS];
    double time[FRAMES];
    NetcdfWriter *w;
    for (int i = 0; i < FRAMES * LEVELS * PIXELS; ++i) value[i] = (float)i;
    for (int i = 0; i < PIXELS; ++i) percent[i] = 20 * (float)i;
    for (int i = 0; i < FRAMES; ++i) time[i] = 6 * i;
    for (int i = 0; i < FRAMES * PIXELS; ++i)
        masks[i / PIXELS][i % PIXELS] = i % 5 ? (float)(i % 5) / 4 : NAN;
    CHECK_OK(netcdf_writer_new(&w, path, true, &file));
    CHECK_OK(netcdf_write(w, 0, 0, FRAMES, time));
    CHECK_OK(netcdf_write(w, 1, 0, LEVELS, level));
    CHECK_OK(netcdf_write(w, 2, 0, ROWS, lat));
    CHECK_OK(netcdf_write(w, 3, 0, FRAMES, value));
    CHECK_OK(netcdf_write(w, 4, 0, FRAMES, value));
    CHECK_OK(netcdf_write(w, 5, 0, ROWS, mask));
    CHECK_OK(netcdf_write(w, 6, 0, FRAMES, masks));
    CHECK_OK(netcdf_write(w, 7, 0, ROWS, zero));
    CHECK_OK(netcdf_write(w, 8, 0, ROWS, percent));
    CHECK_OK(netcdf_write(w, 9, 0, ROWS, value));
    CHECK_OK(netcdf_write(w, 10, 0, FINE, fine));
    CHECK_OK(netcdf_write(w, 11, 0, FRAMES, value));
    CHECK_OK(netcdf_write(w, 12, 0, FRAMES, value));
    CHECK_OK(netcdf_finish(&w));
    return path;
}

/* Opens the file with targets and other keys, separated by spaces. */
static Status set_open(DataSet *set, const char *path, const char *targets, const char *keys)
{
    Config *config = NULL;
    char *more = mem_text(keys), *rest = more;
    char *word[8] = {mem_format("data.train=%s", path),
                     mem_format("data.variables={inputs: [h, u], targets: %s}", targets),
                     mem_text("data.window={inputs: [0h], targets: [6h]}")};
    int count = 3;
    for (char *w; count < 8 && (w = strsep(&rest, " "));)
        if (*w) word[count++] = mem_text(w);
    config_use_words(data_words, DATA_WORDS);
    Status st = config_load(&config, NULL, count, word);
    if (st == OK) st = data_set_open(set, config, path);
    for (int i = 0; i < count; ++i) mem_free(&word[i]);
    mem_free(&more);
    config_free(&config);
    return st;
}

/* Compares the weights of a sample, of `steps` steps, with those that the keys say. of: weight of
 * each target of a step; cosines: rows are weighted; plane: the mask at each step. */
static void check(const char *targets, const char *keys, int steps, const double of[TARGETS],
                  bool cosines, int64_t sample, const float *const plane[])
{
    DataSet *set = mem_new(sizeof *set);
    FieldReader *reader = NULL;
    FieldWeights weights = {0};
    float got[3 * TARGETS * PIXELS];
    CHECK_OK(set_open(set, make_file(true), targets, keys));
    const FieldSet *f = &set->field_set;
    CU_ASSERT_EQUAL_FATAL(f->targets, steps * TARGETS);
    CU_ASSERT_TRUE(field_loss_has_weights(f));
    CHECK_OK(field_reader_new(&reader, set));
    CHECK_OK(field_weights_init(&weights, set, reader, f->latitude_weights));
    CHECK_OK(field_loss_weights(&weights, set, reader, 0, sample, got));
    for (int i = 0; i < steps * TARGETS * PIXELS; ++i) {
        const int k = i % PIXELS, target = i / PIXELS % TARGETS, step = i / PIXELS / TARGETS;
        const double row = cosines ? cos(lat[k / COLUMNS] * acos(-1) / 180) : 1;
        const double pixel = !plane ? 1 : isnan(plane[step][k]) ? 0 : (double)plane[step][k];
        CU_ASSERT_DOUBLE_EQUAL((double)got[i], of[target] * row * pixel, 1e-7);
    }
    field_weights_fini(&weights);
    field_reader_free(&reader);
    data_set_fini(set);
    mem_free(&set);
}

static void values(void)
{
    static const char *const all = "[{name: h, weight: 2}, {name: u, weights: [1, 0.5]}]";
    static const double of[] = {2, 1, 0.5}, one[] = {1, 1, 1};
    const float *const fixed[] = {mask, mask, mask}, *const moving[] = {masks[3], masks[4],
                                                                        masks[5]};
    check(all, "", 1, of, false, 0, NULL);
    check("[{name: h, weight: 2}, {name: u, levels: [500], weights: [1]}, {name: u, levels: [850], "
          "weight: 0.5}]",
          "", 1, of, false, 0, NULL);
    check("[h, u]", "train.latitude_weights=true", 1, one, true, 0, NULL);
    check("[h, u]", "data.mask=mask", 1, one, false, 0, fixed);
    check("[h, u], extra: [row]", "data.mask=mask", 1, one, false, 0, fixed);
    check(all, "train.latitude_weights=true data.mask=mask train.rollout=3", 3, of, true, 0, fixed);
    check(all, "data.mask=masks train.rollout=3", 3, of, false, 2, moving);
    check(all, "data.mask=masks train.latitude_weights=true", 1, of, true, 3, moving + 1);
    DataSet *set = mem_new(sizeof *set);
    CHECK_OK(set_open(set, make_file(true), "[h, {name: u, weight: 1}]", ""));
    CU_ASSERT_FALSE(field_loss_has_weights(&set->field_set));
    data_set_fini(set);
    mem_free(&set);
}

/* Targets with more rows than inputs have weights of their own latitudes, whatever the rows of the
 * inputs are; rows without latitudes have the weight 1. */
static void targets_of_another_size(void)
{
    DataSet *set = mem_new(sizeof *set);
    for (int i = 0; i < 3; ++i) {
        CHECK_OK(set_open(set, make_file(i > 0), i < 2 ? "[fine]" : "[plain]",
                          i < 2 ? "train.latitude_weights=true" : ""));
        const FieldSet *f = &set->field_set;
        double *row = field_row_weights(set, true);
        CU_ASSERT_EQUAL(field_rows_have_latitudes(f), i < 2);
        for (int k = 0; k < FINE; ++k)
            CU_ASSERT_DOUBLE_EQUAL(row[k], i < 2 ? cos(fine[k] * acos(-1) / 180) : 1, 1e-7);
        CU_ASSERT(f->rows.count == ROWS && f->rows.degrees == (i > 0) && f->rows.value[0] == -60);
        mem_free(&row);
        data_set_fini(set);
    }
    mem_free(&set);
}

static void refused(void)
{
    static const struct {
        const char *targets, *keys, *message;
    } row[] = {
        {"[{name: u, weights: [1, 2, 3]}]", "", "u has 3 weights for 2 levels"},
        {"[{name: u, weight: 1, weights: [1, 2]}]", "", "weight or weights, not both"},
        {"[{name: u, weight: [1, 2]}]", "", "expected weight: 2, one for all levels"},
        {"[{name: u, weights: 2}]", "", "expected weights: [1, 0.5]"},
        {"[{name: u, weight: -1}]", "", "-1"},
        {"[{name: u, weight: inf}]", "", "inf"},
        {"[{name: u, weight: 0}]", "", "all targets have the weight 0"},
        {"[{name: u, importance: 2}]", "", "and a target weight and weights"},
        {"[u], static: [{name: mask, weight: 2}]", "", "only targets have weights"},
        {"[u]", "data.mask=none", "name the right one: data.mask"},
        {"[u], extra: [row]", "data.mask=none", "name the right one: data.mask"},
        {"[u]", "data.mask=wide", "wide has fields of 3x3, and targets are of 3x2"},
        {"[u]", "data.mask=u", "u has 2 levels"},
    };
    static const char *const bad[][2] = {{"data.mask=zero", "all values of zero are 0 or missing"},
                                         {"data.mask=percent", "percent has the value 20"}};
    DataSet *set = mem_new(sizeof *set);
    const char *path = make_file(true);
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        const Status st = set_open(set, path, row[i].targets, row[i].keys);
        CU_ASSERT(st != OK && strstr(fail_message(), row[i].message));
        if (st == OK || !strstr(fail_message(), row[i].message))
            printf("  %s %s: '%s'\n", row[i].targets, row[i].keys,
                   st == OK ? "OK" : fail_message());
    }
    for (int i = 0; i < 2; ++i) {
        FieldReader *reader = NULL;
        FieldWeights weights = {0};
        CHECK_OK(set_open(set, path, "[h]", bad[i][0]));
        CHECK_OK(field_reader_new(&reader, set));
        CU_ASSERT_EQUAL(field_weights_init(&weights, set, reader, false), ERR_DATA);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), bad[i][1]));
        field_reader_free(&reader);
        data_set_fini(set);
    }
    CU_ASSERT_EQUAL(set_open(set, make_file(false), "[h]", "train.latitude_weights=true"),
                    ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "train.latitude_weights=true: the rows of"));
    mem_free(&set);
}

TEST_MAIN("weights of fields", {"values", values},
          {"targets of another size", targets_of_another_size}, {"refused", refused})
