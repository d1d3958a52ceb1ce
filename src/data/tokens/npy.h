/* Declares the header of NumPy's .npy files (numpy.lib.format, versions 1.0, 2.0 and 3.0). */
#ifndef WEFT_DATA_NPY_H
#define WEFT_DATA_NPY_H

#include "base.h"

enum {
    /* largest number of dimensions */
    NPY_DIMS = 8,
    /* largest number of bytes before the first element */
    NPY_HEAD_MAX = 1 << 16,
};

typedef struct NpyHeader {
    /* number of bytes before the first element */
    int64_t offset;
    /* NumPy's letter for the type: 'u', 'i', 'f', 'b', ... */
    char kind;
    /* number of bytes of an element */
    int bytes;
    bool big_endian;
    /* true: stored column by column; false: row by row */
    bool fortran_order;
    int ndim;
    int64_t dim[NPY_DIMS];
    /* product of the dimensions */
    int64_t elements;
} NpyHeader;

/* Returns whether a file that begins with these bytes is a .npy file. */
bool npy_begins(const uint8_t *head, size_t bytes);
/* Parses the header. head: the first NPY_HEAD_MAX bytes of the file, or all bytes of a shorter
 * file; bytes: their number; path: path of the file, for messages. ERR_DATA: the header is damaged
 * or not supported. */
Status npy_header_read(NpyHeader *header, const char *path, const uint8_t *head, size_t bytes);

#endif
