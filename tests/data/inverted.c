/* A filter plug-in of HDF5 for test_plugin.c: it inverts all bits. It calls functions of HDF5 and
 * uses one of its types, which must be those of the program that loads it. */
#include <H5PLextern.h>
#include <hdf5.h>

enum { FILTER = 511 };

/* Stores the size of an element as the filter's only value. */
static herr_t set_local(hid_t create, hid_t type, hid_t space)
{
    (void)space;
    const unsigned size = (unsigned)H5Tget_size(type);
    return H5Pmodify_filter(create, FILTER, H5Z_FLAG_MANDATORY, 1, &size);
}

static size_t invert(unsigned flags, size_t count, const unsigned *value, size_t bytes,
                     size_t *buffer_bytes, void **buffer)
{
    (void)flags;
    if (count != 1 || value[0] != H5Tget_size(H5T_NATIVE_UINT8)) return 0;
    unsigned char *to = H5allocate_memory(bytes, false);
    if (!to) return 0;
    for (size_t i = 0; i < bytes; ++i) to[i] = (unsigned char)~((unsigned char *)*buffer)[i];
    H5free_memory(*buffer);
    *buffer = to;
    *buffer_bytes = bytes;
    return bytes;
}

static const H5Z_class2_t filter = {
    H5Z_CLASS_T_VERS, FILTER, 1, 1, "inverted", NULL, set_local, invert,
};

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}
const void *H5PLget_plugin_info(void)
{
    return &filter;
}
