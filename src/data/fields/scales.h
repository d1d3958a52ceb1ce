/* Opens the dimension scales of HDF5 arrays, by which NetCDF-4 files name and describe dimensions.
 * Call all functions under hdf5_lock. */
#ifndef WEFT_DATA_SCALES_H
#define WEFT_DATA_SCALES_H

#include "../data_private.h"

/* Opens the scale of each dimension of an HDF5 array (`dataset`), by its attribute DIMENSION_LIST.
 * scale[i]: scale of dimension i; -1: it has none. Returns false if the attribute is damaged. The
 * caller calls scales_close in both cases. */
bool scales_open(hid_t dataset, int ndim, hid_t scale[SHAPE_DIMS]);
void scales_close(hid_t scale[SHAPE_DIMS]);
/* Writes the name of a scale, without its groups, to `name`, which has `room` bytes; "" if `scale`
 * is -1. Returns false if the name cannot be read. */
bool scale_name(hid_t scale, char *name, size_t room);
/* Returns whether a scale is a coordinate of `length` numbers. */
bool scale_is_coordinate(hid_t scale, const char *path, int64_t length);
/* Returns the last part of a name with groups: "time" of "/a/b/time". */
const char *name_in_group(const char *name);

#endif
