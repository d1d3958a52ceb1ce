/* Sets of fields that cannot be used: malformed files, keys that do not fit them, limits. Each is
 * refused with a message that names the file and the variable, or the key. */
#include "fixture.h"
#include "../../src/data/fields/fields_private.h"
#include "../../src/data/fields/netcdf_write.h"

enum { TIMES = 6, LEVELS = 2, ROWS = 3, COLUMNS = 4, WORDS = 5 };

/* How a file differs from a good one. */
typedef struct Wrong {
    const char *calendar, *time_units, *h_units;
    /* NULL: h has no such attribute */
    const NetcdfAttr *h_attr;
    int64_t rows, levels, times;
    double first_row;
    /* the distance of two rows, if not 1; what is added to each level */
    double row_step, more_level;
    /* if not 0: levels, rows and times are stored divided by it, with the attribute scale_factor */
    double packed;
    /* value of the first element of h, of the second time, and of the second time of u, if not 0 */
    float h_value;
    double time_value, other_time;
    bool no_time, no_static;
    /* s is an array of doubles; its first value */
    bool static_is_double;
    double static_value;
    int deflate;
} Wrong;

static void put(NetcdfWriter *w, int var, int64_t count, const double *value)
{
    for (int64_t i = 0; i < count; ++i) CHECK_OK(netcdf_write(w, var, i, 1, &value[i]));
}

/* Variables: h (time, lat, lon), u (time, lev, lat, lon), s (lat, lon), v (time2, lat, lon), line
 * (lat). */
static const char *file_make(const char *name, Wrong wrong)
{
    enum { TIME, TIME2, LEV, LAT, LON };
    const char *path = in_scratch(name);
    const int64_t times = wrong.times ? wrong.times : TIMES, rows = wrong.rows ? wrong.rows : ROWS;
    const int64_t levels = wrong.levels ? wrong.levels : LEVELS;
    const NetcdfDim dim[] = {{"time", times},
                             {"time2", wrong.other_time < 0 ? TIMES - 1 : times},
                             {"lev", levels},
                             {"lat", rows},
                             {"lon", COLUMNS}};
    const char *units = wrong.time_units ? wrong.time_units : "hours since 2001-01-01";
    const NetcdfAttr scale = {.name = "scale_factor", .number = wrong.packed};
    const int packed = wrong.packed != 0;
    const NetcdfAttr time_attr[] = {
        {"units", units, 0}, {"calendar", wrong.calendar ? wrong.calendar : "standard", 0}, scale};
    const NetcdfAttr h_attr[2] = {{"units", wrong.h_units ? wrong.h_units : "m", 0},
                                  wrong.h_attr ? *wrong.h_attr : (NetcdfAttr){"note", "none", 0}};
    const NetcdfAttr lev_attr[] = {{"axis", "Z", 0}, scale};
    const double factor = packed ? wrong.packed : 1, row_step = wrong.row_step ? wrong.row_step : 1;
    NetcdfVar var[] = {
        {.name = "h",
         .type = ELEM_F32,
         .ndim = 3,
         .dim = {TIME, LAT, LON},
         .attr = h_attr,
         .attrs = 2},
        {.name = "u", .type = ELEM_F32, .ndim = 4, .dim = {TIME, LEV, LAT, LON}},
        {.name = "v", .type = ELEM_F32, .ndim = 3, .dim = {TIME2, LAT, LON}},
        {.name = "line", .type = ELEM_F32, .ndim = 1, .dim = {LAT}},
        {.name = "lev",
         .type = ELEM_F64,
         .ndim = 1,
         .dim = {LEV},
         .attr = lev_attr,
         .attrs = 1 + packed},
        {.name = "lat", .type = ELEM_F64, .ndim = 1, .dim = {LAT}, .attr = &scale, .attrs = packed},
        {.name = "time2",
         .type = ELEM_F64,
         .ndim = 1,
         .dim = {TIME2},
         .attr = time_attr,
         .attrs = 2},
        {.name = "time",
         .type = ELEM_F64,
         .ndim = 1,
         .dim = {TIME},
         .attr = time_attr,
         .attrs = 2 + packed},
        {.name = "s",
         .type = wrong.static_is_double ? ELEM_F64 : ELEM_F32,
         .ndim = 2,
         .dim = {LAT, LON}}};
    const NetcdfFile file = {.dim = dim,
                             .dims = 5,
                             .var = var,
                             .vars = 9 - wrong.no_static - (wrong.no_time ? 1 : 0),
                             .deflate = wrong.deflate,
                             .reserved_rows = times};
    double value[4096] = {0};
    float plane[4096] = {0};
    NetcdfWriter *w;
    if (wrong.no_time) var[7] = var[8];
    CHECK_OK(netcdf_writer_new(&w, path, true, &file));
    for (int64_t t = 0; t < times; ++t) {
        plane[0] = t == 1 && wrong.h_value != 0 ? wrong.h_value : (float)t;
        plane[1] = 1;
        CHECK_OK(netcdf_write(w, 0, t, 1, plane));
        CHECK_OK(netcdf_write(w, 1, t, 1, plane));
        if (t < dim[TIME2].size) CHECK_OK(netcdf_write(w, 2, t, 1, plane));
        value[t] = 6.0 * (double)t;
    }
    if (wrong.other_time > 0) value[1] = wrong.other_time;
    put(w, 6, dim[TIME2].size, value);
    value[1] = wrong.time_value != 0 ? wrong.time_value : 6;
    for (int64_t i = 0; i < times; ++i) value[i] /= factor;
    if (!wrong.no_time) put(w, 7, times, value);
    for (int64_t i = 0; i < levels; ++i)
        value[i] = (500.0 + 350.0 * (double)i + wrong.more_level) / factor;
    put(w, 4, levels, value);
    for (int64_t i = 0; i < rows; ++i) value[i] = ((double)i * row_step + wrong.first_row) / factor;
    put(w, 5, rows, value);
    for (int64_t i = 0; i < rows; ++i) CHECK_OK(netcdf_write(w, 3, i, 1, plane));
    double line[COLUMNS] = {wrong.static_value, 1};
    plane[0] = (float)wrong.static_value;
    for (int64_t i = 0; i < rows && !wrong.no_static; ++i)
        CHECK_OK(netcdf_write(w, wrong.no_time ? 7 : 8, i, 1,
                              wrong.static_is_double ? (void *)line : plane));
    CHECK_OK(netcdf_finish(&w));
    return path;
}

