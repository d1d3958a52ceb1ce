/* Shapes of tensors, their number formats, memory layouts, and the slices that ranks have of them.
 * Letters in shapes: N micro-batch, C channels, H and W height and width of an image, T sequence, K
 * classes. Not collective. */
#ifndef WEFT_TENSOR_SHAPE_H
#define WEFT_TENSOR_SHAPE_H

#include "base.h"

#include <string.h>

enum { SHAPE_DIMS = 4 };
/* A shape. Activations are images (N,C,H,W), sequences (N,T,C) or vectors (N,C). */
typedef struct Shape {
    /* number of dimensions */
    int ndim;
    /* extent of each dimension; from ndim on they are 1 */
    int64_t dim[SHAPE_DIMS];
} Shape;
/* Number formats: constant, name, bytes of an element. */
#define DTYPES(_)                                                                                  \
    _(F32, "fp32", 4)                                                                              \
    _(I32, "int32", 4)                                                                             \
    _(BF16, "bf16", 2)                                                                             \
    _(F16, "fp16", 2)
#define DTYPE_ENTRY(TYPE, name, bytes) DTYPE_##TYPE,
typedef enum DType { DTYPES(DTYPE_ENTRY) } DType;
#undef DTYPE_ENTRY
/* Returns the bytes of one element. */
size_t dtype_bytes(DType type);
const char *dtype_name(DType type);

Shape shape_of(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3);
/* Returns the number of elements. */
int64_t shape_count(Shape shape);
bool shape_equal(Shape a, Shape b);
/* Writes a shape as "8x64x28x28" to `out`, which has at least 64 bytes, and returns out. */
char *shape_text(Shape shape, char *out);

/* The shape, number format and memory layout of an activation. A 4-d shape has its channels
 * (dim[1]) in blocks of `block` channels, in the order [N][ceil(C/block)][H][W][block], padded with
 * zeros: block 1 is plain NCHW, block C is channels-last, and 8 and 16 suit vector units. All other
 * shapes are row-major, and each row (the last dimension) is padded with zeros to whole blocks (on
 * GPUs, so that rows of odd width are aligned for tensor cores). flat is true if the tensor is a
 * view (N, C*H*W) of memory that still has the blocked order of the 4-d shape `image`: flatten
 * copies nothing, and dense reads that order. If flat is false, image is not used. */
typedef struct Desc {
    Shape shape;
    DType dtype;
    int block;
    bool flat;
    Shape image;
} Desc;
/* A number in bf16, which is the upper half of a float. bf16_of rounds to nearest, ties to even,
 * also denormal numbers; NaN stays NaN. */
typedef struct Bf16 {
    uint16_t bits;
} Bf16;
static inline float bf16_value(Bf16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline Bf16 bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (Bf16){(uint16_t)((nan ? quiet : rounded) >> 16)};
}

/* A number in IEEE 754 half precision (half.c). f16_of rounds to nearest, ties to even; values that
 * are too large become infinite. */
typedef struct F16 {
    uint16_t bits;
} F16;
float f16_value(F16 x);
F16 f16_of(float value);

/* Returns a Desc with plain layout: row-major without padding. */
Desc desc_plain(Shape shape, DType dtype);
bool desc_equal(Desc a, Desc b);
/* Returns true if the memory is row-major without padding; this includes a flat view of an image
 * with block 1. */
bool desc_is_plain(Desc d);
/* Returns the number of elements from one row to the next; not for images. */
int64_t desc_row_stride(Desc d);
/* Returns the number of elements in memory, including padding. */
int64_t desc_elements(Desc d);
size_t desc_bytes(Desc d);

/* Returns the first item of a rank's slice of a dimension of `items` items. The dimension is
 * divided among the ranks in order: rank r has items slice_first(items, ranks, r) ..
 * slice_first(items, ranks, r + 1) - 1. The lengths of slices differ by at most one item, and no
 * slice is longer than that of rank 0. With n times as many ranks, each slice is cut into n slices:
 * slice_first(items, ranks, r) == slice_first(items, n * ranks, n * r). */
int64_t slice_first(int64_t items, int ranks, int rank);
/* One rank's slice of one dimension of a tensor; if `ranks` is 0, the tensor is not divided. */
typedef struct TensorSlice {
    /* dim: the divided dimension; rank: number of this rank among `ranks` ranks */
    int dim, rank, ranks;
    /* first: first item of this rank; count: number of its items; whole: number of items of the
     * undivided dimension */
    int64_t first, count, whole;
} TensorSlice;
/* A sum that is always cut into `total` slices, so that its bits do not depend on the number of
 * ranks. Each slice is a sum in fp32, and the slices are added by the binary tree of neighbours.
 * The terms are grouped in units and parts (below). Slice i of a part with n units has the units
 * slice_first(n, total, i) to slice_first(n, total, i + 1) - 1. */
typedef struct SumSlices {
    /* number of slices, a power of two; 0: the sum is not cut */
    int total;
    /* this rank computes slices first .. first + count - 1, which are a subtree */
    int first, count;
    /* The terms of the sum over all ranks are divided into consecutive parts, for example queries,
     * keys and values. A part consists of units that no slice divides, for example heads. units:
     * number of units of the first part; other_units: number of units of each other part;
     * first_unit_ratio: number of terms in a unit of the first part, divided by the number of terms
     * in a unit of another part. */
    int64_t units, other_units, first_unit_ratio;
    /* number of parts */
    int parts;
} SumSlices;
/* How a tensor is divided among ranks. The tensor is `ranges` contiguous ranges of equal size, each
 * with `items` items of item_elements elements. Every rank has its slice of the items of each range
 * (slice_first), and stores its slices one after the other without gaps. */
typedef struct Slices {
    int64_t ranges, items, item_elements;
    /* number of ranks that have the slices of one tensor: a block of neighbours in the
     * tensor-parallel group; each block has its own tensor. 0: all ranks of the group have slices
     * of one tensor. */
    int ranks;
    /* element type: fp32 or bf16; on GPUs also fp16 */
    DType type;
} Slices;
/* Returns the bytes of a rank's slice of one range. */
size_t slices_range_bytes(const Slices *s, int ranks, int rank);

#endif
