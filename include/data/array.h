/* Arrays of data sets: types of their elements, shapes, and how an HDF5 file stores them. */
#ifndef WEFT_DATA_ARRAY_H
#define WEFT_DATA_ARRAY_H

#include "tensor.h"

/* Types of array elements, with their names in messages and JSON. A new type also needs a row in
 * src/data/set/element.c. */
#define ELEMENTS(W)                                                                                \
    W(ELEM_U8, "uint8")                                                                            \
    W(ELEM_I8, "int8")                                                                             \
    W(ELEM_U16, "uint16")                                                                          \
    W(ELEM_I16, "int16")                                                                           \
    W(ELEM_U32, "uint32")                                                                          \
    W(ELEM_I32, "int32")                                                                           \
    W(ELEM_U64, "uint64")                                                                          \
    W(ELEM_I64, "int64")                                                                           \
    W(ELEM_F32, "float32")                                                                         \
    W(ELEM_F64, "float64")
typedef enum ElementType { ELEMENTS(LIST_CONSTANT) } ElementType;

/* Returns the name of a type, for example "uint8". */
const char *element_name(ElementType type);
/* An array in an HDF5 file (HDF5 calls it a data set), with everything that a rank needs to read
 * it. */
typedef struct DataArray {
    char name[256];
    ElementType type;
    /* true: the bytes of an element in the file are big-endian */
    bool big_endian;
    int ndim;
    /* extents; dim[0] is the number of samples; dimensions from ndim on are 1 */
    int64_t dim[SHAPE_DIMS];
    /* byte offset in the file of contiguous data; -1: the array is read through HDF5, because it is
     * chunked, compressed, compact, or in the other byte order */
    int64_t offset;
    /* bytes of one sample in memory */
    int64_t sample_bytes;
    /* number of samples in a chunk; 0: the array is not chunked */
    int64_t chunk_rows;
    /* chunk_bytes: bytes of an unpacked chunk; chunks: number of chunks; 0: the array is not
     * chunked, or weft cannot unpack its chunks itself (filters other than shuffle and deflate,
     * HDF5 before 1.10.5) */
    int64_t chunk_bytes, chunks;
    /* description of the storage, for messages: "contiguous", "chunked 64x1x28x28, deflate" */
    char storage[120];
} DataArray;

#endif