static const char good_variables[] = "data.variables={inputs: [h], static: [s], targets: [h]}";
static const char next_step[] = "data.window={inputs: [0], targets: [1]}";

/* Opens files, separated by line breaks, with keys; NULL ends these. */
static Status open_with(DataSet *set, const char *paths, const char *const *key)
{
    char *word[WORDS];
    int count = 0;
    Config *config = NULL;
    config_use_words(data_words, DATA_WORDS);
    for (; key[count]; ++count) word[count] = mem_text(key[count]);
    Status st = config_load(&config, NULL, count, word);
    if (st == OK) st = data_set_open(set, config, paths);
    config_free(&config);
    for (int i = 0; i < count; ++i) mem_free(&word[i]);
    return st;
}

/* Checks that files are refused, with one message that has all these words. */
static void refused_with(const char *paths, const char *variables, const char *window,
                         const char *predict, const char *first, const char *second)
{
    DataSet *set = mem_new(sizeof *set);
    const char *key[WORDS] = {variables, window, predict};
    const Status st = open_with(set, paths, key);
    CU_ASSERT(st == ERR_DATA || st == ERR_CONFIG || st == ERR_NOINPUT);
    const bool named = strstr(fail_message(), first) && strstr(fail_message(), second);
    if (st == OK || !named)
        printf("  '%s' and '%s' are not in: %s\n", first, second, fail_message());
    CU_ASSERT(named);
    mem_free(&set);
}

static void refused(const char *paths, const char *variables, const char *first, const char *second)
{
    refused_with(paths, variables, next_step, NULL, first, second);
}

static const char *both(const char *a, const char *b)
{
    static char text[400];
    snprintf(text, sizeof text, "%s\n%s", a, b);
    return text;
}

static void good(void)
{
    DataSet *set = mem_new(sizeof *set);
    const char *path = file_make("good.nc", (Wrong){0});
    CHECK_OK(open_with(set, path, (const char *[]){good_variables, next_step, NULL}));
    CU_ASSERT_EQUAL(set->samples, TIMES - 1);
    CHECK_OK(field_check(set));
    data_set_fini(set);
    mem_free(&set);
}

