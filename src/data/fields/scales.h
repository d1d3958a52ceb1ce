/* Opens the dimension scales of HDF5 arrays, by which NetCDF-4 files name and describe dimensions,
 * and reads their values. Call all functions under hdf5_lock. path: path of the file, for
 * messages. */
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
/* Reads an attribute of 1 to `most` numbers of `object`, which is named `of`. *count: their number;
 * 0: the object has no such attribute. ERR_DATA: the attribute is anything else. */
Status scale_attr_numbers(hid_t object, const char *path, const char *of, const char *name,
                          int most, double *value, int *count);
/* Reads how an array named `of` is packed, but not which values are missing: the attributes
 * scale_factor and add_offset (CF conventions, section 8.1). ERR_DATA: the array cannot be read
 * with them, or has the attribute _Unsigned. */
Status scale_packing(hid_t array, const char *path, const char *of, FieldPacking *packing);
/* Reads the unpacked values of a scale named `of` into *values, [length], owned by the caller. If
 * `longer` is true, the scale may have more values; the first ones are then read. *values is NULL
 * if the scale is no coordinate of `length` numbers. ERR_DATA: the values cannot be read. */
Status scale_read(hid_t file, hid_t scale, const char *path, const char *of, int64_t length,
                  bool longer, double **values);
/* Returns the last part of a name with groups: "time" of "/a/b/time". */
const char *name_in_group(const char *name);

#endif
