/* Sets of fields in files of netCDF4-python and xarray, compared with what xarray reads from them:
 * inputs, targets, missing values, times, segments and samples, to the bit
 * (tests/golden/fields/expected.txt, which tools/golden_fields.py describes). */
#include "fixture.h"
#include "../../src/data/fields/calendar.h"
#include "../../src/data/fields/fields_private.h"

#include <math.h>

enum { SETS = 8, LINE = 1 << 16 };
static const char expected[] = "tests/golden/fields/expected.txt";

typedef struct Case {
    FILE *file;
    char line[LINE];
    Config *config;
    DataSet set;
} Case;

/* Reads the next line, without its end; false: there is none. */
static bool next_line(Case *c)
{
    if (!fgets(c->line, LINE, c->file)) return false;
    c->line[strcspn(c->line, "\n")] = 0;
    return true;
}

/* Opens the set that the next lines configure. */
static Status case_open(Case *c)
{
    char *set[SETS] = {0};
    int count = 0;
    while (next_line(c) && strncmp(c->line, "set ", 4) == 0) set[count++] = mem_text(c->line + 4);
    Status st = config_load(&c->config, NULL, count, set);
    if (st == OK) st = data_set_open(&c->set, c->config, c->config->data.train);
    for (int i = 0; i < count; ++i) mem_free(&set[i]);
    return st;
}

static const char *time_of(const FieldSet *f, double seconds, char text[TIME_TEXT])
{
    if (f->step_s > 0) return time_text((Calendar)f->calendar, seconds, text);
    return strcpy(text, "-");
}

/* Is this the line that has been read last? */
static bool line_is(const Case *c, const char *line)
{
    if (strcmp(c->line, line) != 0) printf("  '%s', not '%s'\n", line, c->line);
    return strcmp(c->line, line) == 0;
}

static void compare_segments(Case *c)
{
    const FieldSet *f = &c->set.field_set;
    char line[120], time[TIME_TEXT];
    snprintf(line, sizeof line, "samples %lld", (long long)c->set.samples);
    CU_ASSERT(line_is(c, line));
    snprintf(line, sizeof line, "segments %d", f->segments);
    CU_ASSERT_FATAL(next_line(c));
    CU_ASSERT(line_is(c, line));
    snprintf(line, sizeof line, "step %g", f->step_s);
    CU_ASSERT_FATAL(next_line(c));
    CU_ASSERT(line_is(c, line));
    for (int i = 0; i < f->segments; ++i) {
        const FieldSegment *s = &f->segment[i];
        snprintf(line, sizeof line, "segment %lld %lld %s", (long long)s->frames,
                 (long long)s->samples, time_of(f, s->start, time));
        CU_ASSERT_FATAL(next_line(c));
        CU_ASSERT(line_is(c, line));
    }
}

/* Compares a line of floats, "x 438fa5da nan ...", with n values. */
static bool same_values(Case *c, const float *value, int64_t n)
{
    char *at = next_line(c) ? c->line + 1 : NULL;
    for (int64_t i = 0; at && i < n; ++i) {
        char text[16] = "nan";
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        if (value[i] == value[i]) snprintf(text, sizeof text, "%08x", bits);
        const size_t length = strlen(text);
        if (*at != ' ' || strncmp(at + 1, text, length) != 0) {
            printf("  value %lld is %s, not%.9s\n", (long long)i, text, at);
            return false;
        }
        at += 1 + length;
    }
    return at && *at == 0;
}

static void compare_samples(Case *c)
{
    const FieldSet *f = &c->set.field_set;
    const int64_t x_count = c->set.x.sample_bytes / 4, y_count = c->set.target_width;
    float *x = mem_new((size_t)x_count * sizeof *x), *y = mem_new((size_t)y_count * sizeof *y);
    char line[80], time[TIME_TEXT];
    FieldReader *reader;
    CHECK_OK(field_reader_new(&reader, &c->set));
    for (int64_t i = 0; i < c->set.samples; ++i) {
        const int64_t frame = field_sample_frame(f, i);
        int s = f->segments - 1;
        while (f->segment[s].first > frame) --s;
        snprintf(line, sizeof line, "at %s",
                 time_of(f, f->segment[s].start + (double)(frame - f->segment[s].first) * f->step_s,
                         time));
        CU_ASSERT_FATAL(next_line(c));
        CU_ASSERT(line_is(c, line));
        /* without means and deviations, targets are values or changes as they are */
        CHECK_OK(field_read(reader, i, false, x, NULL));
        CHECK_OK(field_read(reader, i, true, NULL, y));
        CU_ASSERT(same_values(c, x, x_count));
        CU_ASSERT(same_values(c, y, y_count));
    }
    field_reader_free(&reader);
    mem_free(&x);
    mem_free(&y);
}

static void as_xarray(void)
{
    Case *c = mem_new(sizeof *c);
    int cases = 0;
    c->file = fopen(expected, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->file);
    config_use_words(data_words, DATA_WORDS);
    while (next_line(c)) {
        char name[64];
        if (sscanf(c->line, "case %63s", name) != 1) continue;
        if (strcmp(name, "szip") == 0 && H5Zfilter_avail(H5Z_FILTER_SZIP) <= 0) {
            printf("  skipped: szip: this HDF5 has no such filter\n");
            continue;
        }
        const unsigned failed = CU_get_number_of_failures();
        CHECK_OK(case_open(c));
        compare_segments(c);
        compare_samples(c);
        if (CU_get_number_of_failures() > failed) printf("  case %s\n", name);
        data_set_fini(&c->set);
        config_free(&c->config);
        ++cases;
    }
    CU_ASSERT(cases >= 12);
    fclose(c->file);
    mem_free(&c);
}