static void variables(void)
{
    const char *path = file_make("vars.nc", (Wrong){0});
    refused(path, "data.variables={inputs: [s], targets: [h]}", "vars.nc: s has no time", "static");
    refused(path, "data.variables={inputs: [hh], targets: [h]}", "vars.nc", "did you mean h?");
    refused(path, "data.variables={inputs: [{name: u, levels: [501]}], targets: [h]}",
            "vars.nc: u has no level 501", "it has 500, 850");
    refused(path, "data.variables={inputs: [{name: h, levels: [1]}], targets: [h]}",
            "vars.nc: h has no level 1", "no coordinate");
    refused(path, "data.variables={inputs: [line], targets: [h]}", "vars.nc: line", "has no time");
    refused(path, "data.variables={inputs: [h]}", "data.variables", "targets");
    refused_with(path, good_variables, "data.window={inputs: [0], targets: [0]}", NULL,
                 "data.window", "same time");
    refused_with(path, good_variables, "data.window={inputs: [0], targets: [9]}", NULL, "vars.nc",
                 "no sample");
    refused_with(path, good_variables, "data.window={inputs: [0h], targets: [7h]}", NULL, "vars.nc",
                 "no multiple");
    refused_with(path, "data.variables={inputs: [u], targets: [h]}", next_step,
                 "data.predict=change", "data.predict", "change");
}

/* Channels that weft makes, and scalars. */
static void extra(void)
{
    const char *path = file_make("extra.nc", (Wrong){0});
    refused(path, "data.variables={inputs: [h], extra: [hours], targets: [h]}",
            "no extra channel 'hours'", "did you mean 'hour'?");
    refused(path, "data.variables={inputs: [h], extra: [{name: row, levels: [1]}], targets: [h]}",
            "row is an extra channel", "no levels");
    refused(path, "data.variables={inputs: [h], extra: [latitude], targets: [h]}",
            "extra.nc: the extra channel latitude needs the latitudes",
            "use the extra channel row");
    refused(path, "data.variables={inputs: [h], extra: [local_hour], targets: [h]}",
            "extra.nc: the extra channel local_hour needs the longitudes",
            "use the extra channel column");
    refused(path, "data.variables={inputs: [h], scalars: [u], targets: [h]}",
            "extra.nc: u has rows, so it is no scalar", "inputs");
    path = file_make("extra.nc", (Wrong){.no_time = true});
    refused(path, "data.variables={inputs: [h], extra: [year], targets: [h]}",
            "extra.nc: the extra channel year needs times", "have none");
    refused(path, "data.variables={inputs: [h], scalars: [line], targets: [h]}", "extra.nc: line",
            "no scalar");
}

static void between_files(void)
{
    const char *first = file_make("a.nc", (Wrong){0});
    refused(both(first, file_make("b.nc", (Wrong){.h_units = "km"})), good_variables, "b.nc: units",
            "h");
    refused(both(first, file_make("b.nc", (Wrong){.rows = 5})), good_variables, "b.nc: dimensions",
            "h");
    refused(both(first, file_make("b.nc", (Wrong){.first_row = 0.5})), good_variables,
            "b.nc: coordinates", "h");
    refused(both(first, file_make("b.nc", (Wrong){.no_static = true})), good_variables, "b.nc",
            "no variable s");
    refused(both(first, file_make("b.nc", (Wrong){.calendar = "noleap"})), good_variables, "b.nc",
            "calendar");
    refused(both(first, file_make("b.nc", (Wrong){.no_time = true})), good_variables, "b.nc",
            "have no units");
    refused(both(first, file_make("b.nc", (Wrong){.static_value = 1})), good_variables,
            "b.nc: the values of s differ from those in", "a.nc, and a variable without time");
    refused_with(both(first, file_make("b.nc", (Wrong){.static_value = 1})),
                 "data.variables={inputs: [h], targets: [h]}", next_step, "data.mask=s",
                 "b.nc: the values of s differ", "give the mask a time");
    DataSet *set = mem_new(sizeof *set);
    CHECK_OK(open_with(set, both(first, file_make("b.nc", (Wrong){.static_is_double = true})),
                       (const char *[]){good_variables, next_step, NULL}));
    data_set_fini(set);
    mem_free(&set);
    refused(both(first, in_scratch("none*.nc")), good_variables, "none*.nc", "");
}

