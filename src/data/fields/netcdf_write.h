/* Writes NetCDF-4 files: HDF5 files with named dimensions, coordinates and attributes, which the
 * netCDF library and xarray, for example, can read (NetCDF User's Guide, "File Structure and
 * Performance", NetCDF-4/HDF5 format; HDF5 Dimension Scale Specification 1.0; CF Conventions 1.8).
 * The caller first describes all of the file, and then writes rows. Without deflate and without
 * unlimited dimensions the arrays are contiguous and aligned, so that ranks may read them by
 * offset. Times of creation are not stored, so equal calls write equal bytes. */
#ifndef WEFT_DATA_FIELDS_NETCDF_WRITE_H
#define WEFT_DATA_FIELDS_NETCDF_WRITE_H

#include "base.h"
#include "data/array.h"

enum {
    /* NetcdfDim.size of an unlimited dimension */
    NETCDF_UNLIMITED = 0,
    /* largest number of dimensions of a variable */
    NETCDF_VAR_DIMS_MAX = 8
};

typedef struct NetcdfDim {
    const char *name;
    /* length of the dimension; NETCDF_UNLIMITED: the dimension grows with the rows that are
     * written; only the first dimension of a variable may be unlimited */
    int64_t size;
} NetcdfDim;
/* An attribute is a text, or a number (float64) if text is NULL. */
typedef struct NetcdfAttr {
    const char *name, *text;
    double number;
} NetcdfAttr;
/* A variable. A one-dimensional variable whose name is the name of its dimension is the dimension's
 * coordinate. */
typedef struct NetcdfVar {
    const char *name;
    ElementType type;
    /* number of dimensions; 0: the variable is a single value */
    int ndim;
    /* indices of its dimensions in NetcdfFile.dim, [ndim] */
    int dim[NETCDF_VAR_DIMS_MAX];
    /* its attributes, [attrs], without _FillValue, flag_values and flag_meanings */
    const NetcdfAttr *attr;
    int attrs;
    /* value of elements that are missing (_FillValue); NULL: none */
    const double *fill;
    /* number of classes if the variable has class labels, else 0. If it is above 0, the writer adds
     * the attributes flag_values (0 to classes - 1) and flag_meanings (CF conventions, section
     * 3.5) */
    int classes;
    /* names of the classes, separated by spaces; used if `classes` is above 0 */
    const char *flag_meanings;
} NetcdfVar;
/* The description of a file; all of it is borrowed during the call of netcdf_writer_new. */
typedef struct NetcdfFile {
    /* dimensions, [dims] */
    const NetcdfDim *dim;
    int dims;
    /* variables, [vars] */
    const NetcdfVar *var;
    int vars;
    /* attributes of the file, such as Conventions, title, source and history, [attrs] */
    const NetcdfAttr *attr;
    int attrs;
    /* 0: variables are not compressed. 1 to 9: level of deflate, which after shuffle compresses
     * variables of two or more dimensions. A chunk has all indices of the last two dimensions, and
     * one index of each dimension before them. Of an unlimited dimension it always has one
     * index. */
    int deflate;
    /* number of rows along an unlimited dimension for which space on the disk is reserved */
    int64_t reserved_rows;
} NetcdfFile;

/* All functions of a writer take hdf5_lock, so several threads may write at the same time, each to
 * its own file. */
typedef struct NetcdfWriter NetcdfWriter;
/* Lays out the file OUT.part and reserves its space, so that a full disk is noticed here. out: path
 * of the file OUT. ERR_USAGE: OUT exists and force is false; ERR_DATA: a name is missing, repeated,
 * or not allowed in netCDF, or a variable has the name of a dimension without being its coordinate;
 * ERR_CONFIG: HDF5 has no deflate; ERR_IO. Nothing needs to be released if it fails. */
Status netcdf_writer_new(NetcdfWriter **writer, const char *out, bool force,
                         const NetcdfFile *file);
/* Writes rows `first` to first + count - 1 of variable `var` (its index in NetcdfFile.var). A row
 * is everything at one index of the first dimension; a single value is one row. values: (count,
 * further dimensions), of the variable's type. Rows may be written in any order. ERR_IO. */
Status netcdf_write(NetcdfWriter *writer, int var, int64_t first, int64_t count,
                    const void *values);
/* Makes all variables of an unlimited dimension equally long, syncs the file and renames it to OUT.
 * If this fails, OUT.part is removed, and an earlier file OUT is kept; but if only the sync of the
 * folder fails, OUT is already the new file. Frees the writer and sets *writer to NULL. */
Status netcdf_finish(NetcdfWriter **writer);
/* Removes OUT.part and keeps an earlier file OUT. Frees the writer and sets *writer to NULL;
 * *writer may be NULL. */
void netcdf_drop(NetcdfWriter **writer);

#endif
