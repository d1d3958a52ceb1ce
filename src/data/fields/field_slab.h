/* A slab: the part of a variable's array that is read at once, one time and a range of levels, rows
 * and columns. */
#ifndef WEFT_DATA_FIELD_SLAB_H
#define WEFT_DATA_FIELD_SLAB_H

#include "field_files.h"

/* A rectangle of a grid: its first row and column, and its numbers of rows and columns. */
typedef struct FieldWindow {
    int64_t row, column, rows, columns;
} FieldWindow;

typedef struct FieldSlab {
    /* first_level: index in the array of the first level that is read */
    int variable, file, first_level;
    FieldWindow window;
    /* In the order of the array's dimensions: their lengths in the file, and the first index and
     * number of indices that are read. */
    int64_t length[SHAPE_DIMS], start[SHAPE_DIMS], count[SHAPE_DIMS];
    /* distance of neighbours along each FieldDim, in elements of the part that is read */
    int64_t step[FIELD_DIMS];
    /* number of elements that are read */
    int64_t elements;
    /* number of columns before the window that are read as well, because whole rows are read */
    int64_t columns_before;
} FieldSlab;

/* Finds the slab of a variable at a frame of the set or, if the variable is static, at its first
 * time, whatever `frame` is. */
FieldSlab field_slab(const FieldSet *f, int variable, int64_t frame, const FieldWindow *window);
/* Returns the number of pieces, that is ranges of bytes without gaps, that the slab has in a
 * contiguous array; *bytes: bytes of each piece. */
int64_t field_slab_pieces(const FieldSet *f, const FieldSlab *slab, int64_t *bytes);
/* Returns the offset of piece i, in bytes from the beginning of the array. */
int64_t field_slab_piece(const FieldSet *f, const FieldSlab *slab, int64_t i);
/* Unpacks one level (an index of FieldVariable.level) of a slab to `to`, (rows, columns) of the
 * window, missing values as NaN. ERR_DATA: a value is infinite. */
Status field_slab_unpack(const FieldSet *f, const FieldSlab *slab, const void *raw, int level,
                         double *to);

#endif