static void times(void)
{
    refused(file_make("falls.nc", (Wrong){.times = 2, .time_value = -6}), good_variables,
            "falls.nc", "its times fall");
    refused(file_make("t.nc", (Wrong){.calendar = "lunar"}), good_variables, "t.nc", "lunar");
    refused(file_make("gap.nc", (Wrong){.time_units = "days since 1582-10-10"}), good_variables,
            "gap.nc", "no date of its calendar");
    refused(file_make("t.nc", (Wrong){.time_units = "months since 2001-01-01"}), good_variables,
            "t.nc", "months since");
    refused(file_make("t.nc", (Wrong){.time_units = "days since 2001-02-30"}), good_variables,
            "t.nc", "2001-02-30");
    refused(file_make("t.nc", (Wrong){.time_value = (double)NAN}), good_variables, "t.nc",
            "frame 1 has no time");
    refused(file_make("t.nc", (Wrong){.other_time = 7}),
            "data.variables={inputs: [h, v], targets: [h]}", "t.nc", "times of v");
    refused(file_make("t.nc", (Wrong){.other_time = -1}),
            "data.variables={inputs: [h, v], targets: [h]}", "t.nc", "v");
    refused_with(file_make("t.nc", (Wrong){.no_time = true}), good_variables,
                 "data.window={inputs: [0h], targets: [6h]}", NULL, "data.window", "no times");
}

static void packing(void)
{
    refused(file_make("p.nc", (Wrong){.h_attr = &(NetcdfAttr){"scale_factor", NULL, 0}}),
            good_variables, "p.nc: h", "scale_factor 0");
    refused(file_make("p.nc", (Wrong){.h_attr = &(NetcdfAttr){"scale_factor", NULL, (double)NAN}}),
            good_variables, "p.nc: h", "scale_factor");
    refused(file_make("p.nc", (Wrong){.h_attr = &(NetcdfAttr){"scale_factor", "0.1", 0}}),
            good_variables, "p.nc", "scale_factor of h");
    refused(file_make("p.nc", (Wrong){.h_attr = &(NetcdfAttr){"_Unsigned", "true", 0}}),
            good_variables, "p.nc: h", "_Unsigned");
}

static void limits(void)
{
    const char *path = file_make("l.nc", (Wrong){.levels = 70, .times = 12});
    char *paths = mem_new((FIELD_FILES + 1) * (strlen(path) + 1)), *at = paths,
         many[1200] = "data.variables={targets: [h], inputs: [h";
    refused(path, "data.variables={inputs: [u], targets: [h]}", "l.nc: u has 70 levels", "64");
    path = file_make("l.nc", (Wrong){.levels = 60, .times = 12});
    refused_with(path, "data.variables={inputs: [u], targets: [h]}",
                 "data.window={inputs: [-4, -3, -2, -1, 0], targets: [1]}", NULL, "data.variables",
                 "256 channels");
    for (int i = 0; i < FIELD_FILES + 1; ++i) at += sprintf(at, "%s%s", i ? "\n" : "", path);
    refused(paths, good_variables, "16384 files", "");
    for (int i = 0; i < FIELD_VARIABLES; ++i) sprintf(many + strlen(many), ", x%d", i);
    strcat(many, "]}");
    refused(path, many, "data.variables", "48 variables");
    mem_free(&paths);
}

/* ---- files that HDF5 writes ---- */

