/* NetCDF-4 files: scales, references in both directions, attributes, rows appended along an
 * unlimited dimension, compression, equal bytes of equal calls, and descriptions that are
 * refused. */
#include "fixture.h"
#include "../../src/data/fields/netcdf_write.h"

enum { ROWS = 3, TALL = 4, WIDE = 6 };

static const NetcdfAttr time_attr[] = {{"units", "hours since 2000-01-01 00:00:00", 0},
                                       {"calendar", "standard", 0},
                                       {"standard_name", "time", 0},
                                       {"axis", "T", 0}};
static const NetcdfAttr x_attr[] = {{"units", "m", 0}, {"axis", "X", 0}};
static const NetcdfAttr h_attr[] = {{"long_name", "épaisseur", 0}, {"units", "m", 0}};
static const NetcdfAttr root_attr[] = {{"Conventions", "CF-1.8", 0}, {"gravity", NULL, 9.81}};
static const double fill = -1e30;

/* dimensions time, y (without coordinate), x; the first variable's name may be replaced */
static Status write_file(const char *out, int64_t times, int deflate, const char *name)
{
    const NetcdfDim dim[] = {{"time", times}, {"y", TALL}, {"x", WIDE}};
    const NetcdfVar var[] = {
        {.name = "time", .type = ELEM_F64, .ndim = 1, .dim = {0}, .attr = time_attr, .attrs = 4},
        {.name = "x", .type = ELEM_F64, .ndim = 1, .dim = {2}, .attr = x_attr, .attrs = 2},
        {.name = name,
         .type = ELEM_F32,
         .ndim = 3,
         .dim = {0, 1, 2},
         .attr = h_attr,
         .attrs = 2,
         .fill = &fill},
        {.name = "crs", .type = ELEM_I32},
        {.name = "sum", .type = ELEM_F64, .ndim = 1, .dim = {0}},
    };
    const NetcdfFile file = {.dim = dim,
                             .dims = 3,
                             .var = var,
                             .vars = 5,
                             .attr = root_attr,
                             .attrs = 2,
                             .deflate = deflate,
                             .reserved_rows = ROWS};
    NetcdfWriter *writer;
    double x[WIDE];
    int32_t crs = 7;
    TRY(netcdf_writer_new(&writer, out, true, &file));
    for (int i = 0; i < WIDE; ++i) x[i] = 100.0 * i;
    Status st = netcdf_write(writer, 1, 0, WIDE, x);
    if (st == OK) st = netcdf_write(writer, 3, 0, 1, &crs);
    for (int64_t t = 0; st == OK && t < ROWS; ++t) {
        double at = 6.0 * (double)t;
        float h[TALL * WIDE];
        for (int i = 0; i < TALL * WIDE; ++i) h[i] = (float)(100 * t + i);
        st = netcdf_write(writer, 0, t, 1, &at);
        if (st == OK) st = netcdf_write(writer, 2, t, 1, h);
    }
    /* the last row of the sum is left out where rows are appended */
    const double sum[ROWS] = {1, 2, 3};
    if (st == OK) st = netcdf_write(writer, 4, 0, times == NETCDF_UNLIMITED ? 2 : ROWS, sum);
    if (st == OK) return netcdf_finish(&writer);
    netcdf_drop(&writer);
    return st;
}

/* ---- reading it again ---- */

static bool has_text(hid_t object, const char *name, const char *expected)
{
    char text[120] = "";
    hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
    if (attr < 0) return false;
    hid_t type = H5Aget_type(attr);
    bool same = H5Tget_size(type) < sizeof text && H5Aread(attr, type, text) >= 0 &&
                strcmp(text, expected) == 0;
    H5Tclose(type);
    H5Aclose(attr);
    return same;
}

static int int_attr(hid_t object, const char *name)
{
    int value = -1;
    hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
    if (attr >= 0) H5Aread(attr, H5T_NATIVE_INT, &value), H5Aclose(attr);
    return value;
}

