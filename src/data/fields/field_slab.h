/* Describes slabs. A slab is the part of a variable's array that is read at once: one time, and a
 * range of levels, of rows and of columns. */
#ifndef WEFT_DATA_FIELD_SLAB_H
#define WEFT_DATA_FIELD_SLAB_H

#include "field_files.h"

/* A rectangle of a grid. */
typedef struct FieldRect {
    /* its first row and its first column */
    int64_t row, column;
    /* number of its rows and of its columns */
    int64_t rows, columns;
} FieldRect;

typedef struct FieldSlab {
    /* indices of the variable and of the file in the set */
    int variable, file;
    /* index in the array of the first level that is read */
    int first_level;
    FieldRect window;
    /* length of each dimension of the array in the file, in the array's order */
    int64_t length[SHAPE_DIMS];
    /* first index along each dimension that is read */
    int64_t start[SHAPE_DIMS];
    /* number of indices along each dimension that are read */
    int64_t count[SHAPE_DIMS];
    /* distance of neighbours along each FieldDim, in elements of the part that is read */
    int64_t step[FIELD_DIMS];
    /* number of elements that are read */
    int64_t elements;
    /* number of columns before the window, if rows are read with all their columns; else 0 */
    int64_t columns_before;
} FieldSlab;

/* Finds the slab of a variable at a frame of the set or, if the variable is static, at its first
 * time, whatever `frame` is. */
FieldSlab field_slab(const FieldSet *f, int variable, int64_t frame, const FieldRect *window);
/* Returns the number of pieces of the slab in a contiguous array. A piece is a range of bytes
 * without gaps. *bytes: length of each piece. */
int64_t field_slab_pieces(const FieldSet *f, const FieldSlab *slab, int64_t *bytes);
/* Returns the offset of piece i, in bytes from the beginning of the array. */
int64_t field_slab_piece(const FieldSet *f, const FieldSlab *slab, int64_t i);
/* Unpacks one level of a slab to `to`, (rows, columns) of the window; missing values become NaN.
 * raw: the slab's stored values. level: an index of FieldVariable.level_index. ERR_DATA: a value is
 * infinite. */
Status field_slab_unpack(const FieldSet *f, const FieldSlab *slab, const void *raw, int level,
                         double *to);

#endif
