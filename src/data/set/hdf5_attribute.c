/* Reads texts and numbers from attributes of a file's root or of a data set. All functions are
 * called under hdf5_lock. */
#include "../data_private.h"

#include <string.h>

hid_t h5_attr_open(hid_t object, const char *name, int64_t *count)
{
    *count = 0;
    if (H5Aexists_by_name(object, ".", name, H5P_DEFAULT) <= 0) return -1;
    hid_t attr = H5Aopen_by_name(object, ".", name, H5P_DEFAULT, H5P_DEFAULT);
    if (attr < 0) return -1;
    hid_t space = H5Aget_space(attr);
    *count = (int64_t)H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    return attr;
}

/* A text attribute is treated as missing if it has at least STRINGS_MAX strings, or if their array
 * in memory has at least STRINGS_BYTES_MAX bytes; a string of variable length counts as its
 * pointer. */
enum { STRINGS_MAX = 1 << 24, STRINGS_BYTES_MAX = 64 << 20 };

/* Reads all n strings, as HDF5 requires, and writes the first one to out, of `room` bytes. The
 * blanks that pad strings of fixed length are left out. */
static herr_t read_text(hid_t attr, hid_t type, int64_t n, char *out, size_t room)
{
    bool variable = H5Tis_variable_str(type) > 0;
    size_t each = variable ? sizeof(char *) : H5Tget_size(type);
    char *raw = mem_new((size_t)n * each);
    herr_t rc = H5Aread(attr, type, raw);
    if (rc >= 0) {
        const char *s = variable ? *(char **)(void *)raw : raw;
        size_t length = !s ? 0 : variable ? strlen(s) : strnlen(s, each);
        while (!variable && length && s[length - 1] == ' ') --length;
        snprintf(out, room, "%.*s", (int)length, s ? s : "");
    }
    if (variable && rc >= 0) {
        hid_t space = H5Aget_space(attr);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
        H5Sclose(space);
    }
    mem_free(&raw);
    return rc;
}

Status h5_attr_text(hid_t object, const char *path, const char *name, char *out, size_t room)
{
    int64_t n;
    *out = 0;
    hid_t attr = h5_attr_open(object, name, &n);
    if (attr < 0) return OK;
    hid_t type = H5Aget_type(attr);
    Status st = OK;
    if (H5Tget_class(type) == H5T_STRING && n > 0 && n < STRINGS_MAX &&
        (double)n * (double)H5Tget_size(type) < STRINGS_BYTES_MAX &&
        read_text(attr, type, n, out, room) < 0)
        st = fail(ERR_DATA, "%s: attribute %s cannot be read: %s", path, name, h5_error_text());
    H5Tclose(type);
    H5Aclose(attr);
    return st;
}

Status h5_attr_floats(hid_t object, const char *path, const char *name, float *out, int max,
                      int *count)
{
    int64_t n;
    *count = 0;
    hid_t attr = h5_attr_open(object, name, &n);
    if (attr < 0) return OK;
    hid_t type = H5Aget_type(attr);
    H5T_class_t kind = H5Tget_class(type);
    H5Tclose(type);
    Status st = OK;
    if (kind != H5T_FLOAT && kind != H5T_INTEGER)
        st = fail(ERR_DATA, "%s: root attribute %s is not a number; give data.%s instead", path,
                  name, name);
    else if (n < 1 || n > max)
        st = fail(ERR_DATA,
                  "%s: root attribute %s has %lld values, at most %d can be used; give one value "
                  "with data.%s",
                  path, name, (long long)n, max, name);
    else if (H5Aread(attr, H5T_NATIVE_FLOAT, out) < 0)
        st =
            fail(ERR_DATA, "%s: root attribute %s cannot be read: %s", path, name, h5_error_text());
    else
        *count = (int)n;
    H5Aclose(attr);
    return st;
}

bool h5_attr_integer(hid_t object, const char *name, int64_t *value)
{
    int64_t n;
    hid_t attr = h5_attr_open(object, name, &n);
    if (attr < 0) return false;
    hid_t type = H5Aget_type(attr);
    bool found =
        H5Tget_class(type) == H5T_INTEGER && n == 1 && H5Aread(attr, H5T_NATIVE_INT64, value) >= 0;
    H5Tclose(type);
    H5Aclose(attr);
    return found;
}
