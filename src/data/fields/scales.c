/* Opens dimension scales by HDF5's attribute DIMENSION_LIST. This attribute has a list of
 * references for each dimension of an array; the first reference of a list is used. */
#include "scales.h"

#include <string.h>

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

bool scale_is_coordinate(hid_t scale, const char *path, int64_t length)
{
    /* a dimension without a coordinate has a scale with this name and without values */
    static const char none[] = "This is a netCDF dimension but";
    char name[64];
    if (scale < 0 || h5_attr_text(scale, path, "NAME", name, sizeof name) != OK ||
        strncmp(name, none, sizeof none - 1) == 0)
        return false;
    hid_t space = H5Dget_space(scale), type = H5Dget_type(scale);
    const H5T_class_t class = H5Tget_class(type);
    const bool fits = H5Sget_simple_extent_ndims(space) == 1 &&
                      H5Sget_simple_extent_npoints(space) == (hssize_t)length &&
                      (class == H5T_FLOAT || class == H5T_INTEGER);
    H5Tclose(type);
    H5Sclose(space);
    return fits;
}
