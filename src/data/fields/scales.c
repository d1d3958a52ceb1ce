/* Opens dimension scales by HDF5's attribute DIMENSION_LIST. This attribute has a list of
 * references for each dimension of an array; the first reference of a list is used. Also reads the
 * values of scales. */
#include "scales.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char *name_in_group(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Opens the scale to which the first reference of a list refers. *scale stays -1 if the list is
 * empty. Returns false if the reference does not lead to an array. */
static bool open_one(hid_t dataset, const hvl_t *list, hid_t *scale)
{
    if (list->len < 1) return true;
    *scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, list->p);
    if (*scale >= 0 && H5Iget_type(*scale) == H5I_DATASET) return true;
    if (*scale >= 0) H5Oclose(*scale);
    *scale = -1;
    return false;
}

bool scales_open(hid_t dataset, int ndim, hid_t scale[SHAPE_DIMS])
{
    int64_t count;
    hvl_t list[SHAPE_DIMS];
    for (int i = 0; i < SHAPE_DIMS; ++i) scale[i] = -1;
    hid_t attr = h5_attr_open(dataset, "DIMENSION_LIST", &count);
    if (attr < 0) return true;
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), stored = H5Aget_type(attr);
    const bool read = count == ndim && H5Tequal(type, stored) > 0 && H5Aread(attr, type, list) >= 0;
    bool good = read;
    for (int i = 0; good && i < ndim; ++i) good = open_one(dataset, &list[i], &scale[i]);
    if (read) {
        hid_t space = H5Aget_space(attr);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, list);
        H5Sclose(space);
    }
    H5Tclose(stored);
    H5Tclose(type);
    H5Aclose(attr);
    return good;
}

void scales_close(hid_t scale[SHAPE_DIMS])
{
    for (int i = 0; i < SHAPE_DIMS; ++i)
        if (scale[i] >= 0) H5Dclose(scale[i]);
}

bool scale_name(hid_t scale, char *name, size_t room)
{
    char whole[1024];
    *name = 0;
    if (scale < 0) return true;
    if (H5Iget_name(scale, whole, sizeof whole) < 0) return false;
    snprintf(name, room, "%s", name_in_group(whole));
    return true;
}

Status scale_attr_numbers(hid_t object, const char *path, const char *of, const char *name,
                          int most, double *value, int *count)
{
    int64_t n;
    hid_t attr = h5_attr_open(object, name, &n);
    *count = 0;
    if (attr < 0) return OK;
    hid_t type = H5Aget_type(attr);
    const H5T_class_t class = H5Tget_class(type);
    const bool good = n >= 1 && n <= most && (class == H5T_FLOAT || class == H5T_INTEGER) &&
                      H5Aread(attr, H5T_NATIVE_DOUBLE, value) >= 0;
    H5Tclose(type);
    H5Aclose(attr);
    if (good) *count = (int)n;
    if (good) return OK;
    return fail(ERR_DATA, "%s: attribute %s of %s must be %s, and it is something else", path, name,
                of, most == 1 ? "a number" : "one or a few numbers");
}

Status scale_packing(hid_t array, const char *path, const char *of, FieldPacking *packing)
{
    char is_unsigned[8];
    int count;
    *packing = (FieldPacking){.scale = 1};
    TRY(scale_attr_numbers(array, path, of, "scale_factor", 1, &packing->scale, &count));
    TRY(scale_attr_numbers(array, path, of, "add_offset", 1, &packing->add, &count));
    TRY(h5_attr_text(array, path, "_Unsigned", is_unsigned, sizeof is_unsigned));
    if (!isfinite(packing->scale) || !isfinite(packing->add) || packing->scale == 0)
        return fail(ERR_DATA,
                    "%s: %s has scale_factor %g and add_offset %g, with which it cannot be read",
                    path, of, packing->scale, packing->add);
    if (strcasecmp(is_unsigned, "true") == 0)
        return fail(ERR_DATA,
                    "%s: %s has the attribute _Unsigned, which weft does not know: store it in an "
                    "unsigned type",
                    path, of);
    return OK;
}

/* Returns the number of values of a scale that is a coordinate; 0: it is none. */
static int64_t coordinate_length(hid_t scale, const char *path)
{
    /* a dimension without a coordinate has a scale with this name and without values */
    static const char none[] = "This is a netCDF dimension but";
    char name[64];
    if (scale < 0 || h5_attr_text(scale, path, "NAME", name, sizeof name) != OK ||
        strncmp(name, none, sizeof none - 1) == 0)
        return 0;
    hid_t space = H5Dget_space(scale), type = H5Dget_type(scale);
    const H5T_class_t class = H5Tget_class(type);
    const bool numbers = class == H5T_FLOAT || class == H5T_INTEGER;
    const int64_t length = numbers && H5Sget_simple_extent_ndims(space) == 1
                               ? (int64_t)H5Sget_simple_extent_npoints(space)
                               : 0;
    H5Tclose(type);
    H5Sclose(space);
    return length;
}

Status scale_read(hid_t file, hid_t scale, const char *path, const char *of, int64_t length,
                  bool longer, double **values)
{
    FieldPacking packing;
    const int64_t stored = coordinate_length(scale, path);
    *values = NULL;
    if (stored < length || (stored > length && !longer)) return OK;
    TRY(hdf5_check_in_one_file(file, scale, path, of));
    TRY(scale_packing(scale, path, of, &packing));
    double *value = mem_new((size_t)length * sizeof *value);
    const hsize_t start = 0, count = (hsize_t)length;
    hid_t space = H5Dget_space(scale), memory = H5Screate_simple(1, &count, NULL);
    Status st = OK;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0 ||
        H5Dread(scale, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, value) < 0)
        st = fail(ERR_DATA, "%s: %s cannot be read: %s", path, of, h5_error_text());
    H5Sclose(memory);
    H5Sclose(space);
    for (int64_t i = 0; i < length; ++i) value[i] = value[i] * packing.scale + packing.add;
    if (st != OK) mem_free(&value);
    *values = value;
    return st;
}
