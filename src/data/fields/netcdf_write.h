/* Writes NetCDF-4 files: HDF5 files with named dimensions, coordinates and attributes, which the
 * netCDF library, xarray and others open as their own (NetCDF User's Guide, "File Structure and
 * Performance", NetCDF-4/HDF5 format; HDF5 Dimension Scale Specification 1.0; CF Conventions 1.8).
 * The caller describes the whole file first; then it writes rows. Without deflate and without
 * unlimited dimensions the arrays are contiguous and aligned, so that ranks may read them by
 * offset. Times of creation are not stored: equal calls write equal bytes. */
#ifndef WEFT_DATA_FIELDS_NETCDF_WRITE_H
#define WEFT_DATA_FIELDS_NETCDF_WRITE_H

#include "base.h"
#include "data/array.h"

enum { NETCDF_UNLIMITED = 0, NETCDF_DIMS = 8 };

typedef struct NetcdfDim {
    const char *name;
    /* NETCDF_UNLIMITED: grows with the rows; only the first dimension of a variable may be
     * unlimited */
    int64_t size;
} NetcdfDim;
/* An attribute is a text, or a number (float64) if text is NULL. */
typedef struct NetcdfAttr {
    const char *name, *text;
    double number;
} NetcdfAttr;
/* A variable. A variable that has one dimension, and the name of that dimension, is the dimension's
 * coordinate. */
typedef struct NetcdfVar {
    const char *name;
    ElementType type;
    /* 0: a single value */
    int ndim;
    /* indices of its dimensions in NetcdfFile.dim */
    int dim[NETCDF_DIMS];
    const NetcdfAttr *attr;
    int attrs;
    /* value of elements that are missing (_FillValue); NULL: none */
    const double *fill;
    /* number of classes whose labels the variable has: attributes flag_values, 0 to flags - 1, and
     * flag_meanings (CF conventions, section 3.5); 0: none */
    int flags;
    const char *flag_meanings;
} NetcdfVar;
/* The description of a file; all of it is borrowed for the call of netcdf_writer_new. */
typedef struct NetcdfFile {
    const NetcdfDim *dim;
    int dims;
    const NetcdfVar *var;
    int vars;
    /* attributes of the file: Conventions, title, source, history */
    const NetcdfAttr *attr;
    int attrs;
    /* 0: variables are not compressed. 1 to 9: variables of two and more dimensions are compressed
     * by shuffle and deflate with this level, in chunks of one map: the last two dimensions, of
     * which an unlimited dimension counts as 1. */
    int deflate;
    /* number of rows along an unlimited dimension for which space on the disk is reserved */
    int64_t rows;
} NetcdfFile;

typedef struct NetcdfWriter NetcdfWriter;
/* Lays out out.part and reserves its space, so that a full disk is noticed here. ERR_USAGE: out
 * exists and force is false; ERR_DATA: names are missing, repeated, or not allowed in netCDF, or a
 * variable has the name of a dimension without being its coordinate; ERR_CONFIG: HDF5 has no
 * deflate; ERR_IO. Nothing needs to be released if it fails. These functions hold hdf5_lock, so
 * that threads may write files at once, each its own. */
Status netcdf_writer_new(NetcdfWriter **writer, const char *out, bool force,
                         const NetcdfFile *file);
/* Writes rows first .. first + count - 1 of variable `var` (its index in NetcdfFile.var): values
 * (count, further dimensions) of the variable's type. A row is an index of the first dimension; a
 * single value is one row. Rows of a variable may be written in any order. ERR_IO. */
Status netcdf_write(NetcdfWriter *writer, int var, int64_t first, int64_t count,
                    const void *values);
/* netcdf_finish makes all variables of an unlimited dimension equally long, syncs, and renames the
 * file to out. If it fails, and in netcdf_drop, out.part is removed and an earlier out stays (not
 * if only the sync of its folder fails). Both free the writer; netcdf_drop accepts NULL. */
Status netcdf_finish(NetcdfWriter **writer);
void netcdf_drop(NetcdfWriter **writer);

#endif