/* Does dimension i of the variable refer to this scale, and the scale to the variable? */
static void check_refers(hid_t file, const char *variable, int ndim, int i, const char *scale)
{
    hvl_t list[3];
    struct {
        hobj_ref_t var;
        int32_t dimension;
    } use[4];
    char name[40] = "";
    hid_t var = H5Dopen2(file, variable, H5P_DEFAULT), to = H5Dopen2(file, scale, H5P_DEFAULT);
    hid_t attr = H5Aopen(var, "DIMENSION_LIST", H5P_DEFAULT), type = H5Aget_type(attr);
    hid_t space = H5Aget_space(attr);
    CU_ASSERT_EQUAL_FATAL(H5Sget_simple_extent_npoints(space), ndim);
    CU_ASSERT(H5Aread(attr, type, list) >= 0);
    CU_ASSERT_EQUAL(list[i].len, 1);
    hid_t found = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, list[i].p);
    CU_ASSERT(H5Iget_name(found, name, sizeof name) > 0);
    CU_ASSERT_STRING_EQUAL(name + 1, scale);
    H5Oclose(found);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, list);
    H5Sclose(space), H5Tclose(type), H5Aclose(attr);

    attr = H5Aopen(to, "REFERENCE_LIST", H5P_DEFAULT);
    space = H5Aget_space(attr);
    int uses = (int)H5Sget_simple_extent_npoints(space);
    type = H5Tcreate(H5T_COMPOUND, sizeof *use);
    H5Tinsert(type, "dataset", 0, H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", sizeof(hobj_ref_t), H5T_NATIVE_INT32);
    CU_ASSERT_FATAL(uses >= 1 && uses <= 4);
    CU_ASSERT(H5Aread(attr, type, use) >= 0);
    bool back = false;
    for (int u = 0; u < uses; ++u) {
        found = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &use[u].var);
        H5Iget_name(found, name, sizeof name);
        back = back || (strcmp(name + 1, variable) == 0 && use[u].dimension == i);
        H5Oclose(found);
    }
    CU_ASSERT(back);
    H5Sclose(space), H5Tclose(type), H5Aclose(attr);
    H5Dclose(var), H5Dclose(to);
}

static void check_h(hid_t file, bool chunked)
{
    float h[ROWS * TALL * WIDE], fill_value = 0;
    hsize_t dim[3];
    hid_t var = H5Dopen2(file, "h", H5P_DEFAULT), space = H5Dget_space(var);
    CU_ASSERT_EQUAL(H5Sget_simple_extent_ndims(space), 3);
    H5Sget_simple_extent_dims(space, dim, NULL);
    CU_ASSERT(dim[0] == ROWS && dim[1] == TALL && dim[2] == WIDE);
    CU_ASSERT(H5Dread(var, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, h) >= 0);
    for (int i = 0; i < ROWS * TALL * WIDE; ++i)
        CU_ASSERT_EQUAL(h[i], (float)(100 * (i / (TALL * WIDE)) + i % (TALL * WIDE)));
    hid_t attr = H5Aopen(var, "_FillValue", H5P_DEFAULT);
    CU_ASSERT(H5Aread(attr, H5T_NATIVE_FLOAT, &fill_value) >= 0);
    CU_ASSERT_EQUAL(fill_value, (float)fill);
    CU_ASSERT(has_text(var, "long_name", "épaisseur"));
    CU_ASSERT_EQUAL(H5Dget_offset(var) == HADDR_UNDEF, chunked);
    H5Aclose(attr), H5Sclose(space), H5Dclose(var);
}