static void h5_shape(const char *name, int ndim, hid_t type, const hsize_t *dim, hsize_t limit)
{
    hid_t file = H5Fopen(in_scratch("raw.nc"), H5F_ACC_RDWR, H5P_DEFAULT);
    hsize_t most[5], chunk[5];
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    for (int i = 0; i < ndim; ++i) most[i] = i || !limit ? dim[i] : H5S_UNLIMITED, chunk[i] = 1;
    if (limit) H5Pset_chunk(create, ndim, chunk);
    hid_t space = H5Screate_simple(ndim, dim, most);
    hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    CU_ASSERT(d >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(create);
    H5Fclose(file);
}

static void shapes_and_types(void)
{
    const char *path = file_make("raw.nc", (Wrong){0});
    const hsize_t five[] = {TIMES, 1, 1, ROWS, COLUMNS}, three[] = {TIMES, ROWS, COLUMNS};
    const hsize_t empty[] = {0, ROWS, COLUMNS};
    hid_t text = H5Tcopy(H5T_C_S1), pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tset_size(text, 8);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(pair, "b", 4, H5T_NATIVE_FLOAT);
    h5_shape("deep", 5, H5T_IEEE_F32LE, five, 0);
    h5_shape("words", 3, text, three, 0);
    h5_shape("pairs", 3, pair, three, 0);
    h5_shape("empty", 3, H5T_IEEE_F32LE, empty, 1);
    h5_shape("never", 3, H5T_IEEE_F32LE, three, 0);
    H5Tclose(pair);
    H5Tclose(text);
    refused(path, "data.variables={inputs: [deep], targets: [h]}", "raw.nc: deep", "5 dimensions");
    refused(path, "data.variables={inputs: [words], targets: [h]}", "raw.nc: words", "type");
    refused(path, "data.variables={inputs: [pairs], targets: [h]}", "raw.nc: pairs", "type");
    refused(path, "data.variables={inputs: [empty], targets: [h]}", "raw.nc: empty", "is 0");
    refused(path, "data.variables={inputs: [never], targets: [h]}", "raw.nc: never",
            "never written");
}

/* Changes byte `at` of a file, counted from its end if negative. */
static void damage(const char *path, long at, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "r+b");
    CU_ASSERT_FATAL(file && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* Finds the address of the first chunk of /h, or of its data. */
static long address_of_h(const char *path, bool chunked)
{
    unsigned mask;
    haddr_t at = 0;
    hsize_t bytes, start[3];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), d = H5Dopen2(file, "h", H5P_DEFAULT);
    if (!chunked) at = H5Dget_offset(d);
    hid_t space = H5Dget_space(d);
    if (chunked) CU_ASSERT(H5Dget_chunk_info(d, space, 1, start, &mask, &at, &bytes) >= 0);
    H5Sclose(space);
    H5Dclose(d);
    H5Fclose(file);
    return (long)at;
}

static void damaged(void)
{
    const char *path = file_make("d.nc", (Wrong){0});
    hid_t file, d;
    /* a list of dimensions that is no list */
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    d = H5Dopen2(file, "h", H5P_DEFAULT);
    H5Adelete(d, "DIMENSION_LIST");
    h5_put_int(d, "DIMENSION_LIST", 7);
    H5Dclose(d);
    H5Fclose(file);
    refused(path, good_variables, "d.nc", "DIMENSION_LIST of h");
    path = file_make("cut.nc", (Wrong){0});
    CU_ASSERT_EQUAL(truncate(path, 6000), 0);
    refused(path, good_variables, "cut.nc", "truncated");
    write_bytes(in_scratch("text.nc"), "CDF\1, and no more", 17);
    refused(in_scratch("text.nc"), good_variables, "text.nc", "nccopy -k nc4");
}

/* Units of two sets must be equal, where both have some. */
static void units(void)
{
    DataSet *set = mem_new(sizeof *set), *other = mem_new(sizeof *other);
    const char *key[] = {good_variables, next_step, NULL};
    CHECK_OK(open_with(set, file_make("m.nc", (Wrong){0}), key));
    CU_ASSERT_STRING_EQUAL(set->columns.lines,
                           "h [m]\ns []\nseconds between frames "
                           "[21600]\norder of rows [rising]\norder of columns []");
    CHECK_OK(open_with(other, file_make("km.nc", (Wrong){.h_units = "km"}), key));
    CHECK_FAILS(data_columns_check(other, set), ERR_DATA, "km.nc: has h in km, but");
    data_set_fini(other);
    CHECK_OK(open_with(other, file_make("none.nc", (Wrong){.h_units = ""}), key));
    CHECK_OK(data_columns_check(other, set));
    CHECK_OK(data_columns_check(set, other));
    data_set_fini(other);
    data_set_fini(set);
    mem_free(&other);
    mem_free(&set);
}

/* Levels, the order of rows, and the time between frames of two sets must be equal, too. */
static void meaning(void)
{
    static const struct {
        Wrong wrong;
        const char *message;
    } row[] = {
        {{.more_level = 10}, "has u at levels 510, 860, but"},
        {{.row_step = -1, .first_row = 5}, "has rows of falling coordinates, but"},
        {{.time_units = "days since 2001-01-01"}, "has frames that are 518400 s apart, but"},
        {{.packed = 0.5}, NULL},
        {{.time_value = 6.003}, NULL},
        {{.more_level = 1e-5}, NULL},
    };
    DataSet *set = mem_new(sizeof *set), *other = mem_new(sizeof *other);
    const char *key[] = {"data.variables={inputs: [u], targets: [u]}", next_step, NULL};
    CHECK_OK(open_with(set, file_make("like.nc", (Wrong){0}), key));
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        CHECK_OK(open_with(other, file_make("other.nc", row[i].wrong), key));
        if (row[i].message)
            CHECK_FAILS(data_columns_check(other, set), ERR_DATA, row[i].message);
        else
            CHECK_OK(data_columns_check(other, set));
        data_set_fini(other);
    }
    /* packed coordinates have the values of plain ones */
    CHECK_OK(open_with(other, file_make("packed.nc", (Wrong){.packed = 0.5}), key));
    CU_ASSERT_EQUAL(memcmp(&other->field_set.rows, &set->field_set.rows, sizeof(FieldAxis)), 0);
    CU_ASSERT_EQUAL(other->field_set.step_s, set->field_set.step_s);
    CU_ASSERT_EQUAL(other->field_set.variable[0].level_value[1], 850);
    data_set_fini(other);
    /* in hours, offsets mean the same for any time between frames */
    key[1] = "data.window={inputs: [0d], targets: [6d]}";
    CHECK_OK(open_with(other, file_make("days.nc", (Wrong){.time_units = row[2].wrong.time_units}),
                       key));
    CHECK_OK(data_columns_check(other, set));
    data_set_fini(other);
    data_set_fini(set);
    mem_free(&other);
    mem_free(&set);
}

