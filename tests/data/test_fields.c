/* Sets of fields in files of netCDF4-python and xarray, compared with what xarray reads from them:
 * inputs, targets, missing values, times, segments and samples, to the bit
 * (tests/golden/fields/expected.txt, which tools/golden_fields.py describes). */
#include "fixture.h"
#include "../../src/data/fields/calendar.h"
#include "../../src/data/fields/fields_private.h"

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

TEST_MAIN("fields", {"as xarray reads them", as_xarray}, {"splits by time", between_times})