/* Times select frames of segments, in the set's calendar, and renumber samples. */
static void between_times(void)
{
    char *key[] = {(char *)"data.variables={inputs: [h], targets: [h]}",
                   (char *)"data.window={targets: [1]}",
                   (char *)"data.train_time=[2001-02-29, '2001-02-29 12:00']"};
    Config *config;
    DataSet *set = mem_new(sizeof *set);
    CHECK_OK(config_load(&config, NULL, 3, key));
    CHECK_OK(data_set_open(set, config, "tests/golden/fields/360.nc"));
    CU_ASSERT_EQUAL(set->samples, 4);
    CHECK_OK(data_set_select_times(set, config, true));
    CU_ASSERT_EQUAL(set->samples, 4);
    CHECK_OK(data_set_select_times(set, config, false));
    const FieldSegment *s = &set->field_set.segment[0];
    CU_ASSERT_EQUAL(set->field_set.segments, 1);
    CU_ASSERT(s->first == 1 && s->frames == 3 && set->samples == 2);
    CU_ASSERT_EQUAL(set->x.dim[0], 2);
    CU_ASSERT_EQUAL(field_sample_frame(&set->field_set, 0), s->first);
    config_free(&config);
    data_set_fini(set);
    mem_free(&set);
}

/* Opens kinds.nc, which has latitudes -60, 0, 60, longitudes 0, 90, 180, 270, and five times 6 h
 * apart from 2001-02-27 00:00 on, with extra channels, a scalar, and a rollout of two steps. */
static Status open_extra(DataSet *set)
{
    char *key[] = {(char *)"data.variables={inputs: [t2m], extra: [hour, latitude, longitude, row, "
                           "column, local_hour, year], scalars: [time], targets: [t2m]}",
                   (char *)"data.window={inputs: [-6h, 0h], targets: [6h]}",
                   (char *)"train.rollout=2"};
    Config *config;
    Status st = config_load(&config, NULL, 3, key);
    if (st == OK) st = data_set_open(set, config, "tests/golden/fields/kinds.nc");
    if (st == OK) config_free(&config);
    return st;
}

/* The value that an extra channel should have at a pixel, `hours` after 2001-02-27 00:00. */
static double extra_value(int channel, double hours, int row, int column)
{
    const double turn = 6.283185307179586, latitude = (row - 1) / 6.0, longitude = column / 4.0;
    const double day = hours / 24, year = (57 + day) / 365;
    const double value[] = {sin(turn * latitude),
                            cos(turn * latitude),
                            sin(turn * longitude),
                            cos(turn * longitude),
                            row - 1,
                            column * 2 / 3.0 - 1,
                            sin(turn * (day + longitude)),
                            cos(turn * (day + longitude)),
                            hours - 6,
                            hours,
                            sin(turn * day),
                            cos(turn * day),
                            sin(turn * year),
                            cos(turn * year)};
    return value[channel];
}

/* Channels that weft makes stand behind those of the files, and those that are constant over space
 * last; a rollout reads those of its later steps at their times. */
static void extra_channels(void)
{
    enum { FIELDS = 2, EXTRA = 14, STEP = FIELDS + EXTRA, LATER = 7, ROWS = 3, COLUMNS = 4 };
    /* channels that the second step reads from the data, six hours later */
    static const int later[LATER] = {6, 7, 9, 10, 11, 12, 13};
    DataSet *set = mem_new(sizeof *set);
    float x[(STEP + LATER) * ROWS * COLUMNS];
    FieldReader *reader = NULL;
    config_use_words(data_words, DATA_WORDS);
    CHECK_OK(open_extra(set));
    CU_ASSERT_EQUAL_FATAL(set->field_set.inputs, STEP + LATER);
    CU_ASSERT_EQUAL(set->field_set.step_inputs, STEP);
    CHECK_OK(data_fields_measure(set, 2));
    for (int c = FIELDS; c < STEP; ++c)
        CU_ASSERT((set->mean[c] == 0 && set->std[c] == 1) == (c != FIELDS + 8 && c != FIELDS + 9));
    CHECK_OK(field_reader_new(&reader, set));
    for (int sample = 0; sample < 2; ++sample) {
        CHECK_OK(field_read(reader, sample, false, x, NULL));
        for (int c = 0; c < EXTRA + LATER; ++c)
            for (int i = 0; i < ROWS * COLUMNS; ++i) {
                const double hours = 6 * (sample + 1 + (c >= EXTRA));
                const double want =
                    extra_value(c < EXTRA ? c : later[c - EXTRA], hours, i / COLUMNS, i % COLUMNS);
                const double is = (double)x[(FIELDS + c) * ROWS * COLUMNS + i];
                CU_ASSERT(fabs(is - want) < 1e-6);
                if (!(fabs(is - want) < 1e-6)) printf("  %d, %d: %g, not %g\n", c, i, is, want);
            }
    }
    field_reader_free(&reader);
    data_set_fini(set);
    mem_free(&set);
}

TEST_MAIN("fields", {"extra channels", extra_channels}, {"as xarray reads them", as_xarray},
          {"splits by time", between_times})