/* A variable that was written for fewer times than others has the first times of the coordinate. */
static void fewer_times(void)
{
    const char *path = file_make("fewer.nc", (Wrong){.deflate = 1});
    const hsize_t size[] = {TIMES - 1, ROWS, COLUMNS};
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), h = H5Dopen2(file, "h", H5P_DEFAULT);
    CU_ASSERT(H5Dset_extent(h, size) >= 0);
    H5Dclose(h);
    H5Fclose(file);
    DataSet *set = mem_new(sizeof *set);
    const char *key[] = {"data.variables={inputs: [h], targets: [h]}",
                         "data.window={inputs: [0h], targets: [6h]}", NULL};
    CHECK_OK(open_with(set, path, key));
    CU_ASSERT_EQUAL(set->samples, TIMES - 2);
    CU_ASSERT_EQUAL(set->field_set.step_s, 21600);
    data_set_fini(set);
    mem_free(&set);
}

/* Values are read only when samples are. */
static void values(void)
{
    DataSet *set = mem_new(sizeof *set);
    const char *key[] = {good_variables, next_step, NULL};
    const char *path = file_make("inf.nc", (Wrong){.h_value = (float)INFINITY});
    CHECK_OK(open_with(set, path, key));
    CHECK_FAILS(field_check(set), ERR_DATA, "inf.nc: h has an infinite value");
    CHECK_FAILS(data_fields_measure(set, 2), ERR_DATA, "inf.nc: h has an infinite value");
    data_set_fini(set);
    path = file_make("gzip.nc", (Wrong){.deflate = 4});
    damage(path, address_of_h(path, true), "damaged", 7);
    CHECK_OK(open_with(set, path, key));
    CU_ASSERT_STRING_EQUAL(set->field_set.variable[0].storage, "chunked 1x3x4, shuffle, deflate");
    CHECK_FAILS(field_check(set), ERR_IO, "gzip.nc: h cannot be read");
    data_set_fini(set);
    path = file_make("short.nc", (Wrong){0});
    CHECK_OK(open_with(set, path, key));
    CU_ASSERT_EQUAL(truncate(path, address_of_h(path, false) + 8), 0);
    CHECK_FAILS(field_check(set), ERR_DATA, "short.nc: h: the file became shorter");
    data_set_fini(set);
    mem_free(&set);
}

TEST_MAIN("fields_bad", {"good files are accepted", good}, {"variables and windows", variables},
          {"files that differ", between_files}, {"times", times}, {"packing", packing},
          {"limits", limits}, {"shapes and types", shapes_and_types}, {"damaged files", damaged},
          {"values", values}, {"units", units}, {"what numbers mean", meaning},
          {"fewer times", fewer_times}, {"extra channels", extra})