static void check_file(const char *path, bool chunked)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CU_ASSERT_FATAL(file >= 0);
    hid_t time = H5Dopen2(file, "time", H5P_DEFAULT), y = H5Dopen2(file, "y", H5P_DEFAULT);
    CU_ASSERT(has_text(time, "CLASS", "DIMENSION_SCALE"));
    CU_ASSERT(has_text(time, "NAME", "time"));
    CU_ASSERT(has_text(time, "calendar", "standard"));
    CU_ASSERT(has_text(file, "Conventions", "CF-1.8"));
    CU_ASSERT(
        has_text(y, "NAME", "This is a netCDF dimension but not a netCDF variable.         4"));
    CU_ASSERT_EQUAL(int_attr(time, "_Netcdf4Dimid"), 0);
    CU_ASSERT_EQUAL(int_attr(y, "_Netcdf4Dimid"), 1);
    CU_ASSERT_EQUAL(H5Aexists(time, "DIMENSION_LIST"), 0);
    check_refers(file, "h", 3, 0, "time");
    check_refers(file, "h", 3, 1, "y");
    check_refers(file, "h", 3, 2, "x");
    check_refers(file, "sum", 1, 0, "time");
    check_h(file, chunked);
    double sum[ROWS];
    hid_t var = H5Dopen2(file, "sum", H5P_DEFAULT);
    CU_ASSERT(H5Dread(var, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, sum) >= 0);
    CU_ASSERT(sum[1] == 2 && (sum[2] == 3 || (chunked && sum[2] > 9e36)));
    H5Dclose(var), H5Dclose(y), H5Dclose(time), H5Fclose(file);
}

static void files_have_scales_and_references(void)
{
    const char *fixed = in_scratch("fixed.nc"), *growing = in_scratch("growing.nc");
    const char *packed = in_scratch("packed.nc");
    CHECK_OK(write_file(fixed, ROWS, 0, "h"));
    check_file(fixed, false);
    CHECK_OK(write_file(growing, NETCDF_UNLIMITED, 0, "h"));
    check_file(growing, true);
    CHECK_OK(write_file(packed, NETCDF_UNLIMITED, 4, "h"));
    check_file(packed, true);
}

static void equal_calls_write_equal_bytes(void)
{
    const char *one = in_scratch("one.nc"), *two = in_scratch("two.nc");
    CHECK_OK(write_file(one, NETCDF_UNLIMITED, 1, "h"));
    /* HDF5 stores times in seconds */
    clock_sleep(1.1);
    CHECK_OK(write_file(two, NETCDF_UNLIMITED, 1, "h"));
    CU_ASSERT(same_files(one, two));
}

static void bad_names_are_refused(void)
{
    const char *out = in_scratch("bad.nc");
    CHECK_FAILS(write_file(out, ROWS, 0, "a/b"), ERR_DATA, "'a/b' is no name of a variable");
    CHECK_FAILS(write_file(out, ROWS, 0, ""), ERR_DATA, "'' is no name of a variable");
    CHECK_FAILS(write_file(out, ROWS, 0, "x"), ERR_DATA, "two variables have the name x");
    CHECK_FAILS(write_file(out, ROWS, 0, "y"), ERR_DATA, "y has the name of a dimension");
    CHECK_OK(write_file(out, ROWS, 0, "h"));
    const NetcdfDim dim[] = {{"x", 2}, {"x", 3}};
    const NetcdfFile twice = {.dim = dim, .dims = 2};
    NetcdfWriter *writer;
    CHECK_FAILS(netcdf_writer_new(&writer, out, true, &twice), ERR_DATA, "two dimensions");
    CHECK_FAILS(netcdf_writer_new(&writer, out, false, &twice), ERR_DATA, "two dimensions");
    const NetcdfFile empty = {.dims = 0};
    CHECK_FAILS(netcdf_writer_new(&writer, out, false, &empty), ERR_USAGE, "already there");
}

TEST_MAIN("netcdf_write", {"scales and references", files_have_scales_and_references},
          {"equal calls write equal bytes", equal_calls_write_equal_bytes},
          {"bad names are refused", bad_names_are_refused})
